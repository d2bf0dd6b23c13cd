// SPDX-License-Identifier: Apache-2.0
// Runs generated kernels on the oracle and on the CPU device: every bit must agree (any two NaNs are equal).
//   differential [--first SEED] [--count N] [--show SEED] [--waiting]
// With QUERN_CPU_DISPATCH=1, the dispatcher runs every kernel on the device. Exit status 1 if a kernel
// differs; the seed, the place and both values are printed. The seed alone reproduces a kernel. The device
// optimises three of four kernels.
#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>

#include "driver/loader.hpp"
#include "generate.hpp"
#include "machine.hpp"
#include "options.hpp"

using namespace quern;
using oracle::Generated;

namespace {

struct Failure {
  std::string what;
};

void must(CUresult result, const char* call) {
  if (result != CUDA_SUCCESS) throw Failure{fmt::format("{} answers {}", call, static_cast<int>(result))};
}

std::vector<std::byte> run_oracle(const Generated& kernel, const std::vector<std::byte>& input) {
  oracle::Machine machine(oracle::read(kernel.ptx));
  const std::uint64_t in = machine.allocate(kernel.in_bytes), out = machine.allocate(kernel.out_bytes);
  std::memcpy(machine.memory(in).data(), input.data(), input.size());
  std::memset(machine.memory(out).data(), oracle::kOutFill, kernel.out_bytes);
  std::vector<std::byte> params(20);
  std::memcpy(params.data(), &in, 8);
  std::memcpy(params.data() + 8, &out, 8);
  const oracle::Result result = machine.launch("k", {.grid = kernel.grid, .block = kernel.block}, params);
  if (result.outcome != oracle::Outcome::ok) throw Failure{"the oracle stops: " + result.message};
  const auto bytes = machine.memory(out);
  return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> run_device(const driver::DriverTable& table, const Generated& kernel,
                                  const std::vector<std::byte>& input, bool optimised) {
  char log[4096] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                            CU_JIT_OPTIMIZATION_LEVEL};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log),
                    reinterpret_cast<void*>(std::uintptr_t{optimised ? 4u : 0u})};
  CUmodule module = nullptr;
  if (table.cuModuleLoadDataEx(&module, kernel.ptx.c_str(), 3, options, values) != CUDA_SUCCESS)
    throw Failure{fmt::format("does not load: {}", log)};
  CUfunction function = nullptr;
  must(table.cuModuleGetFunction(&function, module, "k"), "cuModuleGetFunction");
  CUdeviceptr in = 0, out = 0;
  must(table.cuMemAlloc_v2(&in, kernel.in_bytes), "cuMemAlloc");
  must(table.cuMemAlloc_v2(&out, kernel.out_bytes), "cuMemAlloc");
  must(table.cuMemcpyHtoD_v2(in, input.data(), input.size()), "cuMemcpyHtoD");
  must(table.cuMemsetD8_v2(out, oracle::kOutFill, kernel.out_bytes), "cuMemsetD8");
  unsigned threads = 0;
  void* params[] = {&in, &out, &threads};
  must(table.cuLaunchKernel(function, kernel.grid[0], kernel.grid[1], kernel.grid[2], kernel.block[0],
                            kernel.block[1], kernel.block[2], 0, nullptr, params, nullptr),
       "cuLaunchKernel");
  std::vector<std::byte> output(kernel.out_bytes);
  must(table.cuMemcpyDtoH_v2(output.data(), out, output.size()), "cuMemcpyDtoH");
  must(table.cuMemFree_v2(in), "cuMemFree");
  must(table.cuMemFree_v2(out), "cuMemFree");
  must(table.cuModuleUnload(module), "cuModuleUnload");
  return output;
}

/// Threads that wait take much time in the oracle.
std::uint64_t usual_count(bool waiting) { return oracle::part_of(waiting ? 30 : 100); }

}  // namespace

int main(int argc, char** argv) {
  oracle::Options line("Generated kernels on the oracle and on the CPU device");
  std::uint64_t first = 0;
  std::optional<std::uint64_t> asked, show;
  oracle::GenerateOptions options;
  line.add("--first", first, "first seed");
  line.add("--count", asked, "number of seeds, instead of a usual number");
  line.add("--waiting", options.waiting,
           "with locks, chains of threads, barriers for a part of the block, loops with two entries");
  line.add("--show", show, "print the kernel of this seed and stop");
  if (const std::optional<int> status = line.read(argc, argv)) return *status;
  const std::uint64_t count = asked.value_or(usual_count(options.waiting));
  if (show) {
    const Generated kernel = oracle::generate(*show, options);
    fmt::print("// grid {}x{}x{}, block {}x{}x{}\n{}", kernel.grid[0], kernel.grid[1], kernel.grid[2],
               kernel.block[0], kernel.block[1], kernel.block[2], kernel.ptx);
    return 0;
  }
  auto device = driver::load_cpu_plugin();
  if (!device) {
    fmt::print(stderr, "{}", to_string(device.errors()));
    return 1;
  }
  const driver::DriverTable& table = device->table;
  std::uint64_t passed = 0, failed = 0;
  try {
    CUcontext context = nullptr;
    must(table.cuInit(0), "cuInit");
    must(table.cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    must(table.cuCtxSetCurrent(context), "cuCtxSetCurrent");
  } catch (const Failure& failure) {
    fmt::print(stderr, "{}\n", failure.what);
    return 1;
  }
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    try {
      const Generated kernel = oracle::generate(seed, options);
      const std::vector<std::byte> input = oracle::input_of(kernel, seed, static_cast<unsigned>(seed % 8));
      const std::string differs =
          difference(kernel, run_oracle(kernel, input), run_device(table, kernel, input, seed % 4 != 0));
      if (!differs.empty()) throw Failure{differs};
      ++passed;
    } catch (const Failure& failure) {
      ++failed;
      fmt::print("seed {}: {}\n", seed, failure.what);
    }
  }
  fmt::print("{} passed, {} failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}
