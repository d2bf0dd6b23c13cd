// SPDX-License-Identifier: Apache-2.0
// The C ABI: saved modules, work in the background, compiling without a device, cache counts.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "support.hpp"

using namespace c;

namespace {

using Pending = Own<QuernPending>;
using Compiled = Own<QuernCompiled>;

constexpr const char* kPython =
    "from numba import cuda\n@cuda.jit\ndef scale(x, factor):\n    i = cuda.grid(1)\n"
    "    if i < x.size:\n        x[i] = x[i] * factor\n";
constexpr std::uint32_t kBlock[3] = {4, 1, 1};

bool ready() {
  static const bool found = [] {
    QuernSource source{};
    source.struct_bytes = sizeof source;
    source.text = "__global__ void k() {}";
    Compiled compiled;
    return quern_compile_source(&source, nullptr, compiled.place()) != QUERN_NOT_FOUND;
  }();
  if (!found) MESSAGE("SKIPPED: no NVRTC on this machine");
  return found;
}

QuernSource source_of(QuernLanguage language, const char* text) {
  QuernSource source{};
  source.struct_bytes = sizeof source;
  source.language = language;
  source.text = text;
  return source;
}

QuernCompileStats stats_of(QuernSession session) {
  QuernCompileStats stats{};
  stats.struct_bytes = sizeof stats;
  QUERN_GOOD(quern_session_compile_stats(session, &stats));
  return stats;
}

QuernCacheStats cache_stats() {
  QuernCacheStats stats{};
  stats.struct_bytes = sizeof stats;
  QUERN_GOOD(quern_compile_cache_stats(QUERN_CACHE_MEMORY, &stats));
  return stats;
}

template <class Call>
std::string text_by(Call&& call) {
  std::size_t needed = 0;
  QUERN_GOOD(call(nullptr, 0, &needed));
  std::string text(needed, '\0');
  QUERN_GOOD(call(text.data(), text.size(), nullptr));
  text.pop_back();
  return text;
}

/// 1, 2, 3, 4 after a launch of `kernel` with a factor.
std::vector<float> scaled(QuernSession session, QuernKernel kernel, float factor) {
  const Array x = to_device(session, QUERN_FLOAT32, std::vector<float>{1, 2, 3, 4});
  const QuernArgument arguments[] = {array_argument(x), scalar_argument(QUERN_FLOAT32, &factor)};
  const QuernLaunch launch = launch_of(1, 4);
  QUERN_GOOD(quern_launch(kernel, &launch, arguments, 2));
  std::vector<float> values(4);
  QUERN_GOOD(quern_array_to_host(x, values.data(), 16));
  return values;
}

}  // namespace

TEST_CASE("C: a module is saved as bytes and as a file, and runs without NVRTC") {
  if (!ready()) return;
  Session session = open_cpu(), other;
  QUERN_GOOD(quern_session_open_isolated("cpu", other.place()));
  const QuernSource source = source_of(QUERN_LANGUAGE_PYTHON, kPython);
  Module module, loaded, from_file;
  Kernel kernel, again;
  QUERN_GOOD(quern_load(session, &source, module.place()));
  QUERN_FAILS(QUERN_USAGE, "none of its kernels is compiled", quern_module_save(module, "/tmp/unused"));
  QUERN_GOOD(quern_kernel(module, "scale", kernel.place()));
  const std::vector<float> expected = scaled(session, kernel, 3);
  std::size_t bytes = 0;
  QUERN_GOOD(quern_module_saved(module, nullptr, 0, &bytes));
  std::vector<unsigned char> saved(bytes);
  QUERN_FAILS(QUERN_USAGE, "are needed", quern_module_saved(module, saved.data(), bytes - 1, nullptr));
  QUERN_GOOD(quern_module_saved(module, saved.data(), bytes, nullptr));
  QUERN_GOOD(quern_load_saved_bytes(other, saved.data(), bytes, loaded.place()));
  QUERN_GOOD(quern_kernel(loaded, nullptr, again.place()));
  CHECK(scaled(other, again, 3) == expected);
  CHECK(expected == std::vector<float>{3, 6, 9, 12});
  CHECK(stats_of(other).nvrtc_runs + stats_of(other).translations + stats_of(other).cache_hits == 0);
  saved[bytes / 2] ^= 1;
  QUERN_FAILS(QUERN_IO, "checksum", quern_load_saved_bytes(other, saved.data(), bytes, from_file.place()));
  std::string name = (std::filesystem::temp_directory_path() / "quern-c-saved-XXXXXX").string();
  REQUIRE(::mkdtemp(name.data()) != nullptr);
  const std::string path = name + "/scale.quern";
  QUERN_GOOD(quern_module_save(module, path.c_str()));
  QUERN_GOOD(quern_load_saved(other, path.c_str(), from_file.place()));
  std::filesystem::remove_all(name);
  QUERN_FAILS(QUERN_NOT_FOUND, "scale.quern", quern_load_saved(other, path.c_str(), loaded.place()));
  double wide = 1;
  const Array doubles = to_device(other, QUERN_FLOAT64, std::vector<double>{1});
  const QuernArgument arguments[] = {array_argument(doubles), scalar_argument(QUERN_FLOAT64, &wide)};
  const QuernLaunch launch = launch_of(1, 4);
  QUERN_FAILS(QUERN_NOT_FOUND, "loaded without its source", quern_launch(again, &launch, arguments, 2));
}

