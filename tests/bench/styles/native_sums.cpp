// SPDX-License-Identifier: Apache-2.0
// Sums of blocks and of all elements, running sums, rows of matrices.
#include <cmath>

#include "vectors.hpp"

namespace quern::bench::QUERN_NATIVE_VARIANT {
namespace {

template <std::size_t Block>
void sums_of(Arrays arrays, Part part) {
  const float* x = array<float>(arrays, 0);
  float* sums = array<float>(arrays, 1);
  for (std::size_t block = part.begin; block < part.end; ++block) {
    const float* from = x + block * Block;
    Floats total[4]{};
    for (std::size_t i = 0; i < Block; i += 4 * kLanes)
      for (int k = 0; k < 4; ++k) total[k] += load<Floats>(from + i + k * kLanes);
    sums[block] = sum((total[0] + total[1]) + (total[2] + total[3]));
  }
}

// The running sums of one vector.
inline Ints running(Ints v) {
  const Ints none = 0;
#if defined(__AVX512F__)
  v += __builtin_shufflevector(none, v, 0, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30);
  v += __builtin_shufflevector(none, v, 0, 1, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29);
  v += __builtin_shufflevector(none, v, 0, 1, 2, 3, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27);
  v += __builtin_shufflevector(none, v, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
#else
  v += __builtin_shufflevector(none, v, 0, 8, 9, 10, 11, 12, 13, 14);
  v += __builtin_shufflevector(none, v, 0, 1, 8, 9, 10, 11, 12, 13);
  v += __builtin_shufflevector(none, v, 0, 1, 2, 3, 8, 9, 10, 11);
#endif
  return v;
}

template <std::size_t Block>
void scans_of(Arrays arrays, Part part) {
  const int* in = array<int>(arrays, 0);
  int* out = array<int>(arrays, 1);
  for (std::size_t block = part.begin; block < part.end; ++block) {
    Ints carry = 0;
    for (std::size_t i = block * Block; i < (block + 1) * Block; i += kLanes) {
      const Ints v = running(load<Ints>(in + i)) + carry;
      stream<Ints>(out + i, v);
      carry = v[kLanes - 1];
    }
  }
  _mm_sfence();
}

}  // namespace

void block_sums(Arrays arrays, Part part) { sums_of<kReduceBlock>(arrays, part); }
void cub_sums(Arrays arrays, Part part) { sums_of<kCubBlock>(arrays, part); }
void scan_blocks(Arrays arrays, Part part) { scans_of<kScanBlock>(arrays, part); }
void cub_scan_blocks(Arrays arrays, Part part) { scans_of<kCubBlock>(arrays, part); }

// Hillis and Steele's steps, as the kernel has them. From the end down, a step needs no second buffer.
void scan_steps(Arrays arrays, Part part) {
  const int* in = array<int>(arrays, 0);
  int* out = array<int>(arrays, 1);
  constexpr int kSize = static_cast<int>(kScanBlock);
  alignas(64) int zeros_and_sums[kLanes + kSize]{};  // what lies before the block adds nothing
  int* const sums = zeros_and_sums + kLanes;
  for (std::size_t block = part.begin; block < part.end; ++block) {
    std::memcpy(sums, in + block * kScanBlock, sizeof(int) * kScanBlock);
    for (int step = 1; step < kSize; step *= 2)
      for (int i = kSize - kLanes; i + kLanes > step; i -= kLanes)
        store(sums + i, load<Ints>(sums + i) + load<Ints>(sums + i - step));
    for (int i = 0; i < kSize; i += kLanes)
      stream<Ints>(out + block * kScanBlock + static_cast<std::size_t>(i), load<Ints>(sums + i));
  }
  _mm_sfence();
}

// The sums of the pairs of neighbours in two vectors.
inline Ints pairs(Ints a, Ints b) {
#if defined(__AVX512F__)
  return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30) +
         __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
#else
  return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14) +
         __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
#endif
}

// kLanes sums of 32 elements at a time.
void warp_sums(Arrays arrays, Part part) {
  const int* in = array<int>(arrays, 0);
  int* sums = array<int>(arrays, 1);
  for (std::size_t first = part.begin * 16; first < part.end * 16; first += kLanes) {
    Ints rows[kLanes];
    for (int r = 0; r < kLanes; ++r) {
      rows[r] = load<Ints>(in + (first + r) * 32);
      _mm_prefetch(in + (first + r) * 32 + 1024, _MM_HINT_T0);
      _mm_prefetch(in + (first + r) * 32 + 1024 + 16, _MM_HINT_T0);
      for (int k = kLanes; k < 32; k += kLanes) rows[r] += load<Ints>(in + (first + r) * 32 + k);
    }
    for (int left = kLanes / 2; left > 0; left /= 2)
      for (int r = 0; r < left; ++r) rows[r] = pairs(rows[2 * r], rows[2 * r + 1]);
    store(sums + first, rows[0]);
  }
}

