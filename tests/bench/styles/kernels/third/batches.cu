// SPDX-License-Identifier: Apache-2.0
// Many small systems in f64: tridiagonal ones, a thread each; Cholesky factors of 16 x 16, half a warp each.

// Thomas's algorithm. Element k of a system lies beside element k of the next one.
extern "C" __global__ void thomas(const double* __restrict__ lower, const double* __restrict__ diagonal,
                                  const double* __restrict__ upper, const double* __restrict__ right,
                                  double* __restrict__ scratch, double* __restrict__ x, int systems, int n) {
  const int s = blockIdx.x * blockDim.x + threadIdx.x;
  if (s >= systems) return;
  double c = upper[s] / diagonal[s], d = right[s] / diagonal[s];
  scratch[s] = c;
  x[s] = d;
  for (int k = 1; k < n; ++k) {
    const size_t i = (size_t)k * systems + s;
    const double a = lower[i], inverse = 1.0 / (diagonal[i] - a * c);
    c = upper[i] * inverse;
    d = (right[i] - a * d) * inverse;
    scratch[i] = c;
    x[i] = d;
  }
  for (int k = n - 2; k >= 0; --k) {
    const size_t i = (size_t)k * systems + s;
    d = x[i] - scratch[i] * d;
    x[i] = d;
  }
}

// Lane r of 16 holds row r; pivots and columns go from lane to lane. Writes the lower factor, zeros above.
extern "C" __global__ void cholesky(const double* __restrict__ in, double* __restrict__ out, int matrices) {
  const int lane = threadIdx.x % 16;
  const int matrix = (blockIdx.x * blockDim.x + threadIdx.x) / 16;
  if (matrix >= matrices) return;
  const double2* from = reinterpret_cast<const double2*>(in + (size_t)matrix * 256 + lane * 16);
  double row[16];
#pragma unroll
  for (int c = 0; c < 8; ++c) {
    const double2 two = from[c];
    row[2 * c] = two.x;
    row[2 * c + 1] = two.y;
  }
#pragma unroll
  for (int k = 0; k < 16; ++k) {
    const double pivot = sqrt(__shfl_sync(0xffffffffu, row[k], k, 16));
    row[k] = lane == k ? pivot : row[k] / pivot;
#pragma unroll
    for (int j = k + 1; j < 16; ++j) row[j] -= row[k] * __shfl_sync(0xffffffffu, row[k], j, 16);
  }
  double2* to = reinterpret_cast<double2*>(out + (size_t)matrix * 256 + lane * 16);
#pragma unroll
  for (int c = 0; c < 8; ++c)
    to[c] = make_double2(2 * c <= lane ? row[2 * c] : 0.0, 2 * c + 1 <= lane ? row[2 * c + 1] : 0.0);
}
