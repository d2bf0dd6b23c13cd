// SPDX-License-Identifier: Apache-2.0
// An image made smaller: first down, into a strip that stays in the first cache, then across. Two ways: in
// f32, and in 16-bit integers of 1/128, whose weights have 15 bits.
#include <algorithm>
#include <cmath>
#include <vector>

#include "sizes_third.hpp"
#include "vectors.hpp"

namespace quern::bench::QUERN_NATIVE_VARIANT {
namespace {

typedef std::uint8_t Flags __attribute__((ext_vector_type(QUERN_LANES)));

/// A new pixel lies between an old one and the next.
struct Place {
  std::size_t first;
  float weight;
  Place(std::size_t i, std::size_t count) {
    const float at = std::fmax((static_cast<float>(i) + 0.5f) * kPhotoStep - 0.5f, 0.0f);
    first = std::min(static_cast<std::size_t>(at), count - 1);
    weight = at - static_cast<float>(first);
  }
};

/// The weights of a row of new pixels, one for each channel of each, and the old pixels to their left.
template <class Value>
struct Row {
  std::vector<std::uint32_t> left;
  std::vector<Value> weight;
  explicit Row(float one) {
    for (std::size_t x = 0; x < kSmallWidth; ++x) {
      const Place place(x, kPhotoWidth);
      left.push_back(static_cast<std::uint32_t>(place.first));
      for (int c = 0; c < 4; ++c) weight.push_back(static_cast<Value>(place.weight * one));
    }
  }
};

struct InFloats {
  using Value = float;
  static constexpr float kOne = 1;

  static void down(const std::uint8_t* top, const std::uint8_t* bottom, float weight, std::size_t count,
                   float* mixed) {
    for (std::size_t i = 0; i < count; i += kLanes) {
      const Floats a = __builtin_convertvector(__builtin_convertvector(load<Flags>(top + i), Ints), Floats);
      const Floats b =
          __builtin_convertvector(__builtin_convertvector(load<Flags>(bottom + i), Ints), Floats);
      store<Floats>(mixed + i, a + weight * (b - a));
    }
  }

#if defined(__AVX512F__)
  /// Sixteen pixels, four at a time.
  static void across(const float* mixed, const std::uint32_t* left, const float* weight, std::uint8_t* to) {
    const auto two = [&](int i) {
      return _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps(mixed + 4 * left[i])),
                                _mm256_loadu_ps(mixed + 4 * left[i + 1]), 1);
    };
    for (int i = 0; i < 16; i += 4) {
      const __m512 p = two(i), q = two(i + 2);
      const __m512 a = _mm512_shuffle_f32x4(p, q, 0x88), b = _mm512_shuffle_f32x4(p, q, 0xdd);
      const __m512 sum = _mm512_fmadd_ps(_mm512_loadu_ps(weight + 4 * i), _mm512_sub_ps(b, a),
                                         _mm512_add_ps(a, _mm512_set1_ps(0.5f)));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 4 * i),
                       _mm512_cvtepi32_epi8(_mm512_cvttps_epi32(sum)));
    }
  }
#else
  static void across(const float* mixed, const std::uint32_t* left, const float* weight, std::uint8_t* to) {
    for (int i = 0; i < 64; ++i) {
      const float* pixel = mixed + 4 * left[i / 4] + i % 4;
      to[i] = static_cast<std::uint8_t>(pixel[0] + weight[i] * (pixel[4] - pixel[0]) + 0.5f);
    }
  }
#endif
};

