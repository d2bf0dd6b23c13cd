// SPDX-License-Identifier: Apache-2.0
// Modules that are saved, and then run without their source.
#include <doctest/doctest.h>
#include <quern/quern.hpp>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "../../support/messages.hpp"

using namespace quern;
using quern::test::holds;

namespace {

bool ready() {
  static const bool found = [] { return Session::try_open({"cpu"}).has_value() && doctor().ready; }();
  if (!found) MESSAGE("SKIPPED: no CPU device or no NVRTC on this machine");
  return found;
}

const Session& on_cpu() {
  static const Session instance("cpu");
  return instance;
}

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "quern-saved-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::filesystem::path operator/(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// The code and the message of the Error that `call` throws.
struct Refused {
  ErrorCode code = ErrorCode::internal;
  std::string message = "nothing was thrown";
};
Refused refused(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {};
}

constexpr const char* kCuda = R"py(
__constant__ float gain = 3;
template <class T> __global__ void scale(T* x, T factor) { x[threadIdx.x] *= factor; }
extern "C" __global__ void amplify(int n, float* x) { int unused; if (threadIdx.x < n) x[threadIdx.x] *= gain; }
)py";

constexpr const char* kPython = R"py(
from numba import cuda
OFFSET = 1

@cuda.jit
def scale(x, factor):
    i = cuda.grid(1)
    if i < x.size:
        x[i] = x[i] * factor + OFFSET

@cuda.jit("void(int32[::1])")
def negate(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] = -x[i]

@cuda.jit
def never_compiled(x):
    x[0] = 1
)py";

/// 32 values after a launch on 1, 2, 3, ...
template <class T, class... Rest>
std::vector<T> after(const Session& in, const Kernel& kernel, Rest... rest) {
  std::vector<T> values(32);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(i + 1);
  const DeviceArray<T> x = in.to_device(values);
  if constexpr (sizeof...(Rest) == 0)
    kernel({.grid = 1, .block = 32})(x);
  else
    kernel({.grid = 1, .block = 32})(x, rest...);
  return x.copy_to_host();
}

std::vector<float> amplified(const Session& in, const Module& module) {
  const DeviceArray<float> x = in.to_device(std::vector<float>(32, 2.0f));
  module.kernel("amplify")({.grid = 1, .block = 32})(31, x);
  return x.copy_to_host();
}

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto* const first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

}  // namespace

TEST_CASE("a saved module of CUDA C++ runs as the original does, without NVRTC") {
  if (!ready()) return;
  const Folder folder;
  const Module original =
      on_cpu().load_cuda(kCuda, {.name_expressions = {"scale<double>"}, .file_name = "gain.cu"});
  original.kernel("scale<float>");  // a separate module
  original.save(folder / "gain.quern");
  const Session other({.device = "cpu", .isolated = true});
  const Module loaded = other.load_saved(folder / "gain.quern");
  CHECK(amplified(other, loaded) == amplified(on_cpu(), original));
  CHECK(amplified(other, loaded).at(30) == 6.0f);
  CHECK(after<double>(other, loaded.kernel("scale<double>"), 2.5) ==
        after<double>(on_cpu(), original.kernel("scale<double>"), 2.5));
  CHECK(after<float>(other, loaded.kernel("scale<float>"), 2.5f) ==
        after<float>(on_cpu(), original.kernel("scale<float>"), 2.5f));
  CHECK(other.compile_stats().nvrtc_runs == 0);
  CHECK(other.compile_stats().cache_hits == 0);
  CHECK(loaded.ptx() == original.ptx());
  CHECK(loaded.kernel_names() == original.kernel_names());
  CHECK(loaded.kernel("amplify").signature() == original.kernel("amplify").signature());
  REQUIRE(loaded.log().size() == original.log().size());
  REQUIRE_FALSE(loaded.log().empty());  // about the unused variable
  CHECK(to_string(loaded.log()) == to_string(original.log()));
}

