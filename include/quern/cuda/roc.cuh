// SPDX-License-Identifier: Apache-2.0
// component: compile
// The device side of Numba's ROC target: work-items are threads, work-groups blocks, and a wavefront is a
// warp of 32 lanes. Dimensions count from 0; beyond 2, ids are 0 and sizes 1, as in OpenCL.
#pragma once

#include <quern/cuda/grid.cuh>
#include <quern/cuda/shared.cuh>

namespace quern {
namespace roc {

/// Memory that barrier() and mem_fence() order; may be or-ed.
enum fence_flags : unsigned { CLK_LOCAL_MEM_FENCE = 1, CLK_GLOBAL_MEM_FENCE = 2 };
__device__ __forceinline__ constexpr fence_flags operator|(fence_flags a, fence_flags b) {
  return static_cast<fence_flags>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}

namespace detail {
__device__ __forceinline__ unsigned pick(unsigned dim, unsigned x, unsigned y, unsigned z, unsigned beyond) {
  return dim == 0 ? x : dim == 1 ? y : dim == 2 ? z : beyond;
}
}  // namespace detail

__device__ __forceinline__ unsigned get_local_id(unsigned dim) {
  return detail::pick(dim, threadIdx.x, threadIdx.y, threadIdx.z, 0);
}
__device__ __forceinline__ unsigned get_local_size(unsigned dim) {
  return detail::pick(dim, blockDim.x, blockDim.y, blockDim.z, 1);
}
__device__ __forceinline__ unsigned get_group_id(unsigned dim) {
  return detail::pick(dim, blockIdx.x, blockIdx.y, blockIdx.z, 0);
}
__device__ __forceinline__ unsigned get_num_groups(unsigned dim) {
  return detail::pick(dim, gridDim.x, gridDim.y, gridDim.z, 1);
}
/// As an int; get_global_id<long long>(dim) where there are more than 2^31 - 1 work-items along a dimension.
template <class Index = int>
__device__ __forceinline__ Index get_global_id(unsigned dim) {
  return quern::detail::place<Index>(get_group_id(dim), get_local_size(dim), get_local_id(dim));
}
template <class Index = int>
__device__ __forceinline__ Index get_global_size(unsigned dim) {
  return quern::detail::place<Index>(get_num_groups(dim), get_local_size(dim), 0);
}
/// The dimensions of the launch: 1 + the last one in which it has more than one work-item.
__device__ __forceinline__ unsigned get_work_dim() {
  if (gridDim.z > 1 || blockDim.z > 1) return 3;
  return gridDim.y > 1 || blockDim.y > 1 ? 2 : 1;
}

/// Orders this work-item's accesses: to shared memory for its group, to global memory for the device.
__device__ __forceinline__ void mem_fence(unsigned flags) {
  if (flags & CLK_GLOBAL_MEM_FENCE)
    __threadfence();
  else if (flags & CLK_LOCAL_MEM_FENCE)
    __threadfence_block();
}
/// The group's barrier with that fence; without an argument both memories, as in Numba.
__device__ __forceinline__ void barrier(unsigned flags = CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE) {
  if (flags & CLK_GLOBAL_MEM_FENCE) __threadfence();
  __syncthreads();
}
/// The wavefront's barrier: 32 lanes here.
__device__ __forceinline__ void wavebarrier() { __syncwarp(); }

// roc.shared.array is shared::array under its ROC name.
namespace shared = ::quern::shared;

}  // namespace roc
}  // namespace quern
