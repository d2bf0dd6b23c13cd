// SPDX-License-Identifier: Apache-2.0
// Kernel Python in a C++ program: specialisation, constants from the host, signatures, inspection.
#include <doctest/doctest.h>
#include <quern/quern.hpp>

#include <cstdint>
#include <string>
#include <vector>

using namespace quern;

namespace {

constexpr const char* kSource = R"(import numpy as np
from numba import cuda, float32

FACTOR = 2
TABLE = np.array([1, 10, 100], dtype=np.int64)

@cuda.jit
def scale(x, by):
    i = cuda.grid(1)
    if i < x.size:
        x[i] = x[i] * by * FACTOR

@cuda.jit
def look(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] = cuda.const.array_like(TABLE)[i % len(TABLE)]

@cuda.jit
def sized(x):
    part = cuda.shared.array(FACTOR * 32, float32)
    t = cuda.threadIdx.x
    part[t] = x[t]
    cuda.syncthreads()
    x[t] = part[FACTOR * 32 - 1 - t]

@cuda.jit
def corner(m):
    m[0, 0] = m.shape[0] * 100 + m.shape[1] + EXTRA.shape[0]
)";

Session& on_cpu() {
  static Session instance("cpu");
  return instance;
}

bool same(const CompileStats& a, const CompileStats& b) {
  return a.translations == b.translations && a.nvrtc_runs == b.nvrtc_runs && a.cache_hits == b.cache_hits;
}

