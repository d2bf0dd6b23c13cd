// SPDX-License-Identifier: Apache-2.0
// Atomic operations on an address of each thread's own, and of all threads on one.

#define SPREAD(name, type, operation)                                        \
  extern "C" __global__ void name##_spread(const type* x, type* to, int n) { \
    const int i = blockIdx.x * blockDim.x + threadIdx.x;                     \
    if (i < n) operation(&to[i], x[i]);                                      \
  }
#define ONE(name, type, operation)                                        \
  extern "C" __global__ void name##_one(const type* x, type* to, int n) { \
    const int i = blockIdx.x * blockDim.x + threadIdx.x;                  \
    if (i < n) operation(to, x[i]);                                       \
  }

// to += x, by compare and swap.
__device__ void cas_add(float* to, float value) {
  int* const bits = reinterpret_cast<int*>(to);
  int seen = *bits, before;
  do {
    before = seen;
    seen = atomicCAS(bits, before, __float_as_int(__int_as_float(before) + value));
  } while (seen != before);
}

SPREAD(add, unsigned, atomicAdd)
ONE(add, unsigned, atomicAdd)
SPREAD(min, int, atomicMin)
ONE(min, int, atomicMin)
SPREAD(max, unsigned, atomicMax)
ONE(max, unsigned, atomicMax)
SPREAD(or, unsigned, atomicOr)
ONE(or, unsigned, atomicOr)
SPREAD(float_add, float, atomicAdd)
ONE(float_add, float, atomicAdd)
SPREAD(cas, float, cas_add)
ONE(cas, float, cas_add)
