// SPDX-License-Identifier: Apache-2.0
// SHA-256 of several messages at once, Philox, powers modulo a prime, hashes, walks down a tree; forces in
// f64.
#include <cmath>

#include "sha256_rounds.hpp"
#include "vectors.hpp"

namespace quern::bench::QUERN_NATIVE_VARIANT {
namespace {

inline Words rotate(Words x, int n) {
  return x >> static_cast<unsigned>(n) | x << static_cast<unsigned>(32 - n);
}

inline void compress(const Words* block, Words* digest) {
  Words w[16], s[8];
  for (int k = 0; k < 16; ++k) w[k] = block[k];
  for (int k = 0; k < 8; ++k) s[k] = kShaInitial[k];
#pragma clang loop unroll(full)
  for (int k = 0; k < 64; ++k) {
    if (k >= 16) {
      const Words a = w[(k + 1) % 16], b = w[(k + 14) % 16];
      w[k % 16] += (rotate(a, 7) ^ rotate(a, 18) ^ (a >> 3u)) + w[(k + 9) % 16] +
                   (rotate(b, 17) ^ rotate(b, 19) ^ (b >> 10u));
    }
    const Words t1 = s[7] + (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) +
                     ((s[4] & s[5]) ^ (~s[4] & s[6])) + kShaRounds[k] + w[k % 16];
    const Words t2 = (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) +
                     ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
    for (int i = 7; i > 0; --i) s[i] = s[i - 1];
    s[4] += t1;
    s[0] = t1 + t2;
  }
  for (int k = 0; k < 8; ++k) digest[k] = s[k] + kShaInitial[k];
}

}  // namespace

void sha256(Arrays arrays, Part part) {
  const std::uint32_t* message = array<std::uint32_t>(arrays, 0);
  std::uint32_t* digest = array<std::uint32_t>(arrays, 1);
  for (std::size_t first = part.begin * 16; first < part.end * 16; first += kLanes) {
    Words words[16], result[kLanes]{};
    for (std::size_t c = 0; c < 16; c += kLanes) {
      for (std::size_t r = 0; r < kLanes; ++r) words[c + r] = load<Words>(message + (first + r) * 16 + c);
      transpose_square(words + c);
    }
    compress(words, result);
    transpose_square(result);
    for (std::size_t r = 0; r < kLanes; ++r) std::memcpy(digest + (first + r) * 8, &result[r], 32);
  }
}

// Counters by vectors; the logarithm, sine and cosine are glibc's vector functions.
void philox_normal(Arrays arrays, Part part) {
  float* out = array<float>(arrays, 0);
  constexpr int kDrawn = 256;
  for (std::size_t block = part.begin; block < part.end; ++block) {
    alignas(64) float u[4][kDrawn], radius[2][kDrawn], sine[2][kDrawn], cosine[2][kDrawn];
    for (std::uint32_t i = 0; i < kDrawn; ++i) {
      std::uint32_t c0 = static_cast<std::uint32_t>(block) * kDrawn + i, c1 = 0, c2 = 0, c3 = 0, k0 = kSeed0,
                    k1 = kSeed1;
      for (int round = 0; round < 10; ++round) {
        const std::uint64_t a = std::uint64_t{0xd2511f53u} * c0, b = std::uint64_t{0xcd9e8d57u} * c2;
        c0 = static_cast<std::uint32_t>(b >> 32) ^ c1 ^ k0;
        c2 = static_cast<std::uint32_t>(a >> 32) ^ c3 ^ k1;
        c1 = static_cast<std::uint32_t>(b);
        c3 = static_cast<std::uint32_t>(a);
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
      }
      u[0][i] = (static_cast<float>(static_cast<std::int32_t>(c0 >> 8)) + 0.5f) * (1.0f / 16777216.0f);
      u[1][i] = static_cast<float>(static_cast<std::int32_t>(c1 >> 8)) * (1.0f / 16777216.0f);
      u[2][i] = (static_cast<float>(static_cast<std::int32_t>(c2 >> 8)) + 0.5f) * (1.0f / 16777216.0f);
      u[3][i] = static_cast<float>(static_cast<std::int32_t>(c3 >> 8)) * (1.0f / 16777216.0f);
    }
    for (int k = 0; k < 2; ++k) {
      for (int i = 0; i < kDrawn; ++i) radius[k][i] = std::sqrt(-2.0f * std::log(u[2 * k][i]));
      for (int i = 0; i < kDrawn; ++i) sine[k][i] = std::sin(6.28318531f * u[2 * k + 1][i]);
      for (int i = 0; i < kDrawn; ++i) cosine[k][i] = std::cos(6.28318531f * u[2 * k + 1][i]);
    }
    float* to = out + block * kDrawn * 4;
    for (int i = 0; i < kDrawn; ++i) {
      to[4 * i] = radius[0][i] * cosine[0][i];
      to[4 * i + 1] = radius[0][i] * sine[0][i];
      to[4 * i + 2] = radius[1][i] * cosine[1][i];
      to[4 * i + 3] = radius[1][i] * sine[1][i];
    }
  }
}

namespace {

typedef std::uint64_t Longs __attribute__((ext_vector_type(QUERN_LANES / 2)));

inline std::uint64_t product(std::uint64_t a, std::uint64_t b) {
  const unsigned __int128 whole = static_cast<unsigned __int128>(a) * b;
  const auto low = static_cast<std::uint64_t>(whole), high = static_cast<std::uint64_t>(whole >> 64);
  const std::uint64_t m = low * kModulusInverse;
  const std::uint64_t carry =
      static_cast<std::uint64_t>(static_cast<unsigned __int128>(m) * kModulus >> 64) + (low != 0 ? 1 : 0);
  const std::uint64_t result = high + carry;
  return result < high || result >= kModulus ? result - kModulus : result;
}

inline Longs high_product(Longs a, Longs b) {
  const Longs mask = 0xffffffffu;
  const Longs al = a & mask, ah = a >> 32u, bl = b & mask, bh = b >> 32u;
  const Longs ll = al * bl, hl = ah * bl, lh = al * bh, hh = ah * bh;
  const Longs middle = hl + (ll >> 32u);
  const Longs more = lh + (middle & mask);
  return hh + (middle >> 32u) + (more >> 32u);
}
inline Longs product(Longs a, Longs b) {
  const Longs modulus = kModulus;
  const Longs low = a * b, high = high_product(a, b);
  const Longs carry = high_product(low * kModulusInverse, modulus) - (Longs)(low != 0);
  const Longs result = high + carry;
  const Longs large = (Longs)(result < high) | (Longs)(result >= modulus);
  return result - (large & modulus);
}

template <class Value, std::size_t Count>
void powers_of(Arrays arrays, Part part) {
  const std::uint64_t* in = array<std::uint64_t>(arrays, 0);
  std::uint64_t* out = array<std::uint64_t>(arrays, 1);
  constexpr std::size_t kStep = Count * sizeof(Value) / 8;
  for (std::size_t i = part.begin * 32; i < part.end * 32; i += kStep) {
    Value base[Count], x[Count];
    std::memcpy(base, in + i, sizeof base);
    for (std::size_t k = 0; k < Count; ++k) x[k] = base[k];
    for (int step = 0; step < kPowerSteps; ++step)
      for (std::size_t k = 0; k < Count; ++k) x[k] = product(product(x[k], x[k]), base[k]);
    std::memcpy(out + i, x, sizeof x);
  }
}

}  // namespace

void powers(Arrays arrays, Part part) { powers_of<std::uint64_t, 4>(arrays, part); }
void powers_vector(Arrays arrays, Part part) { powers_of<Longs, 4>(arrays, part); }

void hash64(Arrays arrays, Part part) {
  const std::uint64_t* in = array<std::uint64_t>(arrays, 0);
  std::uint64_t* out = array<std::uint64_t>(arrays, 1);
  constexpr std::size_t kGroups = 4, kStep = kLanes / 2;
  for (std::size_t i = part.begin * 1024; i < part.end * 1024; i += kGroups * kStep) {
    Longs x[kGroups];
    for (std::size_t g = 0; g < kGroups; ++g) x[g] = load<Longs>(in + i + g * kStep);
    for (int k = 0; k < 4; ++k)
      for (Longs& v : x) {
        v += 0x9e3779b97f4a7c15u;
        v = (v ^ (v >> 30u)) * 0xbf58476d1ce4e5b9u;
        v = (v ^ (v >> 27u)) * 0x94d049bb133111ebu;
        v ^= v >> 31u;
      }
    for (std::size_t g = 0; g < kGroups; ++g) stream<Longs>(out + i + g * kStep, x[g]);
  }
  _mm_sfence();
}

// Two vectors of keys go down at a time; a key that was found, or that has left the tree, looks at the root.
void tree_walk(Arrays arrays, Part part) {
  const int *key = array<int>(arrays, 0), *left = array<int>(arrays, 1), *right = array<int>(arrays, 2),
            *wanted = array<int>(arrays, 3);
  int* depth = array<int>(arrays, 4);
  for (std::size_t first = part.begin * 32; first < part.end * 32; first += 2 * kLanes) {
    Ints value[2], node[2]{}, steps[2]{}, live[2] = {Ints(-1), Ints(-1)};
    for (int g = 0; g < 2; ++g) value[g] = load<Ints>(wanted + first + static_cast<std::size_t>(g) * kLanes);
    while (__builtin_reduce_or(live[0] | live[1]) != 0)
      for (int g = 0; g < 2; ++g) {
        const Ints here = gather(key, node[g] & live[g]);
        live[g] &= here != value[g];
        const Ints at = node[g] & live[g];
        const Ints next = value[g] < here ? gather(left, at) : gather(right, at);
        node[g] = live[g] ? next : node[g];
        steps[g] -= live[g];
        live[g] &= node[g] >= 0;
      }
    for (int g = 0; g < 2; ++g)
      store(depth + first + static_cast<std::size_t>(g) * kLanes, node[g] < 0 ? Ints(-1) : steps[g]);
  }
}

// Eight keys go down side by side, so that their loads do not wait for each other; where one ends, the next
// begins.
void tree_walk_scalar(Arrays arrays, Part part) {
  const int *key = array<int>(arrays, 0), *left = array<int>(arrays, 1), *right = array<int>(arrays, 2),
            *wanted = array<int>(arrays, 3);
  int* depth = array<int>(arrays, 4);
  constexpr std::size_t kAtOnce = 8;
  std::size_t at[kAtOnce], next = part.begin * 32;
  int node[kAtOnce]{}, steps[kAtOnce]{};
  const std::size_t end = part.end * 32;
  for (std::size_t& i : at) i = next++;
  const auto step = [&](std::size_t k) {  // true: key k has ended
    const int value = wanted[at[k]];
    int here = key[node[k]];
    asm("" : "+r"(here));  // keeps the compiler from gathers, which are slower
    const int* side = value < here ? left : right;
    node[k] = side[node[k]];
    if (here != value && node[k] >= 0) [[likely]] {
      ++steps[k];
      return false;
    }
    depth[at[k]] = here == value ? steps[k] : -1;
    node[k] = steps[k] = 0;
    return true;
  };
  while (next < end)
    for (std::size_t k = 0; k < kAtOnce; ++k)
      if (step(k)) at[k] = next++;
  // Finishes the searches that are still in a slot. Slots may have gone beyond the end.
  for (std::size_t k = 0; k < kAtOnce; ++k)
    if (at[k] < end)
      while (!step(k)) continue;
}

void lennard_jones(Arrays arrays, Part part) {
  typedef double Doubles __attribute__((ext_vector_type(QUERN_LANES / 2)));
  const double *x = array<double>(arrays, 0), *y = array<double>(arrays, 1), *z = array<double>(arrays, 2);
  const int* neighbour = array<int>(arrays, 3);
  const auto at = [](const double* from, const int* index) -> Doubles {
#if defined(__AVX512F__)
    return _mm512_i32gather_pd(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(index)), from, 8);
#else
    return _mm256_i32gather_pd(from, _mm_loadu_si128(reinterpret_cast<const __m128i*>(index)), 8);
#endif
  };
  for (std::size_t i = part.begin * 8; i < part.end * 8; i += kLanes / 2) {
    const Doubles xi = load<Doubles>(x + i), yi = load<Doubles>(y + i), zi = load<Doubles>(z + i);
    Doubles sx = 0, sy = 0, sz = 0;
    for (std::size_t k = 0; k < kNeighbours; ++k) {
      const int* index = neighbour + k * kAtoms + i;
      const Doubles dx = xi - at(x, index), dy = yi - at(y, index), dz = zi - at(z, index);
      const Doubles squared = dx * dx + dy * dy + dz * dz;
      const Doubles inverse = 1.0 / squared, six = inverse * inverse * inverse;
      const Doubles force = squared < kCutoffSquared ? 48.0 * inverse * six * (six - 0.5) : Doubles(0.0);
      sx += force * dx;
      sy += force * dy;
      sz += force * dz;
    }
    store(array<double>(arrays, 4) + i, sx);
    store(array<double>(arrays, 5) + i, sy);
    store(array<double>(arrays, 6) + i, sz);
  }
}

}  // namespace quern::bench::QUERN_NATIVE_VARIANT
