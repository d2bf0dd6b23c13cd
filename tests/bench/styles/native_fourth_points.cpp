// SPDX-License-Identifier: Apache-2.0
// The density of a fluid of particles, the nearest station on the globe.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "sizes_fourth.hpp"
#include "vectors.hpp"

namespace quern::bench::QUERN_NATIVE_VARIANT {
namespace {

typedef double Doubles __attribute__((ext_vector_type(QUERN_LANES / 2)));
typedef std::int64_t Longs __attribute__((ext_vector_type(QUERN_LANES / 2)));
constexpr std::size_t kWide = QUERN_LANES / 2;

#if defined(__AVX512F__)
extern "C" __m512d _ZGVeN8v_asin(__m512d);
inline Doubles arc_sine(Doubles x) { return _ZGVeN8v_asin(x); }
#else
extern "C" __m256d _ZGVdN4v_asin(__m256d);
inline Doubles arc_sine(Doubles x) { return _ZGVdN4v_asin(x); }
#endif

}  // namespace

// Three cells in a row along x are one run of particles. Whatever the last vector of a run has beyond its end
// is too far away to count.
void density(Arrays arrays, Part part) {
  constexpr std::size_t kLayer = kFluidSide * kFluidSide;
  const float* pos = array<float>(arrays, 0);
  const int* start = array<int>(arrays, 1);
  float* rho = array<float>(arrays, 2);
  const std::size_t low = part.begin == 0 ? 0 : part.begin - 1, high = std::min(part.end + 1, kFluidSide);
  const auto begin = static_cast<std::size_t>(start[low * kLayer]),
             end = static_cast<std::size_t>(start[high * kLayer]);
  std::vector<float> parts[3];
  for (std::size_t d = 0; d < 3; ++d) {
    parts[d].assign(end - begin + kLanes, 1e6f);
    for (std::size_t i = begin; i < end; ++i) parts[d][i - begin] = pos[3 * i + d];
  }
  const float *px = parts[0].data(), *py = parts[1].data(), *pz = parts[2].data();
  const auto first_of = [&](std::size_t cell) { return static_cast<std::size_t>(start[cell]) - begin; };
  const double reach = static_cast<double>(kReach);
  const auto factor =
      static_cast<float>(static_cast<double>(kMass) * 315.0 / (64.0 * std::numbers::pi * std::pow(reach, 9)));
  for (std::size_t cz = part.begin; cz < part.end; ++cz)
    for (std::size_t cy = 0; cy < kFluidSide; ++cy)
      for (std::size_t cx = 0; cx < kFluidSide; ++cx) {
        std::size_t from[9], to[9], runs = 0;
        for (std::size_t z = cz == 0 ? 0 : cz - 1; z < std::min(cz + 2, kFluidSide); ++z)
          for (std::size_t y = cy == 0 ? 0 : cy - 1; y < std::min(cy + 2, kFluidSide); ++y) {
            const std::size_t row = (z * kFluidSide + y) * kFluidSide;
            from[runs] = first_of(row + (cx == 0 ? 0 : cx - 1));
            to[runs++] = first_of(row + std::min(cx + 2, kFluidSide));
          }
        const std::size_t cell = (cz * kFluidSide + cy) * kFluidSide + cx;
        for (std::size_t i = first_of(cell); i < first_of(cell + 1); ++i) {
          const float xi = px[i], yi = py[i], zi = pz[i];
          Floats total = 0.0f;
          for (std::size_t run = 0; run < runs; ++run)
            for (std::size_t j = from[run]; j < to[run]; j += kLanes) {
              const Floats dx = load<Floats>(px + j) - xi, dy = load<Floats>(py + j) - yi,
                           dz = load<Floats>(pz + j) - zi;
              const Floats d =
                  __builtin_elementwise_max(kReach * kReach - (dx * dx + dy * dy + dz * dz), Floats(0.0f));
              total += d * d * d;
            }
          rho[begin + i] = factor * sum(total);
        }
      }
}

namespace {

/// Holds what is computed once for each station, and serves all places.
struct Stations {
  double latitude[kStations], longitude[kStations], cosine[kStations];
  explicit Stations(Arrays arrays) {
    for (std::size_t s = 0; s < kStations; ++s) {
      latitude[s] = array<double>(arrays, 2)[s] * (std::numbers::pi / 180);
      longitude[s] = array<double>(arrays, 3)[s] * (std::numbers::pi / 180);
    }
    for (std::size_t s = 0; s < kStations; ++s) cosine[s] = std::cos(latitude[s]);
  }
};

/// The distances of all stations, or only what grows with them, and the least of them.
template <bool kSquares>
void nearest_places(Arrays arrays, Part part) {
  const Stations stations(arrays);
  for (std::size_t i = part.begin * 32; i < part.end * 32; ++i) {
    const double latitude = array<double>(arrays, 0)[i] * (std::numbers::pi / 180),
                 longitude = array<double>(arrays, 1)[i] * (std::numbers::pi / 180),
                 cosine = std::cos(latitude);
    alignas(64) double a[kStations], b[kStations];
    for (std::size_t s = 0; s < kStations; ++s) {
      a[s] = std::sin((stations.latitude[s] - latitude) * 0.5);
      b[s] = std::sin((stations.longitude[s] - longitude) * 0.5);
    }
    for (std::size_t s = 0; s < kStations; ++s)
      a[s] = a[s] * a[s] + cosine * stations.cosine[s] * b[s] * b[s];
    Doubles least = 1e300;
    Longs best = 0, here;
    for (std::size_t lane = 0; lane < kWide; ++lane) here[lane] = static_cast<std::int64_t>(lane);
    for (std::size_t s = 0; s < kStations; s += kWide) {
      Doubles distance = load<Doubles>(a + s);
      if constexpr (!kSquares) distance = 2 * kEarthRadius * arc_sine(__builtin_elementwise_sqrt(distance));
      const Longs nearer = distance < least;
      least = nearer ? distance : least;
      best = nearer ? here : best;
      here += static_cast<std::int64_t>(kWide);
    }
    std::size_t lane = 0;
    for (std::size_t l = 1; l < kWide; ++l)
      if (least[l] < least[lane] || (least[l] == least[lane] && best[l] < best[lane])) lane = l;
    array<int>(arrays, 4)[i] = static_cast<int>(best[lane]);
    array<double>(arrays, 5)[i] =
        kSquares ? 2 * kEarthRadius * std::asin(std::sqrt(least[lane])) : least[lane];
  }
}

}  // namespace

void nearest(Arrays arrays, Part part) { nearest_places<false>(arrays, part); }
void nearest_by_square(Arrays arrays, Part part) { nearest_places<true>(arrays, part); }

}  // namespace quern::bench::QUERN_NATIVE_VARIANT
