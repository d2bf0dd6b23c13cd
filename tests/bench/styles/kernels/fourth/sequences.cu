// SPDX-License-Identifier: Apache-2.0
// Sequences of DNA: minimizers of canonical 15-mers, barcodes found with Myers' bit vectors.

constexpr int kMer = 15, kWindow = 10, kThreads = 256;

__device__ unsigned scrambled(unsigned key) {
  key = (key ^ key >> 16) * 0x85ebca6bu;
  key = (key ^ key >> 13) * 0xc2b2ae35u;
  return key ^ key >> 16;
}

// The least hash of ten k-mers in a row, a window a thread. A k-mer counts as its reverse complement does.
extern "C" __global__ void __launch_bounds__(kThreads) minimizers(const char* __restrict__ strand,
                                                                  unsigned* __restrict__ least) {
  __shared__ unsigned char codes[kThreads + kWindow + kMer - 2];
  __shared__ unsigned hashes[kThreads + kWindow - 1];
  const int t = threadIdx.x, first = blockIdx.x * kThreads;
  for (int i = t; i < kThreads + kWindow + kMer - 2; i += kThreads) codes[i] = strand[first + i] >> 1 & 3;
  __syncthreads();
  for (int i = t; i < kThreads + kWindow - 1; i += kThreads) {
    unsigned forward = 0, backward = 0;
#pragma unroll
    for (int j = 0; j < kMer; ++j) {
      const unsigned code = codes[i + j];
      forward = forward << 2 | code;
      backward = backward >> 2 | (code ^ 2u) << (2 * kMer - 2);  // A 0, C 1, T 2, G 3
    }
    hashes[i] = scrambled(min(forward, backward));
  }
  __syncthreads();
  unsigned best = hashes[t];
#pragma unroll
  for (int j = 1; j < kWindow; ++j) best = min(best, hashes[t + j]);
  least[first + t] = best;
}

// The edit distance between a barcode of 64 letters and the best place of each read of 128, and where it ends. A
// read a thread; letters are 0 to 3.
extern "C" __global__ void barcodes(const unsigned char* __restrict__ barcode, const uint4* __restrict__ reads,
                                    int* __restrict__ distances, int* __restrict__ ends, int count) {
  __shared__ unsigned long long equal[4];
  if (threadIdx.x < 4) {
    unsigned long long mask = 0;
    for (int i = 0; i < 64; ++i) mask |= (unsigned long long)(barcode[i] == threadIdx.x) << i;
    equal[threadIdx.x] = mask;
  }
  __syncthreads();
  const int read = blockIdx.x * blockDim.x + threadIdx.x;
  if (read >= count) return;
  unsigned long long up = ~0ull, down = 0;
  int score = 64, best = 64, end = -1;
  for (int part = 0; part < 8; ++part) {
    const uint4 letters = reads[read * 8 + part];
    const unsigned words[4] = {letters.x, letters.y, letters.z, letters.w};
#pragma unroll
    for (int j = 0; j < 16; ++j) {
      const unsigned long long same = equal[words[j / 4] >> 8 * (j % 4) & 3];
      const unsigned long long vertical = same | down;
      const unsigned long long across = (((same & up) + up) ^ up) | same;
      unsigned long long more = down | ~(across | up), less = up & across;
      if (more >> 63) ++score;
      if (less >> 63) --score;
      more <<= 1;
      less <<= 1;
      up = less | ~(vertical | more);
      down = more & vertical;
      if (score < best) {
        best = score;
        end = part * 16 + j;
      }
    }
  }
  distances[read] = best;
  ends[read] = end;
}
