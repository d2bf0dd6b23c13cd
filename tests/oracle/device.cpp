// SPDX-License-Identifier: Apache-2.0
#include "device.hpp"

#include <fmt/format.h>

#include <cstdint>

#include "driver/loader.hpp"

namespace quern::oracle {
namespace {

Expected<driver::DriverTable> load_table(const std::string& device) {
  // The libraries are never closed: their threads may outlive this code.
  if (device == "cuda") {
    auto loaded = driver::load_libcuda();
    if (!loaded) return loaded.errors();
    static const auto* const kept = new driver::LoadedDriver(std::move(*loaded));
    return kept->table;
  }
  auto loaded = driver::load_cpu_plugin();
  if (!loaded) return loaded.errors();
  static const auto* const kept = new driver::LoadedPlugin(std::move(*loaded));
  return kept->table;
}

CUmodule load_module(const driver::DriverTable& table, const DeviceLaunch& launch) {
  char log[4096] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                            CU_JIT_OPTIMIZATION_LEVEL};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log),
                    reinterpret_cast<void*>(std::uintptr_t{launch.optimised ? 4u : 0u})};
  CUmodule module = nullptr;
  if (table.cuModuleLoadDataEx(&module, launch.ptx.c_str(), 3, options, values) != CUDA_SUCCESS)
    throw Failure{fmt::format("does not load: {}", log)};
  return module;
}

}  // namespace

void must(CUresult result, const char* call) {
  if (result != CUDA_SUCCESS) throw Failure{fmt::format("{} answers {}", call, static_cast<int>(result))};
}

Expected<driver::DriverTable> open_device(const std::string& name) {
  Expected<driver::DriverTable> table = load_table(name);
  if (!table) return table;
  CUcontext context = nullptr;
  must(table->cuInit(0), "cuInit");
  must(table->cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  must(table->cuCtxSetCurrent(context), "cuCtxSetCurrent");
  return table;
}

void run_kernel(const driver::DriverTable& table, const DeviceLaunch& launch,
                std::span<const std::byte> input, std::span<std::byte> output) {
  const CUmodule module = load_module(table, launch);
  CUfunction function = nullptr;
  must(table.cuModuleGetFunction(&function, module, "k"), "cuModuleGetFunction");
  CUdeviceptr in = 0, out = 0;
  must(table.cuMemAlloc_v2(&in, input.size()), "cuMemAlloc");
  must(table.cuMemAlloc_v2(&out, output.size()), "cuMemAlloc");
  must(table.cuMemcpyHtoD_v2(in, input.data(), input.size()), "cuMemcpyHtoD");
  must(table.cuMemcpyHtoD_v2(out, output.data(), output.size()), "cuMemcpyHtoD");
  unsigned zero = 0;
  void* params[] = {&in, &out, &zero};
  must(table.cuLaunchKernel(function, launch.grid[0], launch.grid[1], launch.grid[2], launch.block[0],
                            launch.block[1], launch.block[2], 0, nullptr, params, nullptr),
       "cuLaunchKernel");
  must(table.cuMemcpyDtoH_v2(output.data(), out, output.size()), "cuMemcpyDtoH");
  must(table.cuMemFree_v2(in), "cuMemFree");
  must(table.cuMemFree_v2(out), "cuMemFree");
  must(table.cuModuleUnload(module), "cuModuleUnload");
}

}  // namespace quern::oracle