void dot(Arrays arrays, Part part) {
  const float *a = array<float>(arrays, 0), *b = array<float>(arrays, 1);
  Floats total[8]{};
  for (std::size_t i = part.begin * 1024; i < part.end * 1024; i += 8 * kLanes)
    for (int k = 0; k < 8; ++k)
      total[k] += load<Floats>(a + i + k * kLanes) * load<Floats>(b + i + k * kLanes);
  Floats all = 0;
  for (const Floats& t : total) all += t;
  __atomic_fetch_add(array<float>(arrays, 2), sum(all), __ATOMIC_RELAXED);
}

void softmax(Arrays arrays, Part part) {
#pragma clang fp reassociate(on)
  const float* in = array<float>(arrays, 0);
  float* out = array<float>(arrays, 1);
  for (std::size_t row = part.begin; row < part.end; ++row) {
    const float* __restrict from = in + row * kSoftmaxRow;
    float* __restrict to = out + row * kSoftmaxRow;
    Floats highest = load<Floats>(from);
    std::size_t i = kLanes;
    for (; i + kLanes <= kSoftmaxRow; i += kLanes)
      highest = __builtin_elementwise_max(highest, load<Floats>(from + i));
    float most = __builtin_reduce_max(highest);
    for (; i < kSoftmaxRow; ++i) most = from[i] > most ? from[i] : most;
    for (i = 0; i < kSoftmaxRow; ++i) to[i] = std::exp(from[i] - most);
    float total = 0.0f;
    for (i = 0; i < kSoftmaxRow; ++i) total += to[i];
    const float scale = 1.0f / total;
    for (i = 0; i < kSoftmaxRow; ++i) to[i] *= scale;
  }
}

void layer_norm(Arrays arrays, Part part) {
  const float *in = array<float>(arrays, 0), *gain = array<float>(arrays, 1), *bias = array<float>(arrays, 2);
  float* out = array<float>(arrays, 3);
  for (std::size_t row = part.begin; row < part.end; ++row) {
    const float* from = in + row * kNormRow;
    Floats sums[4]{}, squares[4]{};
    for (std::size_t i = 0; i < kNormRow; i += 4 * kLanes)
      for (int k = 0; k < 4; ++k) {
        const Floats v = load<Floats>(from + i + k * kLanes);
        sums[k] += v;
        squares[k] += v * v;
      }
    const float mean = sum((sums[0] + sums[1]) + (sums[2] + sums[3])) / kNormRow;
    const float square = sum((squares[0] + squares[1]) + (squares[2] + squares[3])) / kNormRow;
    const float scale = 1.0f / std::sqrt(square - mean * mean + kNormEpsilon);
    for (std::size_t i = 0; i < kNormRow; i += kLanes)
      stream<Floats>(
          out + row * kNormRow + i,
          (load<Floats>(from + i) - mean) * scale * load<Floats>(gain + i) + load<Floats>(bias + i));
  }
  _mm_sfence();
}

void csr(Arrays arrays, Part part) {
  const int *begin = array<int>(arrays, 0), *column = array<int>(arrays, 1);
  const float *value = array<float>(arrays, 2), *x = array<float>(arrays, 3);
  float* y = array<float>(arrays, 4);
  for (std::size_t row = part.begin; row < part.end; ++row) {
    float total[4]{};
    int i = begin[row];
    const int end = begin[row + 1];
    for (; i + 4 <= end; i += 4)
      for (int k = 0; k < 4; ++k) total[k] += value[i + k] * x[column[i + k]];
    for (; i < end; ++i) total[0] += value[i] * x[column[i]];
    y[row] = (total[0] + total[1]) + (total[2] + total[3]);
  }
}

void csr_gather(Arrays arrays, Part part) {
  const int *begin = array<int>(arrays, 0), *column = array<int>(arrays, 1);
  const float *value = array<float>(arrays, 2), *x = array<float>(arrays, 3);
  float* y = array<float>(arrays, 4);
  for (std::size_t row = part.begin; row < part.end; ++row) {
    Floats total = 0;
    int i = begin[row];
    const int end = begin[row + 1];
    for (; i + kLanes <= end; i += kLanes)
      total += load<Floats>(value + i) * gather(x, load<Ints>(column + i));
    float rest = 0.0f;
    for (; i < end; ++i) rest += value[i] * x[column[i]];
    y[row] = sum(total) + rest;
  }
}

}  // namespace quern::bench::QUERN_NATIVE_VARIANT
