// SPDX-License-Identifier: Apache-2.0
// component: compile
// Barriers and fences under quern's names. Each is exactly the CUDA C++ function of the matching name.
#pragma once

namespace quern {

/// Waits until every thread of the block is here; orders their shared and global accesses.
__device__ __forceinline__ void syncthreads() { __syncthreads(); }
/// The same, and gives every thread the number of threads whose `predicate` is not zero.
__device__ __forceinline__ int syncthreads_count(int predicate) { return __syncthreads_count(predicate); }
/// The same, and gives non-zero if `predicate` is not zero for all threads.
__device__ __forceinline__ int syncthreads_and(int predicate) { return __syncthreads_and(predicate); }
/// The same, and gives non-zero if `predicate` is not zero for any thread.
__device__ __forceinline__ int syncthreads_or(int predicate) { return __syncthreads_or(predicate); }

/// Waits for the lanes of `mask`, of which the caller is one.
__device__ __forceinline__ void syncwarp(unsigned mask = 0xffffffffu) { __syncwarp(mask); }

/// Orders this thread's accesses for the block, the device, or the host as well.
__device__ __forceinline__ void threadfence_block() { __threadfence_block(); }
__device__ __forceinline__ void threadfence() { __threadfence(); }
__device__ __forceinline__ void threadfence_system() { __threadfence_system(); }

}  // namespace quern
