// SPDX-License-Identifier: Apache-2.0
// Integer work without shared memory: SHA-256, Philox with Box and Muller's normal numbers, powers modulo a prime, hashes, a binary tree.

__constant__ unsigned kRounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
    0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
    0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
    0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

__device__ __forceinline__ unsigned rotate(unsigned x, int n) { return x >> n | x << (32 - n); }

// The compression of one block of 16 words a thread, from the initial state.
extern "C" __global__ void sha256(const unsigned* message, unsigned* digest, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  unsigned w[16], s[8];
#pragma unroll
  for (int k = 0; k < 16; ++k) w[k] = message[i * 16 + k];
#pragma unroll
  for (int k = 0; k < 8; ++k) s[k] = initial[k];
#pragma unroll
  for (int k = 0; k < 64; ++k) {
    if (k >= 16) {
      const unsigned a = w[(k + 1) % 16], b = w[(k + 14) % 16];
      w[k % 16] += (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[(k + 9) % 16] + (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
    const unsigned t1 = s[7] + (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) + (s[4] & s[5] ^ ~s[4] & s[6]) + kRounds[k] + w[k % 16];
    const unsigned t2 = (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) + (s[0] & s[1] ^ s[0] & s[2] ^ s[1] & s[2]);
    s[7] = s[6];
    s[6] = s[5];
    s[5] = s[4];
    s[4] = s[3] + t1;
    s[3] = s[2];
    s[2] = s[1];
    s[1] = s[0];
    s[0] = t1 + t2;
  }
#pragma unroll
  for (int k = 0; k < 8; ++k) digest[i * 8 + k] = s[k] + initial[k];
}

// Philox4x32-10 (J. Salmon and others, "Parallel random numbers: as easy as 1, 2, 3", 2011) with counter (i, 0, 0, 0).
extern "C" __global__ void philox_normal(float4* out, unsigned seed0, unsigned seed1) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  uint4 c = make_uint4(i, 0, 0, 0);
  unsigned k0 = seed0, k1 = seed1;
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const unsigned h0 = __umulhi(0xd2511f53u, c.x), l0 = 0xd2511f53u * c.x;
    const unsigned h1 = __umulhi(0xcd9e8d57u, c.z), l1 = 0xcd9e8d57u * c.z;
    c = make_uint4(h1 ^ c.y ^ k0, l1, h0 ^ c.w ^ k1, l0);
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
  const float scale = 1.0f / 16777216.0f;
  const float u0 = ((c.x >> 8) + 0.5f) * scale, u1 = (c.y >> 8) * scale;
  const float u2 = ((c.z >> 8) + 0.5f) * scale, u3 = (c.w >> 8) * scale;
  const float r0 = sqrtf(-2.0f * logf(u0)), r1 = sqrtf(-2.0f * logf(u2));
  float s0, c0, s1, c1;
  sincosf(6.28318531f * u1, &s0, &c0);
  sincosf(6.28318531f * u3, &s1, &c1);
  out[i] = make_float4(r0 * c0, r0 * s0, r1 * c1, r1 * s1);
}

typedef unsigned long long u64;

// Montgomery's product modulo 2^64 - 2^32 + 1.
__device__ u64 product(u64 a, u64 b) {
  const u64 modulus = 0xffffffff00000001ull;
  const u64 low = a * b, high = __umul64hi(a, b);
  const u64 carry = __umul64hi(low * 0xfffffffeffffffffull, modulus) + (low != 0);
  u64 result = high + carry;
  if (result < high || result >= modulus) result -= modulus;
  return result;
}

extern "C" __global__ void powers(const u64* in, u64* out, int steps) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const u64 base = in[i];
  u64 x = base;
  for (int k = 0; k < steps; ++k) x = product(product(x, x), base);
  out[i] = x;
}

// Four rounds of a 64-bit mixer.
extern "C" __global__ void hash64(const u64* in, u64* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  u64 x = in[i];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    x ^= x >> 31;
  }
  out[i] = x;
}

// How deep each wanted key lies in a search tree; -1 for a key that is not there.
extern "C" __global__ void tree_walk(const int* key, const int* left, const int* right, const int* wanted, int* depth, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int value = wanted[i];
  int node = 0, steps = 0;
  while (node >= 0) {
    const int here = key[node];
    if (here == value) break;
    node = value < here ? left[node] : right[node];
    ++steps;
  }
  depth[i] = node < 0 ? -1 : steps;
}
