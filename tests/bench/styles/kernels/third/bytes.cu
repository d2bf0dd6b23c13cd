// SPDX-License-Identifier: Apache-2.0
// Bytes: a product of int8 matrices by dp4a, an image made smaller.

// c = a * transpose(b): a block computes 64 x 64 elements, a thread 4 x 4; both operands have rows of k bytes.
extern "C" __global__ void __launch_bounds__(256) gemm_int8(const signed char* __restrict__ a,
                                                            const signed char* __restrict__ b, int* __restrict__ c,
                                                            int n, int k) {
  __shared__ __align__(16) int tile_a[8][68];
  __shared__ __align__(16) int tile_b[8][68];
  const int t = threadIdx.x;
  const int load_row = t / 4, load_word = t % 4 * 2;  // two words of four bytes a thread
  const int tx = t % 16, ty = t / 16;
  const int2* from_a = reinterpret_cast<const int2*>(a + (blockIdx.y * 64 + load_row) * k + load_word * 4);
  const int2* from_b = reinterpret_cast<const int2*>(b + (blockIdx.x * 64 + load_row) * k + load_word * 4);
  int sum[4][4] = {};
  for (int first = 0; first < k / 4; first += 8) {
    const int2 next_a = from_a[first / 2], next_b = from_b[first / 2];
    __syncthreads();
    tile_a[load_word][load_row] = next_a.x;
    tile_a[load_word + 1][load_row] = next_a.y;
    tile_b[load_word][load_row] = next_b.x;
    tile_b[load_word + 1][load_row] = next_b.y;
    __syncthreads();
#pragma unroll
    for (int w = 0; w < 8; ++w) {
      const int4 va = *reinterpret_cast<const int4*>(&tile_a[w][ty * 4]);
      const int4 vb = *reinterpret_cast<const int4*>(&tile_b[w][tx * 4]);
      const int ra[4] = {va.x, va.y, va.z, va.w}, rb[4] = {vb.x, vb.y, vb.z, vb.w};
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) sum[i][j] = __dp4a(ra[i], rb[j], sum[i][j]);
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
    *reinterpret_cast<int4*>(c + (blockIdx.y * 64 + ty * 4 + i) * n + blockIdx.x * 64 + tx * 4) =
        make_int4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
}

__device__ float4 widen(uchar4 p) { return make_float4(p.x, p.y, p.z, p.w); }
__device__ float mix(float a, float b, float t) { return a + t * (b - a); }
__device__ float4 mix(float4 a, float4 b, float t) {
  return make_float4(mix(a.x, b.x, t), mix(a.y, b.y, t), mix(a.z, b.z, t), mix(a.w, b.w, t));
}

// Bilinear, the centres of the pixels aligned; `step` is the width of a new pixel in old ones.
extern "C" __global__ void resize(const uchar4* __restrict__ in, int width, int height, uchar4* __restrict__ out,
                                  int new_width, int new_height, float step) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= new_width || y >= new_height) return;
  const float fx = fmaxf((x + 0.5f) * step - 0.5f, 0.0f), fy = fmaxf((y + 0.5f) * step - 0.5f, 0.0f);
  const int x0 = min((int)fx, width - 1), y0 = min((int)fy, height - 1);
  const int x1 = min(x0 + 1, width - 1), y1 = min(y0 + 1, height - 1);
  const float4 top = mix(widen(__ldg(&in[y0 * width + x0])), widen(__ldg(&in[y0 * width + x1])), fx - x0);
  const float4 bottom = mix(widen(__ldg(&in[y1 * width + x0])), widen(__ldg(&in[y1 * width + x1])), fx - x0);
  const float4 p = mix(top, bottom, fy - y0);
  out[y * new_width + x] = make_uchar4((unsigned char)(p.x + 0.5f), (unsigned char)(p.y + 0.5f),
                                       (unsigned char)(p.z + 0.5f), (unsigned char)(p.w + 0.5f));
}
