// SPDX-License-Identifier: Apache-2.0
// The public API on the embedded CPU device, as a user's program sees it.
#include <doctest/doctest.h>
#include <quern/quern.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "../support/messages.hpp"

using namespace quern;
using quern::test::holds;
using quern::test::message;

namespace {

constexpr const char* kSource = R"(
#include <quern/device.cuh>
struct Pair { int a; float b; };
extern "C" __global__ void saxpy(int n, float a, const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
template <class T> __global__ void scale(int n, T a, T* x) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= a;
}
extern "C" __global__ void pair(Pair p, float* out) { out[0] = p.a + p.b; }
extern "C" __global__ void wild(int* p, long long offset) { p[offset] = 1; }
extern "C" __global__ void transpose(quern::array<const float, 2> in, quern::array<float, 2> out) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (y < in.extents[0] && x < in.extents[1]) out(x, y) = in(y, x);
}
extern "C" __global__ void nothing() {}
extern "C" __global__ void reverse(int* data) {
  extern __shared__ int tile[];
  tile[threadIdx.x] = data[threadIdx.x];
  __syncthreads();
  data[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}
)";

bool ready() {
  static const bool found = [] {
    if (!Session::try_open({"cpu"})) return false;
    return doctor().ready;
  }();
  if (!found) MESSAGE("SKIPPED: no CPU device or no NVRTC on this machine");
  return found;
}

}  // namespace

TEST_CASE("a kernel computes on arrays that went to the device and come back") {
  if (!ready()) return;
  const Session session("cpu");
  const Module module = session.load_cuda(kSource);
  const std::vector<float> x(1000, 1.0f);
  std::vector<float> y(1000, 2.0f);
  const auto dx = session.to_device(x);
  const auto dy = session.to_device(y);
  module.kernel("saxpy")({.grid = 4, .block = 256})(1000, 2.0f, dx, dy);
  dy.copy_to_host(y);
  CHECK(y == std::vector<float>(1000, 4.0f));
  CHECK(session.device().kind() == DeviceKind::cpu);
}

TEST_CASE("templates are instantiated by name, at once or when asked for") {
  if (!ready()) return;
  const Session session("cpu");
  LoadOptions options;
  options.name_expressions = {"scale<float>"};
  const Module module = session.load_cuda(kSource, options);
  const auto x = session.to_device(std::vector<double>(10, 1.5));
  module.kernel("scale<double>")({.grid = 1, .block = 32})(10, 2, x);
  CHECK(x.copy_to_host() == std::vector<double>(10, 3.0));
  CHECK(module.kernel("scale<float>").info().signature == "scale<float>(int n, float a, float* x)");
}

TEST_CASE("structs go by value, and device arrays as quern::array with their shape") {
  if (!ready()) return;
  struct Pair {
    int a;
    float b;
  };
  const Session session("cpu");
  const Module module = session.load_cuda(kSource);
  const auto out = session.device_array<float>(1);
  module.kernel("pair")({.grid = 1, .block = 1})(Pair{3, 0.5f}, out);
  CHECK(out.copy_to_host()[0] == 3.5f);

  const auto in = session.device_array<float>({2, 3});
  in.copy_from_host(std::vector<float>{1, 2, 3, 4, 5, 6});
  const auto turned = session.device_array<float>({3, 2});
  module.kernel("transpose")({.grid = 1, .block = {8, 8}})(in, turned);
  CHECK(turned.copy_to_host() == std::vector<float>{1, 4, 2, 5, 3, 6});
}

TEST_CASE("dynamic shared memory beyond 48 KiB is allowed by itself") {
  if (!ready()) return;
  const Session session("cpu");
  const Kernel kernel = session.load_cuda(kSource).kernel("reverse");
  std::vector<int> values(512);
  std::iota(values.begin(), values.end(), 0);
  const auto data = session.to_device(values);
  kernel({.grid = 1, .block = 512, .shared_bytes = 90000})(data);
  std::reverse(values.begin(), values.end());
  CHECK(data.copy_to_host() == values);
}