TEST_CASE("C: kernels are prepared, and modules loaded, in the background") {
  if (!ready()) return;
  Session session;
  QUERN_GOOD(quern_session_open_isolated("cpu", session.place()));
  const QuernSource source = source_of(QUERN_LANGUAGE_PYTHON, kPython);
  Pending load, prepare, wrong;
  QUERN_GOOD(quern_load_async(session, &source, load.place()));
  std::int32_t ended = 7;
  QUERN_GOOD(quern_pending_wait(load, UINT64_MAX, &ended));
  CHECK(ended == 1);
  Module module;
  QUERN_FAILS(QUERN_USAGE, "needs a pointer for the module", quern_pending_result(load, nullptr));
  QUERN_GOOD(quern_pending_result(load, module.place()));
  Kernel kernel;
  QUERN_GOOD(quern_kernel(module, nullptr, kernel.place()));
  QUERN_GOOD(quern_kernel_prepare_async(kernel, kBlock, "float32[::1], float32", prepare.place()));
  QUERN_GOOD(quern_kernel_prepare_async(kernel, kBlock, "no_type", wrong.place()));
  QUERN_GOOD(quern_pending_result(prepare, nullptr));
  QUERN_GOOD(quern_pending_wait(prepare, 0, &ended));
  CHECK(ended == 1);
  QUERN_FAILS(QUERN_COMPILE, "no_type", quern_pending_result(wrong, nullptr));
  QUERN_FAILS(QUERN_USAGE, "cannot prepare kernel scale", quern_kernel_prepare(kernel, kBlock, nullptr));
  const QuernCompileStats before = stats_of(session);
  CHECK(before.translations >= 1);
  CHECK(scaled(session, kernel, 2) == std::vector<float>{2, 4, 6, 8});
  CHECK(stats_of(session).translations == before.translations);
  Pending cancelled;
  const QuernSource bad = source_of(QUERN_LANGUAGE_CUDA, "int x = missing;");
  QUERN_GOOD(quern_load_async(session, &bad, cancelled.place()));
  QUERN_GOOD(quern_pending_cancel(cancelled));
  const QuernStatus end = quern_pending_result(cancelled, module.place());
  CHECK((end == QUERN_CANCELLED || end == QUERN_COMPILE));
  Pending detached;
  QUERN_GOOD(quern_load_async(session, &source, detached.place()));
  QUERN_GOOD(quern_pending_detach(detached));
  CHECK(quern_pending_wait(detached, 0, nullptr) == QUERN_BAD_HANDLE);
}

