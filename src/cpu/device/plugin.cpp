// SPDX-License-Identifier: Apache-2.0
// Functions of the CPU device beyond the Driver API.
#include "cpu/device/cuda_api.hpp"

#pragma GCC visibility push(default)
#include "driver/cpu_plugin.h"
#pragma GCC visibility pop

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/log.hpp"
#include "base/thread.hpp"
#include "cpu/compiler/compiler.hpp"
#include "cpu/device/driver.hpp"
#include "cpu/device/launch.hpp"
#include "cpu/device/library.hpp"
#include "cpu/device/limits.hpp"
#include "cpu/device/module/bundled.hpp"
#include "cpu/device/module/code_cache.hpp"
#include "cpu/device/module/read_ptx.hpp"
#include "driver/driver_table.hpp"

namespace quern::cpu::device {
namespace {

void hand_over(const Diagnostics& diagnostics, QuernDiagnosticSink sink, void* user) {
  if (sink == nullptr) return;
  for (const Diagnostic& each : diagnostics) {
    std::string message = each.message;
    for (const Note& note : each.notes) message += "\nnote: " + note.message;
    sink(user, each.code.c_str(), each.span.file.c_str(), each.span.line, each.span.column, message.c_str(),
         each.source_line.c_str(), each.hint.c_str());
  }
}

int refuse(const std::string& code, const std::string& message, const std::string& hint,
           QuernDiagnosticSink sink, void* user) {
  Diagnostic diagnostic;
  diagnostic.code = code;
  diagnostic.message = message;
  diagnostic.hint = hint;
  hand_over({diagnostic}, sink, user);
  return 1;
}

int driver_table(void* table, std::size_t table_bytes) {
  driver::DriverTable ours;
  if (table == nullptr || table_bytes != sizeof ours) return 1;
#define QUERN_DRIVER_FUNCTION(name, ...) ours.name = &::name;
#include "driver/functions.def"
  Driver::expect_reader();
  *static_cast<driver::DriverTable*>(table) = ours;
  return 0;
}

/// "STAGE" or "STAGE=PASS"; the result views `text`. Null: no such stage.
std::optional<StageRequest> stage_named(std::string_view text) noexcept {
  const std::size_t equals = text.find('=');
  StageRequest request;
  if (equals != std::string_view::npos) request.pass = text.substr(equals + 1);
  const std::string_view name = text.substr(0, equals);
  if (name == "simt")
    request.stage = Stage::simt;
  else if (name == "llvm")
    request.stage = Stage::llvm;
  else if (name == "asm")
    request.stage = Stage::assembly;
  else
    return std::nullopt;
  return request;
}

int write_stage(std::string_view ptx, std::string_view kernel, const std::uint32_t block[3],
                const StageRequest& request, QuernTextSink text, QuernDiagnosticSink diagnostics,
                void* user) {
  const std::variant<LoadablePtx, Refusal> read = read_ptx(ptx);
  if (const auto* refusal = std::get_if<Refusal>(&read)) {
    hand_over(refusal->diagnostics, diagnostics, user);
    return 1;
  }
  const LoadablePtx& loadable = std::get<LoadablePtx>(read);
  std::string names;
  for (const KernelInfo& info : loadable.kernels) names += (names.empty() ? "" : ", ") + info.name;
  if (std::none_of(loadable.kernels.begin(), loadable.kernels.end(),
                   [&](const KernelInfo& info) { return info.name == kernel; }))
    return refuse("kernel-not-found", "the PTX has no kernel '" + std::string(kernel) + "'",
                  "it has: " + names, diagnostics, user);
  Specialisation specialisation;
  specialisation.isa = host_isa();
  specialisation.compact = compiles_compact();
  if (makes_quick_code_only()) specialisation.opt_level = kQuickLevel;
  std::copy_n(block, 3, specialisation.block.begin());
  if (specialisation.threads() == 0 || specialisation.threads() > kMaxThreadsPerBlock)
    return refuse("usage", "a block has 1 to 1024 threads", "give another block shape", diagnostics, user);
  const Expected<std::string> result =
      base::secluded([&] { return stage_text(loadable.module, kernel, specialisation, request); });
  if (!result) {
    hand_over(result.errors(), diagnostics, user);
    return 1;
  }
  text(user, result->data(), result->size());
  return 0;
}

int plugin_timed_stage_text(const char* ptx, std::size_t ptx_bytes, const char* kernel,
                            const std::uint32_t block[3], const char* stage, QuernTextSink text,
                            QuernCpuPassSink pass, QuernDiagnosticSink diagnostics, void* user) try {
  std::optional<StageRequest> request = stage_named(stage);
  if (!request)
    return refuse("no-such-stage", std::string("the CPU device has no stage '") + stage + "'",
                  "use simt, llvm or asm", diagnostics, user);
  std::vector<PassTime> times;
  if (pass != nullptr) request->times = &times;
  const int status = write_stage({ptx, ptx_bytes}, kernel, block, *request, text, diagnostics, user);
  for (const PassTime& row : times)
    pass(user, std::string(row.name).c_str(), row.runs, static_cast<std::uint64_t>(row.time.count()));
  return status;
} catch (const std::exception& error) {
  return refuse("internal", error.what(), "", diagnostics, user);
}

int plugin_stage_text(const char* ptx, std::size_t ptx_bytes, const char* kernel,
                      const std::uint32_t block[3], const char* stage, QuernTextSink text,
                      QuernDiagnosticSink diagnostics, void* user) {
  return plugin_timed_stage_text(ptx, ptx_bytes, kernel, block, stage, text, nullptr, diagnostics, user);
}

int plugin_check_ptx(const char* ptx, std::size_t ptx_bytes, QuernDiagnosticSink diagnostics,
                     void* user) try {
  const std::variant<LoadablePtx, Refusal> read = read_ptx({ptx, ptx_bytes});
  const auto* refusal = std::get_if<Refusal>(&read);
  if (refusal == nullptr) return 0;
  hand_over(refusal->diagnostics, diagnostics, user);
  return 1;
} catch (const std::exception& error) {
  return refuse("internal", error.what(), "", diagnostics, user);
}

const char* plugin_isa() {
  switch (host_isa()) {
    case Isa::baseline:
      return "baseline";
    case Isa::avx2:
      return "avx2";
    case Isa::avx512:
      return "avx512";
  }
  return "baseline";
}

std::atomic<QuernCpuPrintSink> print_sink{nullptr};
bool offer_print(const engine::Print& print) noexcept {
  const QuernCpuPrintSink sink = print_sink.load();
  if (sink == nullptr) return false;
  const CUcontext context = Driver::get().contexts().handle_of(print.owner);
  const QuernCpuPrint given{sizeof given,         0,      print.text.data(), print.text.size(),
                            print.kernel.c_str(), context};
  return sink(&given) != 0;
}
void plugin_set_print_sink(QuernCpuPrintSink sink) {
  print_sink.store(sink);
  output().set_sink(&offer_print);
}

std::atomic<QuernCpuLogSink> log_sink{nullptr};
bool offer_record(const LogRecord& record) {
  const QuernCpuLogSink sink = log_sink.load();
  if (sink == nullptr) return false;
  std::vector<QuernCpuLogField> fields;
  for (const LogField& field : record.fields) fields.push_back({field.name.c_str(), field.value.c_str()});
  const QuernCpuLogRecord given{sizeof given, static_cast<std::int32_t>(record.level), record.text.c_str(),
                                fields.size(), fields.data()};
  return sink(&given) != 0;
}
static_assert(static_cast<int>(LogLevel::error) == 0 && static_cast<int>(LogLevel::warning) == 1 &&
              static_cast<int>(LogLevel::info) == 2 && static_cast<int>(LogLevel::debug) == 3);
void plugin_set_log_sink(QuernCpuLogSink sink) {
  log_sink.store(sink);
  base::forward_log(&offer_record);
}

void plugin_keep_host_memory() { keep_host_memory(); }

int plugin_release_host_memory(void* address) {
  const CUresult result = entry_in_host_function([&] { Driver::get().release_kept(address); });
  return result == CUDA_SUCCESS ? 0 : 1;
}

void plugin_start_errors(QuernDiagnosticSink sink, void* user) {
  hand_over(Driver::start_errors(), sink, user);
}

int plugin_reservation(std::uint64_t* reserved_bytes, int* is_compact) {
  const Driver* const driver = Driver::started();
  if (driver == nullptr) return 1;
  *reserved_bytes = driver->window().reserved_bytes();
  *is_compact = driver->window().compact() ? 1 : 0;
  return 0;
}

void copy(const std::optional<engine::Index3>& from, std::uint32_t (&to)[3]) {
  if (from) std::copy(from->begin(), from->end(), to);
}

QuernCpuFault as_struct(const engine::FaultReport& report, CUresult result, const std::string& space) {
  QuernCpuFault fault{};
  fault.struct_bytes = sizeof fault;
  fault.result = static_cast<std::int32_t>(result);
  fault.known = (report.block ? QUERN_CPU_KNOWS_BLOCK : 0u) |
                (report.first_thread ? QUERN_CPU_KNOWS_THREADS : 0u) |
                (report.address ? QUERN_CPU_KNOWS_ADDRESS : 0u);
  copy(report.grid, fault.grid);
  copy(report.block_dim, fault.block_dim);
  copy(report.block, fault.block);
  copy(report.first_thread, fault.first_thread);
  copy(report.last_thread, fault.last_thread);
  fault.line = report.line;
  fault.access = static_cast<std::uint32_t>(report.access);
  fault.access_bytes = report.access_bytes;
  fault.address = report.address.value_or(0);
  fault.kernel = report.kernel.c_str();
  fault.file = report.file.c_str();
  fault.space = space.c_str();
  return fault;
}
static_assert(static_cast<int>(engine::AccessKind::load) == 1 &&
              static_cast<int>(engine::AccessKind::store) == 2 &&
              static_cast<int>(engine::AccessKind::atomic) == 3);

int plugin_current_fault(QuernCpuFaultSink sink, void* user) try {
  const std::shared_ptr<ContextState> context = Driver::get().current_even_failed();
  const engine::FaultKind kind = context->domain->fault();
  if (kind == engine::FaultKind::none || sink == nullptr) return 1;
  const engine::FaultReport& report = context->domain->fault_report();
  const std::string space(report.space);
  const QuernCpuFault fault = as_struct(report, result_of(kind), space);
  sink(user, &fault);
  return 0;
} catch (...) {  // a Failure too
  return 1;
}

int plugin_name_kernel(void* function, const char* name) try {
  if (name == nullptr) return 1;
  find_function(Driver::get(), static_cast<CUfunction>(function))->set_display_name(name);
  return 0;
} catch (...) {  // a Failure too
  return 1;
}

int plugin_mark_copy_kernel(void* function) try {
  find_function(Driver::get(), static_cast<CUfunction>(function))->is_copy = true;
  return 0;
} catch (...) {  // a Failure too
  return 1;
}

std::int32_t plugin_cancel_stream(void* stream) {
  return entry_in_host_function([&] {
    Driver& driver = Driver::get();
    driver.scheduler().cancel(driver.stream_of(static_cast<CUstream>(stream)).stream);
  });
}

std::int32_t plugin_cancel_context() {
  return entry_in_host_function([] {
    Driver& driver = Driver::get();
    driver.scheduler().cancel(*driver.current()->domain);
  });
}

void plugin_set_launch_limit(std::uint64_t nanoseconds) { set_launch_limit(nanoseconds); }

void plugin_set_generate_sink(QuernCpuGenerateSink sink) { set_generate_sink(sink); }

int plugin_code_statistics(QuernCpuCodeStatistics* statistics) {
  if (statistics == nullptr || forked()) return 1;
  const CodeStats codes = code_stats();
  const TextStats texts = text_stats();
  const QuernCpuCodeStatistics all{statistics->struct_bytes, 0,
                                   codes.generated,          codes.from_memory,
                                   codes.from_disk,          texts.checked,
                                   texts.from_memory,        texts.from_disk,
                                   codes.from_bundles,       texts.from_bundles};
  std::memcpy(statistics, &all, std::min<std::size_t>(statistics->struct_bytes, sizeof all));
  return 0;
}

std::int32_t plugin_prepare_kernel(void* function, const std::uint32_t block[3]) {
  return entry([&] {
    const std::uint32_t shape[3] = {block[0], block[1], block[2]};
    prepare(Driver::get(), static_cast<CUfunction>(function), shape);
  });
}

int plugin_compile_times(void* function, QuernCpuCompileTimes* times) try {
  if (times == nullptr) return 1;
  const auto found = find_function(Driver::get(), static_cast<CUfunction>(function));
  const QuernCpuCompileTimes all{times->struct_bytes, 0, found->module().read_ns, found->machine_code_ns()};
  std::memcpy(times, &all, std::min<std::size_t>(times->struct_bytes, sizeof all));
  return 0;
} catch (...) {  // a Failure too
  return 1;
}

BundleWish wish_of(const QuernCpuBundleRequest& request) {
  BundleWish wish;
  for (std::size_t i = 0; i < request.block_count; ++i)
    wish.blocks.push_back({request.blocks[i][0], request.blocks[i][1], request.blocks[i][2]});
  constexpr std::pair<std::uint32_t, Isa> kIsas[] = {{QUERN_CPU_ISA_BASELINE, Isa::baseline},
                                                     {QUERN_CPU_ISA_AVX2, Isa::avx2},
                                                     {QUERN_CPU_ISA_AVX512, Isa::avx512}};
  for (const auto& [bit, isa] : kIsas)
    if ((request.isas & bit) != 0) wish.isas.push_back(isa);
  return wish;
}

int plugin_bundle_code(const QuernCpuBundleRequest* request, QuernCpuEntrySink entries,
                       QuernTextSink without_code, QuernDiagnosticSink diagnostics, void* user) try {
  const Expected<BundledCode> made = base::secluded(
      [&] { return make_bundled_code({request->ptx, request->ptx_bytes}, wish_of(*request)); });
  if (!made) {
    hand_over(made.errors(), diagnostics, user);
    return 1;
  }
  for (const cache::BundleEntry& each : made->entries) {
    const QuernCpuEntry entry{sizeof entry,           static_cast<std::uint32_t>(each.kind),
                              each.key.bytes.data(),  each.components.data(),
                              each.components.size(), each.content.data(),
                              each.content.size()};
    entries(user, &entry);
  }
  for (const std::string& kernel : made->without_code) without_code(user, kernel.data(), kernel.size());
  return 0;
} catch (const std::exception& error) {
  return refuse("internal", error.what(), "", diagnostics, user);
}

constexpr QuernCpuPlugin kPlugin = {
    QUERN_CPU_PLUGIN_VERSION,    sizeof(QuernCpuPlugin),   &driver_table,
    &plugin_stage_text,          &plugin_check_ptx,        &plugin_isa,
    &configured_worker_count,    &plugin_set_print_sink,   &plugin_keep_host_memory,
    &plugin_release_host_memory, &plugin_start_errors,     &plugin_reservation,
    &plugin_current_fault,       &plugin_name_kernel,      &plugin_cancel_stream,
    &plugin_cancel_context,      &plugin_set_launch_limit, &plugin_set_log_sink,
    &plugin_set_generate_sink,   &plugin_code_statistics,  &plugin_prepare_kernel,
    &plugin_mark_copy_kernel,    &plugin_bundle_code,      &plugin_timed_stage_text,
    &plugin_compile_times,
};

}  // namespace
}  // namespace quern::cpu::device

const QuernCpuPlugin* quern_cpu_device(void) { return &quern::cpu::device::kPlugin; }
