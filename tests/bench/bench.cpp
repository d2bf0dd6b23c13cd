// SPDX-License-Identifier: Apache-2.0
// Pairs "native/<kernel>" and "quern/<kernel>" for Google Benchmark; tools/bench runs them interleaved and
// prints the ratios.
#include <benchmark/benchmark.h>
#include <quern/quern.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
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
  auto x = session().to_device(std::vector<float>(kVector, 1.0f)),
       y = session().to_device(std::vector<float>(kVector, 2.0f));
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
  // products are fused differently: a few points at the edge of the set may differ
  std::size_t different = 0;
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
  auto a = session().to_device(std::vector<float>(size, 1.0f)),
       b = session().to_device(std::vector<float>(size, 2.0f));
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
  auto x = session().to_device(std::vector<float>(kVector, 1.0f)),
       total = session().to_device(std::vector<float>(1, 0.0f));
  const auto run = [&] {
    k({.grid = 512, .block = 256})(x, static_cast<int>(kVector), total);
    session().synchronize();
  };
  run();
  expect(total.copy_to_host()[0] == 16777216.0f, "sum");
  for (auto _ : state) run();
}

// ---- Black-Scholes, 4 Mi options

constexpr std::size_t kOptions = std::size_t{1} << 22;

struct Options {
  std::vector<float> spot, strike, years, call, put;
  Options() : spot(kOptions), strike(kOptions), years(kOptions), call(kOptions), put(kOptions) {
    for (std::size_t i = 0; i < kOptions; ++i) {
      spot[i] = 5.0f + static_cast<float>(i * 7919 % 2500) / 100.0f;
      strike[i] = 1.0f + static_cast<float>(i * 104729 % 9900) / 100.0f;
      years[i] = 0.25f + static_cast<float>(i * 1299709 % 975) / 100.0f;
    }
  }
};

template <auto Function>
void native_black_scholes(benchmark::State& state) {
  Options o;
  for (auto _ : state) {
    Function(o.spot.data(), o.strike.data(), o.years.data(), 0.02f, 0.3f, o.call.data(), o.put.data(),
             static_cast<int>(kOptions));
    benchmark::ClobberMemory();
  }
}

void quern_black_scholes(benchmark::State& state) {
  const auto k = kernel("finance/black_scholes.cu");
  Options o;
  auto spot = session().to_device(o.spot), strike = session().to_device(o.strike),
       years = session().to_device(o.years), call = session().to_device(o.call),
       put = session().to_device(o.put);
  const auto run = [&] {
    k({.grid = kOptions / 256, .block = 256})(spot, strike, years, 0.02f, 0.3f, call, put,
                                              static_cast<int>(kOptions));
    session().synchronize();
  };
  run();
  quern::bench::strict::black_scholes(o.spot.data(), o.strike.data(), o.years.data(), 0.02f, 0.3f,
                                      o.call.data(), o.put.data(), static_cast<int>(kOptions));
  const std::vector<float> got = call.copy_to_host();
  for (std::size_t i = 0; i < kOptions; i += 997)
    expect(std::fabs(got[i] - o.call[i]) < 1e-4f, "Black-Scholes");
  for (auto _ : state) run();
}

// ---- n bodies, 16,384

constexpr int kBodies = 16384;

std::vector<float> bodies() {
  std::vector<float> result(4 * kBodies);
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = static_cast<float>(i * 7919 % 10007) / 10007.0f;
  return result;
}

template <auto Function>
void native_nbody(benchmark::State& state) {
  const std::vector<float> position = bodies();
  std::vector<float> acceleration(4 * kBodies);
  for (auto _ : state) {
    Function(position.data(), acceleration.data(), kBodies, 0.01f);
    benchmark::ClobberMemory();
  }
}

void quern_nbody(benchmark::State& state) {
  const auto k = kernel("physics/nbody.cu");
  const std::vector<float> host = bodies();
  auto position = session().to_device(host), acceleration = session().device_array<float>(4 * kBodies);
  const auto run = [&] {
    k({.grid = kBodies / 256, .block = 256})(position, acceleration, kBodies, 0.01f);
    session().synchronize();
  };
  run();
  std::vector<float> expected(4 * kBodies);
  quern::bench::strict::nbody(host.data(), expected.data(), kBodies, 0.01f);
  const std::vector<float> got = acceleration.copy_to_host();
  for (std::size_t i = 0; i < got.size(); i += 97)
    expect(std::fabs(got[i] - expected[i]) <= 1.0f + 1e-2f * std::fabs(expected[i]), "n bodies");
  for (auto _ : state) run();
}

// ---- block reduction, 16 Mi elements

template <auto Function>
void native_block_sum(benchmark::State& state) {
  native_sum<Function>(state);
}

void quern_block_sum(benchmark::State& state) {
  const auto k = kernel("reductions/block_sum.cu");
  auto x = session().to_device(std::vector<float>(kVector, 1.0f)),
       total = session().to_device(std::vector<float>(1, 0.0f));
  const auto run = [&] {
    k({.grid = 512, .block = 256})(x, static_cast<int>(kVector), total);
    session().synchronize();
  };
  run();
  expect(total.copy_to_host()[0] == 16777216.0f, "block sum");
  for (auto _ : state) run();
}

// ---- transpose and five-point stencil, 4096 x 4096

constexpr int kSide = 4096;

std::vector<float> square() {
  std::vector<float> result(static_cast<std::size_t>(kSide) * kSide);
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = static_cast<float>(i % 1000003);
  return result;
}