TEST_CASE("C: source is compiled without a session") {
  if (!ready()) return;
  QuernSource source =
      source_of(QUERN_LANGUAGE_CUDA,
                "template <class T> __global__ void scale(T* x, float by) { x[threadIdx.x] *= by; }");
  const char* const expressions[] = {"scale<double>"};
  source.name_expressions = expressions;
  source.name_expression_count = 1;
  QuernCompileOptions options{};
  options.struct_bytes = sizeof options;
  options.compute_capability = 80;
  Compiled compiled;
  QUERN_GOOD(quern_compile_source(&source, &options, compiled.place()));
  const std::string ptx = text_by([&](char* buffer, std::size_t bytes, std::size_t* needed) {
    return quern_compiled_text(compiled, QUERN_COMPILED_PTX, buffer, bytes, needed);
  });
  CHECK(holds(ptx, ".target sm_80"));
  std::size_t count = 0, machine_bytes = 7;
  QUERN_GOOD(quern_compiled_kernel_count(compiled, &count));
  CHECK(count == 1);
  const auto name = [&](QuernKernelText which) {
    return text_by([&](char* buffer, std::size_t bytes, std::size_t* needed) {
      return quern_compiled_kernel_text(compiled, 0, which, buffer, bytes, needed);
    });
  };
  CHECK(name(QUERN_KERNEL_NAME) == "scale<double>");
  CHECK(holds(ptx, ".entry " + name(QUERN_KERNEL_LOWERED_NAME) + "("));
  QUERN_GOOD(quern_compiled_parameter_count(compiled, 0, &count));
  CHECK(count == 2);
  QuernParameter parameter{};
  parameter.struct_bytes = sizeof parameter;
  QUERN_GOOD(quern_compiled_parameter(compiled, 0, 1, &parameter));
  CHECK(parameter.offset_bytes == 8);
  CHECK(parameter.type == std::string("float"));
  QUERN_GOOD(quern_compiled_machine_code(compiled, nullptr, 0, &machine_bytes));
  CHECK(machine_bytes == 0);
  QUERN_FAILS(QUERN_NOT_FOUND, "there are 2", quern_compiled_parameter(compiled, 0, 2, &parameter));
  QUERN_FAILS(QUERN_NOT_FOUND, "there are 1",
              quern_compiled_kernel_text(compiled, 1, QUERN_KERNEL_NAME, nullptr, 0, nullptr));
  options.types = "int32";
  QUERN_FAILS(QUERN_USAGE, "only Kernel Python takes them",
              quern_compile_source(&source, &options, compiled.place()));
  source.text = "int x = missing;";
  QUERN_FAILS(QUERN_COMPILE, "missing", quern_compile_source(&source, nullptr, compiled.place()));
}

TEST_CASE("C: the cache is counted, bounded and cleared") {
  if (!ready()) return;
  Session session = open_cpu();
  const QuernSource source =
      source_of(QUERN_LANGUAGE_CUDA, "extern \"C\" __global__ void counted_in_c(int* x) { *x = 5; }");
  Module module;
  QUERN_GOOD(quern_load(session, &source, module.place()));
  QUERN_GOOD(quern_load(session, &source, module.place()));
  CHECK(stats_of(session).nvrtc_runs == 1);
  CHECK(stats_of(session).cache_hits == 1);
  QuernCompileStats process{};
  process.struct_bytes = sizeof process;
  QUERN_GOOD(quern_compile_stats(&process));
  CHECK(process.nvrtc_runs >= 1);
  const QuernCacheStats before = cache_stats();
  CHECK(before.entry_count >= 1);
  CHECK(before.max_bytes == std::uint64_t{256} << 20);
  QUERN_GOOD(quern_clear_compile_cache());
  CHECK(cache_stats().entry_count == 0);
  QuernSessionOptions options{};
  options.struct_bytes = sizeof options;
  options.bounds_compile_cache = 1;
  options.compile_cache_bytes = 12345;
  Session bounded;
  QUERN_GOOD(quern_session_open_with("cpu", &options, bounded.place()));
  CHECK(cache_stats().max_bytes == 12345);
  // A caller of version 6 does not have such fields.
  options.struct_bytes = 16;
  options.compile_cache_bytes = 777;
  QUERN_GOOD(quern_session_open_with("cpu", &options, bounded.place()));
  CHECK(cache_stats().max_bytes == 12345);
  options.struct_bytes = sizeof options;
  QuernCacheStats disk{};
  disk.struct_bytes = sizeof disk;
  QUERN_FAILS(QUERN_NOT_FOUND, "no compile cache on disk",
              quern_compile_cache_stats(QUERN_CACHE_DISK, &disk));
  options.reserved = 1;
  QUERN_FAILS(QUERN_USAGE, "QuernSessionOptions", quern_session_open_with("cpu", &options, bounded.place()));
  QUERN_GOOD(quern_set_compile_cache_bytes(before.max_bytes));
  CHECK(cache_stats().max_bytes == before.max_bytes);
}

