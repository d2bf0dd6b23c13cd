// SPDX-License-Identifier: Apache-2.0
// A block-wide running sum in steps, with cuda::barrier in place of __syncthreads(): a thread arrives, does what
// does not depend on the others, and then waits.
#include <cuda/barrier>

using Barrier = cuda::barrier<cuda::thread_scope_block>;

// sums[i] = in[0] + ... + in[i] within each block of blockDim.x numbers; a power of two of at most 256.
extern "C" __global__ void pipeline(const int* in, int* sums, int* waited) {
  __shared__ int lines[2][256];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ Barrier barrier;
  const unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  if (t == 0) init(&barrier, blockDim.x);
  __syncthreads();
  int from = 0, steps = 0;
  lines[0][t] = in[i];
  for (unsigned distance = 1; distance < blockDim.x; distance *= 2) {
    auto token = barrier.arrive();
    steps += 1;
    barrier.wait(std::move(token));
    lines[1 - from][t] = lines[from][t] + (t >= distance ? lines[from][t - distance] : 0);
    from = 1 - from;
  }
  sums[i] = lines[from][t];
  if (t == 0) waited[blockIdx.x] = steps;
}