template <auto Function>
void native_square(benchmark::State& state) {
  const std::vector<float> in = square();
  std::vector<float> out(in.size());
  for (auto _ : state) {
    Function(in.data(), out.data(), kSide, kSide);
    benchmark::ClobberMemory();
  }
}
template <auto Function>
void native_transpose(benchmark::State& state) {
  native_square<Function>(state);
}
template <auto Function>
void native_five_point(benchmark::State& state) {
  native_square<Function>(state);
}

void run_square(benchmark::State& state, const char* file, unsigned rows_per_block,
                void (*native)(const float*, float*, int, int)) {
  const auto k = kernel(file);
  const std::vector<float> host = square();
  auto in = session().to_device(host), out = session().device_array<float>(host.size());
  const auto run = [&] {
    k({.grid = {kSide / 32, kSide / rows_per_block}, .block = {32, 8}})(in, out, kSide, kSide);
    session().synchronize();
  };
  run();
  std::vector<float> expected(host.size());
  native(host.data(), expected.data(), kSide, kSide);
  expect(out.copy_to_host() == expected, file);
  for (auto _ : state) run();
}
void quern_transpose(benchmark::State& state) {
  run_square(state, "linear_algebra/transpose.cu", 32, quern::bench::strict::transpose);
}
void quern_five_point(benchmark::State& state) {
  run_square(state, "stencils/five_point.cu", 8, quern::bench::strict::five_point);
}

// ---- histograms of 16 Mi bytes

std::vector<unsigned char> many_bytes() {
  std::vector<unsigned char> result(kVector);
  std::uint32_t state = 1;
  for (unsigned char& byte : result) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<unsigned char>(state >> 24);
  }
  return result;
}

template <auto Function>
void native_shared_histogram(benchmark::State& state) {
  const std::vector<unsigned char> data = many_bytes();
  std::vector<unsigned int> counts(256);
  for (auto _ : state) {
    Function(data.data(), static_cast<int>(kVector), counts.data());
    benchmark::ClobberMemory();
  }
}
template <auto Function>
void native_global_histogram(benchmark::State& state) {
  native_shared_histogram<Function>(state);
}

void run_histogram(benchmark::State& state, const char* file) {
  const auto k = kernel(file);
  const std::vector<unsigned char> host = many_bytes();
  auto data = session().to_device(host);
  auto counts = session().to_device(std::vector<unsigned int>(256, 0));
  const auto run = [&] {
    k({.grid = 512, .block = 256})(data, static_cast<int>(kVector), counts);
    session().synchronize();
  };
  run();
  std::vector<unsigned int> expected(256);
  quern::bench::strict::histogram(host.data(), static_cast<int>(kVector), expected.data());
  expect(counts.copy_to_host() == expected, file);
  for (auto _ : state) run();
}
void quern_shared_histogram(benchmark::State& state) { run_histogram(state, "histograms/shared.cu"); }
void quern_global_histogram(benchmark::State& state) { run_histogram(state, "histograms/global.cu"); }

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

// Measures from the source to the end of the first launch, without NVRTC's own time. Every source is new.
void saxpy_ready(benchmark::State& state) {
  static int serial = 0;
  auto x = session().to_device(std::vector<float>(64, 1.0f)),
       y = session().to_device(std::vector<float>(64, 2.0f));
  std::stringstream text;
  text << std::ifstream(std::string(QUERN_KERNELS) + "/basics/saxpy.cu").rdbuf();
  double nvrtc_ms = 0;
  for (auto _ : state) {
    // The variable is part of the PTX, so the machine code is new, too.
    auto module =
        session().load_cuda(text.str() + "\n__device__ int serial = " + std::to_string(++serial) + ";");
    nvrtc_ms += module.compile_ms();
    module.kernel()({.grid = 1, .block = 64})(64, 0.5f, x, y);
    session().synchronize();
  }
  state.counters["nvrtc_ms"] = benchmark::Counter(nvrtc_ms, benchmark::Counter::kAvgIterations);
}

#define QUERN_PAIR(name, native)                         \
  BENCHMARK(native_##name<quern::bench::strict::native>) \
      ->Name("native/" #name "/strict")                  \
      ->Unit(benchmark::kMillisecond)                    \
      ->UseRealTime();                                   \
  BENCHMARK(native_##name<quern::bench::fast::native>)   \
      ->Name("native/" #name "/fast")                    \
      ->Unit(benchmark::kMillisecond)                    \
      ->UseRealTime();                                   \
  BENCHMARK(quern_##name)->Name("quern/" #name)->Unit(benchmark::kMillisecond)->UseRealTime()

QUERN_PAIR(saxpy, saxpy);
QUERN_PAIR(black_scholes, black_scholes);
QUERN_PAIR(nbody, nbody);
QUERN_PAIR(matmul, matmul);
QUERN_PAIR(block_sum, sum);
QUERN_PAIR(sum, sum);
QUERN_PAIR(transpose, transpose);
QUERN_PAIR(mandelbrot, mandelbrot);
QUERN_PAIR(shared_histogram, histogram);
QUERN_PAIR(global_histogram, histogram);
QUERN_PAIR(five_point, five_point);
BENCHMARK(empty_launch)->Name("latency/empty_launch_and_wait")->Unit(benchmark::kMicrosecond)->UseRealTime();
BENCHMARK(empty_launch_back_to_back)
    ->Name("latency/empty_launches_back_to_back_x1000")
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();
BENCHMARK(saxpy_ready)
    ->Name("latency/saxpy_source_to_result")
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->Iterations(5);

}  // namespace

BENCHMARK_MAIN();