TEST_CASE("load_file() loads a saved module by its suffix, and refuses options that it cannot follow") {
  if (!ready()) return;
  const Folder folder;
  on_cpu().load_cuda("extern \"C\" __global__ void one(int* x) { *x = 1; }").save(folder / "m.quern");
  const auto x = on_cpu().to_device(std::vector<int>{0});
  on_cpu()
      .load_file(folder / "m.quern", {.name_expressions = {"one"}})
      .kernel("one")({.grid = 1, .block = 1})(x);
  const std::vector<int> result = x.copy_to_host();
  CHECK(result.at(0) == 1);
  const Refused macro =
      refused([&] { static_cast<void>(on_cpu().load_file(folder / "m.quern", {.defines = {"N=1"}})); });
  CHECK(macro.code == ErrorCode::usage);
  CHECK(holds(macro.message, "it is compiled already"));
  CHECK(refused([&] { static_cast<void>(on_cpu().load_file(folder / "missing.quern")); }).code ==
        ErrorCode::not_found);
}

TEST_CASE("variables of a saved module are found, and begin as the source says") {
  if (!ready()) return;
  const Module original = on_cpu().load_cuda(kCuda);
  original.global<float>("gain").set(4.0f);
  const Module loaded = on_cpu().load_saved(original.saved());
  CHECK(loaded.global_names() == original.global_names());
  CHECK(amplified(on_cpu(), loaded).front() == 6.0f);
  loaded.global<float>("gain").set(5.0f);
  CHECK(amplified(on_cpu(), loaded).front() == 10.0f);
  CHECK(amplified(on_cpu(), original).front() == 8.0f);
}

TEST_CASE("a saved module keeps no source") {
  if (!ready()) return;
  const Module module =
      on_cpu().load_cuda("// a comment of its author's\nextern \"C\" __global__ void k(int* x) { *x = 1; }");
  const std::vector<std::byte> saved = module.saved();
  CHECK_FALSE(holds({reinterpret_cast<const char*>(saved.data()), saved.size()}, "comment"));
  CHECK(on_cpu().load_saved(saved).kernel().info().cuda_source.empty());
}

TEST_CASE("another instance of a template is refused, with those that there are") {
  if (!ready()) return;
  const Module original = on_cpu().load_cuda(kCuda, {.file_name = "gain.cu"});
  original.kernel("scale<float>");
  const Module loaded = on_cpu().load_saved(original.saved());
  loaded.kernel("scale<float>");
  loaded.kernel(" amplify ");
  const Refused other = refused([&] { loaded.kernel("scale<int>"); });
  CHECK(other.code == ErrorCode::not_found);
  CHECK(
      holds(other.message, "cannot compile scale<int> of gain.cu: the module was loaded without its source"));
  CHECK(holds(other.message, "scale<float>"));
  CHECK(refused([&] { loaded.kernel("missing"); }).code == ErrorCode::not_found);
}

TEST_CASE("a loaded module is saved again as it is") {
  if (!ready()) return;
  const Module original = on_cpu().load_cuda(kCuda);
  original.kernel("scale<float>");
  const std::vector<std::byte> saved = original.saved();
  CHECK(on_cpu().load_saved(saved).saved() == saved);
}

TEST_CASE("a saved module of Kernel Python has what was compiled, and runs it without the source") {
  if (!ready()) return;
  const Module original = on_cpu().load_python(kPython, {.file_name = "scale.py"});
  const Kernel scale = original.kernel("scale");
  scale.specialise("float32[::1], float32");
  const std::vector<double> doubles = after<double>(on_cpu(), scale, 3.0);
  const Session other({.device = "cpu", .isolated = true});
  const Module loaded = other.load_saved(original.saved());
  CHECK(after<double>(other, loaded.kernel("scale"), 3.0) == doubles);
  CHECK(doubles.at(4) == 16.0);
  CHECK(after<float>(other, loaded.kernel("scale"), 0.5f) == after<float>(on_cpu(), scale, 0.5f));
  CHECK(after<int>(other, loaded.kernel("negate")).at(4) == -5);  // its decorator has its types
  CHECK(other.compile_stats().nvrtc_runs == 0);
  CHECK(other.compile_stats().translations == 0);
  CHECK(loaded.kernel_names() == original.kernel_names());
  CHECK(loaded.kernel("scale").specialisations() == scale.specialisations());
  CHECK(loaded.kernel("scale").specialise("float32[::1],float32").info().cuda_source.empty());
}

