// SPDX-License-Identifier: Apache-2.0
// Modules and launches.
#include "cpu/device/cuda_api.hpp"

#include <string>
#include <string_view>

#include "cpu/device/driver.hpp"
#include "cpu/device/graph/capture.hpp"
#include "cpu/device/jit_options.hpp"
#include "cpu/device/launch.hpp"
#include "cpu/device/library.hpp"
#include "cpu/device/module_load.hpp"

using namespace quern::cpu::device;
using namespace quern::cpu;

namespace {

void load(CUmodule* module, const Image& image, unsigned count, CUjit_option* options, void** values) {
  Driver& driver = Driver::get();
  const auto context = driver.current();
  require(module != nullptr && image.address != nullptr);
  const auto object = load_module(driver, context, image, JitOptions(count, options, values));
  *module = object->handle = driver.add(object);
}

/// Applies an attribute of cuLaunchKernelEx. An unsupported attribute that changes a kernel's meaning is
/// rejected; unsupported hints are ignored.
void apply(LaunchRequest& request, const CUlaunchAttribute& attribute) {
  const CUlaunchAttributeValue& value = attribute.value;
  switch (attribute.id) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
      request.cooperative = value.cooperative != 0;
      return;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
      return require(value.clusterDim.x == 1 && value.clusterDim.y == 1 && value.clusterDim.z == 1,
                     CUDA_ERROR_INVALID_CLUSTER_SIZE);
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:  // allows an overlap, does not ask for it
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      return;
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
      fail(CUDA_ERROR_NOT_SUPPORTED);
    default:
      fail(CUDA_ERROR_INVALID_VALUE);
  }
}

}  // namespace

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return entry([&] { load(module, {image}, 0, nullptr, nullptr); });
}

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count, CUjit_option* options,
                            void** values) {
  return entry([&] { load(module, {image}, count, options, values); });
}

CUresult cuModuleUnload(CUmodule module) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.current();
    refuse_unsafe_call();
    const auto object = driver.find(module);
    require(!object->of_library, CUDA_ERROR_NOT_PERMITTED);
    driver.scheduler().synchronize(*object->context->domain);
    require(remove_module(driver, *object), CUDA_ERROR_INVALID_HANDLE);
  });
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(function != nullptr && name != nullptr && *name != '\0');
    check_fault(*driver.find(module)->context);
    *function = function_named(driver, module, name);
  });
}

CUresult cuModuleLoad(CUmodule* module, const char* file) {
  return entry([&] {
    Driver::get().current();
    require(module != nullptr && file != nullptr);
    const std::string content = read_file(file);
    load(module, image_of_file(content), 0, nullptr, nullptr);
  });
}

CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  return entry([&] { load(module, {image}, 0, nullptr, nullptr); });
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  return entry([&] {
    const Driver& driver = Driver::get();
    require(mode != nullptr);
    // Machine code of a kernel is made at its first launch with a block shape in both modes.
    *mode = driver.loads_eagerly() ? CU_MODULE_EAGER_LOADING : CU_MODULE_LAZY_LOADING;
  });
}

CUresult cuModuleGetFunctionCount(unsigned* count, CUmodule module) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(count != nullptr);
    const auto object = driver.find(module);
    check_fault(*object->context);
    *count = static_cast<unsigned>(object->shared->kernels.size());
  });
}

CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned count, CUmodule module) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto object = driver.find(module);
    check_fault(*object->context);
    require(functions != nullptr);
    const auto& kernels = object->shared->kernels;
    for (std::size_t i = 0; i < std::min<std::size_t>(count, kernels.size()); ++i)
      functions[i] = function_named(driver, module, kernels[i].name);
  });
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* pointer, std::size_t* bytes, CUmodule module, const char* name) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto object = driver.find(module);
    check_fault(*object->context);
    require(name != nullptr && (pointer != nullptr || bytes != nullptr));
    const auto found = object->variables.find(std::string_view(name));
    require(!object->shared->kernels_by_name.contains(name));
    require(found != object->variables.end(), CUDA_ERROR_NOT_FOUND);
    if (pointer != nullptr) *pointer = reinterpret_cast<CUdeviceptr>(found->second.address);
    if (bytes != nullptr) *bytes = found->second.bytes;
  });
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                        CUstream stream, void** parameters, void** extra) {
  return entry([&] {
    LaunchRequest request{{grid_x, grid_y, grid_z},
                          {block_x, block_y, block_z},
                          shared_bytes,
                          false,
                          stream,
                          parameters,
                          extra};
    launch(Driver::get(), function, request);
  });
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters,
                          void** extra) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(config != nullptr && (config->numAttrs == 0 || config->attrs != nullptr));
    LaunchRequest request{{config->gridDimX, config->gridDimY, config->gridDimZ},
                          {config->blockDimX, config->blockDimY, config->blockDimZ},
                          config->sharedMemBytes,
                          false,
                          config->hStream,
                          parameters,
                          extra};
    for (unsigned i = 0; i < config->numAttrs; ++i) apply(request, config->attrs[i]);
    launch(driver, function, request);
  });
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                   unsigned block_x, unsigned block_y, unsigned block_z,
                                   unsigned shared_bytes, CUstream stream, void** parameters) {
  return entry([&] {
    LaunchRequest request{{grid_x, grid_y, grid_z},
                          {block_x, block_y, block_z},
                          shared_bytes,
                          true,
                          stream,
                          parameters,
                          nullptr};
    launch(Driver::get(), function, request);
  });
}

CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS* launches, unsigned count, unsigned flags) {
  return entry([&] {
    Driver& driver = Driver::get();
    constexpr unsigned kFlags = CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_PRE_LAUNCH_SYNC |
                                CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_POST_LAUNCH_SYNC;
    require(launches != nullptr && count > 0 && count <= driver.device_count() && (flags & ~kFlags) == 0);
    require(count == 1, CUDA_ERROR_NOT_SUPPORTED);  // grids of several devices cannot wait for each other
    const CUDA_LAUNCH_PARAMS& given = launches[0];
    require(given.hStream != nullptr && given.hStream != CU_STREAM_LEGACY &&
                given.hStream != CU_STREAM_PER_THREAD,
            CUDA_ERROR_INVALID_HANDLE);
    LaunchRequest request{{given.gridDimX, given.gridDimY, given.gridDimZ},
                          {given.blockDimX, given.blockDimY, given.blockDimZ},
                          given.sharedMemBytes,
                          true,
                          given.hStream,
                          given.kernelParams,
                          nullptr};
    launch(driver, given.function, request);
  });
}
