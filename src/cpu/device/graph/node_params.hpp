// SPDX-License-Identifier: Apache-2.0
// The structs of cuda.h that describe nodes, as contents of nodes and back. All throw Failure for parameters
// that the driver would refuse. Not to be called under graph_mutex(): kernels are compiled.
#pragma once

#include <cuda.h>

#include "cpu/device/graph/graph.hpp"

namespace quern::cpu::device {

/// `attributes`: those that the node has.
KernelNode kernel_contents(Driver& driver, const CUDA_KERNEL_NODE_PARAMS& params,
                           const KernelAttributes& attributes = {});
CopyNode copy_contents(Driver& driver, const CUDA_MEMCPY3D& box, CUcontext context);
FillNode fill_contents(Driver& driver, const CUDA_MEMSET_NODE_PARAMS_v2& params);
/// A copy or a fill that a stream captures.
NodeContents node_of(Driver& driver, const Work& work);
HostNode host_contents(const CUDA_HOST_NODE_PARAMS_v2& params);
template <class Node>
Node event_contents(Driver& driver, CUevent event) {
  require(event != nullptr);
  auto found = driver.find(event);
  // A graph keeps no ticket for the records of other processes.
  require(found->shared == nullptr, CUDA_ERROR_NOT_SUPPORTED);
  return Node{{event, std::move(found)}};
}
BatchNode batch_contents(Driver& driver, const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2& params);
AllocNode alloc_contents(Driver& driver, const std::shared_ptr<ContextState>& context,
                         CUDA_MEM_ALLOC_NODE_PARAMS_v2& params);
FreeNode free_contents(CUdeviceptr pointer);

/// Those of an attribute of a kernel node, checked; cooperative launches are checked again.
void set_attribute(Driver& driver, KernelNode& node, CUkernelNodeAttrID id,
                   const CUkernelNodeAttrValue& value);
CUkernelNodeAttrValue attribute_of(const KernelNode& node, CUkernelNodeAttrID id);

CUDA_KERNEL_NODE_PARAMS params_of(KernelNode& node);

}  // namespace quern::cpu::device