TEST_CASE("types for which a saved Kernel Python kernel has no code are refused, as is binding") {
  if (!ready()) return;
  const Module original = on_cpu().load_python(kPython, {.file_name = "scale.py"});
  original.kernel("scale").specialise("float32[::1], float32");
  const Module loaded = on_cpu().load_saved(original.saved());
  const Refused types = refused([&] { after<double>(on_cpu(), loaded.kernel("scale"), 3.0); });
  CHECK(types.code == ErrorCode::not_found);
  CHECK(
      holds(types.message, "cannot compile kernel scale of scale.py for the types 'float64[::1], float64'"));
  CHECK(holds(types.message, "it has code for (float32[::1], float32)"));
  CHECK(holds(types.message, "before Module::save"));
  CHECK(refused([&] { after<int>(on_cpu(), loaded.kernel("never_compiled")); }).code == ErrorCode::not_found);
  CHECK(refused([&] { loaded.bind("OFFSET", 4.0); }).code == ErrorCode::unsupported);
}

TEST_CASE("constants that were bound are in the saved code") {
  if (!ready()) return;
  const Module bound = on_cpu().load_python(kPython).bind("OFFSET", 10.0);
  bound.kernel("scale").specialise("float64[::1], float64");
  CHECK(after<double>(on_cpu(), on_cpu().load_saved(bound.saved()).kernel("scale"), 2.0).at(0) == 12.0);
}

TEST_CASE("a loaded kernel checks as its source asked for, and waits for its whole grid") {
  if (!ready()) return;
  const Module checked = on_cpu().load_python(R"py(
from numba import cuda

@cuda.jit("void(int32[::1])", debug=True)
def outside(x):
    x[cuda.grid(1) + 30] = 1
)py",
                                              {.file_name = "outside.py"});
  const Module loaded = on_cpu().load_saved(checked.saved());
  const auto run = [](const Module& module) {
    const DeviceArray<int> x = on_cpu().to_device(std::vector<int>(32, 0));
    module.kernel()({.grid = 1, .block = 32})(x);
    on_cpu().synchronize();
  };
  const Refused original = refused([&] { run(checked); }), again = refused([&] { run(loaded); });
  CHECK(holds(original.message, "outside.py"));
  CHECK(again.message == original.message);
  CHECK(again.code == original.code);
  const Module whole = on_cpu().load_python(R"py(
from numba import cuda

@cuda.jit("void(int32[::1])")
def meet(x):
    i = cuda.grid(1)
    x[i] = i
    cuda.cg.this_grid().sync()
    j = x.size - 1 - i
    y = x[j]
    cuda.cg.this_grid().sync()
    x[i] = y
)py");
  const DeviceArray<int> x = on_cpu().device_array<int>(64);
  on_cpu().load_saved(whole.saved()).kernel()({.grid = 2, .block = 32})(x);
  CHECK(x.copy_to_host()[0] == 63);
  CHECK(x.copy_to_host()[63] == 0);
}

TEST_CASE("Kernel Python of which nothing is compiled is not saved") {
  if (!ready()) return;
  const Module module = on_cpu().load_python("from numba import cuda\n@cuda.jit\ndef k(x):\n    x[0] = 1\n",
                                             {.file_name = "k.py"});
  const Refused nothing = refused([&] { static_cast<void>(module.saved()); });
  CHECK(nothing.code == ErrorCode::usage);
  CHECK(holds(nothing.message, "cannot save k.py: none of its kernels is compiled"));
}

