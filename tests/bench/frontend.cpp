// SPDX-License-Identifier: Apache-2.0
// Measures the cost of Kernel Python compared with CUDA C++: the front end's own time, NVRTC's time for the
// generated code, and the time of samples that exist in both languages, interleaved in one run. tools/bench
// --frontend prints the results.
#include <fmt/format.h>
#include <quern/quern.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "compile/compiler.hpp"
#include "frontend/translate.hpp"

namespace {

using namespace quern;

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// The CPU time of this thread only, so that other programs have no influence.
double processor_ms() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

double best_of(int rounds, const std::function<void(int)>& call) {
  double best = 1e30;
  for (int round = 0; round < rounds; ++round) {
    const double begin = processor_ms();
    call(round);
    best = std::min(best, processor_ms() - begin);
  }
  return best;
}

// Ten lines of typical kernel code. Every name is new, so that no expression is shared with earlier lines.
constexpr const char* kTenLines = R"(    s{0} = x[i] * 2.5 + y[(i + {0}) % n]
    if s{0} > 1.0 and i % 3 != 0:
        s{0} -= math.sqrt(abs(s{0}))
    else:
        s{0} = min(s{0}, y[-1])
    c{0} = 0
    for k{0} in range(1, 5):
        c{0} += k{0} ^ i
    y[i] = s{0} if c{0} > {0} else x[i] / 3
    x[i] += c{0}
)";

std::string kernel_text(int lines, const std::string& name) {
  std::string text = fmt::format(
      "@cuda.jit\ndef {}(x, y):\n    i = cuda.grid(1)\n    n = len(x)\n    if i >= n:\n        return\n",
      name);
  for (int block = 0; block < (lines - 6) / 10; ++block) {
    std::string_view rest = kTenLines;
    for (std::size_t at = rest.find("{0}"); at != std::string_view::npos; at = rest.find("{0}")) {
      text += rest.substr(0, at);
      text += std::to_string(block);
      rest.remove_prefix(at + 3);
    }
    text += rest;
  }
  return text;
}

abi::KernelSource source_of(std::string text) {
  return {abi::Language::python, "import math\nfrom numba import cuda\n\n\n" + std::move(text), "bench.py"};
}

double translate_ms(const abi::KernelSource& source, int rounds) {
  return best_of(rounds, [&](int) {
    const auto made = frontend::translate(source, "k", "float64[::1], float64[::1]");
    if (!made) std::fputs(to_string(made.errors()).c_str(), stderr), std::exit(1);
  });
}

void verdict(const std::string& what, double value, const char* unit, double limit) {
  std::printf("%-52s%9.3f %-3s limit %7.3f  %s\n", what.c_str(), value, unit, limit,
              value <= limit ? "ok" : "MISSED");
}

void front_end() {
  verdict("front end, kernel of 46 lines", translate_ms(source_of(kernel_text(46, "k")), 200), "ms", 1);
  const double thousand = translate_ms(source_of(kernel_text(1006, "k")), 20);
  const double all = translate_ms(source_of(kernel_text(10006, "k")), 5);
  verdict("front end, one kernel of 10,006 lines", all, "ms", 100);
  verdict("the same over ten times a kernel of 1,006 lines", all / (10 * thousand), "", 1.5);
  std::string file = kernel_text(46, "k");
  for (int k = 1; k < 200; ++k) file += "\n\n" + kernel_text(46, "other" + std::to_string(k));
  verdict("front end, one kernel in a file of 9,600 lines", translate_ms(source_of(file), 20), "ms", 100);
}

struct Pair {
  const char* name;
  const char* cuda;  ///< FILE::KERNEL below kernels/, or twins/FILE::KERNEL beside this file
  const char* python;
  LaunchConfig config;
  std::function<std::vector<Argument>(Session&, std::vector<DeviceNDArray>&, bool python)> arguments;
};

using Arrays = std::vector<DeviceNDArray>;

/// An array filled with the result of `value` for each element.
template <class T, class F>
const DeviceNDArray& filled(Session& session, Arrays& keep, const Shape& shape, F value) {
  const NDArray host(shape, element_type_of<T>());
  T* const data = host.data_as<T>();
  for (std::size_t i = 0; i < host.size(); ++i) data[i] = value(static_cast<std::int64_t>(i));
  return keep.emplace_back(session.to_device(host));
}

float zero(std::int64_t) { return 0; }
float some(std::int64_t i) { return static_cast<float>((i * 2654435761LL) % 1000003) / 1000003.0f; }

