// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/support/fake_driver.hpp"

#include <cstdlib>
#include <cstring>

#include "tests/unit/support/driver_objects.hpp"

namespace quern::test {
namespace {

using driver::DriverObject;
using driver::FunctionRow;

FakeDriver* fake = nullptr;

template <class T>
T handle() {
  return reinterpret_cast<T>(static_cast<std::uintptr_t>(fake->next_handle += 16));
}

CUresult device_attribute(int* value, CUdevice_attribute which, CUdevice) {
  static const std::map<CUdevice_attribute, int> values = {
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 8},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 9},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 4},
      {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 101376},
      {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
  };
  const auto found = values.find(which);
  if (found == values.end()) return CUDA_ERROR_INVALID_VALUE;
  *value = found->second;
  return CUDA_SUCCESS;
}

CUresult function_attribute(int* value, CUfunction_attribute which, CUfunction) {
  static const std::map<CUfunction_attribute, int> values = {
      {CU_FUNC_ATTRIBUTE_NUM_REGS, 24},
      {CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1024},
      {CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, 0},
      {CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, 0},
      {CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 512},
  };
  const auto found = values.find(which);
  if (found == values.end()) return CUDA_ERROR_INVALID_VALUE;
  *value = found->second;
  return CUDA_SUCCESS;
}

CUresult allocate(CUdeviceptr* address, std::size_t bytes) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > fake->total_bytes - fake->used_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  auto block = std::make_unique<std::byte[]>(bytes);
  *address = reinterpret_cast<std::uintptr_t>(block.get());
  fake->memory.emplace(*address, std::move(block));
  fake->memory_bytes[*address] = bytes;
  fake->used_bytes += bytes;
  return CUDA_SUCCESS;
}

CUresult release_memory(CUdeviceptr address) {
  if (fake->free_result != CUDA_SUCCESS) return std::exchange(fake->free_result, CUDA_SUCCESS);
  if (fake->memory.erase(address) == 0) return CUDA_ERROR_INVALID_VALUE;
  fake->used_bytes -= fake->memory_bytes[address];
  fake->released.emplace_back(to_string(DriverObject::memory));
  return CUDA_SUCCESS;
}

