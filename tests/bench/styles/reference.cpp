// SPDX-License-Identifier: Apache-2.0
// The rows' results by plain scalar code: what the native functions are checked against. A piece of work is
// that of natives.def.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <numbers>
#include <vector>

#include "native.hpp"
#include "sha256_rounds.hpp"
#include "sizes.hpp"

namespace quern::bench::reference {
namespace {

template <class T>
T* array(Arrays arrays, int i) {
  return static_cast<T*>(arrays[i]);
}

void scan(Arrays arrays, Part part, std::size_t block) {
  for (std::size_t i = part.begin * block; i < part.end * block; ++i)
    array<int>(arrays, 1)[i] = array<int>(arrays, 0)[i] + (i % block == 0 ? 0 : array<int>(arrays, 1)[i - 1]);
}

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

}  // namespace

void block_sums(Arrays arrays, Part part) {
  for (std::size_t block = part.begin; block < part.end; ++block) {
    double sum = 0;
    for (std::size_t i = 0; i < kReduceBlock; ++i)
      sum += static_cast<double>(array<float>(arrays, 0)[block * kReduceBlock + i]);
    array<float>(arrays, 1)[block] = static_cast<float>(sum);
  }
}

void warp_sums(Arrays arrays, Part part) {
  for (std::size_t i = part.begin * 512; i < part.end * 512; ++i)
    array<int>(arrays, 1)[i / 32] += array<int>(arrays, 0)[i];
}

void scan_blocks(Arrays arrays, Part part) { scan(arrays, part, kScanBlock); }
void cub_scan_blocks(Arrays arrays, Part part) { scan(arrays, part, kCubBlock); }

void black_scholes(Arrays arrays, Part part) {
  for (std::size_t i = part.begin * 1024; i < part.end * 1024; ++i) {
    const double spot = static_cast<double>(array<float>(arrays, 0)[i]),
                 strike = static_cast<double>(array<float>(arrays, 1)[i]),
                 years = static_cast<double>(array<float>(arrays, 2)[i]),
                 volatility = static_cast<double>(kVolatility), rate = static_cast<double>(kRate);
    const double root = volatility * std::sqrt(years);
    const double d1 = (std::log(spot / strike) + (rate + 0.5 * volatility * volatility) * years) / root;
    const double discounted = strike * std::exp(-rate * years);
    const double price = spot * normal_cdf(d1) - discounted * normal_cdf(d1 - root);
    array<float>(arrays, 3)[i] = static_cast<float>(price);
    array<float>(arrays, 4)[i] = static_cast<float>(price - spot + discounted);
  }
}

void mandelbrot(Arrays arrays, Part part) {
  for (std::size_t row = part.begin; row < part.end; ++row)
    for (std::size_t column = 0; column < kPicture; ++column) {
      const float cx = -2.0f + 3.0f * static_cast<float>(column) / static_cast<float>(kPicture),
                  cy = -1.0f + 2.0f * static_cast<float>(row) / static_cast<float>(kPicture);
      float x = 0, y = 0;
      int steps = 0;
      for (; steps < kEscapeLimit && x * x + y * y < 4.0f; ++steps) {
        const float next = x * x - y * y + cx;
        y = 2.0f * x * y + cy;
        x = next;
      }
      array<int>(arrays, 0)[row * kPicture + column] = steps;
    }
}

void inside(Arrays arrays, Part part) {
  for (std::size_t i = part.begin * 32; i < part.end * 32; ++i) {
    auto state = static_cast<std::uint32_t>(i + 1);
    const auto draw = [&] {
      state ^= state << 13;
      state ^= state >> 17;
      state ^= state << 5;
      return static_cast<float>(state) / 4294967296.0f;
    };
    int hits = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      const float x = draw(), y = draw();
      hits += x * x + y * y < 1.0f ? 1 : 0;
    }
    array<int>(arrays, 0)[i] = hits;
  }
}

void transpose(Arrays arrays, Part part) {
  for (std::size_t y = part.begin * 64; y < part.end * 64; ++y)
    for (std::size_t x = 0; x < kSide; ++x)
      array<float>(arrays, 1)[y * kSide + x] = array<float>(arrays, 0)[x * kSide + y];
}

void matmul(Arrays arrays, Part part) {
  for (std::size_t column = part.begin * 32; column < part.end * 32; ++column)
    for (std::size_t row = 0; row < kMatrix; ++row) {
      double sum = 0;
      for (std::size_t k = 0; k < kMatrix; ++k)
        sum += static_cast<double>(array<float>(arrays, 0)[row * kMatrix + k]) *
               static_cast<double>(array<float>(arrays, 1)[k * kMatrix + column]);
      array<float>(arrays, 2)[row * kMatrix + column] = static_cast<float>(sum);
    }
}

