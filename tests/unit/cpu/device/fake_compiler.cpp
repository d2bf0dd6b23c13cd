// SPDX-License-Identifier: Apache-2.0
#include "fake_compiler.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>

#include "base/uninstrumented.hpp"
#include "cpu/compiler/compiler.hpp"
#include "driver/cpu_plugin.h"
#include "ptx/ptx.hpp"

namespace quern::test {

const char* const kKernels = R"(
.version 8.0
.target sm_89
.address_size 64
.global .align 4 .u32 counter = 7;
.const .align 8 .u64 pointer = counter;
.visible .entry empty() { ret; }
.visible .entry fill(.param .u64 out, .param .u32 value) { ret; }
.visible .entry index(.param .u64 out) { ret; }
.visible .entry add(.param .u64 target, .param .u64 amount) { ret; }
.visible .entry spin(.param .u64 flag) { ret; }
.visible .entry wild(.param .u64 address) { ret; }
.visible .entry trap() { ret; }
.visible .entry recurse() { ret; }
.visible .entry divide() { ret; }
.visible .entry illegal() { ret; }
.visible .entry meet(.param .u64 count) { ret; }
.visible .entry allocate(.param .u64 out, .param .u64 bytes) { ret; }
.visible .entry release(.param .u64 pointer) { ret; }
.visible .entry small() .maxntid 64, 1, 1 { ret; }
.visible .entry shared_user() { ret; }
)";

std::string tiers_text() {
  std::string text =
      ".version 8.0\n.target sm_89\n.address_size 64\n.func helper() { ret; }\n"
      ".func again() { call again; ret; }\n";
  const std::pair<std::string, std::string> kernels[] = {{"tiers", "red.global.add.u32 [%rd], %r;"},
                                                         {"tiers_calls", "call helper;"},
                                                         {"tiers_recursion", "call again;"},
                                                         {"tiers_atom", "atom.global.add.u32 %r, [%rd], 1;"},
                                                         {"tiers_red", "red.global.add.f32 [%rd], %f;"}};
  for (const auto& [name, last] : kernels) {
    text += ".visible .entry " + name + "(.param .u64 out) {\n.reg .b32 %r;\n.reg .b64 %rd;\n.reg .f32 %f;\n";
    for (int i = 0; i < 100; ++i) text += "mov.u32 %r, 0;\n";
    text += last + "\nret;\n}\n";
  }
  return text;
}

