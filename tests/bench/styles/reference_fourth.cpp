// SPDX-License-Identifier: Apache-2.0
// The fourth set's results by plain scalar code, in f64 where the kernels compute in f32. A piece of work is
// that of natives_fourth.def.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numbers>
#include <numeric>
#include <quern/half.hpp>
#include <vector>

#include "native.hpp"
#include "sizes_fourth.hpp"
#include "sizes_third.hpp"

namespace quern::bench::reference {
namespace {

template <class T>
T* array(Arrays arrays, int i) {
  return static_cast<T*>(arrays[i]);
}

double value_of(float16 half) { return static_cast<double>(static_cast<float>(half)); }

std::size_t index_of(std::int32_t i) { return static_cast<std::size_t>(i); }

}  // namespace

void rms_norm(Arrays arrays, Part part) {
  for (std::size_t row = part.begin; row < part.end; ++row) {
    const std::size_t first = row * kHidden;
    float16* sums = array<float16>(arrays, 3) + first;
    double squares = 0;
    for (std::size_t i = 0; i < kHidden; ++i) {
      const float both = static_cast<float>(array<float16>(arrays, 0)[first + i]) +
                         static_cast<float>(array<float16>(arrays, 1)[first + i]);
      sums[i] = float16(both);
      squares += value_of(sums[i]) * value_of(sums[i]);
    }
    const double root = std::sqrt(squares / kHidden + static_cast<double>(kRmsEpsilon));
    for (std::size_t i = 0; i < kHidden; ++i)
      array<float16>(arrays, 4)[first + i] =
          float16(static_cast<float>(value_of(sums[i]) / root * value_of(array<float16>(arrays, 2)[i])));
  }
}

void gemv_q4(Arrays arrays, Part part) {
  for (std::size_t row = part.begin; row < part.end; ++row) {
    double total = 0;
    for (std::size_t g = 0; g < kQuantGroups; ++g) {
      const std::uint8_t* packed = array<std::uint8_t>(arrays, 0) + (row * kQuantGroups + g) * 16;
      const std::int8_t* x = array<std::int8_t>(arrays, 2) + g * kQuantGroup;
      int dot = 0;
      for (std::size_t i = 0; i < 16; ++i)
        dot += (packed[i] % 16 - 8) * x[i] + (packed[i] / 16 - 8) * x[16 + i];
      total += dot * value_of(array<float16>(arrays, 1)[row * kQuantGroups + g]) *
               static_cast<double>(array<float>(arrays, 3)[g]);
    }
    array<float>(arrays, 5)[row] = static_cast<float>(total);
  }
}

void route(Arrays arrays, Part part) {
  for (std::size_t token = part.begin * 16; token < part.end * 16; ++token) {
    const float* logits = array<float>(arrays, 0) + token * kExperts;
    std::vector<std::size_t> order(kExperts);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
      return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
    });
    const auto power = [&](std::size_t e) { return std::exp(static_cast<double>(logits[e])); };
    double total = 0;
    for (std::size_t e = 0; e < kExperts; ++e) total += power(e);
    for (std::size_t k = 0; k < kChosen; ++k) {
      array<float>(arrays, 1)[token * kChosen + k] = static_cast<float>(power(order[k]) / total);
      array<int>(arrays, 2)[token * kChosen + k] = static_cast<int>(order[k]);
    }
  }
}

void minimizers(Arrays arrays, Part part) {
  const std::uint8_t* strand = array<std::uint8_t>(arrays, 0);
  const auto code = [&](std::size_t i) { return std::uint32_t{strand[i]} >> 1 & 3; };
  for (std::size_t i = part.begin * 1024; i < part.end * 1024; ++i) {
    std::uint32_t least = UINT32_MAX;
    for (std::size_t k = i; k < i + kWindow; ++k) {
      std::uint32_t forward = 0, backward = 0;
      for (std::size_t j = 0; j < kMer; ++j) {
        forward = 4 * forward + code(k + j);
        backward = 4 * backward + (code(k + kMer - 1 - j) + 2) % 4;
      }
      least = std::min(least, scrambled(std::min(forward, backward)));
    }
    array<std::uint32_t>(arrays, 1)[i] = least;
  }
}

