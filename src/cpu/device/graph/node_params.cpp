// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/graph/node_params.hpp"

#include <algorithm>
#include <utility>

#include "cpu/device/boxes.hpp"
#include "cpu/device/library.hpp"
#include "cpu/device/stream_values.hpp"

namespace quern::cpu::device {
namespace {

/// Null: the current context.
void check_context(Driver& driver, CUcontext context) {
  if (context == nullptr)
    driver.current();
  else
    driver.contexts().device_of(context);
}

/// Finds the memory that the work names, also what graphs allocate before it runs.
template <class Check>
void check_memory(Driver& driver, const Check& check) {
  const base::LockGuard lock(graph_mutex());
  const GraphMemoryShown shown(driver);
  check();
}

void check_attribute(CUkernelNodeAttrID id, const CUkernelNodeAttrValue& value) {
  switch (id) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
      return require(value.cooperative == 0 || value.cooperative == 1);
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: {
      const auto& shape = value.clusterDim;
      const bool unset = shape.x == 0 && shape.y == 0 && shape.z == 0;
      return require(unset || (shape.x == 1 && shape.y == 1 && shape.z == 1),
                     CUDA_ERROR_INVALID_CLUSTER_SIZE);
    }
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      return;
    default:
      fail(CUDA_ERROR_INVALID_VALUE);
  }
}

/// `func`, or without it `kern` in `ctx`, by default the current context.
CUfunction function_handle(Driver& driver, const CUDA_KERNEL_NODE_PARAMS& params) {
  if (params.func != nullptr) return params.func;
  require(params.kern != nullptr, CUDA_ERROR_INVALID_HANDLE);
  const auto kernel = driver.find(params.kern);
  const auto context = driver.contexts().state_of(Contexts::or_current(params.ctx));
  check_fault(*context);
  return function_of(driver, *kernel, context);
}

LaunchRequest request_of(const LaunchWork& work) {
  LaunchRequest request;
  std::copy_n(work.grid, 3, request.grid);
  std::copy_n(work.block, 3, request.block);
  request.dynamic_shared_bytes = work.dynamic_shared_bytes;
  request.cooperative = work.cooperative;
  return request;
}

}  // namespace

