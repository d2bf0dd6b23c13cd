// SPDX-License-Identifier: Apache-2.0
// A level of a Merkle tree: Keccak-256 of two hashes, a pair a thread.

__constant__ unsigned long long kRounds[24] = {
    0x0000000000000001, 0x0000000000008082, 0x800000000000808a, 0x8000000080008000, 0x000000000000808b,
    0x0000000080000001, 0x8000000080008081, 0x8000000000008009, 0x000000000000008a, 0x0000000000000088,
    0x0000000080008009, 0x000000008000000a, 0x000000008000808b, 0x800000000000008b, 0x8000000000008089,
    0x8000000000008003, 0x8000000000008002, 0x8000000000000080, 0x000000000000800a, 0x800000008000000a,
    0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008};

__device__ constexpr int kTurn[24] = {1,  3,  6,  10, 15, 21, 28, 36, 45, 55, 2,  14,
                                      27, 41, 56, 8,  25, 43, 62, 18, 39, 61, 20, 44};
__device__ constexpr int kLane[24] = {10, 7,  11, 17, 18, 3, 5,  16, 8,  21, 24, 4,
                                      15, 23, 19, 13, 12, 2, 20, 14, 22, 9,  6,  1};

__device__ unsigned long long turned(unsigned long long x, int by) { return x << by | x >> (64 - by); }

extern "C" __global__ void keccak(const ulonglong2* __restrict__ in, ulonglong2* __restrict__ out, int pairs) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= pairs) return;
  unsigned long long a[25] = {};
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const ulonglong2 two = in[(size_t)i * 4 + k];
    a[2 * k] = two.x;
    a[2 * k + 1] = two.y;
  }
  a[8] = 1;
  a[16] = 1ull << 63;
#pragma unroll 1
  for (int round = 0; round < 24; ++round) {
    unsigned long long c[5];
#pragma unroll
    for (int x = 0; x < 5; ++x) c[x] = a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20];
#pragma unroll
    for (int x = 0; x < 5; ++x) {
      const unsigned long long d = c[(x + 4) % 5] ^ turned(c[(x + 1) % 5], 1);
#pragma unroll
      for (int y = 0; y < 25; y += 5) a[y + x] ^= d;
    }
    unsigned long long moving = a[1];
#pragma unroll
    for (int k = 0; k < 24; ++k) {
      const unsigned long long next = a[kLane[k]];
      a[kLane[k]] = turned(moving, kTurn[k]);
      moving = next;
    }
#pragma unroll
    for (int y = 0; y < 25; y += 5) {
      unsigned long long row[5];
#pragma unroll
      for (int x = 0; x < 5; ++x) row[x] = a[y + x];
#pragma unroll
      for (int x = 0; x < 5; ++x) a[y + x] = row[x] ^ (~row[(x + 1) % 5] & row[(x + 2) % 5]);
    }
    a[0] ^= kRounds[round];
  }
  out[(size_t)i * 2] = make_ulonglong2(a[0], a[1]);
  out[(size_t)i * 2 + 1] = make_ulonglong2(a[2], a[3]);
}