TEST_CASE("work on a stream is ordered, copies included, and events tell its time") {
  if (!ready()) return;
  const Session session("cpu");
  const Kernel scale = session.load_cuda(kSource).kernel("scale<float>");
  const Stream stream = session.stream();
  const Event before = session.event();
  const Event after = session.event();
  std::vector<float> result(4096);
  before.record(stream);
  const auto x = session.to_device(std::vector<float>(4096, 1.0f), stream);
  for (int i = 0; i < 10; ++i) scale({.grid = 16, .block = 256, .stream = stream})(4096, 2.0f, x);
  x.copy_to_host(result, stream);
  after.record(stream);
  stream.synchronize();
  CHECK(result == std::vector<float>(4096, 1024.0f));
  CHECK(after.query());
  CHECK(after.elapsed_ms_since(before) >= 0.0);
}

TEST_CASE("dropped arrays wait to be released, out of memory releases them, deferring keeps them") {
  if (!ready()) return;
  const Session session("cpu");
  const std::size_t total = session.device().total_memory_bytes();
  const std::size_t chunk =
      total / 100;  // below the bytes limit, so that only a count or a shortage can release
  {
    const DeferredCleanup deferred = session.defer_cleanup();
    for (int i = 0; i < 20; ++i) static_cast<void>(session.allocate(chunk));
    CHECK(session.pending_release_count() == 20);
    CHECK_THROWS_AS(static_cast<void>(session.allocate(total)), OutOfMemory);
    CHECK(session.pending_release_count() == 20);
  }
  CHECK(session.pending_release_count() == 0);
  try {
    static_cast<void>(session.allocate(total * 2));
    FAIL("nothing was thrown");
  } catch (const OutOfMemory& error) {
    CHECK(error.requested_bytes() == total * 2);
    CHECK(holds(error.what(), std::to_string(total)));
  }
}

TEST_CASE("a fault is reported, stays with its session, and a new session works") {
  if (!ready()) return;
  {
    const Session session("cpu");
    const auto data = session.to_device(std::vector<int>(4, 0));
    session.load_cuda(kSource).kernel("wild")({.grid = 1, .block = 1})(data, std::int64_t{1} << 40);
    const std::string text = message([&] { session.synchronize(); });
    CHECK(holds(text, "CUDA_ERROR_ILLEGAL_ADDRESS"));
    CHECK(holds(message([&] { static_cast<void>(data.copy_to_host()); }), "CUDA_ERROR_ILLEGAL_ADDRESS"));
    const Session fresh("cpu");  // while objects of the lost session still live
    const auto again = fresh.to_device(std::vector<double>(10, 1.5));
    fresh.load_cuda(kSource).kernel("scale<double>")({.grid = 1, .block = 32})(10, 2.0, again);
    CHECK(again.copy_to_host() == std::vector<double>(10, 3.0));
  }
  const Session session("cpu");
  CHECK(session.to_device(std::vector<int>(4, 7)).copy_to_host() == std::vector<int>(4, 7));
}

TEST_CASE("PTX runs as it is, and broken PTX is refused with its line") {
  if (!ready()) return;
  const Session session("cpu");
  const std::string ptx = session.load_cuda(kSource).ptx();
  const Kernel kernel = session.load_ptx(ptx).kernel("saxpy");
  const auto x = session.to_device(std::vector<float>(8, 3.0f));
  kernel({.grid = 1, .block = 8})(8, 1.0f, x, x);
  CHECK(x.copy_to_host() == std::vector<float>(8, 6.0f));
  CHECK(kernel.info().cuda_source.empty());

  const auto broken = session.try_load_ptx(
      ".version 8.0\n.target sm_89\n.address_size 64\n.visible .entry k() {\n  frobnicate.u32 %r1;\n}\n");
  REQUIRE_FALSE(broken);
  CHECK(broken.errors().front().span.line == 5);
  CHECK(holds(to_string(broken.errors()), "frobnicate"));
}

TEST_CASE("what a device cannot run is named by the author's line, though a header's code does it") {
  if (!ready()) return;
  const Session session("cpu");
  LoadOptions options;
  options.file_name = "mine.cu";
  const auto module = session.try_load_cuda(
      "extern \"C\" __global__ void k(float* x, cudaTextureObject_t t) {\n\n  x[0] = tex2D<float>(t, 1.f, "
      "2.f);\n}\n",
      options);
  REQUIRE_FALSE(module);
  CHECK(module.errors().front().span.file == "mine.cu");
  CHECK(module.errors().front().span.line == 3);
  CHECK(holds(module.errors().front().message, "textures"));
}

