// SPDX-License-Identifier: Apache-2.0
// Lennard-Jones forces in f64. neighbour[k * n + i] is the k-th neighbour of atom i.

extern "C" __global__ void lennard_jones(int n, int neighbours, const double* x, const double* y, const double* z, const int* neighbour,
                                         double cutoff_squared, double* fx, double* fy, double* fz) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const double xi = x[i], yi = y[i], zi = z[i];
  double sx = 0.0, sy = 0.0, sz = 0.0;
  for (int k = 0; k < neighbours; ++k) {
    const int j = neighbour[k * n + i];
    const double dx = xi - x[j], dy = yi - y[j], dz = zi - z[j];
    const double squared = dx * dx + dy * dy + dz * dz;
    if (squared < cutoff_squared) {
      const double inverse = 1.0 / squared;
      const double six = inverse * inverse * inverse;
      const double force = 48.0 * inverse * six * (six - 0.5);
      sx += force * dx;
      sy += force * dy;
      sz += force * dz;
    }
  }
  fx[i] = sx;
  fy[i] = sy;
  fz[i] = sz;
}