namespace {

using cpu::engine::LaunchState;
using cpu::engine::WorkerState;

std::atomic<std::uint64_t> compiled{0};
std::atomic<int> memory_refusals{0};
std::atomic<std::chrono::milliseconds> delay{std::chrono::milliseconds(0)};
std::atomic<int> gathering{0};
std::atomic<int> compiling{0};
std::atomic<int> most{0};
std::atomic<bool> good_is_held{false};

/// Follows gather_compilers() and delay_compiler().
void stay_in_compiler() {
  using namespace std::chrono_literals;
  const int now = ++compiling;
  for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) continue;
  std::this_thread::sleep_for(delay.load());
  const auto end = std::chrono::steady_clock::now() + 10s;
  while (most < gathering && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(1ms);
  --compiling;
}

template <class T>
T parameter(const LaunchState* launch, std::uint32_t offset) {
  T value;
  std::memcpy(&value, launch->params + offset, sizeof value);
  return value;
}
std::uint32_t threads(const LaunchState* launch) {
  return launch->block[0] * launch->block[1] * launch->block[2];
}

void empty(const LaunchState*, WorkerState*, std::uint64_t, std::uint64_t) {}

/// out[i] = value for every thread of the grid.
void fill(const LaunchState* launch, WorkerState*, std::uint64_t first, std::uint64_t count) {
  auto* out = parameter<std::uint32_t*>(launch, 0);
  const auto value = parameter<std::uint32_t>(launch, 8);
  for (std::uint64_t i = first * threads(launch); i < (first + count) * threads(launch); ++i) out[i] = value;
}

/// Computes out[block] += 1, to check that every block runs exactly once.
void index(const LaunchState* launch, WorkerState*, std::uint64_t first, std::uint64_t count) {
  auto* out = parameter<std::uint32_t*>(launch, 0);
  for (std::uint64_t block = first; block < first + count; ++block) ++out[block];
}

void add(const LaunchState* launch, WorkerState*, std::uint64_t, std::uint64_t count) {
  auto* target = reinterpret_cast<std::atomic<std::uint64_t>*>(parameter<std::uint64_t>(launch, 0));
  target->fetch_add(parameter<std::uint64_t>(launch, 8) * count);
}

void spin(const LaunchState* launch, WorkerState*, std::uint64_t, std::uint64_t) {
  auto* flag = reinterpret_cast<std::atomic<std::uint32_t>*>(parameter<std::uint64_t>(launch, 0));
  while (flag->load() == 0) std::this_thread::yield();
}

// QUERN_UNINSTRUMENTED, as emitted code is: a fault in the middle of an instrumented function would leave the
// sanitizer's state inconsistent.

QUERN_UNINSTRUMENTED void wild(const LaunchState* launch, WorkerState*, std::uint64_t, std::uint64_t) {
  std::uint64_t address = parameter<std::uint64_t>(launch, 0);
  // As in emitted code, an address outside the window is replaced by its end.
  const auto base = reinterpret_cast<std::uint64_t>(launch->window_base);
  if (address - base >= launch->window_bytes) address = base + launch->window_bytes;
  *reinterpret_cast<volatile std::uint32_t*>(address) = 1;
}

QUERN_UNINSTRUMENTED void trap(const LaunchState*, WorkerState* worker, std::uint64_t, std::uint64_t) {
  cpu::engine::quern_cpu_trap(worker, static_cast<std::uint32_t>(cpu::ir::Trap::trap));
}

QUERN_UNINSTRUMENTED __attribute__((noinline)) std::uint64_t deeper(std::uint64_t depth) {
  volatile std::uint64_t frame[64];
  frame[depth % 64] = depth;
  return depth == ~std::uint64_t{0} ? 0 : deeper(depth + 1) + frame[depth % 64];
}
QUERN_UNINSTRUMENTED void recurse(const LaunchState*, WorkerState*, std::uint64_t, std::uint64_t) {
  // A launch of this kernel never returns; the result only prevents that the calls are optimised away.
  if (deeper(0) == 1) std::abort();
}

QUERN_UNINSTRUMENTED void divide(const LaunchState*, WorkerState*, std::uint64_t, std::uint64_t) {
  asm volatile("xorl %%ecx, %%ecx\n\tmovl $1, %%eax\n\tcltd\n\tidivl %%ecx" ::: "eax", "ecx", "edx");
}
QUERN_UNINSTRUMENTED void illegal(const LaunchState*, WorkerState*, std::uint64_t, std::uint64_t) {
  asm volatile("ud2");
}

/// Every block waits until all blocks have arrived.
void meet(const LaunchState* launch, WorkerState*, std::uint64_t, std::uint64_t count) {
  auto* arrived = reinterpret_cast<std::atomic<std::uint64_t>*>(parameter<std::uint64_t>(launch, 0));
  arrived->fetch_add(count);
  while (arrived->load() < launch->grid[0]) std::this_thread::yield();
}

void allocate(const LaunchState* launch, WorkerState* worker, std::uint64_t, std::uint64_t) {
  const std::uint64_t bytes = parameter<std::uint64_t>(launch, 8);
  *parameter<std::uint64_t*>(launch, 0) = cpu::engine::quern_cpu_host_call(
      worker, launch, static_cast<std::uint32_t>(cpu::ir::HostCall::malloc), &bytes);
}

QUERN_UNINSTRUMENTED void release(const LaunchState* launch, WorkerState* worker, std::uint64_t,
                                  std::uint64_t) {
  const std::uint64_t pointer = parameter<std::uint64_t>(launch, 0);
  cpu::engine::quern_cpu_host_call(worker, launch, static_cast<std::uint32_t>(cpu::ir::HostCall::free),
                                   &pointer);
}

/// Writes all of its shared memory.
void shared_user(const LaunchState* launch, WorkerState* worker, std::uint64_t, std::uint64_t) {
  std::memset(worker->shared_base, 1, launch->total_shared_bytes);
}

template <std::uint32_t kTier>
void tiers(const LaunchState* launch, WorkerState*, std::uint64_t, std::uint64_t) {
  reinterpret_cast<std::atomic<std::uint32_t>*>(parameter<std::uint64_t>(launch, 0))->store(kTier);
}

/// Follows hold_good_code().
void stay_while_held() {
  using namespace std::chrono_literals;
  const auto end = std::chrono::steady_clock::now() + 10s;
  while (good_is_held && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(1ms);
}

const std::map<std::string, cpu::engine::RunBlocks, std::less<>> kFunctions = {
    {"tiers", tiers<2>},
    {"tiers quick", tiers<1>},
    {"tiers_calls", tiers<2>},
    {"tiers_calls quick", tiers<1>},
    {"tiers_recursion", tiers<2>},
    {"tiers_recursion quick", tiers<1>},
    {"tiers_atom", tiers<2>},
    {"tiers_atom quick", tiers<1>},
    {"tiers_red", tiers<2>},
    {"tiers_red quick", tiers<1>},
    {"empty", empty},
    {"fill", fill},
    {"index", index},
    {"add", add},
    {"spin", spin},
    {"wild", wild},
    {"trap", trap},
    {"recurse", recurse},
    {"divide", divide},
    {"illegal", illegal},
    {"meet", meet},
    {"allocate", allocate},
    {"small", empty},
    {"shared_user", shared_user},
    {"release", release},
};

/// The bounds of the program's own code, which contains the fake's "machine code".
extern "C" const char __executable_start;
extern "C" const char etext;

}  // namespace

std::uint64_t compile_count() { return compiled.load(); }
void delay_compiler(std::chrono::milliseconds time) { delay.store(time); }
void gather_compilers(int count) {
  most.store(0);
  gathering.store(count);
}
int most_compilers() { return most.load(); }
void hold_good_code(bool held) { good_is_held.store(held); }
void refuse_memory(int times) { memory_refusals.store(times); }

const driver::DriverTable& table() {
  static const driver::DriverTable filled = [] {
    ::setenv("QUERN_CPU_WORKERS", "2", 1);
    ::setenv("QUERN_CPU_TIER", "auto", 1);
    ::setenv("QUERN_CPU_MEMORY", "256M", 1);
    driver::DriverTable result;
    REQUIRE(quern_cpu_device()->driver_table(&result, sizeof result) == 0);
    REQUIRE(result.cuInit(0) == CUDA_SUCCESS);
    return result;
  }();
  return filled;
}

}  // namespace quern::test