template <class Action>
std::string message(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

bool holds(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a second launch with the same types is not translated, compiled or loaded again") {
  const Module module = on_cpu().load_python(kSource);
  const Kernel scale = module.kernel("scale");
  const auto x = on_cpu().to_device(std::vector<float>{1, 2, 3});
  const LaunchConfig config{.grid = 1, .block = 32};
  const CompileStats before = on_cpu().compile_stats();
  scale(config)(x, 2.0f);
  const CompileStats first = on_cpu().compile_stats();
  CHECK(first.translations == before.translations + 1);
  CHECK(first.nvrtc_runs == before.nvrtc_runs + 1);
  const auto modules = on_cpu().memory_stats()[ResourceKind::module].live_count;
  for (int i = 0; i < 3; ++i) scale(config)(x, 1.0f);
  module.kernel("scale")(config)(x, 1.0f);
  CHECK(same(on_cpu().compile_stats(), first));
  CHECK(on_cpu().memory_stats()[ResourceKind::module].live_count == modules);
  CHECK(x.copy_to_host() == std::vector<float>{64, 128, 192});
  scale(config)(x, 1.0);  // another type
  CHECK(on_cpu().compile_stats().translations == first.translations + 1);
  CHECK(scale.specialisations().size() == 2);
}

TEST_CASE("types are the same however they are written, and whatever they come from") {
  const Module module = on_cpu().load_python(
      "from numba import cuda\n@cuda.jit\ndef f(x):\n    x[0] = 7\n\n@cuda.jit\ndef g(t, x):\n    x[0] = "
      "t[0]\n");
  const Kernel one = module.kernel("f");
  const auto modules = [] { return on_cpu().memory_stats()[ResourceKind::module].live_count; };
  const auto before = modules();
  for (const char* types : {"float32[::1]", "( float32[::1], )", "void(float32[::1])", "(float32[::1],)"})
    one.specialise(types);
  const auto x = on_cpu().to_device(std::vector<float>{1});
  one({.grid = 1, .block = 1})(x);
  CHECK(modules() == before + 1);
  CHECK(one.specialisations() == std::vector<std::string>{"float32[::1]"});
  const Kernel two = module.kernel("g");
  for (const char* types : {"UniTuple(int32, 2), float32[::1]", "(UniTuple(int32,2),float32[::1])"})
    two.specialise(types);
  two.specialise("int32[::1], float32[::1]");
  CHECK(two.specialisations() ==
        std::vector<std::string>{"UniTuple(int32, 2), float32[::1]", "int32[::1], float32[::1]"});
}

TEST_CASE(
    "equal source is compiled once in a session, whichever module it is in; other options are another "
    "result") {
  const auto x = on_cpu().to_device(std::vector<double>{1, 2});
  const LaunchConfig config{.grid = 1, .block = 32};
  on_cpu().load_python(kSource).kernel("scale")(config)(x, 3.0);
  const CompileStats before = on_cpu().compile_stats();
  on_cpu().load_python(kSource).kernel("scale")(config)(x, 3.0);
  CHECK(on_cpu().compile_stats().nvrtc_runs == before.nvrtc_runs);
  CHECK(on_cpu().compile_stats().cache_hits == before.cache_hits + 1);
  LoadOptions options;
  options.options = {"--fmad=false"};
  on_cpu().load_python(kSource, options).kernel("scale")(config)(x, 3.0);
  CHECK(on_cpu().compile_stats().nvrtc_runs == before.nvrtc_runs + 1);
}

TEST_CASE("bind gives a module-level name another value, for the kernels that use it") {
  const Module module = on_cpu().load_python(kSource);
  const LaunchConfig config{.grid = 1, .block = 64};
  const auto x = on_cpu().to_device(std::vector<std::int64_t>{1, 2, 3, 4});
  module.kernel("scale")(config)(x, std::int64_t{1});
  CHECK(x.copy_to_host() == std::vector<std::int64_t>{2, 4, 6, 8});
  module.bind("FACTOR", std::int64_t{10}).kernel("scale")(config)(x, std::int64_t{1});
  CHECK(x.copy_to_host() == std::vector<std::int64_t>{20, 40, 60, 80});
  const std::vector<std::int64_t> table = {5, 6};
  module.bind("TABLE", NDArray::of(table)).kernel("look")(config)(x);
  CHECK(x.copy_to_host() == std::vector<std::int64_t>{5, 6, 5, 6});
  module.kernel("look")(config)(x);
  CHECK(x.copy_to_host() == std::vector<std::int64_t>{1, 10, 100, 1});
}

TEST_CASE("a bound number may shape shared memory, and a name that the file lacks may be bound") {
  const Module module = on_cpu().load_python(kSource);
  const auto x = on_cpu().to_device(std::vector<float>{1, 2, 3});
  const Kernel sized = module.bind("FACTOR", std::int64_t{1}).kernel("sized").specialise("(float32[::1],)");
  CHECK(sized.info().shared_bytes == 128);
  CHECK(module.kernel("sized").specialise("(float32[::1],)").info().shared_bytes == 256);
  const auto m = on_cpu().to_device(NDArray({2, 3}, Dtype::int64));
  CHECK(holds(message([&] { module.kernel("corner")({.grid = 1, .block = 1})(m); }), "EXTRA"));
  module.bind("EXTRA", NDArray({4000, 2}, Dtype::int8)).kernel("corner")({.grid = 1, .block = 1})(m);
  CHECK(*m.copy_to_host().data_as<std::int64_t>() == 4203);
  LoadOptions options;
  options.constants.emplace_back("EXTRA", NDArray({7}, Dtype::float32));
  on_cpu().load_python(kSource, options).kernel("corner")({.grid = 1, .block = 1})(m);
  CHECK(*m.copy_to_host().data_as<std::int64_t>() == 210);
}

TEST_CASE("what cannot be bound is refused by name") {
  const Module module = on_cpu().load_python(kSource);
  CHECK(holds(message([&] { module.bind("NOTHING", 1); }), "nothing in <string>.py has that name"));
  CHECK(holds(message([&] { module.bind("scale", 1); }), "cannot bind 'scale': it is a function"));
  CHECK(holds(
      message([&] { module.bind("TABLE", NDArray({2}, RecordType({{"bits", Dtype::uint32, 0, {}}}, 4))); }),
      "it holds records"));
  CHECK(holds(message([&] { on_cpu().load_cuda("__global__ void k() {}").bind("N", 1); }),
              "only Kernel Python"));
}

TEST_CASE("a signature compiles a kernel beforehand, and its scalars are converted") {
  const Module module = on_cpu().load_python(kSource);
  const Kernel scale = module.kernel("scale").specialise("float64[::1], float32");
  const CompileStats before = on_cpu().compile_stats();
  const auto x = on_cpu().to_device(std::vector<double>{1, 2});
  scale({.grid = 1, .block = 32})(x, 3);
  CHECK(x.copy_to_host() == std::vector<double>{6, 12});
  CHECK(same(on_cpu().compile_stats(), before));
  CHECK(module.kernel("scale").specialisations() == std::vector<std::string>{"float64[::1], float32"});
  CHECK(holds(message([&] { module.kernel("scale").specialise("flaot32"); }), "flaot32"));
  CHECK(holds(message([&] { module.kernel("scale").specialise("float32"); }), "takes 2 arguments"));
  const Kernel cuda = on_cpu().load_cuda("extern \"C\" __global__ void k(int n) {}").kernel();
  CHECK(holds(message([&] { cuda.specialise("int32"); }), "its source gives its types"));
}

TEST_CASE("a compiled kernel tells its CUDA C++, PTX, parameters, and what it takes of the device") {
  const Module module = on_cpu().load_python(R"(from numba import cuda, float64
@cuda.jit
def k(x, n):
    own = cuda.local.array(64, float64)
    part = cuda.shared.array((4, 8), float64)
    t = cuda.threadIdx.x
    for i in range(n):
        own[i] = x[i] * t
    part[t // 8, t % 8] = own[n // 2]
    cuda.syncthreads()
    x[t] = part[3 - t // 8, t % 8]
)");
  CHECK(module.kernel("k").info().signature == "k(x, n)");
  const KernelInfo info = module.kernel("k").specialise("float64[::1], int32").info();
  CHECK(holds(info.cuda_source, "__global__ void k("));
  CHECK(holds(info.ptx, ".visible .entry k("));
  CHECK(holds(info.signature, "int n"));
  CHECK(info.parameters.size() == 2);
  CHECK(info.shared_bytes == 256);
  CHECK(info.local_bytes >= 512);
  CHECK(info.registers >= 0);
  CHECK(info.max_threads_per_block == 1024);
}

TEST_CASE("a read-only array goes to kernels that only read it, whatever they read it through") {
  const Module module = on_cpu().load_python(R"(from numba import cuda
@cuda.jit(device=True)
def second(row):
    return row[1]

@cuda.jit
def read(m, y):
    i = cuda.grid(1)
    rows = m.T if False else m[:, 1:]
    y[i] = second(rows[i]) + m[i, 0] + m.shape[0]

@cuda.jit
def add(x, y):
    cuda.atomic.add(x, 0, y[0])

@cuda.jit
def through(x, y):
    part = x[1:]
    part[0] = y[0]
)");
  const auto m = on_cpu().to_device(std::vector<float>{1, 2, 3, 4, 5, 6}).reshape({2, 3});
  struct Foreign {
    CudaArrayInterface description;
    CudaArrayInterface cuda_array_interface() const { return description; }
  } foreign{m.cuda_array_interface()};
  foreign.description.read_only = true;
  const DeviceNDArray locked = on_cpu().as_cuda_array(foreign);
  REQUIRE(locked.is_read_only());
  const auto y = on_cpu().to_device(std::vector<float>{0, 0});
  module.kernel("read")({.grid = 1, .block = 2})(locked, y);
  CHECK(y.copy_to_host() == std::vector<float>{1 + 3 + 2, 4 + 6 + 2});
  module.kernel("read")({.grid = 1, .block = 2})(m, y);  // another specialisation
  CHECK(module.kernel("read").specialisations() ==
        std::vector<std::string>{"Array(float32, 2, 'C', readonly=True), float32[::1]",
                                 "float32[:, ::1], float32[::1]"});
  const DeviceNDArray row = locked[1];
  for (const char* name : {"add", "through"}) {
    CHECK(holds(message([&] { module.kernel(name)({.grid = 1, .block = 1})(row, y); }),
                "is read-only and cannot be written"));
    module.kernel(name)({.grid = 1, .block = 1})(y, y);
  }
}

TEST_CASE("for_all takes a kernel whose types its arguments settle, and no arguments of the wrong number") {
  const Kernel scale = on_cpu().load_python(kSource).kernel("scale");
  const auto x = on_cpu().to_device(std::vector<float>(1000, 3.0f));
  scale.for_all(1000)(x, 2.0f);  // FACTOR is 2
  CHECK(x.copy_to_host() == std::vector<float>(1000, 12.0f));
  scale.for_all(10, {.block = 32})(x, 2.0f);
  CHECK(x.copy_to_host()[31] == 48.0f);
  CHECK(x.copy_to_host()[32] == 12.0f);
  std::vector<double> host(100, 1.0);
  scale.for_all(host.size())(host, 5.0);
  CHECK(host.back() == 10.0);
  scale.for_all(0)(x, 2.0f);
  CHECK(holds(message([&] { scale.for_all(10)(x); }), "takes 2 arguments, 1 was given"));
}
