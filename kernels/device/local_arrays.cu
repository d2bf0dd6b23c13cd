// SPDX-License-Identifier: Apache-2.0
// quern::local::array: storage of one thread, of one or several dimensions.
#include <quern/device.cuh>

/// The median of nine, by sorting them in an array of the thread's own; at the borders the nearest values count.
extern "C" __global__ void median_filter(const float* in, float* out, int n) {
  const int i = quern::grid<1>();
  if (i >= n) return;
  auto window = quern::local::array<float, 9>();
  for (int k = 0; k < window.size(); ++k) window[k] = in[min(max(i + k - 4, 0), n - 1)];
  for (int k = 1; k < window.size(); ++k) {
    const float value = window[k];
    int at = k;
    for (; at > 0 && window[at - 1] > value; --at) window[at] = window[at - 1];
    window[at] = value;
  }
  out[i] = window[4];
}

/// The fourth power of 3 x 3 matrices, one a thread.
extern "C" __global__ void power_of_matrices(const double* in, double* out, int n) {
  const int i = quern::grid<1>();
  if (i >= n) return;
  auto matrix = quern::local::array<double, 3, 3>();
  for (int k = 0; k < 9; ++k) matrix(k / 3, k % 3) = in[i * 9 + k];
  for (int square = 0; square < 2; ++square) {
    auto product = quern::local::array<double, 3, 3>();
    for (int row = 0; row < 3; ++row)
      for (int column = 0; column < 3; ++column) {
        double sum = 0;
        for (int k = 0; k < 3; ++k) sum += matrix[row][k] * matrix[k][column];
        product[row][column] = sum;
      }
    matrix = product;
  }
  for (int k = 0; k < 9; ++k) out[i * 9 + k] = matrix(k / 3, k % 3);
}