KernelNode kernel_contents(Driver& driver, const CUDA_KERNEL_NODE_PARAMS& params,
                           const KernelAttributes& attributes) {
  LaunchRequest request{{params.gridDimX, params.gridDimY, params.gridDimZ},
                        {params.blockDimX, params.blockDimY, params.blockDimZ},
                        params.sharedMemBytes,
                        false,
                        nullptr,
                        params.kernelParams,
                        params.extra};
  const auto cooperative = attributes.find(CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
  request.cooperative = cooperative != attributes.end() && cooperative->second.cooperative != 0;
  const CUfunction handle = function_handle(driver, params);
  KernelNode node(prepare_launch(driver, handle, find_function(driver, handle), request));
  node.attributes = attributes;
  return node;
}

CopyNode copy_contents(Driver& driver, const CUDA_MEMCPY3D& box, CUcontext context) {
  check_context(driver, context);
  require(box.WidthInBytes > 0 && box.Height > 0 && box.Depth > 0);
  CopyNode node;
  node.box = box;
  node.work = copy_of(box);
  check_memory(driver, [&] { make_job(driver, node.work); });
  return node;
}

FillNode fill_contents(Driver& driver, const CUDA_MEMSET_NODE_PARAMS_v2& params) {
  check_context(driver, params.ctx);
  require(params.elementSize == 1 || params.elementSize == 2 || params.elementSize == 4);
  require(params.width > 0 && params.height > 0);
  FillNode node;
  node.params = params;
  node.work.destination = params.dst;
  node.work.pattern = params.value;
  node.work.pattern_bytes = params.elementSize;
  node.work.width = params.width;
  node.work.height = params.height;
  node.work.pitch_bytes = params.pitch;
  if (!is_empty(node.work)) check_memory(driver, [&] { make_job(driver, node.work); });
  return node;
}

NodeContents node_of(Driver& driver, const Work& work) {
  const auto check = [&](const auto& each) {
    if (!is_empty(each)) check_memory(driver, [&] { make_job(driver, each); });
  };
  std::visit(check, work);
  if (const auto* const copy = std::get_if<CopyWork>(&work)) {
    CopyNode node;
    node.box = box_of(*copy);
    node.work = *copy;
    return node;
  }
  const FillWork& fill = std::get<FillWork>(work);
  FillNode node;
  node.work = fill;
  node.params.dst = fill.destination;
  node.params.value = fill.pattern;
  node.params.elementSize = fill.pattern_bytes;
  node.params.width = fill.width;
  node.params.height = fill.height;
  node.params.pitch = fill.pitch_bytes;
  return node;
}

HostNode host_contents(const CUDA_HOST_NODE_PARAMS_v2& params) {
  require(params.fn != nullptr);
  return {params};
}

BatchNode batch_contents(Driver& driver, const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2& params) {
  check_context(driver, params.ctx);
  require(params.count > 0 && params.paramArray != nullptr);
  check_operations({params.paramArray, params.count}, params.flags);
  BatchNode node;
  node.context = params.ctx;
  node.flags = params.flags;
  node.operations.assign(params.paramArray, params.paramArray + params.count);
  check_memory(driver, [&] {
    std::vector<std::unique_ptr<engine::Command>> unused;
    append_commands(driver, node.operations, unused);
  });
  return node;
}

AllocNode alloc_contents(Driver& driver, const std::shared_ptr<ContextState>& context,
                         CUDA_MEM_ALLOC_NODE_PARAMS_v2& params) {
  require(params.bytesize > 0 && params.poolProps.allocType == CU_MEM_ALLOCATION_TYPE_PINNED);
  require(params.poolProps.handleTypes == CU_MEM_HANDLE_TYPE_NONE, CUDA_ERROR_NOT_SUPPORTED);
  require(params.poolProps.location.type == CU_MEM_LOCATION_TYPE_DEVICE);
  require(driver.device(params.poolProps.location.id) == context->device, CUDA_ERROR_NOT_SUPPORTED);
  require(params.accessDescCount == 0 || params.accessDescs != nullptr);
  AllocNode node;
  if (params.accessDescCount > 0)
    node.access.assign(params.accessDescs, params.accessDescs + params.accessDescCount);
  for (const CUmemAccessDesc& each : node.access) {
    require(each.location.type == CU_MEM_LOCATION_TYPE_DEVICE);
    driver.device(each.location.id);
  }
  node.memory = make_graph_memory(driver, context, params.bytesize);
  params.dptr = reinterpret_cast<CUdeviceptr>(node.memory->allocation->base);
  node.params = params;
  return node;
}

FreeNode free_contents(CUdeviceptr pointer) {
  require(is_graph_memory(pointer));
  return {pointer};
}

void set_attribute(Driver& driver, KernelNode& node, CUkernelNodeAttrID id,
                   const CUkernelNodeAttrValue& value) {
  check_attribute(id, value);
  if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && (value.cooperative != 0) != node.work.cooperative) {
    LaunchRequest request = request_of(node.work);
    request.cooperative = value.cooperative != 0;
    request.parameters = params_of(node).kernelParams;
    node.work = prepare_launch(driver, node.work.handle, node.work.function, request);
  }
  node.attributes[id] = value;
}

CUkernelNodeAttrValue attribute_of(const KernelNode& node, CUkernelNodeAttrID id) {
  check_attribute(id, CUkernelNodeAttrValue{});
  const auto found = node.attributes.find(id);
  if (found != node.attributes.end()) return found->second;
  CUkernelNodeAttrValue value{};
  if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) value.cooperative = node.work.cooperative ? 1 : 0;
  return value;
}

CUDA_KERNEL_NODE_PARAMS params_of(KernelNode& node) {
  const LaunchWork& work = node.work;
  const auto& parameters = work.function->info().params;
  node.pointers.clear();
  for (const auto& each : parameters)  // the client reads them, and writes at its own risk
    node.pointers.push_back(const_cast<std::byte*>(work.params.get()) + each.offset);
  CUDA_KERNEL_NODE_PARAMS params{};
  params.func = work.handle;
  params.gridDimX = work.grid[0];
  params.gridDimY = work.grid[1];
  params.gridDimZ = work.grid[2];
  params.blockDimX = work.block[0];
  params.blockDimY = work.block[1];
  params.blockDimZ = work.block[2];
  params.sharedMemBytes = work.dynamic_shared_bytes;
  params.kernelParams = node.pointers.data();
  return params;
}

}  // namespace quern::cpu::device
