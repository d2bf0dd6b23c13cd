// SPDX-License-Identifier: Apache-2.0
// Many counters that belong together, changed under one lock: statistics of values, with no atomic operation on
// the numbers themselves. Every thread of the grid takes the lock once for each of its values, so lanes of one warp,
// warps and blocks contend for it.

__device__ void acquire(unsigned* lock) {
  while (atomicCAS(lock, 0u, 1u) != 0u) __nanosleep(20);
  __threadfence();
}

__device__ void release(unsigned* lock) {
  __threadfence();
  atomicExch(lock, 0u);
}

extern "C" __global__ void spin_lock(const int* values, int n, long long* sums, int* extremes, unsigned* count,
                                     unsigned* lock) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const int value = values[i];
    acquire(lock);
    volatile long long* s = sums;
    volatile int* e = extremes;
    volatile unsigned* c = count;
    s[0] = s[0] + value;
    s[1] = s[1] + static_cast<long long>(value) * value;
    if (value < e[0]) e[0] = value;
    if (value > e[1]) e[1] = value;
    c[0] = c[0] + 1;
    release(lock);
  }
}