const std::vector<Pair>& pairs() {
  constexpr std::int64_t kMany = 1 << 24;
  static const std::vector<Pair> all = {
      {"saxpy, 16 Mi",
       "basics/saxpy.cu::saxpy",
       "basics/saxpy.py::saxpy",
       {.grid = 65536, .block = 256},
       [](Session& s, Arrays& keep, bool python) {
         const auto &x = filled<float>(s, keep, {kMany}, some), &y = filled<float>(s, keep, {kMany}, some);
         return python ? std::vector<Argument>{2.0f, x, y}
                       : std::vector<Argument>{static_cast<int>(kMany), 2.0f, x, y};
       }},
      {"Black-Scholes, 4 Mi",
       "finance/black_scholes.cu::black_scholes",
       "finance/black_scholes.py::black_scholes",
       {.grid = 16384, .block = 256},
       [](Session& s, Arrays& keep, bool python) {
         constexpr std::int64_t n = 1 << 22;
         const auto &spot = filled<float>(s, keep, {n}, [](std::int64_t i) { return 5 + 25 * some(i); }),
                    &strike =
                        filled<float>(s, keep, {n}, [](std::int64_t i) { return 1 + 99 * some(i + 7); }),
                    &years =
                        filled<float>(s, keep, {n}, [](std::int64_t i) { return 0.25f + 9 * some(i + 3); }),
                    &call = filled<float>(s, keep, {n}, zero), &put = filled<float>(s, keep, {n}, zero);
         std::vector<Argument> list = {spot, strike, years, 0.02f, 0.3f, call, put};
         if (!python) list.emplace_back(static_cast<int>(n));
         return list;
       }},
      {"matmul, 16 x 16 tiles, 1024",
       "twins/matmul.cu::matmul",
       "linear_algebra/matmul.py::matmul",
       {.grid = {64, 64}, .block = {16, 16}},
       [](Session& s, Arrays& keep, bool python) {
         const auto &a = filled<float>(s, keep, {1024, 1024}, some),
                    &b = filled<float>(s, keep, {1024, 1024}, some),
                    &c = filled<float>(s, keep, {1024, 1024}, zero);
         std::vector<Argument> list = {a, b, c};
         if (!python) list.insert(list.end(), {1024, 1024, 1024});
         return list;
       }},
      {"transpose, 4096",
       "linear_algebra/transpose.cu::transpose",
       "linear_algebra/transpose.py::transpose",
       {.grid = {128, 128}, .block = {32, 8}},
       [](Session& s, Arrays& keep, bool python) {
         const auto &a = filled<float>(s, keep, {4096, 4096}, some),
                    &b = filled<float>(s, keep, {4096, 4096}, zero);
         std::vector<Argument> list = {a, b};
         if (!python) list.insert(list.end(), {4096, 4096});
         return list;
       }},
      {"mandelbrot, 1024, 256 steps",
       "twins/mandelbrot.cu::mandelbrot",
       "fractals/mandelbrot.py::mandelbrot",
       {.grid = {64, 64}, .block = {16, 16}},
       [](Session& s, Arrays& keep, bool python) {
         const auto& image = filled<int>(s, keep, {1024, 1024}, [](std::int64_t) { return 0; });
         return python ? std::vector<Argument>{image, 256} : std::vector<Argument>{image, 1024, 1024, 256};
       }},
      {"5-point stencil, 4096",
       "stencils/five_point.cu::five_point",
       "stencils/five_point.py::five_point",
       {.grid = {128, 512}, .block = {32, 8}},
       [](Session& s, Arrays& keep, bool python) {
         const auto &a = filled<float>(s, keep, {4096, 4096}, some),
                    &b = filled<float>(s, keep, {4096, 4096}, zero);
         std::vector<Argument> list = {a, b};
         if (!python) list.insert(list.end(), {4096, 4096});
         return list;
       }},
      {"n bodies, 4,096",
       "twins/nbody.cu::nbody",
       "physics/nbody.py::nbody",
       {.grid = 16, .block = 256},
       [](Session& s, Arrays& keep, bool python) {
         const auto &a = filled<float>(s, keep, {4096, 4}, some),
                    &b = filled<float>(s, keep, {4096, 4}, zero);
         return python ? std::vector<Argument>{a, b, 0.01f} : std::vector<Argument>{a, b, 4096, 0.01f};
       }},
      {"histogram, shared atomics, 16 Mi",
       "histograms/shared.cu::shared_histogram",
       "histograms/shared.py::shared_histogram",
       {.grid = 512, .block = 256},
       [](Session& s, Arrays& keep, bool python) {
         const auto &data = filled<std::uint8_t>(
                        s, keep, {kMany},
                        [](std::int64_t i) { return static_cast<std::uint8_t>(256 * some(i)); }),
                    &counts = filled<std::uint32_t>(s, keep, {256}, [](std::int64_t) { return 0u; });
         return python ? std::vector<Argument>{data, counts}
                       : std::vector<Argument>{data, static_cast<int>(kMany), counts};
       }},
      {"block scan, 16 Mi",
       "scans/block_scan.cu::block_scan",
       "scans/block_scan.py::block_scan",
       {.grid = 65536, .block = 256},
       [](Session& s, Arrays& keep, bool python) {
         const auto one = [](std::int64_t) { return 1; };
         const auto &a = filled<int>(s, keep, {kMany}, one), &b = filled<int>(s, keep, {kMany}, one);
         std::vector<Argument> list = {a, b};
         if (!python) list.emplace_back(static_cast<int>(kMany));
         return list;
       }},
  };
  return all;
}

