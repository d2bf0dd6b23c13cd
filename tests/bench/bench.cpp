// SPDX-License-Identifier: Apache-2.0
// Pairs "native/<kernel>" and "quern/<kernel>" for Google Benchmark; tools/bench runs them interleaved and prints the ratios.
#include <benchmark/benchmark.h>
#include <quern/quern.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "native.hpp"

namespace {

using quern::Session;

Session& session() {
  static Session instance("cpu");
  return instance;
}

quern::Kernel kernel(const char* file) {
  static std::vector<quern::Module> modules;
  modules.push_back(session().load_file(std::string(QUERN_KERNELS) + "/" + file));
  return modules.back().kernel();
}

void expect(bool right, const char* what) {
  if (right) return;
  std::fprintf(stderr, "bench: %s gives a wrong result\n", what);
  std::exit(1);
}

// ---- saxpy, 16 Mi elements

constexpr std::size_t kVector = std::size_t{1} << 24;

template <auto Function>
void native_saxpy(benchmark::State& state) {
  std::vector<float> x(kVector, 1.0f), y(kVector, 2.0f);
  for (auto _ : state) {
    Function(kVector, 0.5f, x.data(), y.data());
    benchmark::ClobberMemory();
  }
}

void quern_saxpy(benchmark::State& state) {
  const auto k = kernel("basics/saxpy.cu");
  auto x = session().to_device(std::vector<float>(kVector, 1.0f)), y = session().to_device(std::vector<float>(kVector, 2.0f));
  const auto run = [&] {
    k({.grid = kVector / 256, .block = 256})(static_cast<int>(kVector), 0.5f, x, y);
    session().synchronize();
  };
  run();
  expect(y.copy_to_host()[kVector - 1] == 2.5f, "saxpy");
  for (auto _ : state) run();
}

// ---- mandelbrot, 2048 x 2048, 256 steps

constexpr int kPicture = 2048, kLimit = 256;

template <auto Function>
void native_mandelbrot(benchmark::State& state) {
  std::vector<std::int32_t> image(static_cast<std::size_t>(kPicture) * kPicture);
  for (auto _ : state) {
    Function(image.data(), kPicture, kPicture, kLimit);
    benchmark::ClobberMemory();
  }
}

void quern_mandelbrot(benchmark::State& state) {
  const auto k = kernel("fractals/mandelbrot.cu");
  auto image = session().device_array<std::int32_t>(static_cast<std::size_t>(kPicture) * kPicture);
  const auto run = [&] {
    k({.grid = {kPicture / 16, kPicture / 16}, .block = {16, 16}})(image, kPicture, kPicture, kLimit);
    session().synchronize();
  };
  run();
  std::vector<std::int32_t> expected(static_cast<std::size_t>(kPicture) * kPicture);
  quern::bench::strict::mandelbrot(expected.data(), kPicture, kPicture, kLimit);
  const std::vector<std::int32_t> got = image.copy_to_host();
  std::size_t different = 0;  // products are fused differently: a few points at the rim may differ
  for (std::size_t i = 0; i < got.size(); ++i) different += got[i] != expected[i] ? 1 : 0;
  expect(different < got.size() / 50, "mandelbrot");
  for (auto _ : state) run();
}

// ---- matmul, 1024 x 1024

constexpr int kMatrix = 1024;

template <auto Function>
void native_matmul(benchmark::State& state) {
  const std::size_t size = static_cast<std::size_t>(kMatrix) * kMatrix;
  std::vector<float> a(size, 1.0f), b(size, 2.0f), c(size);
  for (auto _ : state) {
    Function(a.data(), b.data(), c.data(), kMatrix);
    benchmark::ClobberMemory();
  }
}

void quern_matmul(benchmark::State& state) {
  const auto k = kernel("linear_algebra/matmul.cu");
  const std::size_t size = static_cast<std::size_t>(kMatrix) * kMatrix;
  auto a = session().to_device(std::vector<float>(size, 1.0f)), b = session().to_device(std::vector<float>(size, 2.0f));
  auto c = session().device_array<float>(size);
  const auto run = [&] {
    k({.grid = {kMatrix / 16, kMatrix / 16}, .block = {16, 16}})(a, b, c, kMatrix);
    session().synchronize();
  };
  run();
  expect(c.copy_to_host()[size - 1] == 2.0f * kMatrix, "matmul");
  for (auto _ : state) run();
}

// ---- shuffle reduction, 16 Mi elements

template <auto Function>
void native_sum(benchmark::State& state) {
  std::vector<float> x(kVector, 1.0f);
  for (auto _ : state) benchmark::DoNotOptimize(Function(x.data(), kVector));
}

void quern_sum(benchmark::State& state) {
  const auto k = kernel("reductions/sum.cu");
  auto x = session().to_device(std::vector<float>(kVector, 1.0f)), total = session().to_device(std::vector<float>(1, 0.0f));
  const auto run = [&] {
    k({.grid = 512, .block = 256})(x, static_cast<int>(kVector), total);
    session().synchronize();
  };
  run();
  expect(total.copy_to_host()[0] == 16777216.0f, "sum");
  for (auto _ : state) run();
}

// ---- latencies

void empty_launch(benchmark::State& state) {
  auto module = session().load_cuda("extern \"C\" __global__ void empty() {}");
  const auto k = module.kernel("empty");
  for (auto _ : state) {
    k({.grid = 1, .block = 32})();
    session().synchronize();
  }
}

void empty_launch_back_to_back(benchmark::State& state) {
  auto module = session().load_cuda("extern \"C\" __global__ void empty() {}");
  const auto k = module.kernel("empty");
  for (auto _ : state) {
    for (int i = 0; i < 1000; ++i) k({.grid = 1, .block = 32})();
    session().synchronize();
  }
  state.SetItemsProcessed(state.iterations() * 1000);
}

// Source to the end of the first launch, less NVRTC's own time; every source is new.
void saxpy_ready(benchmark::State& state) {
  static int serial = 0;
  auto x = session().to_device(std::vector<float>(64, 1.0f)), y = session().to_device(std::vector<float>(64, 2.0f));
  double nvrtc_ms = 0;
  for (auto _ : state) {
    auto module = session().load_file(std::string(QUERN_KERNELS) + "/basics/saxpy.cu", {.defines = {"SERIAL=" + std::to_string(++serial)}});
    nvrtc_ms += module.compile_ms();
    module.kernel()({.grid = 1, .block = 64})(64, 0.5f, x, y);
    session().synchronize();
  }
  state.counters["nvrtc_ms"] = benchmark::Counter(nvrtc_ms, benchmark::Counter::kAvgIterations);
}

#define QUERN_PAIR(name)                                                                                                              \
  BENCHMARK(native_##name<quern::bench::strict::name>)->Name("native/" #name "/strict")->Unit(benchmark::kMillisecond)->UseRealTime(); \
  BENCHMARK(native_##name<quern::bench::fast::name>)->Name("native/" #name "/fast")->Unit(benchmark::kMillisecond)->UseRealTime();     \
  BENCHMARK(quern_##name)->Name("quern/" #name)->Unit(benchmark::kMillisecond)->UseRealTime()

QUERN_PAIR(saxpy);
QUERN_PAIR(mandelbrot);
QUERN_PAIR(matmul);
QUERN_PAIR(sum);
BENCHMARK(empty_launch)->Name("latency/empty_launch_and_wait")->Unit(benchmark::kMicrosecond)->UseRealTime();
BENCHMARK(empty_launch_back_to_back)->Name("latency/empty_launches_back_to_back_x1000")->Unit(benchmark::kMicrosecond)->UseRealTime();
BENCHMARK(saxpy_ready)->Name("latency/saxpy_source_to_result")->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(5);

}  // namespace

BENCHMARK_MAIN();