TEST_CASE("source errors come with file, line and column, thrown or returned") {
  if (!ready()) return;
  const Session session("cpu");
  LoadOptions options;
  options.file_name = "mine.cu";
  const auto module =
      session.try_load_cuda("extern \"C\" __global__ void k(int* x) {\n  *x = y;\n}\n", options);
  REQUIRE_FALSE(module);
  CHECK(module.errors().front().span.file == "mine.cu");
  CHECK(module.errors().front().span.line == 2);
  try {
    static_cast<void>(session.load_cuda("nonsense", options));
    FAIL("nothing was thrown");
  } catch (const CompileError& error) {
    CHECK_FALSE(error.diagnostics().empty());
    CHECK(holds(error.what(), "mine.cu:1"));
  }
}

TEST_CASE("Kernel Python is compiled for the arguments of each launch, and tells what became of it") {
  if (!ready()) return;
  const Session session("cpu");
  const Module module = session.load_python(
      "from numba import cuda\n\n@cuda.jit\ndef scale(a, x):\n    i = cuda.grid(1)\n    if i < x.size:\n     "
      "   x[i] = a * x[i]\n");
  CHECK(module.kernel_names() == std::vector<std::string>{"scale"});
  const Kernel kernel = module.kernel("scale");
  CHECK(kernel.signature() == "scale(a, x)");
  auto floats = session.to_device(std::vector<float>{1, 2, 3});
  auto numbers = session.to_device(std::vector<std::int64_t>{1, 2, 3});
  kernel({.grid = 1, .block = 32})(2.5f, floats);
  kernel({.grid = 1, .block = 32})(std::int64_t{7}, numbers);
  CHECK(floats.copy_to_host() == std::vector<float>{2.5f, 5.0f, 7.5f});
  CHECK(numbers.copy_to_host() == std::vector<std::int64_t>{7, 14, 21});
  const Argument arguments[] = {Argument(2.5f), Argument(floats)};
  const KernelInfo info = kernel.specialise(arguments).info();
  CHECK(holds(info.cuda_source, "x[i] = a * x[i];"));
  CHECK(holds(info.ptx, ".visible .entry scale"));
  CHECK(holds(message([&] { kernel({.grid = 1, .block = 32})(1.0f); }), "takes 2 arguments, 1 was given"));
  CHECK(holds(message([&] { kernel({.grid = 1, .block = 32})(floats, floats); }),
              "does not take array(float32, 1d, C)"));
  CHECK(holds(message([&] { static_cast<void>(session.load_python("def f(:\n    pass\n").kernel("f")); }),
              "no kernel 'f'"));
}

TEST_CASE("a debug build tells what went wrong, where, and in which thread") {
  if (!ready()) return;
  const Session session("cpu");
  const Module module = session.load_python(
      "from numba import cuda\n\n@cuda.jit(debug=True)\ndef k(a, n):\n    i = cuda.grid(1)\n    if i == 37:\n"
      "        a[i, n] = 1\n    if i == 38 and n == 3:\n        a[0, 0] = 7 // (n - 3)\n    assert n < 100, "
      "'too far'\n"
      "    if n < 0:\n        raise ValueError('n is negative')\n",
      {.file_name = "k.py"});
  const Kernel kernel = module.kernel("k");
  const LaunchConfig config{.grid = 2, .block = 32};
  auto a = session.device_array({64, 4}, Dtype::float32);
  const auto said = [&](int n) { return message([&] { kernel(config)(a, n); }); };
  CHECK(said(0) == "");
  CHECK(said(5) ==
        "kernel k failed in block (1, 0, 0), thread (5, 0, 0)\n"
        "k.py:7: IndexError: index 5 is out of bounds for axis 1 with size 4 (shape (64, 4))");
  CHECK(holds(said(3), "block (1, 0, 0), thread (6, 0, 0)\nk.py:9: ZeroDivisionError: division by zero"));
  CHECK(holds(said(-1), "k.py:12: ValueError: n is negative"));
  CHECK(said(1) == "");  // a failure is reported for its own launch only
}

struct Particle {
  float x;
  float velocity[3];
  std::int32_t id;
};

