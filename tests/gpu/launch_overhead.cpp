// SPDX-License-Identifier: Apache-2.0
// Measures the cost of a launch through quern in addition to cuLaunchKernel: the same kernel of the same PTX,
// on the same device, in one run. Prints one JSON document. Exit status 77: there is no such device.
//   launch-overhead [cpu|cuda]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "driver/loader.hpp"
#include "quern/quern.hpp"

using namespace quern;

namespace {

constexpr const char* kPtx = R"(.version 8.0
.target sm_75
.address_size 64
.visible .entry idle(.param .u64 out, .param .u32 n, .param .f32 a) { ret; }
)";
constexpr int kRounds = 9, kLaunches = 2000;

/// The median over rounds of the nanoseconds for each launch, excluding the wait at the end of each round.
template <class Launch, class Wait>
double median_ns(Launch launch, Wait wait) {
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kLaunches; ++i) launch();
    const auto end = std::chrono::steady_clock::now();
    wait();
    rounds.push_back(std::chrono::duration<double, std::nano>(end - begin).count() / kLaunches);
  }
  std::ranges::sort(rounds);
  return rounds[kRounds / 2];
}

void must(CUresult result, const char* call) {
  if (result != CUDA_SUCCESS)
    throw Error(ErrorCode::driver, fmt::format("{} answers {}", call, static_cast<int>(result)));
}

double raw_ns(const driver::DriverTable& table) {
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  must(table.cuInit(0), "cuInit");
  must(table.cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  must(table.cuCtxSetCurrent(context), "cuCtxSetCurrent");
  must(table.cuModuleLoadDataEx(&module, kPtx, 0, nullptr, nullptr), "cuModuleLoadDataEx");
  must(table.cuModuleGetFunction(&function, module, "idle"), "cuModuleGetFunction");
  CUdeviceptr out = 0;
  unsigned n = 1;
  float a = 2;
  void* parameters[] = {&out, &n, &a};
  return median_ns(
      [&] {
        must(table.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr),
             "cuLaunchKernel");
      },
      [&] { must(table.cuCtxSynchronize(), "cuCtxSynchronize"); });
}

double quern_ns(const std::string& device) {
  Session session(device);
  Module module = session.load_ptx(kPtx);
  auto array = session.to_device(std::vector<float>(1, 1.0f));
  Kernel kernel = module.kernel("idle");
  return median_ns([&] { kernel({.grid = 1, .block = 32})(array, 1u, 2.0f); },
                   [&] { session.synchronize(); });
}

}  // namespace

int main(int argc, char** argv) {
  const std::string device = argc > 1 ? argv[1] : "cuda";
  try {
    double raw = 0;
    if (device == "cpu") {
      auto loaded = driver::load_cpu_plugin();
      if (!loaded) return 77;
      // never closed, since its threads run
      raw = raw_ns((new driver::LoadedPlugin(std::move(*loaded)))->table);
    } else {
      auto loaded = driver::load_libcuda();
      if (!loaded) return 77;
      raw = raw_ns((new driver::LoadedDriver(std::move(*loaded)))->table);
    }
    fmt::print("{{\"raw_ns\": {:.0f}, \"quern_ns\": {:.0f}, \"launches\": {}}}\n", raw, quern_ns(device),
               kRounds * kLaunches);
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
