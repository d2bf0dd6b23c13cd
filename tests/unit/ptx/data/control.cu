// SPDX-License-Identifier: Apache-2.0
// A switch that becomes a branch table, recursion, indirect calls, device functions that stay functions.
__device__ __noinline__ long long fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

struct Pair {
  double first;
  int second;
  char tag;
};

__device__ __noinline__ Pair make_pair(double first, int second) { return {first * 2, second + 1, 'x'}; }

__device__ __noinline__ float plus(float a, float b) { return a + b; }
__device__ __noinline__ float times(float a, float b) { return a * b; }
typedef float (*Operation)(float, float);
__device__ Operation operations[2] = {plus, times};

extern "C" __global__ void pick(const int* what, int* out, float* f) {
  const int i = threadIdx.x;
  int value = what[i];
#pragma unroll 1
  for (int round = 0; round < 5; ++round) {
    switch (value) {
      case 0: value += out[i]; break;
      case 1: value = value * 17 + 3; out[i + 1] = value; break;
      case 2: f[i] = plus(f[i], 2.0f); value = 5; break;
      case 3: value = static_cast<int>(fibonacci(value)); break;
      case 4: atomicAdd(out, value); value = 9; break;
      case 5: f[i] = operations[round & 1](f[i], 3.0f); value -= 1; break;
      case 6: { const Pair pair = make_pair(f[i], value); f[i] = static_cast<float>(pair.first); value = pair.second + pair.tag; break; }
      case 7: __syncwarp(); value = 2; break;
      default: value -= 3;
    }
  }
  out[i] = value;
}
