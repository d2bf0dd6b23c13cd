// SPDX-License-Identifier: Apache-2.0
// A bitonic sorting network, alignment by anti-diagonals, transforms of 64 points.
#include "vectors.hpp"

namespace quern::bench::QUERN_NATIVE_VARIANT {
namespace {

template <int J>
inline Ints partner(Ints v) {
#if defined(__AVX512F__)
  if constexpr (J == 8)
    return __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
  if constexpr (J == 4)
    return __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
  if constexpr (J == 2)
    return __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
  if constexpr (J == 1)
    return __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
#else
  if constexpr (J == 4) return __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3);
  if constexpr (J == 2) return __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5);
  if constexpr (J == 1) return __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6);
#endif
}

/// The steps of round K within a vector whose first element is number `at`, from distance J down.
template <int K, int J>
inline Ints within(Ints v, int at) {
  if constexpr (J == 0) {
    return v;
  } else {
    const Ints other = partner<J>(v);
    const Ints up = K < kLanes ? Ints((ramp() & K) == 0) : Ints((at & K) == 0 ? -1 : 0);
    const Ints low = ((ramp() & J) == 0) == up;
    v = low ? __builtin_elementwise_min(v, other) : __builtin_elementwise_max(v, other);
    return within<K, J / 2>(v, at);
  }
}

template <int K>
inline void rounds(int* part) {
  if constexpr (K <= static_cast<int>(kSortBlock)) {
    for (int j = K / 2; j >= kLanes; j /= 2)
      for (int base = 0; base < static_cast<int>(kSortBlock); base += 2 * j)
        for (int i = base; i < base + j; i += kLanes) {
          const Ints a = load<Ints>(part + i), b = load<Ints>(part + i + j);
          const Ints low = __builtin_elementwise_min(a, b), high = __builtin_elementwise_max(a, b);
          const bool up = (i & K) == 0;
          store(part + i, up ? low : high);
          store(part + i + j, up ? high : low);
        }
    for (int i = 0; i < static_cast<int>(kSortBlock); i += kLanes)
      store(part + i, within<K, (K / 2 < kLanes / 2 ? K / 2 : kLanes / 2)>(load<Ints>(part + i), i));
    rounds<2 * K>(part);
  }
}

}  // namespace

void bitonic(Arrays arrays, Part part) {
  const int* in = array<int>(arrays, 0);
  int* out = array<int>(arrays, 1);
  alignas(64) int own[kSortBlock];
  for (std::size_t block = part.begin; block < part.end; ++block) {
    std::memcpy(own, in + block * kSortBlock, sizeof own);
    rounds<2>(own);
    std::memcpy(out + block * kSortBlock, own, sizeof own);
  }
}

// Anti-diagonals of 128 scores of 16 bits. The target is reversed, so that neighbours of a diagonal meet
// neighbours in it; behind its ends are letters that match none.
void smith_waterman(Arrays arrays, Part part) {
  typedef std::int16_t Shorts __attribute__((ext_vector_type(2 * QUERN_LANES)));
  constexpr int kVectors = static_cast<int>(kQuery) / (2 * kLanes), kStep = 2 * kLanes;
  const unsigned char *queries = array<unsigned char>(arrays, 0), *targets = array<unsigned char>(arrays, 1);
  int* best = array<int>(arrays, 2);
  for (std::size_t pair = part.begin; pair < part.end; ++pair) {
    alignas(64) std::int16_t reversed[kTarget + 2 * kQuery], query[kQuery], diagonals[3][kQuery + 1]{};
    for (std::int16_t& letter : reversed) letter = -1;
    for (std::size_t i = 0; i < kTarget; ++i)
      reversed[kQuery + i] = targets[pair * kTarget + kTarget - 1 - i];
    for (std::size_t i = 0; i < kQuery; ++i) query[i] = queries[pair * kQuery + i];
    Shorts most[kVectors]{}, own[kVectors];
    for (int v = 0; v < kVectors; ++v) own[v] = load<Shorts>(query + v * kStep);
    std::int16_t *now = diagonals[0], *before = diagonals[2], *earlier = diagonals[1];
    for (int d = 0; d < static_cast<int>(kTarget + kQuery) - 1; ++d) {
      const std::int16_t* letters = reversed + kQuery + kTarget - 1 - d;
      for (int v = 0; v < kVectors; ++v) {
        const int at = v * kStep;
        const Shorts equal = own[v] == load<Shorts>(letters + at);
        Shorts score = load<Shorts>(earlier + at) + (equal ? static_cast<Shorts>(std::int16_t{kMatch})
                                                           : static_cast<Shorts>(std::int16_t{kMismatch}));
        const Shorts gap =
            __builtin_elementwise_max(load<Shorts>(before + at), load<Shorts>(before + at + 1)) +
            static_cast<Shorts>(std::int16_t{kGap});
        score = __builtin_elementwise_max(__builtin_elementwise_max(score, gap),
                                          static_cast<Shorts>(std::int16_t{0}));
        most[v] = __builtin_elementwise_max(most[v], score);
        store(now + at + 1, score);
      }
      std::int16_t* const oldest = earlier;
      earlier = before;
      before = now;
      now = oldest;
    }
    for (int v = 1; v < kVectors; ++v) most[0] = __builtin_elementwise_max(most[0], most[v]);
    best[pair] = __builtin_reduce_max(most[0]);
  }
}