namespace quern::cpu {

Expected<std::vector<KernelInfo>> inspect(const ptx::Module& module, std::string_view) {
  std::vector<KernelInfo> kernels;
  for (const ptx::Function& function : module.functions) {
    KernelInfo info;
    info.name = function.name;
    for (const ptx::Variable& parameter : function.parameters) {
      const auto size = static_cast<std::uint32_t>(parameter.size_bytes());
      const auto offset = static_cast<std::uint32_t>((info.param_bytes + size - 1) / size * size);
      info.params.push_back({offset, size, size});
      info.param_bytes = offset + size;
    }
    if (function.performance.maxntid[0] != 0) info.max_threads = function.performance.maxntid[0];
    if (function.name == "shared_user") info.static_shared_bytes = 1024;
    info.register_count = 32;
    kernels.push_back(std::move(info));
  }
  return kernels;
}

Expected<CodeImage> compile_image(const ptx::Module&, std::string_view kernel,
                                  const Specialisation& specialisation) {
  const bool quick = specialisation.opt_level == kQuickLevel;
  if (!quick && kernel.starts_with("tiers")) test::stay_while_held();
  test::compiled.fetch_add(1);
  test::stay_in_compiler();
  CodeImage image;
  image.code.bytes = std::string(kernel) + (quick ? " quick" : "");
  image.facts.calls = kernel == "recurse";
  return image;
}

Expected<std::shared_ptr<const KernelCode>> load_image(const CodeImage& image) {
  if (test::memory_refusals.load() > 0 && test::memory_refusals.fetch_sub(1) > 0)
    return Diagnostic{.code = "out-of-memory", .message = "no mapping is left", .hint = "free some"};
  const auto found = test::kFunctions.find(image.code.bytes);
  if (found == test::kFunctions.end())
    return Diagnostic{Severity::error, "fake", {}, "no such kernel", {}, "", ""};
  auto code = std::make_shared<KernelCode>(KernelCode{image.facts});
  code->run = found->second;
  code->text_begin = reinterpret_cast<const std::byte*>(&test::__executable_start);
  code->text_end = reinterpret_cast<const std::byte*>(&test::etext);
  return std::shared_ptr<const KernelCode>(code);
}

Expected<CodeSites> find_sites(const ptx::Module&, std::string_view, const Specialisation&) {
  return Diagnostic{.code = "fake", .message = "faults of fake kernels stay unexplained"};
}

Expected<std::string> stage_text(const ptx::Module&, std::string_view kernel, const Specialisation&,
                                 const StageRequest&) {
  return "stage of " + std::string(kernel);
}

const std::string& generator_identity() {
  static const std::string none;
  return none;
}

Isa host_isa() { return Isa::baseline; }
bool runs_portable(Isa) { return true; }

}  // namespace quern::cpu

namespace quern::ptx {
__attribute__((weak)) Expected<void> verify(Module&, std::string_view, const Limits&) { return {}; }
}  // namespace quern::ptx