// Sellers' algorithm: a column of the table of distances.
void barcodes(Arrays arrays, Part part) {
  const std::uint8_t* barcode = array<std::uint8_t>(arrays, 0);
  for (std::size_t read = part.begin * 32; read < part.end * 32; ++read) {
    const std::uint8_t* letters = array<std::uint8_t>(arrays, 1) + read * kRead;
    std::vector<int> column(kBarcode + 1);
    std::iota(column.begin(), column.end(), 0);
    int best = kBarcode, end = -1;
    for (std::size_t j = 0; j < kRead; ++j) {
      int diagonal = 0;
      for (std::size_t i = 1; i <= kBarcode; ++i) {
        const int own =
            std::min({column[i] + 1, column[i - 1] + 1, diagonal + (barcode[i - 1] != letters[j])});
        diagonal = column[i];
        column[i] = own;
      }
      if (column[kBarcode] < best) {
        best = column[kBarcode];
        end = static_cast<int>(j);
      }
    }
    array<int>(arrays, 2)[read] = best;
    array<int>(arrays, 3)[read] = end;
  }
}

void bfs_level(Arrays arrays, Part part) {
  const int *begins = array<int>(arrays, 0), *frontier = array<int>(arrays, 2);
  int *distances = array<int>(arrays, 3), *size = array<int>(arrays, 5);
  for (std::size_t i = part.begin * 64; i < part.end * 64; ++i)
    for (int e = begins[frontier[i]]; e < begins[frontier[i] + 1]; ++e) {
      const int vertex = array<int>(arrays, 1)[e];
      if (distances[vertex] >= 0) continue;
      distances[vertex] = kLevel;
      array<int>(arrays, 4)[(*size)++] = vertex;
    }
}

// By the definition: turns and moves from the lane's coordinates.
void keccak(Arrays arrays, Part part) {
  for (std::size_t pair = part.begin * 8; pair < part.end * 8; ++pair) {
    std::uint64_t a[5][5]{};  // [y][x]
    std::memcpy(a, array<std::uint64_t>(arrays, 0) + pair * 8, 64);
    a[1][3] ^= 1;
    a[3][1] ^= std::uint64_t{1} << 63;
    for (const std::uint64_t constant : kRoundConstants) {
      std::uint64_t c[5]{}, b[5][5];
      for (std::size_t x = 0; x < 5; ++x)
        for (std::size_t y = 0; y < 5; ++y) c[x] ^= a[y][x];
      for (std::size_t x = 0; x < 5; ++x)
        for (std::size_t y = 0; y < 5; ++y) a[y][x] ^= c[(x + 4) % 5] ^ std::rotl(c[(x + 1) % 5], 1);
      b[0][0] = a[0][0];
      std::size_t x = 1, y = 0;
      for (int t = 0; t < 24; ++t) {
        const std::size_t to = (2 * x + 3 * y) % 5;
        b[to][y] = std::rotl(a[y][x], (t + 1) * (t + 2) / 2 % 64);
        x = y;
        y = to;
      }
      for (y = 0; y < 5; ++y)
        for (x = 0; x < 5; ++x) a[y][x] = b[y][x] ^ (~b[y][(x + 1) % 5] & b[y][(x + 2) % 5]);
      a[0][0] ^= constant;
    }
    std::memcpy(array<std::uint64_t>(arrays, 1) + pair * 4, a, 32);
  }
}

void jacobi3(Arrays arrays, Part part) {
  const float* in = array<float>(arrays, 0);
  for (std::size_t z = part.begin; z < part.end; ++z)
    for (std::size_t y = 0; y < kSpaceY; ++y)
      for (std::size_t x = 0; x < kSpaceX; ++x) {
        const auto at = [&](std::size_t i, std::size_t j, std::size_t k) {
          return static_cast<double>(in[(k * kSpaceY + j) * kSpaceX + i]);
        };
        double value = at(x, y, z);
        if (x % (kSpaceX - 1) != 0 && y % (kSpaceY - 1) != 0 && z % (kSpaceZ - 1) != 0)
          value = static_cast<double>(kCentreWeight) * value +
                  static_cast<double>(kSideWeight) * (at(x - 1, y, z) + at(x + 1, y, z) + at(x, y - 1, z) +
                                                      at(x, y + 1, z) + at(x, y, z - 1) + at(x, y, z + 1));
        array<float>(arrays, 1)[(z * kSpaceY + y) * kSpaceX + x] = static_cast<float>(value);
      }
}

