// SPDX-License-Identifier: Apache-2.0
// A lattice Boltzmann step, marching rays, the Game of Life.
#include "sizes_third.hpp"
#include "vectors.hpp"

namespace quern::bench::QUERN_NATIVE_VARIANT {
namespace {

typedef std::uint8_t Cells __attribute__((ext_vector_type(4 * QUERN_LANES)));
typedef std::uint8_t Flags __attribute__((ext_vector_type(QUERN_LANES)));

inline Floats larger(Floats a, Floats b) { return a > b ? a : b; }
inline Floats smaller(Floats a, Floats b) { return a < b ? a : b; }

/// The vector that begins at x + by of a row that wraps round.
inline Floats wrapped(const float* row, std::size_t x, int by) {
  if ((x == 0 && by < 0) || (x == kLatticeWidth - kLanes && by > 0)) {
    float ends[2 * kLanes];
    std::memcpy(ends, row + kLatticeWidth - kLanes, sizeof ends / 2);
    std::memcpy(ends + kLanes, row, sizeof ends / 2);
    return load<Floats>(ends + (by < 0 ? kLanes - 1 : 1));
  }
  return load<Floats>(row + x + by);
}

inline void relax(const Floats* p, Floats* result) {
  const Floats rho = p[0] + ((p[1] + p[2]) + (p[3] + p[4])) + ((p[5] + p[6]) + (p[7] + p[8]));
  const Floats inverse = 1.0f / rho;
  const Floats ux = ((p[1] - p[3]) + (p[5] - p[7]) + (p[8] - p[6])) * inverse;
  const Floats uy = ((p[2] - p[4]) + (p[5] - p[7]) + (p[6] - p[8])) * inverse;
  const Floats square = 1.0f - 1.5f * (ux * ux + uy * uy);
#pragma clang loop unroll(full)
  for (int k = 0; k < 9; ++k) {
    const Floats along =
        3.0f * (static_cast<float>(kDirectionX[k]) * ux + static_cast<float>(kDirectionY[k]) * uy);
    const Floats equilibrium = kDirectionWeight[k] * kOmega * rho * (square + along * (1.0f + 0.5f * along));
    result[k] = (1.0f - kOmega) * p[k] + equilibrium;
  }
}

template <bool kPast>
void lbm_rows(Arrays arrays, Part part) {
  const float* f = array<float>(arrays, 0);
  const std::uint8_t* solid = array<std::uint8_t>(arrays, 1);
  float* g = array<float>(arrays, 2);
  for (std::size_t y = part.begin; y < part.end; ++y) {
    const float* rows[9];
    for (std::size_t k = 0; k < 9; ++k) {
      const std::size_t from =
          y + kLatticeHeight - static_cast<std::size_t>(static_cast<std::ptrdiff_t>(kDirectionY[k]));
      rows[k] = f + k * kCells + from % kLatticeHeight * kLatticeWidth;
    }
    for (std::size_t x = 0; x < kLatticeWidth; x += kLanes) {
      Floats p[9], relaxed[9];
#pragma clang loop unroll(full)
      for (int k = 0; k < 9; ++k) p[k] = wrapped(rows[k], x, -kDirectionX[k]);
      relax(p, relaxed);
      const Ints wall = __builtin_convertvector(load<Flags>(solid + y * kLatticeWidth + x), Ints) != 0;
#pragma clang loop unroll(full)
      for (int k = 0; k < 9; ++k)
        put<kPast>(g + static_cast<std::size_t>(k) * kCells + y * kLatticeWidth + x,
                   wall ? p[kBack[k]] : relaxed[k]);
    }
  }
  _mm_sfence();
}

struct Exact {
  static Floats root(Floats x) { return __builtin_elementwise_sqrt(x); }
};
/// An estimate and a step of Newton's: an error of some units in the last place.
struct Newton {
  static Floats root(Floats x) {
#if defined(__AVX512F__)
    x = larger(x, Floats(1e-30f));
    const Floats near = _mm512_rsqrt14_ps(x), product = x * near;
    return product + 0.5f * product * (1.0f - product * near);
#else
    return __builtin_elementwise_sqrt(x);
#endif
  }
};

template <class Root>
inline Floats scene(Floats x, Floats y, Floats z) {
  const auto length = [](Floats a, Floats b, Floats c) { return Root::root(a * a + b * b + c * c); };
  const auto length_of_two = [](Floats a, Floats b) { return Root::root(a * a + b * b); };
  const Floats zero = 0.0f;
  const Floats ball = length(x + 0.9f, y, z + 0.3f) - 0.7f;
  const Floats ring = length_of_two(length_of_two(x - 0.5f, z) - 0.8f, y + 0.1f) - 0.25f;
  const Floats h = larger(0.3f - __builtin_elementwise_abs(ball - ring), zero) * (1.0f / 0.3f);
  const Floats round = smaller(ball, ring) - h * h * (0.3f * 0.25f);
  const Floats qx = __builtin_elementwise_abs(x - 0.2f) - 0.35f,
               qy = __builtin_elementwise_abs(y - 0.9f) - 0.35f,
               qz = __builtin_elementwise_abs(z - 0.6f) - 0.35f;
  const Floats box = length(larger(qx, zero), larger(qy, zero), larger(qz, zero)) +
                     smaller(larger(qx, larger(qy, qz)), zero);
  return smaller(smaller(round, box), y + 1.0f);
}

inline bool any(Ints mask) {
#if defined(__AVX512F__)
  return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask) != 0;
#else
  return _mm256_movemask_ps((__m256)mask) != 0;
#endif
}

/// Rays in vectors side by side, until all have ended.
template <class Root, int kVectors>
void march_rows(Arrays arrays, Part part) {
  float* distance = array<float>(arrays, 0);
  int* steps = array<int>(arrays, 1);
  constexpr float kScale = 2.0f / kViewHeight;
  for (std::size_t row = part.begin; row < part.end; ++row)
    for (std::size_t first = 0; first < kViewWidth; first += kVectors * kLanes) {
      Floats dx[kVectors], dy[kVectors], dz[kVectors], t[kVectors]{}, hit[kVectors];
      Ints step[kVectors], active[kVectors], some = -1;
      for (int v = 0; v < kVectors; ++v) {
        const Ints column = ramp() + static_cast<int>(first) + v * kLanes;
        const Floats x = (__builtin_convertvector(column, Floats) + (0.5f - 0.5f * kViewWidth)) * kScale;
        const float y = (0.5f * kViewHeight - static_cast<float>(row) - 0.5f) * kScale;
        const Floats inverse = 1.0f / __builtin_elementwise_sqrt(x * x + y * y + 1.8f * 1.8f);
        dx[v] = x * inverse, dy[v] = y * inverse, dz[v] = 1.8f * inverse;
        hit[v] = -1.0f, step[v] = kMarchSteps, active[v] = -1;
      }
      for (int s = 0; s < kMarchSteps && any(some); ++s) {
        some = 0;
#pragma clang loop unroll(full)
        for (int v = 0; v < kVectors; ++v) {
          const Floats d = scene<Root>(dx[v] * t[v], 0.4f + dy[v] * t[v], dz[v] * t[v] - 4.0f);
          const Ints there = active[v] & (d < kNear * t[v]);
          hit[v] = there ? t[v] : hit[v];
          t[v] += d;
          const Ints ends = there | (active[v] & (t[v] > kFar));
          step[v] = ends ? Ints(s) : step[v];
          active[v] &= ~ends;
          some |= active[v];
        }
      }
      for (int v = 0; v < kVectors; ++v) {
        const std::size_t to = row * kViewWidth + first + static_cast<std::size_t>(v * kLanes);
        store<Floats>(distance + to, hit[v]);
        store<Ints>(steps + to, step[v]);
      }
    }
}

/// Adds the three rows of each column, then the sums of three columns.
template <bool kPast>
void life_rows(Arrays arrays, Part part) {
  const std::uint8_t* world = array<std::uint8_t>(arrays, 0);
  std::uint8_t* out = array<std::uint8_t>(arrays, 1);
  constexpr std::size_t kStep = sizeof(Cells);
  alignas(64) std::uint8_t buffer[kWorld + 128];
  std::uint8_t* sums = buffer + 64;
  for (std::size_t y = part.begin; y < part.end; ++y) {
    const std::uint8_t *own = world + y * kWorld, *above = world + (y + kWorld - 1) % kWorld * kWorld,
                       *below = world + (y + 1) % kWorld * kWorld;
    for (std::size_t x = 0; x < kWorld; x += kStep)
      store<Cells>(sums + x, load<Cells>(own + x) + load<Cells>(above + x) + load<Cells>(below + x));
    sums[-1] = sums[kWorld - 1];
    sums[kWorld] = sums[0];
    for (std::size_t x = 0; x < kWorld; x += kStep) {
      const Cells all = load<Cells>(sums + x - 1) + load<Cells>(sums + x) + load<Cells>(sums + x + 1);
      const Cells lives = (Cells)(all == 3) | ((Cells)(all == 4) & load<Cells>(own + x));
      put<kPast>(out + y * kWorld + x, lives & 1);
    }
  }
  _mm_sfence();
}

}  // namespace

void lbm(Arrays arrays, Part part) { lbm_rows<true>(arrays, part); }
void lbm_stored(Arrays arrays, Part part) { lbm_rows<false>(arrays, part); }

void march(Arrays arrays, Part part) { march_rows<Exact, 1>(arrays, part); }
void march_two(Arrays arrays, Part part) { march_rows<Newton, 2>(arrays, part); }
void march_newton(Arrays arrays, Part part) { march_rows<Newton, 1>(arrays, part); }

void life(Arrays arrays, Part part) { life_rows<true>(arrays, part); }
void life_stored(Arrays arrays, Part part) { life_rows<false>(arrays, part); }

}  // namespace quern::bench::QUERN_NATIVE_VARIANT