TEST_CASE("records reach Kernel Python without a declared type") {
  if (!ready()) return;
  const Session session("cpu");
  const Module module = session.load_python(
      "from numba import cuda\n\n@cuda.jit\ndef move(ps, one):\n    i = cuda.grid(1)\n    p = ps[i]\n"
      "    p.x += p.velocity[2]\n    p['id'] = i\n    cuda.atomic.add(ps.x, 0, one.x)\n");
  auto particles = session.to_device(std::vector<Particle>{{1, {0, 0, 0.5f}, 7}, {2, {0, 0, 0.25f}, 7}});
  auto one = session.to_device(Particle{10, {}, 0});
  module.kernel("move")({.grid = 1, .block = 2})(particles, one);
  const std::vector<Particle> after = particles.copy_to_host();
  CHECK(after[0].x == 21.5f);
  CHECK(after[1].x == 2.25f);
  CHECK(after[1].id == 1);
}

TEST_CASE("one session serves many threads") {
  if (!ready()) return;
  const Session session("cpu");
  const Module module = session.load_cuda(kSource);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const Kernel scale = module.kernel("scale<int>");
      const Stream stream = session.stream();
      for (int i = 0; i < 10; ++i) {
        const auto x = session.to_device(std::vector<int>(300, t), stream);
        scale({.grid = 2, .block = 256, .stream = stream})(300, 3, x);
        std::vector<int> result(300);
        x.copy_to_host(result, stream);
        stream.synchronize();
        wrong += result == std::vector<int>(300, 3 * t) ? 0 : 1;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("objects outlive the session that made them") {
  if (!ready()) return;
  DeviceArray<float> array;
  std::optional<Kernel> kernel;
  {
    const Session session("cpu");
    array = session.to_device(std::vector<float>(16, 1.0f));
    kernel = session.load_cuda(kSource).kernel("scale<float>");
  }
  (*kernel)({.grid = 1, .block = 16})(16, 5.0f, array);
  CHECK(array.copy_to_host() == std::vector<float>(16, 5.0f));
}

TEST_CASE("stages are shown without a session") {
  if (!ready()) return;
  const std::string path = std::string(QUERN_KERNELS) + "/basics/saxpy.cu";
  CHECK(holds(stage_text(path, Stage::ptx), ".entry saxpy"));
  for (const Stage stage : {Stage::simt, Stage::llvm, Stage::assembly})
    CHECK_FALSE(stage_text(path, stage).empty());
  StageOptions options;
  options.kernel = "none";
  CHECK(
      holds(message([&] { static_cast<void>(stage_text(path, Stage::simt, options)); }), "no kernel 'none'"));
}

TEST_CASE("streams, events and sessions that were moved from say so") {
  if (!ready()) return;
  Session session("cpu");
  const auto refused = [](const auto& action) { return holds(message(action), "was moved from"); };
  const Kernel nothing = session.load_cuda(kSource).kernel("nothing");
  Stream stream = session.stream();
  const Stream owner = std::move(stream);
  CHECK(refused([&] { stream.synchronize(); }));  // NOLINT(bugprone-use-after-move)
  CHECK(refused([&] { stream.cancel(); }));
  CHECK(refused([&] { static_cast<void>(stream.query()); }));
  CHECK(refused([&] { nothing({.stream = stream})(); }));
  Event event = session.event();
  const Event kept = std::move(event);
  kept.record(owner);
  CHECK(refused([&] { event.record(owner); }));  // NOLINT(bugprone-use-after-move)
  CHECK(refused([&] { event.wait(owner); }));
  CHECK(refused([&] { static_cast<void>(event.query()); }));
  CHECK(refused([&] { event.synchronize(); }));
  CHECK(refused([&] { static_cast<void>(kept.elapsed_ms_since(event)); }));
  CHECK(refused([&] { kept.record(stream); }));
  CHECK(event.handle() == nullptr);
  const Session other = std::move(session);
  CHECK(refused([&] { session.synchronize(); }));  // NOLINT(bugprone-use-after-move)
  CHECK(refused([&] { static_cast<void>(session.stream()); }));
  CHECK(refused([&] { static_cast<void>(session.load_cuda("")); }));
  CHECK(refused([&] { session.default_stream().synchronize(); }));
  CHECK_NOTHROW(other.synchronize());
}