namespace {

struct Points {
  Floats real[kPoints], imaginary[kPoints];
};

/// One stage of Stockham's transform, radix 4, of kLanes transforms at once. twiddle: pairs of exp(-2 pi i k
/// / 64).
template <int N, int S>
inline void stage(const Points& x, Points& y, const float* twiddle) {
  constexpr int kQuarter = N / 4;
  for (int p = 0; p < kQuarter; ++p) {
    // exp(-2 pi i 32 / 64) is -1: the table has half of the circle.
    const auto cosine = [&](int k) { return k < 32 ? twiddle[2 * k] : -twiddle[2 * (k - 32)]; };
    const auto sine = [&](int k) { return k < 32 ? twiddle[2 * k + 1] : -twiddle[2 * (k - 32) + 1]; };
    const float w1r = cosine(p * S), w1i = sine(p * S), w2r = cosine(2 * p * S), w2i = sine(2 * p * S),
                w3r = cosine(3 * p * S), w3i = sine(3 * p * S);
    for (int q = 0; q < S; ++q) {
      const int i = q + S * p, o = q + S * 4 * p;
      const Floats ar = x.real[i], br = x.real[i + 16], cr = x.real[i + 32], dr = x.real[i + 48];
      const Floats ai = x.imaginary[i], bi = x.imaginary[i + 16], ci = x.imaginary[i + 32],
                   di = x.imaginary[i + 48];
      const Floats acr = ar + cr, aci = ai + ci, amr = ar - cr, ami = ai - ci;
      const Floats bdr = br + dr, bdi = bi + di, jr = di - bi, ji = br - dr;  // j (b - d)
      y.real[o] = acr + bdr;
      y.imaginary[o] = aci + bdi;
      const Floats tr = amr - jr, ti = ami - ji, ur = acr - bdr, ui = aci - bdi, vr = amr + jr, vi = ami + ji;
      y.real[o + S] = tr * w1r - ti * w1i;
      y.imaginary[o + S] = tr * w1i + ti * w1r;
      y.real[o + 2 * S] = ur * w2r - ui * w2i;
      y.imaginary[o + 2 * S] = ur * w2i + ui * w2r;
      y.real[o + 3 * S] = vr * w3r - vi * w3i;
      y.imaginary[o + 3 * S] = vr * w3i + vi * w3r;
    }
  }
}

}  // namespace

void fft64(Arrays arrays, Part part) {
  const float *in = array<float>(arrays, 0), *twiddle = array<float>(arrays, 1);
  float* out = array<float>(arrays, 2);
  constexpr std::size_t kFloats = 2 * kPoints;
  for (std::size_t first = part.begin * 16; first < part.end * 16; first += kLanes) {
    Points x, y;
    for (std::size_t c = 0; c < kFloats; c += kLanes) {
      Floats rows[kLanes];
      for (std::size_t r = 0; r < kLanes; ++r) rows[r] = load<Floats>(in + (first + r) * kFloats + c);
      transpose_square(rows);
      for (std::size_t r = 0; r < kLanes; ++r) (r % 2 == 0 ? x.real : x.imaginary)[(c + r) / 2] = rows[r];
    }
    stage<64, 1>(x, y, twiddle);
    stage<16, 4>(y, x, twiddle);
    stage<4, 16>(x, y, twiddle);
    for (std::size_t c = 0; c < kFloats; c += kLanes) {
      Floats rows[kLanes];
      for (std::size_t r = 0; r < kLanes; ++r) rows[r] = (r % 2 == 0 ? y.real : y.imaginary)[(c + r) / 2];
      transpose_square(rows);
      for (std::size_t r = 0; r < kLanes; ++r) stream<Floats>(out + (first + r) * kFloats + c, rows[r]);
    }
  }
  _mm_sfence();
}

}  // namespace quern::bench::QUERN_NATIVE_VARIANT
