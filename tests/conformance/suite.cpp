// SPDX-License-Identifier: Apache-2.0
#include "suite.hpp"

#include <algorithm>
#include <iterator>
#include <optional>

#include "driver/function_facts.hpp"
#include "driver/loader.hpp"
#include "kernels.hpp"

namespace quern::conformance {
namespace {

/// Stays open until the process ends.
struct Loaded {
  std::optional<driver::LoadedDriver> libcuda;
  std::optional<driver::LoadedPlugin> plugin;
  driver::DriverTable table = driver::unsupported_table();
  std::string name;
};
Loaded& loaded() {
  static auto* const instance = new Loaded;
  return *instance;
}

}  // namespace

std::string load_device(std::string_view name) {
  Loaded& it = loaded();
  it.name = name;
  if (name == "cpu") {
    auto plugin = driver::load_cpu_plugin();
    if (!plugin) return to_string(plugin.errors());
    it.plugin = std::move(*plugin);
    it.table = it.plugin->table;
  } else {
    auto libcuda = driver::load_libcuda();
    if (!libcuda) return to_string(libcuda.errors());
    it.libcuda = std::move(*libcuda);
    it.table = it.libcuda->table;
  }
  const CUresult result = it.table.cuInit(0);
  return result == CUDA_SUCCESS ? std::string()
                                : "cuInit answers " + std::to_string(static_cast<int>(result));
}

const driver::DriverTable& cu() { return loaded().table; }
bool is_cpu() { return loaded().name != "cuda"; }
const std::string& device_name() { return loaded().name; }

void* surface_function(std::string_view symbol) {
  const auto* const row = std::ranges::find(driver::kSurface, symbol, &driver::FunctionFacts::symbol);
  REQUIRE_MESSAGE(row != std::end(driver::kSurface), symbol);
  // The exported symbols: cuGetProcAddress has tests of its own, and the plug-in runs all of these over it.
  if (device_name() == "stand-alone") {
    void* const exported = loaded().libcuda->library.symbol(std::string(symbol).c_str());
    REQUIRE_MESSAGE(exported != nullptr, symbol);
    return exported;
  }
  void* function = nullptr;
  CUdriverProcAddressQueryResult status{};
  cu().cuGetProcAddress_v2(std::string(row->name).c_str(), &function, row->since, CU_GET_PROC_ADDRESS_DEFAULT,
                           &status);
  REQUIRE_MESSAGE(function != nullptr, symbol);
  return function;
}

Fixture::Fixture() {
  REQUIRE(cu().cuCtxCreate_v4(&context, nullptr, 0, 0) == CUDA_SUCCESS);
  char log[4096] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  const CUresult result = cu().cuModuleLoadDataEx(&module, kKernels, 2, options, values);
  REQUIRE_MESSAGE(result == CUDA_SUCCESS, std::string(log));
  if (is_cpu()) return;
  // A GPU's driver may wait for the whole device at the first launch, which a stream that waits would hold
  // up.
  REQUIRE(launch("count", 1, 1, nullptr, upload<std::uint32_t>({0})) == CUDA_SUCCESS);
  REQUIRE(cu().cuCtxSynchronize() == CUDA_SUCCESS);
}

Fixture::~Fixture() { cu().cuCtxDestroy_v2(context); }

CUfunction Fixture::function(const char* name) const {
  CUfunction result = nullptr;
  REQUIRE(cu().cuModuleGetFunction(&result, module, name) == CUDA_SUCCESS);
  return result;
}

CUdeviceptr Fixture::allocate(std::size_t bytes) const {
  CUdeviceptr pointer = 0;
  REQUIRE(cu().cuMemAlloc_v2(&pointer, bytes) == CUDA_SUCCESS);
  return pointer;
}

CUstream Fixture::stream(unsigned flags) const {
  CUstream result = nullptr;
  REQUIRE(cu().cuStreamCreate(&result, flags) == CUDA_SUCCESS);
  return result;
}

CUevent Fixture::event(unsigned flags) const {
  CUevent result = nullptr;
  REQUIRE(cu().cuEventCreate(&result, flags) == CUDA_SUCCESS);
  return result;
}

}  // namespace quern::conformance