void bilateral(Arrays arrays, Part part) {
  const float* image = array<float>(arrays, 0);
  const auto clamped = [](std::size_t place, std::size_t by) {
    return std::min(std::max(place + by, kRadius) - kRadius, kNoisySide - 1);
  };
  for (std::size_t y = part.begin; y < part.end; ++y)
    for (std::size_t x = 0; x < kNoisySide; ++x) {
      double total = 0, weights = 0;
      for (std::size_t dy = 0; dy < kTaps; ++dy)
        for (std::size_t dx = 0; dx < kTaps; ++dx) {
          const auto value = static_cast<double>(image[clamped(y, dy) * kNoisySide + clamped(x, dx)]);
          const double difference = value - static_cast<double>(image[y * kNoisySide + x]);
          const double weight = static_cast<double>(array<float>(arrays, 1)[dy * kTaps + dx]) *
                                std::exp(-static_cast<double>(kRangeScale) * difference * difference);
          total += weight * value;
          weights += weight;
        }
      array<float>(arrays, 2)[y * kNoisySide + x] = static_cast<float>(total / weights);
    }
}

// The sum over all 64 pixels, for each coefficient.
void dct(Arrays arrays, Part part) {
  for (std::size_t y = part.begin * 8; y < part.end * 8; ++y)
    for (std::size_t x = 0; x < kDctWidth; ++x) {
      const std::uint8_t* tile = array<std::uint8_t>(arrays, 0) + y / 8 * 8 * kDctWidth + x / 8 * 8;
      const auto basis = [&](std::size_t u, std::size_t k) {
        return static_cast<double>(array<float>(arrays, 1)[u * 8 + k]);
      };
      double sum = 0;
      for (std::size_t j = 0; j < 8; ++j)
        for (std::size_t i = 0; i < 8; ++i)
          sum += basis(y % 8, j) * basis(x % 8, i) * (tile[j * kDctWidth + i] - 128.0);
      sum /= static_cast<double>(array<float>(arrays, 2)[y % 8 * 8 + x % 8]);
      array<std::int16_t>(arrays, 3)[y * kDctWidth + x] = static_cast<std::int16_t>(std::nearbyint(sum));
    }
}

// All pairs of particles, without the cells.
void density(Arrays arrays, Part part) {
  constexpr std::size_t kLayer = kFluidSide * kFluidSide;
  const float* pos = array<float>(arrays, 0);
  const int* start = array<int>(arrays, 1);
  const double reach = static_cast<double>(kReach);
  const double factor = static_cast<double>(kMass) * 315 / (64 * std::numbers::pi * std::pow(reach, 9));
  for (std::size_t i = index_of(start[part.begin * kLayer]); i < index_of(start[part.end * kLayer]); ++i) {
    double total = 0;
    for (std::size_t j = 0; j < index_of(start[kFluidCells]); ++j) {
      double squared = 0;
      for (std::size_t d = 0; d < 3; ++d) {
        const double difference = static_cast<double>(pos[3 * i + d]) - static_cast<double>(pos[3 * j + d]);
        squared += difference * difference;
      }
      if (squared < reach * reach) total += std::pow(reach * reach - squared, 3);
    }
    array<float>(arrays, 2)[i] = static_cast<float>(factor * total);
  }
}

void nearest(Arrays arrays, Part part) {
  const auto radians = [&](int of, std::size_t i) {
    return array<double>(arrays, of)[i] * (std::numbers::pi / 180);
  };
  const auto half_sine = [](double a) { return std::sin(a / 2) * std::sin(a / 2); };
  for (std::size_t i = part.begin * 32; i < part.end * 32; ++i) {
    double least = INFINITY;
    for (std::size_t s = 0; s < kStations; ++s) {
      const double a =
          half_sine(radians(2, s) - radians(0, i)) +
          std::cos(radians(0, i)) * std::cos(radians(2, s)) * half_sine(radians(3, s) - radians(1, i));
      const double distance = 2 * kEarthRadius * std::asin(std::sqrt(a));
      if (!(distance < least)) continue;
      least = distance;
      array<int>(arrays, 4)[i] = static_cast<int>(s);
    }
    array<double>(arrays, 5)[i] = least;
  }
}

}  // namespace quern::bench::reference
