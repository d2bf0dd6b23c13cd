// SPDX-License-Identifier: Apache-2.0
// Variables of every kind: constant tables, addresses as initialisers, local arrays, function-static shared memory.
__constant__ float weights[4] = {0.5f, 1.0f, -2.0f, 1e-3f};
__device__ int counter = 7;
__device__ int* counter_address = &counter;
__device__ const char* names[] = {"first", "second"};
__device__ double matrix[2][3] = {{1, 2, 3}, {4, 5, 6}};
__managed__ int managed = 1;

struct Big {
  int values[12];
  double scale;
};

extern "C" __global__ void symbols(Big big, const Big* __restrict__ more, char* out, int k) {
  __shared__ Big copy;
  int local[16];
  for (int i = 0; i < 16; ++i) local[i] = more->values[(i + k) % 12] * i;
  if (threadIdx.x == 0) copy = big;
  __syncthreads();
  out[threadIdx.x] = static_cast<char>(local[k & 15] + copy.values[k & 7] + weights[k & 3] * matrix[k & 1][2] + *counter_address +
                                       names[k & 1][0] + managed + static_cast<int>(clock64()) + __isShared(out));
}
