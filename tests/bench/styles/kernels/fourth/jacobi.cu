// SPDX-License-Identifier: Apache-2.0
// A step of Jacobi's method in three dimensions. A block of 32 x 8 columns walks through the planes: the plane
// with its rim is in shared memory, the planes above and below are in registers.

extern "C" __global__ void __launch_bounds__(256) jacobi3(const float* __restrict__ in, float* __restrict__ out,
                                                          int nx, int ny, int nz, float centre, float side) {
  __shared__ float plane[8 + 2][32 + 2];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int x = blockIdx.x * 32 + tx, y = blockIdx.y * 8 + ty;
  const int step = nx * ny;
  const bool rim = x == 0 || x == nx - 1 || y == 0 || y == ny - 1;
  int i = y * nx + x;
  float below = in[i];
  out[i] = below;  // the outermost points stay
  i += step;
  float here = in[i];
  for (int z = 1; z < nz - 1; ++z, i += step) {
    const float above = in[i + step];
    __syncthreads();
    plane[ty + 1][tx + 1] = here;
    if (ty == 0 && y > 0) plane[0][tx + 1] = in[i - nx];
    if (ty == 7 && y < ny - 1) plane[9][tx + 1] = in[i + nx];
    if (tx == 0 && x > 0) plane[ty + 1][0] = in[i - 1];
    if (tx == 31 && x < nx - 1) plane[ty + 1][33] = in[i + 1];
    __syncthreads();
    const float sides = below + above + plane[ty][tx + 1] + plane[ty + 2][tx + 1] + plane[ty + 1][tx] +
                        plane[ty + 1][tx + 2];
    out[i] = rim ? here : centre * here + side * sides;
    below = here;
    here = above;
  }
  out[i] = here;
}