CUresult parameter_info(CUfunction, std::size_t index, std::size_t* offset, std::size_t* size) {
  if (index >= fake->parameter_bytes.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = 0;
  for (std::size_t i = 0; i <= index; ++i) {
    const std::size_t bytes = fake->parameter_bytes[i];
    const std::size_t align = bytes > 8 ? 8 : bytes;
    *offset = (*offset + align - 1) / align * align + (i < index ? bytes : 0);
  }
  *size = fake->parameter_bytes[index];
  return CUDA_SUCCESS;
}

CUresult record(FakeDriver::Launch launch, void** parameters) {
  for (std::size_t i = 0; i < fake->parameter_bytes.size(); ++i) {
    const auto* begin = static_cast<const std::byte*>(parameters[i]);
    launch.parameters.emplace_back(begin, begin + fake->parameter_bytes[i]);
  }
  fake->launches.push_back(std::move(launch));
  return fake->launch_result;
}

/// Objects that exist in the fake only as handles.
constexpr bool is_handle_only(DriverObject object) {
  return object == DriverObject::stream || object == DriverObject::event || object == DriverObject::module;
}

/// A function that creates a handle or records a release, as its row of functions.def says.
template <FunctionRow kRow, class F>
struct Objects;
template <FunctionRow kRow, class... Args>
struct Objects<kRow, CUresult (*)(Args...)> {
  static CUresult create(Args... arguments) {
    using Handle = typename HandleOf<driver::facts_of(kRow).creates>::type;
    **argument_of_type<Handle*>(arguments...) = handle<Handle>();
    return CUDA_SUCCESS;
  }
  static CUresult release(Args...) {
    fake->released.emplace_back(to_string(driver::facts_of(kRow).releases));
    return CUDA_SUCCESS;
  }
};

template <FunctionRow kRow, class F>
void fill_object_function(F& slot) {
  if constexpr (is_handle_only(driver::facts_of(kRow).creates)) slot = &Objects<kRow, F>::create;
  if constexpr (is_handle_only(driver::facts_of(kRow).releases)) slot = &Objects<kRow, F>::release;
}

void fill_objects(driver::DriverTable& api) {
#define QUERN_DRIVER_FUNCTION(symbol, ...) fill_object_function<FunctionRow::symbol>(api.symbol);
#include "driver/functions.def"
}

void fill_context(driver::DriverTable& api) {
  api.cuInit = [](unsigned) { return CUDA_SUCCESS; };
  api.cuDriverGetVersion = [](int* version) { return *version = 13000, CUDA_SUCCESS; };
  api.cuDeviceGetCount = [](int* count) { return *count = 1, CUDA_SUCCESS; };
  api.cuDeviceGet = [](CUdevice* device, int) { return *device = 0, CUDA_SUCCESS; };
  api.cuDeviceGetName = [](char* name, int, CUdevice) {
    return std::strcpy(name, "fake device"), CUDA_SUCCESS;
  };
  api.cuDeviceTotalMem_v2 = [](std::size_t* bytes, CUdevice) {
    return *bytes = fake->total_bytes, CUDA_SUCCESS;
  };
  api.cuDeviceGetAttribute = device_attribute;
  api.cuDevicePrimaryCtxRetain = [](CUcontext* context, CUdevice) {
    return ++fake->retained, *context = reinterpret_cast<CUcontext>(std::uintptr_t{0x77}), CUDA_SUCCESS;
  };
  api.cuDevicePrimaryCtxRelease_v2 = [](CUdevice) { return --fake->retained, CUDA_SUCCESS; };
  api.cuCtxGetCurrent = [](CUcontext* context) { return *context = fake->current, CUDA_SUCCESS; };
  api.cuCtxPushCurrent_v2 = [](CUcontext context) { return fake->current = context, CUDA_SUCCESS; };
  api.cuCtxPopCurrent_v2 = [](CUcontext* context) {
    return *context = std::exchange(fake->current, nullptr), CUDA_SUCCESS;
  };
  api.cuCtxSynchronize = [] { return CUDA_SUCCESS; };
}

void fill_memory(driver::DriverTable& api) {
  api.cuMemGetInfo_v2 = [](std::size_t* free_bytes, std::size_t* total) {
    return *total = fake->total_bytes, *free_bytes = fake->total_bytes - fake->used_bytes, CUDA_SUCCESS;
  };
  api.cuMemAlloc_v2 = allocate;
  api.cuMemFree_v2 = release_memory;
  api.cuMemcpyHtoD_v2 = [](CUdeviceptr to, const void* from, std::size_t bytes) {
    return std::memcpy(reinterpret_cast<void*>(static_cast<std::uintptr_t>(to)), from, bytes), CUDA_SUCCESS;
  };
  api.cuMemcpyHtoDAsync_v2 = [](CUdeviceptr to, const void* from, std::size_t bytes, CUstream) {
    return std::memcpy(reinterpret_cast<void*>(static_cast<std::uintptr_t>(to)), from, bytes), CUDA_SUCCESS;
  };
  api.cuMemcpyDtoH_v2 = [](void* to, CUdeviceptr from, std::size_t bytes) {
    return std::memcpy(to, reinterpret_cast<void*>(static_cast<std::uintptr_t>(from)), bytes), CUDA_SUCCESS;
  };
  api.cuMemHostAlloc = [](void** host, std::size_t bytes, unsigned) {
    return *host = ::operator new(bytes), CUDA_SUCCESS;
  };
  api.cuMemFreeHost = [](void* host) { return ++fake->host_frees, ::operator delete(host), CUDA_SUCCESS; };
  api.cuMemsetD8_v2 = [](CUdeviceptr to, unsigned char value, std::size_t bytes) {
    return std::memset(reinterpret_cast<void*>(static_cast<std::uintptr_t>(to)), value, bytes), CUDA_SUCCESS;
  };
}

void fill_streams(driver::DriverTable& api) {
  api.cuStreamSynchronize = [](CUstream) { return ++fake->stream_waits, CUDA_SUCCESS; };
  api.cuStreamQuery = [](CUstream) { return CUDA_ERROR_NOT_READY; };
  api.cuLaunchHostFunc = [](CUstream, CUhostFn function, void* user) {
    return fake->host_functions.emplace_back(function, user), CUDA_SUCCESS;
  };
  api.cuEventRecord = [](CUevent, CUstream) { return CUDA_SUCCESS; };
}

void fill_modules(driver::DriverTable& api) {
  api.cuModuleLoadDataEx = [](CUmodule* module, const void* image, unsigned, CUjit_option*, void**) {
    const CUresult result = fake->on_load ? fake->on_load(static_cast<const char*>(image)) : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS) *module = handle<CUmodule>();
    return result;
  };
  api.cuModuleGetFunction = [](CUfunction* function, CUmodule, const char*) {
    return *function = handle<CUfunction>(), CUDA_SUCCESS;
  };
  api.cuFuncGetAttribute = function_attribute;
  api.cuFuncSetAttribute = [](CUfunction, CUfunction_attribute which, int value) {
    return fake->set_attributes.emplace_back(which, value), CUDA_SUCCESS;
  };
  api.cuFuncGetParamInfo = parameter_info;
  api.cuOccupancyMaxActiveBlocksPerMultiprocessor = [](int* blocks, CUfunction, int block,
                                                       std::size_t shared) {
    return *blocks = fake->active_blocks ? fake->active_blocks(block, shared) : 2, CUDA_SUCCESS;
  };
  api.cuLaunchKernel = [](CUfunction, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                          unsigned bz, unsigned shared, CUstream stream, void** parameters, void**) {
    return record({{gx, gy, gz}, {bx, by, bz}, shared, stream, false, {}}, parameters);
  };
  api.cuLaunchKernelEx = [](const CUlaunchConfig* config, CUfunction, void** parameters, void**) {
    return record({{config->gridDimX, config->gridDimY, config->gridDimZ},
                   {config->blockDimX, config->blockDimY, config->blockDimZ},
                   config->sharedMemBytes,
                   config->hStream,
                   config->numAttrs == 1 && config->attrs[0].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
                   {}},
                  parameters);
  };
}

}  // namespace

FakeDriver::FakeDriver() {
  if (fake != nullptr) std::abort();
  fake = this;
}

FakeDriver::~FakeDriver() { fake = nullptr; }

driver::DriverTable FakeDriver::table() const {
  driver::DriverTable api = driver::unsupported_table();
  fill_objects(api);
  fill_context(api);
  fill_memory(api);
  fill_streams(api);
  fill_modules(api);
  return api;
}

Device FakeDriver::device() {
  return runtime::open_device(runtime::initialise({table(), DeviceKind::cuda, "libfake.so", 0, nullptr}), 0);
}

void FakeDriver::run_host_functions() {
  for (const auto& [function, user] : std::exchange(host_functions, {})) function(user);
}

}  // namespace quern::test
