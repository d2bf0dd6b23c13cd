// SPDX-License-Identifier: Apache-2.0
// Small systems in f64, eight or four at a time; a product of int8 matrices; vertices moved by bones.
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "sizes_third.hpp"
#include "vectors.hpp"

namespace quern::bench::QUERN_NATIVE_VARIANT {
namespace {

constexpr std::size_t kDoubles = QUERN_LANES / 2;
typedef double Doubles __attribute__((ext_vector_type(QUERN_LANES / 2)));

/// Systems in strips of vectors; the strip's coefficients stay in the second cache between the two sweeps.
template <std::size_t kVectors>
void thomas_strips(Arrays arrays, Part part) {
  const double *lower = array<double>(arrays, 0), *diagonal = array<double>(arrays, 1),
               *upper = array<double>(arrays, 2), *right = array<double>(arrays, 3);
  double* x = array<double>(arrays, 5);
  constexpr std::size_t kStrip = kVectors * kDoubles, kAhead = 4;
  struct Coefficients {
    Doubles c[kVectors], d[kVectors];
  };
  const auto rows = std::make_unique<Coefficients[]>(kUnknowns);
  for (std::size_t s = part.begin * 256; s < part.end * 256; s += kStrip) {
    Coefficients before{};
    for (std::size_t k = 0; k < kUnknowns; ++k) {
      for (std::size_t v = 0; v < kVectors; ++v) {
        const std::size_t i = k * kSystems + s + v * kDoubles, ahead = i + kAhead * kSystems;
        if (k + kAhead < kUnknowns)
          for (const double* from : {lower, diagonal, upper, right}) _mm_prefetch(from + ahead, _MM_HINT_T0);
        const Doubles a = k == 0 ? Doubles(0.0) : load<Doubles>(lower + i);
        const Doubles inverse = 1.0 / (load<Doubles>(diagonal + i) - a * before.c[v]);
        before.c[v] = load<Doubles>(upper + i) * inverse;
        before.d[v] = (load<Doubles>(right + i) - a * before.d[v]) * inverse;
      }
      rows[k] = before;
    }
    for (std::size_t k = kUnknowns; k-- > 0;)
      for (std::size_t v = 0; v < kVectors; ++v) {
        const Doubles c = k == kUnknowns - 1 ? Doubles(0.0) : rows[k].c[v];
        before.d[v] = rows[k].d[v] - c * before.d[v];
        stream<Doubles>(x + k * kSystems + s + v * kDoubles, before.d[v]);
      }
  }
  _mm_sfence();
}

/// Transposes a square of kDoubles x kDoubles, as transpose_square does.
inline void transpose_doubles(Doubles* rows) {
  Doubles next[kDoubles];
  for (std::size_t round = 1; round < kDoubles; round *= 2) {
    for (std::size_t i = 0; i < kDoubles / 2; ++i) {
      const Doubles a = rows[i], b = rows[i + kDoubles / 2];
#if defined(__AVX512F__)
      next[2 * i] = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
      next[2 * i + 1] = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
#else
      next[2 * i] = __builtin_shufflevector(a, b, 0, 4, 1, 5);
      next[2 * i + 1] = __builtin_shufflevector(a, b, 2, 6, 3, 7);
#endif
    }
    for (std::size_t i = 0; i < kDoubles; ++i) rows[i] = next[i];
  }
}

/// Element (r, c) of kDoubles matrices is one vector, elements[r][c].
using Elements = Doubles[kFactorSide][kFactorSide];

/// Column c from the columns before it, with the sums of all its rows in registers.
template <std::size_t c>
inline void factor_column(Elements& l) {
  constexpr std::size_t kRows = kFactorSide - c;
  Doubles rest[kRows];
#pragma clang loop unroll(full)
  for (std::size_t r = 0; r < kRows; ++r) rest[r] = l[c + r][c];
#pragma clang loop unroll(disable)
  for (std::size_t k = 0; k < c; ++k)
#pragma clang loop unroll(full)
    for (std::size_t r = 0; r < kRows; ++r) rest[r] -= l[c + r][k] * l[c][k];
  const Doubles pivot = __builtin_elementwise_sqrt(rest[0]), inverse = 1.0 / pivot;
  l[c][c] = pivot;
#pragma clang loop unroll(full)
  for (std::size_t r = 1; r < kRows; ++r) l[c + r][c] = rest[r] * inverse;
}

template <std::size_t... columns>
inline void factor(Elements& l, std::index_sequence<columns...>) {
  (factor_column<columns>(l), ...);
}

template <bool kPast>
void cholesky_groups(Arrays arrays, Part part) {
  const double* in = array<double>(arrays, 0);
  double* out = array<double>(arrays, 1);
  constexpr std::size_t kMatrixSize = kFactorSide * kFactorSide;
  Elements l;
  Doubles square[kDoubles];
  for (std::size_t m = part.begin * 8; m < part.end * 8; m += kDoubles) {
    for (std::size_t r = 0; r < kFactorSide; ++r)
      for (std::size_t c = 0; c <= r; c += kDoubles) {
        for (std::size_t i = 0; i < kDoubles; ++i)
          square[i] = load<Doubles>(in + (m + i) * kMatrixSize + r * kFactorSide + c);
        transpose_doubles(square);
        for (std::size_t i = 0; i < kDoubles; ++i) l[r][c + i] = square[i];
      }
    factor(l, std::make_index_sequence<kFactorSide>());
    for (std::size_t r = 0; r < kFactorSide; ++r)
      for (std::size_t c = 0; c < kFactorSide; c += kDoubles) {
        for (std::size_t i = 0; i < kDoubles; ++i) square[i] = c + i <= r ? l[r][c + i] : Doubles(0.0);
        if (c <= r) transpose_doubles(square);
        for (std::size_t i = 0; i < kDoubles; ++i) {
          double* to = out + (m + i) * kMatrixSize + r * kFactorSide + c;
          if constexpr (kPast)
            stream<Doubles>(to, square[i]);
          else
            store<Doubles>(to, square[i]);
        }
      }
  }
  _mm_sfence();
}

}  // namespace

void thomas(Arrays arrays, Part part) { thomas_strips<8>(arrays, part); }
void thomas_wide(Arrays arrays, Part part) { thomas_strips<32>(arrays, part); }

void cholesky(Arrays arrays, Part part) { cholesky_groups<true>(arrays, part); }
void cholesky_stored(Arrays arrays, Part part) { cholesky_groups<false>(arrays, part); }

#if defined(__AVX512VNNI__)
// Register blocks of 8 rows by 32 columns over packed panels of b. The instruction multiplies unsigned bytes
// with signed ones: 128 is added to those of b, and 128 times the sum of a row of a taken away.
void gemm_int8(Arrays arrays, Part part) {
  constexpr std::size_t kWords = kInt8Side / 4, kRows = 8;
  const int *a = array<int>(arrays, 0), *b = array<int>(arrays, 1);
  int* c = array<int>(arrays, 2);
  std::vector<int> excess(kInt8Side);
  for (std::size_t row = 0; row < kInt8Side; ++row) {
    __m512i sum = _mm512_setzero_si512();
    for (std::size_t w = 0; w < kWords; w += 16)
      sum = _mm512_dpbusd_epi32(sum, _mm512_set1_epi8(1), _mm512_loadu_si512(a + row * kWords + w));
    excess[row] = 128 * _mm512_reduce_add_epi32(sum);
  }
  std::vector<Words> panel(kWords * 2);
  for (std::size_t column = part.begin * 32; column < part.end * 32; column += 32) {
    for (std::size_t half = 0; half < 2; ++half)
      for (std::size_t w = 0; w < kWords; w += 16) {
        Words square[16];
        for (std::size_t i = 0; i < 16; ++i)
          square[i] = load<Words>(b + (column + half * 16 + i) * kWords + w);
        transpose_square(square);
        for (std::size_t i = 0; i < 16; ++i) panel[(w + i) * 2 + half] = square[i] ^ 0x80808080u;
      }
    for (std::size_t row = 0; row < kInt8Side; row += kRows) {
      __m512i total[kRows][2];
      for (std::size_t r = 0; r < kRows; ++r) total[r][0] = total[r][1] = _mm512_set1_epi32(-excess[row + r]);
      for (std::size_t w = 0; w < kWords; ++w) {
        const __m512i b0 = (__m512i)panel[w * 2], b1 = (__m512i)panel[w * 2 + 1];
#pragma clang loop unroll(full)
        for (std::size_t r = 0; r < kRows; ++r) {
          const __m512i four = _mm512_set1_epi32(a[(row + r) * kWords + w]);
          total[r][0] = _mm512_dpbusd_epi32(total[r][0], b0, four);
          total[r][1] = _mm512_dpbusd_epi32(total[r][1], b1, four);
        }
      }
      for (std::size_t r = 0; r < kRows; ++r) {
        _mm512_storeu_si512(c + (row + r) * kInt8Side + column, total[r][0]);
        _mm512_storeu_si512(c + (row + r) * kInt8Side + column + 16, total[r][1]);
      }
    }
  }
}
#else
void gemm_int8(Arrays arrays, Part part) {
  const std::int8_t *a = array<std::int8_t>(arrays, 0), *b = array<std::int8_t>(arrays, 1);
  int* c = array<int>(arrays, 2);
  for (std::size_t column = part.begin * 32; column < part.end * 32; ++column)
    for (std::size_t row = 0; row < kInt8Side; ++row) {
      int sum = 0;
      for (std::size_t k = 0; k < kInt8Side; ++k) sum += a[row * kInt8Side + k] * b[column * kInt8Side + k];
      c[row * kInt8Side + column] = sum;
    }
}
#endif

#if defined(__AVX512F__)
namespace {

/// The sums of the four quarters of each of four vectors.
inline __m512 quarter_sums(const __m512* v) {
  const auto halves = [](__m512 a, __m512 b) {
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
  };
  const __m512 first = halves(v[0], v[1]), second = halves(v[2], v[3]);
  return _mm512_add_ps(_mm512_shuffle_f32x4(first, second, 0x88), _mm512_shuffle_f32x4(first, second, 0xdd));
}

/// Four float4 divided by their lengths; their last parts are 0.
inline __m512 normalised(__m512 v) {
  __m512 squared = _mm512_mul_ps(v, v);
  squared = _mm512_add_ps(squared, _mm512_permute_ps(squared, 0xb1));
  squared = _mm512_add_ps(squared, _mm512_permute_ps(squared, 0x4e));
  const __m512 near = _mm512_rsqrt14_ps(squared);  // and a step of Newton's
  const __m512 half = _mm512_mul_ps(_mm512_set1_ps(0.5f), _mm512_mul_ps(squared, near));
  const __m512 inverse = _mm512_mul_ps(near, _mm512_fnmadd_ps(half, near, _mm512_set1_ps(1.5f)));
  return _mm512_mul_ps(v, inverse);
}

}  // namespace

// A bone's matrix is one vector of four columns; four vertices fill a line of each result.
void skin(Arrays arrays, Part part) {
  const float *positions = array<float>(arrays, 0), *normals = array<float>(arrays, 1),
              *weights = array<float>(arrays, 3), *palette = array<float>(arrays, 4);
  const std::uint32_t* bones = array<std::uint32_t>(arrays, 2);
  float *new_positions = array<float>(arrays, 5), *new_normals = array<float>(arrays, 6);
  alignas(64) float columns[kBones][16]{};
  for (std::size_t b = 0; b < kBones; ++b)
    for (std::size_t r = 0; r < 3; ++r)
      for (std::size_t c = 0; c < 4; ++c) columns[b][4 * c + r] = palette[12 * b + 4 * r + c];
  const __m512i spread = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
  const __m512 one = _mm512_set1_ps(1.0f);
  const auto spread_of = [&](const float* four) {
    return _mm512_permutexvar_ps(spread, _mm512_castps128_ps512(_mm_loadu_ps(four)));
  };
  for (std::size_t first = part.begin * 1024; first < part.end * 1024; first += 4) {
    __m512 position[4], normal[4];
#pragma clang loop unroll(full)
    for (std::size_t k = 0; k < 4; ++k) {
      const std::size_t i = first + k;
      const std::uint32_t bone = bones[i];
      const auto part_of = [&](std::size_t n) { return _mm512_set1_ps(weights[4 * i + n]); };
      __m512 matrix = _mm512_mul_ps(part_of(0), _mm512_load_ps(columns[bone & 255]));
      matrix = _mm512_fmadd_ps(part_of(1), _mm512_load_ps(columns[bone >> 8 & 255]), matrix);
      matrix = _mm512_fmadd_ps(part_of(2), _mm512_load_ps(columns[bone >> 16 & 255]), matrix);
      matrix = _mm512_fmadd_ps(part_of(3), _mm512_load_ps(columns[bone >> 24]), matrix);
      position[k] = _mm512_mul_ps(matrix, _mm512_mask_blend_ps(0xf000, spread_of(positions + 4 * i), one));
      normal[k] = _mm512_maskz_mul_ps(0x0fff, matrix, spread_of(normals + 4 * i));
    }
    _mm512_stream_ps(new_positions + 4 * first, _mm512_mask_blend_ps(0x8888, quarter_sums(position), one));
    _mm512_stream_ps(new_normals + 4 * first, normalised(quarter_sums(normal)));
  }
  _mm_sfence();
}
#else
void skin(Arrays arrays, Part part) {
  typedef float Four __attribute__((ext_vector_type(4)));
  const Four *positions = array<Four>(arrays, 0), *normals = array<Four>(arrays, 1),
             *weights = array<Four>(arrays, 3);
  const std::uint8_t* bones = array<std::uint8_t>(arrays, 2);
  const float* palette = array<float>(arrays, 4);
  Four *new_positions = array<Four>(arrays, 5), *new_normals = array<Four>(arrays, 6);
  Four columns[kBones][4]{};
  for (std::size_t b = 0; b < kBones; ++b)
    for (int r = 0; r < 3; ++r)
      for (int c = 0; c < 4; ++c) columns[b][c][r] = palette[12 * b + static_cast<std::size_t>(4 * r + c)];
  for (std::size_t i = part.begin * 1024; i < part.end * 1024; ++i) {
    Four matrix[4]{};
    for (int n = 0; n < 4; ++n)
      for (int c = 0; c < 4; ++c)
        matrix[c] += weights[i][n] * columns[bones[4 * i + static_cast<std::size_t>(n)]][c];
    const Four p = positions[i], n = normals[i];
    Four moved = matrix[0] * p.x + matrix[1] * p.y + matrix[2] * p.z + matrix[3];
    moved.w = 1;
    const Four turned = matrix[0] * n.x + matrix[1] * n.y + matrix[2] * n.z;
    new_positions[i] = moved;
    new_normals[i] = turned / std::sqrt(turned.x * turned.x + turned.y * turned.y + turned.z * turned.z);
  }
}
#endif

}  // namespace quern::bench::QUERN_NATIVE_VARIANT
