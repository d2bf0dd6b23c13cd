// SPDX-License-Identifier: Apache-2.0
// Barriers inside loops: a bitonic sorting network, Smith and Waterman's alignment by anti-diagonals, a transform of 64 points.

// Two elements a thread.
extern "C" __global__ void bitonic(const int* in, int* out) {
  __shared__ int part[512];
  const int t = threadIdx.x, first = blockIdx.x * 512;
  part[t] = in[first + t];
  part[t + 256] = in[first + t + 256];
  for (int k = 2; k <= 512; k *= 2)
    for (int j = k / 2; j > 0; j /= 2) {
      __syncthreads();
      const int low = 2 * t - (t & (j - 1)), high = low + j;
      const bool up = (low & k) == 0;
      const int a = part[low], b = part[high];
      if ((a > b) == up) {
        part[low] = b;
        part[high] = a;
      }
    }
  __syncthreads();
  out[first + t] = part[t];
  out[first + t + 256] = part[t + 256];
}

// One pair of sequences a block, one letter of the query (128) a thread. The last three anti-diagonals are in shared memory.
extern "C" __global__ void smith_waterman(const unsigned char* queries, const unsigned char* targets, int length, int* best) {
  __shared__ int diagonal[3][129];
  __shared__ unsigned char target[256];
  __shared__ int most;
  const int t = threadIdx.x;
  const unsigned char own = queries[blockIdx.x * 128 + t];
  for (int i = t; i < length; i += 128) target[i] = targets[blockIdx.x * length + i];
  for (int k = 0; k < 3; ++k) {
    diagonal[k][t + 1] = 0;
    if (t == 0) diagonal[k][0] = 0;
  }
  if (t == 0) most = 0;
  __syncthreads();
  int now = 0, mine = 0;
  for (int d = 0; d < 127 + length; ++d) {
    const int before = now == 0 ? 2 : now - 1, earlier = before == 0 ? 2 : before - 1;
    const int j = d - t;
    int score = 0;
    if (j >= 0 && j < length) {
      score = diagonal[earlier][t] + (own == target[j] ? 2 : -1);
      score = max(score, max(diagonal[before][t], diagonal[before][t + 1]) - 1);
      score = max(score, 0);
      mine = max(mine, score);
    }
    diagonal[now][t + 1] = score;
    now = now == 2 ? 0 : now + 1;
    __syncthreads();
  }
  atomicMax(&most, mine);
  __syncthreads();
  if (t == 0) best[blockIdx.x] = most;
}

// 32 threads a transform, eight transforms a block; Stockham's order, radix 2. twiddle[k] = exp(-2 pi i k / 64).
extern "C" __global__ void fft64(const float2* in, const float2* twiddle, float2* out) {
  __shared__ float2 buffer[2][8][64];
  const int t = threadIdx.x, own = threadIdx.y;
  const size_t first = (size_t)(blockIdx.x * 8 + own) * 64;
  buffer[0][own][t] = in[first + t];
  buffer[0][own][t + 32] = in[first + t + 32];
  __syncthreads();
  int from = 0;
  for (int s = 1; s < 64; s *= 2) {
    const int q = t & (s - 1), p = t - q;
    const float2 a = buffer[from][own][t], b = buffer[from][own][t + 32], w = twiddle[p];
    const float x = a.x - b.x, y = a.y - b.y;
    buffer[1 - from][own][q + 2 * p] = make_float2(a.x + b.x, a.y + b.y);
    buffer[1 - from][own][q + 2 * p + s] = make_float2(x * w.x - y * w.y, x * w.y + y * w.x);
    from = 1 - from;
    __syncthreads();
  }
  out[first + t] = buffer[from][own][t];
  out[first + t + 32] = buffer[from][own][t + 32];
}
