// SPDX-License-Identifier: Apache-2.0
// quern::constant::array_like: what a constexpr array of the source holds, in constant memory.
#include <quern/device.cuh>

constexpr float kWeights[5] = {1.0f / 16, 4.0f / 16, 6.0f / 16, 4.0f / 16, 1.0f / 16};
constexpr int kMoves[2][4] = {{0, 1, 0, -1}, {1, 0, -1, 0}};
constexpr unsigned char kRotors[2][3][2] = {{{1, 2}, {3, 4}, {5, 6}}, {{7, 8}, {9, 10}, {11, 12}}};

/// A row of numbers, smoothed; at the borders the nearest values count.
extern "C" __global__ void smooth(const float* in, float* out, int n) {
  const auto weights = quern::constant::array_like<kWeights>();
  const int i = quern::grid<1>();
  if (i >= n) return;
  float sum = 0;
  for (int k = 0; k < weights.size(); ++k) sum += weights[k] * in[min(max(i + k - 2, 0), n - 1)];
  out[i] = sum;
}

/// Where each walker is after its steps; a step is the low two bits, and then the next two.
extern "C" __global__ void walk(const unsigned* steps, int* x, int* y, int n) {
  const auto moves = quern::constant::array_like<kMoves>();
  const int i = quern::grid<1>();
  if (i >= n) return;
  int at_x = 0, at_y = 0;
  for (unsigned rest = steps[i], k = 0; k < 16; ++k, rest >>= 2) {
    at_x += moves(0, rest & 3);
    at_y += moves[1][rest & 3];
  }
  x[i] = at_x;
  y[i] = at_y;
}

/// Every element of an array of three dimensions, at an index that differs between threads.
extern "C" __global__ void unroll(int* out) {
  const auto rotors = quern::constant::array_like<kRotors>();
  const int i = quern::grid<1>();
  if (i < 12) out[i] = rotors(i / 6, i / 2 % 3, i % 2) * 100 + rotors[1 - i / 6][2 - i / 2 % 3][i % 2];
}