void stencil(Arrays arrays, Part part) {
  const float* in = array<float>(arrays, 0);
  for (std::size_t y = std::max<std::size_t>(part.begin, 1); y < std::min(part.end, kSide - 1); ++y)
    for (std::size_t x = 1; x < kSide - 1; ++x) {
      const std::size_t i = y * kSide + x;
      array<float>(arrays, 1)[i] = 0.25f * (in[i - 1] + in[i + 1] + in[i - kSide] + in[i + kSide]);
    }
}

void nbody(Arrays arrays, Part part) {
  const float* position = array<float>(arrays, 0);
  for (std::size_t i = part.begin * 32; i < part.end * 32; ++i) {
    double total[3]{};
    for (std::size_t j = 0; j < kBodies; ++j) {
      double distance[3], squared = static_cast<double>(kSoftening);
      for (std::size_t d = 0; d < 3; ++d) {
        distance[d] = static_cast<double>(position[4 * j + d]) - static_cast<double>(position[4 * i + d]);
        squared += distance[d] * distance[d];
      }
      for (std::size_t d = 0; d < 3; ++d)
        total[d] += distance[d] * static_cast<double>(position[4 * j + 3]) / (squared * std::sqrt(squared));
    }
    for (std::size_t d = 0; d < 4; ++d)
      array<float>(arrays, 1)[4 * i + d] = d < 3 ? static_cast<float>(total[d]) : 0.0f;
  }
}

void convolve(Arrays arrays, Part part) {
  const auto side = static_cast<std::ptrdiff_t>(kImage);
  for (auto y = static_cast<std::ptrdiff_t>(part.begin * 64); y < static_cast<std::ptrdiff_t>(part.end * 64);
       ++y)
    for (std::ptrdiff_t x = 0; x < side; ++x) {
      double sum = 0;
      for (std::ptrdiff_t j = -3; j <= 3; ++j)
        for (std::ptrdiff_t i = -3; i <= 3; ++i)
          if (y + j >= 0 && y + j < side && x + i >= 0 && x + i < side)
            sum += static_cast<double>(kFilter[(j + 3) * 7 + i + 3]) *
                   static_cast<double>(array<float>(arrays, 0)[(y + j) * side + x + i]);
      array<float>(arrays, 1)[y * side + x] = static_cast<float>(sum);
    }
}

void histogram(Arrays arrays, Part part) {
  for (std::size_t i = part.begin * 1024; i < part.end * 1024; ++i)
    ++array<unsigned>(arrays, 1)[array<unsigned char>(arrays, 0)[i]];
}

void compact(Arrays arrays, Part part) {
  for (std::size_t i = part.begin * 4096; i < part.end * 4096; ++i)
    if (array<int>(arrays, 0)[i] >= kThreshold)
      array<int>(arrays, 1)[array<int>(arrays, 2)[0]++] = array<int>(arrays, 0)[i];
}

void softmax(Arrays arrays, Part part) {
  for (std::size_t row = part.begin; row < part.end; ++row) {
    const float* from = array<float>(arrays, 0) + row * kSoftmaxRow;
    double sum = 0;
    for (std::size_t i = 0; i < kSoftmaxRow; ++i) sum += std::exp(static_cast<double>(from[i]));
    for (std::size_t i = 0; i < kSoftmaxRow; ++i)
      array<float>(arrays, 1)[row * kSoftmaxRow + i] =
          static_cast<float>(std::exp(static_cast<double>(from[i])) / sum);
  }
}

void layer_norm(Arrays arrays, Part part) {
  for (std::size_t row = part.begin; row < part.end; ++row) {
    const float* from = array<float>(arrays, 0) + row * kNormRow;
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < kNormRow; ++i) sum += static_cast<double>(from[i]);
    const double mean = sum / kNormRow;
    for (std::size_t i = 0; i < kNormRow; ++i)
      squares += (static_cast<double>(from[i]) - mean) * (static_cast<double>(from[i]) - mean);
    const double scale = 1 / std::sqrt(squares / kNormRow + static_cast<double>(kNormEpsilon));
    for (std::size_t i = 0; i < kNormRow; ++i)
      array<float>(arrays, 3)[row * kNormRow + i] = static_cast<float>(
          (static_cast<double>(from[i]) - mean) * scale * static_cast<double>(array<float>(arrays, 1)[i]) +
          static_cast<double>(array<float>(arrays, 2)[i]));
  }
}