TEST_CASE("modules of PTX and linked ones are saved") {
  if (!ready()) return;
  const Module ptx = on_cpu().load_ptx(on_cpu().load_cuda(kCuda).ptx());
  CHECK(amplified(on_cpu(), on_cpu().load_saved(ptx.saved())).at(0) == 6.0f);
  const Module linked = on_cpu().link(
      {{.text =
            "extern __device__ float factor(); extern \"C\" __global__ void amplify(int n, float* x) { if "
            "(threadIdx.x < n) x[threadIdx.x] *= factor(); }"},
       {.text = "__device__ float factor() { return 7; }"}});
  const Module loaded = on_cpu().load_saved(linked.saved());
  CHECK(amplified(on_cpu(), loaded).at(0) == 14.0f);
  CHECK(loaded.kernel_names() == linked.kernel_names());
}

TEST_CASE("a file is replaced as a whole, and errors of files say which") {
  if (!ready()) return;
  const Folder folder;
  const Module module = on_cpu().load_cuda(kCuda);
  std::ofstream(folder / "m.quern") << "old";
  module.save(folder / "m.quern");
  CHECK(amplified(on_cpu(), on_cpu().load_saved(folder / "m.quern")).at(0) == 6.0f);
  const Refused unwritten = refused([&] { module.save(folder / "missing/m.quern"); });
  CHECK(unwritten.code == ErrorCode::io);
  CHECK(holds(unwritten.message, "missing/m.quern"));
  const Refused unread = refused([&] { on_cpu().load_saved(folder / "nothing.quern"); });
  CHECK(unread.code == ErrorCode::not_found);
  CHECK(holds(unread.message, "nothing.quern"));
  CHECK_FALSE(on_cpu().try_load_saved(folder / "nothing.quern").has_value());
}

TEST_CASE("damaged bytes are refused wherever they are damaged") {
  if (!ready()) return;
  const Module module = on_cpu().load_cuda(kCuda, {.name_expressions = {"scale<double>"}});
  const std::vector<std::byte> saved = module.saved();
  const auto is_refused = [](const std::vector<std::byte>& bytes) {
    const Expected<Module> loaded = on_cpu().try_load_saved(bytes);
    return !loaded && loaded.errors().front().code == "saved-damaged";
  };
  CHECK(is_refused({}));
  CHECK(is_refused(bytes_of("extern \"C\" __global__ void k() {}")));
  for (std::size_t size = 0; size < saved.size(); size += size < 200 ? 1 : 37)
    CHECK(is_refused({saved.begin(), saved.begin() + static_cast<std::ptrdiff_t>(size)}));
  std::mt19937 random(20260102);
  std::size_t found = 0;
  for (int round = 0; round < 10000; ++round) {
    std::vector<std::byte> changed = saved;
    for (std::uint32_t i = 0; i <= random() % 3; ++i) {
      const std::size_t at = random() % changed.size();
      changed[at] ^= static_cast<std::byte>(1 + random() % 255);
    }
    if (changed == saved) continue;  // two changes of one byte
    const Expected<Module> loaded = on_cpu().try_load_saved(changed);
    found += loaded ? 0 : 1;
  }
  CHECK(found >= 9990);
}

TEST_CASE("threads save one module while it gets more code") {
  if (!ready()) return;
  const Module module = on_cpu().load_python(kPython);
  const Kernel scale = module.kernel("scale");
  scale.specialise("float32[::1], float32");
  std::vector<std::thread> threads;
  for (const char* types : {"int32[::1], int32", "int64[::1], int64", "float64[::1], float64"}) {
    threads.emplace_back([&scale, types] { scale.specialise(types); });
    threads.emplace_back([&module] {
      const Module loaded = on_cpu().load_saved(module.saved());
      CHECK(after<float>(on_cpu(), loaded.kernel("scale"), 2.0f).at(1) == 5.0f);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(on_cpu().load_saved(module.saved()).kernel("scale").specialisations().size() == 4);
}