Kernel load(Session& session, const std::string& text, const std::string& option) {
  const std::size_t at = text.find("::");
  LoadOptions options;
  if (!option.empty()) options.options.push_back(option);
  // If the sample in CUDA C++ differs from the one in Kernel Python, twins/ contains a twin in CUDA C++ that
  // does the same as the latter.
  const std::string folder = text.starts_with("twins/") ? QUERN_TWINS : QUERN_KERNELS;
  return session.load_file(fmt::format("{}/{}", folder, text.substr(0, at)), options)
      .kernel(text.substr(at + 2));
}

/// NVRTC's time for the kernel. A macro with a new value each time makes the cache miss.
double nvrtc_ms(Session& session, const char* kernel, std::span<const Argument> arguments, int round) {
  return load(session, kernel, fmt::format("-DROUND={}", round)).specialise(arguments).info().compile_ms;
}

double launch_ms(const Session& session, const Kernel& kernel, const LaunchConfig& config,
                 std::span<const Argument> arguments) {
  const double begin = now_ms();
  kernel.launch(config, arguments);
  session.synchronize();
  return now_ms() - begin;
}

void compare(Session& session, const Pair& pair, int rounds) {
  Arrays cuda_arrays, python_arrays;
  cuda_arrays.reserve(8);  // arguments refer into these
  python_arrays.reserve(8);
  const std::vector<Argument> cuda = pair.arguments(session, cuda_arrays, false),
                              python = pair.arguments(session, python_arrays, true);
  double cuda_nvrtc = 1e30, python_nvrtc = 1e30;
  for (int round = 0; round < 3 * rounds; ++round) {
    cuda_nvrtc = std::min(cuda_nvrtc, nvrtc_ms(session, pair.cuda, cuda, round));
    python_nvrtc = std::min(python_nvrtc, nvrtc_ms(session, pair.python, python, round));
  }
  const Kernel cuda_kernel = load(session, pair.cuda, ""), python_kernel = load(session, pair.python, "");
  launch_ms(session, cuda_kernel, pair.config, cuda);
  launch_ms(session, python_kernel, pair.config, python);
  double cuda_ms = 1e30, python_ms = 1e30;
  for (int round = 0; round < 3 * rounds; ++round) {
    cuda_ms = std::min(cuda_ms, launch_ms(session, cuda_kernel, pair.config, cuda));
    python_ms = std::min(python_ms, launch_ms(session, python_kernel, pair.config, python));
  }
  std::printf("%-34s%9.1f%9.1f%7.2f  %-7s%9.2f%9.2f%7.3f  %s\n", pair.name, cuda_nvrtc, python_nvrtc,
              python_nvrtc / cuda_nvrtc, python_nvrtc <= 1.10 * cuda_nvrtc ? "ok" : "MISSED", cuda_ms,
              python_ms, python_ms / cuda_ms, python_ms <= 1.03 * cuda_ms ? "ok" : "MISSED");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 5;
  const std::string word = argc > 2 ? argv[2] : "";
  front_end();
  std::printf("\n%-34s%9s%9s%7s  %-7s%9s%9s%7s\n", "best of several, ms", "nvrtc cu", "nvrtc py", "ratio",
              "1.10", "run cu", "run py", "ratio 1.03");
  Session session("cpu");
  for (const Pair& pair : pairs())
    if (std::string(pair.name).find(word) != std::string::npos) compare(session, pair, rounds);
}