TEST_CASE("C: wrong handles, places and sizes are refused") {
  if (!ready()) return;
  Session session = open_cpu();
  const QuernSource source =
      source_of(QUERN_LANGUAGE_CUDA, "extern \"C\" __global__ void refused_in_c(int* x) { *x = 5; }");
  Module module;
  Kernel kernel;
  Compiled compiled;
  Pending pending;
  QUERN_GOOD(quern_load(session, &source, module.place()));
  QUERN_GOOD(quern_kernel(module, nullptr, kernel.place()));
  QUERN_GOOD(quern_compile_source(&source, nullptr, compiled.place()));
  QUERN_GOOD(quern_kernel_prepare_async(kernel, kBlock, nullptr, pending.place()));
  const std::uint64_t p = pending.id(), d = compiled.id();
  QuernModule into{};
  QuernPending new_pending{};
  QuernCompiled new_compiled{};
  std::size_t size = 0;
  const std::uint64_t s = session.id(), m = module.id();
  const QuernStatus bad[] = {quern_module_save({s}, "x"),
                             quern_module_saved({s}, nullptr, 0, &size),
                             quern_load_saved({m}, "x", &into),
                             quern_load_saved_bytes({m}, "x", 1, &into),
                             quern_load_async({m}, &source, &new_pending),
                             quern_kernel_prepare({m}, kBlock, nullptr),
                             quern_pending_wait({d}, 0, nullptr),
                             quern_pending_result({0}, &into),
                             quern_pending_cancel({m}),
                             quern_pending_detach({s}),
                             quern_compiled_text({p}, QUERN_COMPILED_PTX, nullptr, 0, &size),
                             quern_compiled_machine_code({s}, nullptr, 0, &size),
                             quern_compiled_kernel_count({s}, &size),
                             quern_compiled_kernel_text({s}, 0, QUERN_KERNEL_NAME, nullptr, 0, &size),
                             quern_compiled_parameter_count({s}, 0, &size),
                             quern_compiled_parameter({s}, 0, 0, nullptr),
                             quern_session_compile_stats({m}, nullptr)};
  for (std::size_t i = 0; i < std::size(bad); ++i) {
    CAPTURE(i);
    CHECK(bad[i] == QUERN_BAD_HANDLE);
  }
  QuernCompileStats stats{};
  QuernCacheStats tier{};
  QuernCompileOptions options{};
  const QuernStatus usage[] = {quern_module_save({m}, nullptr),
                               quern_module_saved({m}, nullptr, 0, nullptr),
                               quern_load_saved({s}, nullptr, &into),
                               quern_load_saved({s}, "x", nullptr),
                               quern_load_saved_bytes({s}, nullptr, 1, &into),
                               quern_load_async({s}, nullptr, &new_pending),
                               quern_load_async({s}, &source, nullptr),
                               quern_kernel_prepare(kernel, nullptr, nullptr),
                               quern_kernel_prepare_async(kernel, nullptr, nullptr, &new_pending),
                               quern_kernel_prepare_async(kernel, kBlock, nullptr, nullptr),
                               quern_compile_source(nullptr, nullptr, &new_compiled),
                               quern_compile_source(&source, nullptr, nullptr),
                               quern_compile_source(&source, &options, &new_compiled),
                               quern_session_compile_stats({s}, &stats),
                               quern_session_compile_stats({s}, nullptr),
                               quern_compile_stats(&stats),
                               quern_compile_cache_stats(QUERN_CACHE_MEMORY, &tier),
                               quern_compile_cache_stats(static_cast<QuernCacheTier>(9), &tier)};
  for (std::size_t i = 0; i < std::size(usage); ++i) {
    CAPTURE(i);
    CHECK(usage[i] == QUERN_USAGE);
  }
  CHECK(into.id + new_pending.id + new_compiled.id == 0);
}