void csr(Arrays arrays, Part part) {
  for (std::size_t row = part.begin; row < part.end; ++row) {
    double sum = 0;
    for (int i = array<int>(arrays, 0)[row]; i < array<int>(arrays, 0)[row + 1]; ++i)
      sum += static_cast<double>(array<float>(arrays, 2)[i]) *
             static_cast<double>(array<float>(arrays, 3)[array<int>(arrays, 1)[i]]);
    array<float>(arrays, 4)[row] = static_cast<float>(sum);
  }
}

// Sorts by digit, then by place, both in one number.
void radix_scatter(Arrays arrays, Part) {
  const unsigned* keys = array<unsigned>(arrays, 0);
  std::vector<std::uint64_t> order(kKeys);
  for (std::size_t i = 0; i < kKeys; ++i) order[i] = std::uint64_t{keys[i] >> kRadixShift & 15} << 32 | i;
  std::ranges::sort(order);
  for (std::size_t i = 0; i < kKeys; ++i) array<unsigned>(arrays, 2)[i] = keys[order[i] & 0xffffffff];
}

void search(Arrays arrays, Part) {
  const char *text = array<char>(arrays, 0), *pattern = array<char>(arrays, 1);
  for (const char* at = text;
       (at = std::search(at, text + kText, pattern, pattern + kPattern)) != text + kText; ++at)
    array<int>(arrays, 2)[array<int>(arrays, 3)[0]++] = static_cast<int>(at - text);
}

void bitonic(Arrays arrays, Part part) {
  for (std::size_t block = part.begin; block < part.end; ++block) {
    const int* from = array<int>(arrays, 0) + block * kSortBlock;
    int* to = array<int>(arrays, 1) + block * kSortBlock;
    std::copy(from, from + kSortBlock, to);
    std::sort(to, to + kSortBlock);
  }
}

void smith_waterman(Arrays arrays, Part part) {
  for (std::size_t pair = part.begin; pair < part.end; ++pair) {
    std::vector<int> above(kQuery + 1), row(kQuery + 1);
    int best = 0;
    for (std::size_t j = 0; j < kTarget; ++j) {
      for (std::size_t i = 0; i < kQuery; ++i) {
        const bool equal = array<unsigned char>(arrays, 0)[pair * kQuery + i] ==
                           array<unsigned char>(arrays, 1)[pair * kTarget + j];
        row[i + 1] =
            std::max({0, above[i] + (equal ? kMatch : kMismatch), above[i + 1] + kGap, row[i] + kGap});
        best = std::max(best, row[i + 1]);
      }
      std::swap(above, row);
    }
    array<int>(arrays, 2)[pair] = best;
  }
}

void fft64(Arrays arrays, Part part) {
  double cosine[kPoints], sine[kPoints];
  for (std::size_t k = 0; k < kPoints; ++k) {
    cosine[k] = std::cos(2 * std::numbers::pi * static_cast<double>(k) / kPoints);
    sine[k] = -std::sin(2 * std::numbers::pi * static_cast<double>(k) / kPoints);
  }
  for (std::size_t transform = part.begin * 16; transform < part.end * 16; ++transform)
    for (std::size_t k = 0; k < kPoints; ++k) {
      double real = 0, imaginary = 0;
      for (std::size_t i = 0; i < kPoints; ++i) {
        const float* from = array<float>(arrays, 0) + 2 * (transform * kPoints + i);
        const double x = static_cast<double>(from[0]), y = static_cast<double>(from[1]);
        real += x * cosine[i * k % kPoints] - y * sine[i * k % kPoints];
        imaginary += x * sine[i * k % kPoints] + y * cosine[i * k % kPoints];
      }
      array<float>(arrays, 2)[2 * (transform * kPoints + k)] = static_cast<float>(real);
      array<float>(arrays, 2)[2 * (transform * kPoints + k) + 1] = static_cast<float>(imaginary);
    }
}

void sha256(Arrays arrays, Part part) {
  const auto rotate = [](std::uint32_t x, int n) { return x >> n | x << (32 - n); };
  for (std::size_t i = part.begin * 16; i < part.end * 16; ++i) {
    std::uint32_t w[64], s[8];
    std::memcpy(w, array<std::uint32_t>(arrays, 0) + i * 16, 64);
    for (int k = 16; k < 64; ++k)
      w[k] = w[k - 16] + (rotate(w[k - 15], 7) ^ rotate(w[k - 15], 18) ^ w[k - 15] >> 3) + w[k - 7] +
             (rotate(w[k - 2], 17) ^ rotate(w[k - 2], 19) ^ w[k - 2] >> 10);
    std::memcpy(s, kShaInitial, sizeof s);
    for (int k = 0; k < 64; ++k) {
      const std::uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
      const std::uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
      const std::uint32_t t1 =
          s[7] + (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) + choice + kShaRounds[k] + w[k];
      const std::uint32_t t2 = (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) + majority;
      std::memmove(s + 1, s, 7 * sizeof *s);
      s[4] += t1;
      s[0] = t1 + t2;
    }
    for (std::size_t k = 0; k < 8; ++k) array<std::uint32_t>(arrays, 1)[i * 8 + k] = s[k] + kShaInitial[k];
  }
}

