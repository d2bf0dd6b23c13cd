// SPDX-License-Identifier: Apache-2.0
// Modules, functions, launches.
#include "cpu/device/cuda_api.hpp"

#include <string_view>

#include "cpu/device/driver.hpp"
#include "cpu/device/jit_options.hpp"
#include "cpu/device/launch.hpp"
#include "cpu/device/limits.hpp"
#include "cpu/device/module_load.hpp"
#include "cpu/engine/resident.hpp"

using namespace quern::cpu::device;
using namespace quern::cpu;

namespace {

void load(CUmodule* module, const void* image, unsigned count, CUjit_option* options, void** values) {
  Driver& driver = Driver::get();
  const auto context = driver.current();
  require(module != nullptr && image != nullptr);
  *module = driver.add(load_module(driver, context, image, JitOptions(count, options, values)));
}

CUfunction function_named(Driver& driver, CUmodule handle, std::string_view name) {
  const std::shared_ptr<ModuleObject> module = driver.find(handle);
  const auto info = module->shared->kernels_by_name.find(name);
  require(info != module->shared->kernels_by_name.end(), CUDA_ERROR_NOT_FOUND);
  {
    const quern::base::LockGuard lock(module->mutex);
    if (const auto known = module->functions.find(name); known != module->functions.end())
      return known->second;
  }
  const CUfunction function = driver.add(std::make_shared<FunctionObject>(module, *info->second));
  const quern::base::LockGuard lock(module->mutex);
  // Two threads may have asked at once; the first answer is kept, the other handle is never returned.
  return module->functions.emplace(name, function).first->second;
}

int function_attribute(const FunctionObject& function, CUfunction_attribute attribute) {
  const KernelInfo& info = function.info();
  const std::uint32_t limit = function.module().max_registers;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      return static_cast<int>(info.max_threads);
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      return static_cast<int>(info.static_shared_bytes);
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
      return static_cast<int>(info.const_bytes);
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      return static_cast<int>(info.local_bytes);
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      return static_cast<int>(limit == 0 ? info.register_count : std::min(info.register_count, limit));
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
      return static_cast<int>(function.module().ptx.sm);
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      return static_cast<int>(compute_capability());
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      return static_cast<int>(function.max_dynamic_shared_bytes.load());
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      return -1;
    default:
      return 0;  // cache mode, clusters
  }
}

void set_function_attribute(FunctionObject& function, CUfunction_attribute attribute, int value) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      require(value >= 0 &&
              static_cast<std::uint64_t>(value) + function.info().static_shared_bytes <= kOptInSharedBytes);
      function.max_dynamic_shared_bytes.store(static_cast<std::uint32_t>(value));
      return;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      return require(value >= -1 && value <= 100);  // a hint
    default:
      fail(CUDA_ERROR_INVALID_VALUE);  // read-only, or for clusters, which the device does not have
  }
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
    default:
      fail(CUDA_ERROR_NOT_SUPPORTED);
  }
}

}  // namespace

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return entry([&] { load(module, image, 0, nullptr, nullptr); });
}

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count, CUjit_option* options,
                            void** values) {
  return entry([&] { load(module, image, count, options, values); });
}

CUresult cuModuleUnload(CUmodule module) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.current();
    const auto object = driver.find(module);
    driver.scheduler().synchronize(*object->context->domain);
    driver.remove(module);
    driver.objects().remove_if<FunctionObject>(
        [&](const FunctionObject& function) { return &function.module() == object.get(); });
    if (object->memory != nullptr) driver.memory().remove(*object->memory);
  });
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.current();
    require(function != nullptr && name != nullptr);
    *function = function_named(driver, module, name);
  });
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* pointer, std::size_t* bytes, CUmodule module, const char* name) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.current();
    require(name != nullptr && (pointer != nullptr || bytes != nullptr));
    const auto object = driver.find(module);
    const auto found = object->variables.find(std::string_view(name));
    require(found != object->variables.end(), CUDA_ERROR_NOT_FOUND);
    if (pointer != nullptr) *pointer = reinterpret_cast<CUdeviceptr>(found->second.address);
    if (bytes != nullptr) *bytes = found->second.bytes;
  });
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.current();
    require(value != nullptr && attribute >= 0 && attribute < CU_FUNC_ATTRIBUTE_MAX);
    *value = function_attribute(*driver.find(function), attribute);
  });
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.current();
    set_function_attribute(*driver.find(function), attribute, value);
  });
}

CUresult cuFuncGetName(const char** name, CUfunction function) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(name != nullptr);
    *name = driver.find(function)->info().name.c_str();
  });
}

CUresult cuFuncGetParamInfo(CUfunction function, std::size_t index, std::size_t* offset, std::size_t* size) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto object = driver.find(function);
    require(offset != nullptr && index < object->info().params.size());
    *offset = object->info().params[index].offset;
    if (size != nullptr) *size = object->info().params[index].size;
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

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int block_size,
                                                     std::size_t shared_bytes) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.current();
    require(blocks != nullptr && block_size > 0);
    const auto object = driver.find(function);
    const bool fits = static_cast<std::uint32_t>(block_size) <= object->info().max_threads &&
                      shared_bytes <= object->max_dynamic_shared_bytes.load();
    const std::uint64_t all_shared = object->info().static_shared_bytes + shared_bytes;
    *blocks =
        fits ? static_cast<int>(engine::resident_blocks(static_cast<std::uint32_t>(block_size), all_shared))
             : 0;
  });
}