struct InShorts {
  using Value = std::int16_t;
  static constexpr float kOne = 32768;  ///< a weight is less

#if defined(__AVX512BW__)
  static __m512i mix(__m512i a, __m512i b, __m512i weight) {
    return _mm512_add_epi16(a, _mm512_mulhrs_epi16(_mm512_sub_epi16(b, a), weight));
  }
  static void down(const std::uint8_t* top, const std::uint8_t* bottom, float weight, std::size_t count,
                   std::int16_t* mixed) {
    const __m512i weights = _mm512_set1_epi16(static_cast<std::int16_t>(weight * 32768));
    const auto wide = [](const std::uint8_t* from) {
      const __m256i line = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
      return _mm512_slli_epi16(_mm512_cvtepu8_epi16(line), 7);
    };
    for (std::size_t i = 0; i < count; i += 32)
      _mm512_storeu_si512(mixed + i, mix(wide(top + i), wide(bottom + i), weights));
  }
  /// Eight pixels at a time: quarter i / 2 of two vectors holds pixels i and i + 1, each with the next one.
  static void across(const std::int16_t* mixed, const std::uint32_t* left, const std::int16_t* weight,
                     std::uint8_t* to) {
    const auto pair = [&](int i) {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(mixed + 4 * left[i]));
    };
    const auto four = [&](int i) {
      __m512i v = _mm512_castsi128_si512(pair(i));
      v = _mm512_inserti32x4(v, pair(i + 2), 1);
      v = _mm512_inserti32x4(v, pair(i + 4), 2);
      return _mm512_inserti32x4(v, pair(i + 6), 3);
    };
    for (int i = 0; i < 16; i += 8) {
      const __m512i even = four(i), odd = four(i + 1);
      const __m512i sum = mix(_mm512_unpacklo_epi64(even, odd), _mm512_unpackhi_epi64(even, odd),
                              _mm512_loadu_si512(weight + 4 * i));
      const __m512i whole = _mm512_srli_epi16(_mm512_add_epi16(sum, _mm512_set1_epi16(64)), 7);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 4 * i), _mm512_cvtepi16_epi8(whole));
    }
  }
#else
  static int mix(int a, int b, int weight) { return a + (((b - a) * weight + (1 << 14)) >> 15); }
  static void down(const std::uint8_t* top, const std::uint8_t* bottom, float weight, std::size_t count,
                   std::int16_t* mixed) {
    const auto whole = static_cast<std::int16_t>(weight * 32768);
    for (std::size_t i = 0; i < count; ++i)
      mixed[i] = static_cast<std::int16_t>(mix(top[i] << 7, bottom[i] << 7, whole));
  }
  static void across(const std::int16_t* mixed, const std::uint32_t* left, const std::int16_t* weight,
                     std::uint8_t* to) {
    for (int i = 0; i < 64; ++i) {
      const std::int16_t* pixel = mixed + 4 * left[i / 4] + i % 4;
      to[i] = static_cast<std::uint8_t>((mix(pixel[0], pixel[4], weight[i]) + 64) >> 7);
    }
  }
#endif
};

template <class In>
void resize_rows(Arrays arrays, Part part) {
  const std::uint8_t* in = array<std::uint8_t>(arrays, 0);
  std::uint8_t* out = array<std::uint8_t>(arrays, 1);
  constexpr std::size_t kStrip = 256, kChannels = 4, kSlack = 32;
  static_assert(kSmallWidth % kStrip == 0 && kPhotoStep < 1.9f);
  const Row<typename In::Value> row(In::kOne);
  alignas(64) typename In::Value mixed[kChannels * 2 * kStrip + kSlack];
  alignas(64) std::uint8_t line[64];
  for (std::size_t y = part.begin; y < part.end; ++y) {
    const Place place(y, kPhotoHeight);
    const std::uint8_t* top = in + place.first * kPhotoWidth * kChannels;
    const std::uint8_t* bottom = in + std::min(place.first + 1, kPhotoHeight - 1) * kPhotoWidth * kChannels;
    for (std::size_t x0 = 0; x0 < kSmallWidth; x0 += kStrip) {
      // From a whole vector's beginning to a whole vector's end; the last pixel of a row has itself to its
      // right.
      const std::size_t first = row.left[x0] / 8 * 8;
      const std::size_t end = std::min((row.left[x0 + kStrip - 1] + std::size_t{9}) / 8 * 8, kPhotoWidth);
      In::down(top + first * kChannels, bottom + first * kChannels, place.weight, (end - first) * kChannels,
               mixed);
      for (std::size_t c = 0; c < kChannels; ++c)
        if (end == kPhotoWidth)
          mixed[(end - first) * kChannels + c] = mixed[(end - 1 - first) * kChannels + c];
      for (std::size_t x = x0; x < x0 + kStrip; x += 16) {
        In::across(mixed - first * kChannels, &row.left[x], &row.weight[x * kChannels], line);
        for (std::size_t i = 0; i < 64; i += sizeof(Ints))
          stream<Ints>(out + (y * kSmallWidth + x) * kChannels + i, load<Ints>(line + i));
      }
    }
  }
  _mm_sfence();
}

}  // namespace

void resize(Arrays arrays, Part part) { resize_rows<InFloats>(arrays, part); }
void resize_shorts(Arrays arrays, Part part) { resize_rows<InShorts>(arrays, part); }

}  // namespace quern::bench::QUERN_NATIVE_VARIANT