void philox_normal(Arrays arrays, Part part) {
  for (std::size_t i = part.begin * 256; i < part.end * 256; ++i) {
    std::uint32_t c[4] = {static_cast<std::uint32_t>(i), 0, 0, 0}, k[2] = {kSeed0, kSeed1};
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t a = std::uint64_t{0xd2511f53} * c[0], b = std::uint64_t{0xcd9e8d57} * c[2];
      c[0] = static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ k[0];
      c[1] = static_cast<std::uint32_t>(b);
      c[2] = static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ k[1];
      c[3] = static_cast<std::uint32_t>(a);
      k[0] += 0x9e3779b9;
      k[1] += 0xbb67ae85;
    }
    for (std::size_t h = 0; h < 2; ++h) {
      const double u = ((c[2 * h] >> 8) + 0.5) / 16777216, v = (c[2 * h + 1] >> 8) / 16777216.0;
      const double radius = std::sqrt(-2 * std::log(u)), angle = 2 * std::numbers::pi * v;
      array<float>(arrays, 0)[4 * i + 2 * h] = static_cast<float>(radius * std::cos(angle));
      array<float>(arrays, 0)[4 * i + 2 * h + 1] = static_cast<float>(radius * std::sin(angle));
    }
  }
}

// Montgomery's product is a b / 2^64 modulo the prime.
void powers(Arrays arrays, Part part) {
  __extension__ using Wide = unsigned __int128;
  const auto times = [](std::uint64_t a, std::uint64_t b) {
    return static_cast<std::uint64_t>(static_cast<Wide>(a) * b % kModulus);
  };
  // 2^64 is 2^32 - 1 modulo the prime, and 2^192 is 1.
  const std::uint64_t shift = (std::uint64_t{1} << 32) - 1, inverse = times(shift, shift);
  for (std::size_t i = part.begin * 32; i < part.end * 32; ++i) {
    const std::uint64_t base = array<std::uint64_t>(arrays, 0)[i];
    std::uint64_t x = base;
    for (int k = 0; k < kPowerSteps; ++k) x = times(times(times(times(x, x), inverse), base), inverse);
    array<std::uint64_t>(arrays, 1)[i] = x;
  }
}

// Looks each key of the tree up in a map from keys to depths.
void tree_walk(Arrays arrays, Part part) {
  std::map<int, int> depths;
  std::vector<std::pair<int, int>> open{{0, 0}};
  while (!open.empty()) {
    const auto [node, depth] = open.back();
    open.pop_back();
    depths[array<int>(arrays, 0)[node]] = depth;
    for (int side = 1; side <= 2; ++side)
      if (const int child = array<int>(arrays, side)[node]; child >= 0) open.emplace_back(child, depth + 1);
  }
  for (std::size_t i = part.begin * 32; i < part.end * 32; ++i) {
    const auto found = depths.find(array<int>(arrays, 3)[i]);
    array<int>(arrays, 4)[i] = found == depths.end() ? -1 : found->second;
  }
}

void lennard_jones(Arrays arrays, Part part) {
  for (std::size_t i = part.begin * 8; i < part.end * 8; ++i) {
    double total[3]{};
    for (std::size_t k = 0; k < kNeighbours; ++k) {
      const auto j = static_cast<std::size_t>(array<int>(arrays, 3)[k * kAtoms + i]);
      double distance[3], squared = 0;
      for (int d = 0; d < 3; ++d) {
        distance[d] = array<double>(arrays, d)[i] - array<double>(arrays, d)[j];
        squared += distance[d] * distance[d];
      }
      if (squared >= kCutoffSquared) continue;
      // the derivative of 4 (r^-12 - r^-6)
      for (int d = 0; d < 3; ++d)
        total[d] += (48 * std::pow(squared, -7) - 24 * std::pow(squared, -4)) * distance[d];
    }
    for (int d = 0; d < 3; ++d) array<double>(arrays, 4 + d)[i] = total[d];
  }
}

}  // namespace quern::bench::reference
