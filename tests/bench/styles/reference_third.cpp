// SPDX-License-Identifier: Apache-2.0
// The third set's results by plain scalar code, in f64 where the kernels compute in f32. A piece of work is
// that of natives_third.def.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

#include "native.hpp"
#include "sizes_third.hpp"

namespace quern::bench::reference {
namespace {

template <class T>
T* array(Arrays arrays, int i) {
  return static_cast<T*>(arrays[i]);
}

/// x + by on a ring of `size` places.
std::size_t moved(std::size_t x, int by, std::size_t size) {
  return (x + size + static_cast<std::size_t>(by)) % size;
}

struct Point {
  double x, y, z;
  Point operator+(Point p) const { return {x + p.x, y + p.y, z + p.z}; }
  Point operator*(double s) const { return {x * s, y * s, z * s}; }
  double length() const { return std::sqrt(x * x + y * y + z * z); }
};

double scene(Point p) {
  const double ball = (p + Point{0.9, 0, 0.3}).length() - 0.7;
  const Point r = p + Point{-0.5, 0.1, 0}, b = p + Point{-0.2, -0.9, -0.6};
  const double ring = std::hypot(std::hypot(r.x, r.z) - 0.8, r.y) - 0.25;
  const double h = std::max(0.3 - std::abs(ball - ring), 0.0) / 0.3;
  const Point q{std::abs(b.x) - 0.35, std::abs(b.y) - 0.35, std::abs(b.z) - 0.35};
  const double box = Point{std::max(q.x, 0.0), std::max(q.y, 0.0), std::max(q.z, 0.0)}.length() +
                     std::min(std::max({q.x, q.y, q.z}), 0.0);
  return std::min({std::min(ball, ring) - h * h * 0.3 / 4, box, p.y + 1});
}

}  // namespace

void lbm(Arrays arrays, Part part) {
  const float* f = array<float>(arrays, 0);
  float* g = array<float>(arrays, 2);
  for (std::size_t y = part.begin; y < part.end; ++y)
    for (std::size_t x = 0; x < kLatticeWidth; ++x) {
      const std::size_t cell = y * kLatticeWidth + x;
      double p[9], rho = 0, ux = 0, uy = 0;
      for (std::size_t k = 0; k < 9; ++k) {
        const std::size_t from = moved(y, -kDirectionY[k], kLatticeHeight) * kLatticeWidth +
                                 moved(x, -kDirectionX[k], kLatticeWidth);
        p[k] = static_cast<double>(f[k * kCells + from]);
        rho += p[k];
        ux += kDirectionX[k] * p[k];
        uy += kDirectionY[k] * p[k];
      }
      ux /= rho;
      uy /= rho;
      for (std::size_t k = 0; k < 9; ++k) {
        const double along = kDirectionX[k] * ux + kDirectionY[k] * uy;
        const double equilibrium = static_cast<double>(kDirectionWeight[k]) * rho *
                                   (1 + 3 * along + 4.5 * along * along - 1.5 * (ux * ux + uy * uy));
        const double fluid = p[k] + static_cast<double>(kOmega) * (equilibrium - p[k]);
        g[k * kCells + cell] =
            static_cast<float>(array<std::uint8_t>(arrays, 1)[cell] != 0 ? p[kBack[k]] : fluid);
      }
    }
}

void march(Arrays arrays, Part part) {
  for (std::size_t row = part.begin; row < part.end; ++row)
    for (std::size_t column = 0; column < kViewWidth; ++column) {
      const double scale = 2.0 / kViewHeight;
      Point direction{(static_cast<double>(column) + 0.5 - 0.5 * kViewWidth) * scale,
                      (0.5 * kViewHeight - static_cast<double>(row) - 0.5) * scale, 1.8};
      direction = direction * (1 / direction.length());
      double t = 0, hit = -1;
      int step = 0;
      for (; step < kMarchSteps; ++step) {
        const double d = scene(Point{0, 0.4, -4} + direction * t);
        if (d < static_cast<double>(kNear) * t) {
          hit = t;
          break;
        }
        t += d;
        if (t > static_cast<double>(kFar)) break;
      }
      array<float>(arrays, 0)[row * kViewWidth + column] = static_cast<float>(hit);
      array<int>(arrays, 1)[row * kViewWidth + column] = step;
    }
}

void life(Arrays arrays, Part part) {
  const std::uint8_t* world = array<std::uint8_t>(arrays, 0);
  for (std::size_t y = part.begin; y < part.end; ++y)
    for (std::size_t x = 0; x < kWorld; ++x) {
      int neighbours = 0;
      for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx)
          if (dx != 0 || dy != 0) neighbours += world[moved(y, dy, kWorld) * kWorld + moved(x, dx, kWorld)];
      const bool lives = neighbours == 3 || (neighbours == 2 && world[y * kWorld + x] == 1);
      array<std::uint8_t>(arrays, 1)[y * kWorld + x] = lives ? 1 : 0;
    }
}

void resize(Arrays arrays, Part part) {
  const std::uint8_t* in = array<std::uint8_t>(arrays, 0);
  for (std::size_t y = part.begin; y < part.end; ++y)
    for (std::size_t x = 0; x < kSmallWidth; ++x) {
      const auto place = [](std::size_t i) {
        return std::max((static_cast<double>(i) + 0.5) * static_cast<double>(kPhotoStep) - 0.5, 0.0);
      };
      const auto x0 = static_cast<std::size_t>(place(x)), y0 = static_cast<std::size_t>(place(y));
      const std::size_t x1 = std::min(x0 + 1, kPhotoWidth - 1), y1 = std::min(y0 + 1, kPhotoHeight - 1);
      const double wx = place(x) - static_cast<double>(x0), wy = place(y) - static_cast<double>(y0);
      for (std::size_t c = 0; c < 4; ++c) {
        const auto at = [&](std::size_t i, std::size_t j) {
          return static_cast<double>(in[(j * kPhotoWidth + i) * 4 + c]);
        };
        const double value = (1 - wy) * ((1 - wx) * at(x0, y0) + wx * at(x1, y0)) +
                             wy * ((1 - wx) * at(x0, y1) + wx * at(x1, y1));
        array<std::uint8_t>(arrays, 1)[(y * kSmallWidth + x) * 4 + c] =
            static_cast<std::uint8_t>(std::floor(value + 0.5));
      }
    }
}

// Gauss's elimination of the whole matrix's three diagonals.
void thomas(Arrays arrays, Part part) {
  for (std::size_t s = part.begin * 256; s < part.end * 256; ++s) {
    const auto element = [&](int of, std::size_t k) { return array<double>(arrays, of)[k * kSystems + s]; };
    std::vector<double> diagonal, right;
    for (std::size_t k = 0; k < kUnknowns; ++k) {
      diagonal.push_back(element(1, k));
      right.push_back(element(3, k));
      if (k == 0) continue;
      const double factor = element(0, k) / diagonal[k - 1];
      diagonal[k] -= factor * element(2, k - 1);
      right[k] -= factor * right[k - 1];
    }
    double x = 0;
    for (std::size_t k = kUnknowns; k-- > 0;) {
      x = (right[k] - (k == kUnknowns - 1 ? 0 : element(2, k) * x)) / diagonal[k];
      array<double>(arrays, 5)[k * kSystems + s] = x;
    }
  }
}

void cholesky(Arrays arrays, Part part) {
  constexpr std::size_t n = kFactorSide;
  for (std::size_t m = part.begin * 8; m < part.end * 8; ++m) {
    const double* a = array<double>(arrays, 0) + m * n * n;
    double* l = array<double>(arrays, 1) + m * n * n;
    for (std::size_t r = 0; r < n; ++r)
      for (std::size_t c = 0; c < n; ++c) {
        double rest = a[r * n + c];
        for (std::size_t k = 0; k < std::min(r, c); ++k) rest -= l[r * n + k] * l[c * n + k];
        l[r * n + c] = c > r ? 0 : c == r ? std::sqrt(rest) : rest / l[c * n + c];
      }
  }
}

void gemm_int8(Arrays arrays, Part part) {
  const std::int8_t *a = array<std::int8_t>(arrays, 0), *b = array<std::int8_t>(arrays, 1);
  for (std::size_t row = 0; row < kInt8Side; ++row)
    for (std::size_t column = part.begin * 32; column < part.end * 32; ++column) {
      int sum = 0;
      for (std::size_t k = 0; k < kInt8Side; ++k) sum += a[row * kInt8Side + k] * b[column * kInt8Side + k];
      array<int>(arrays, 2)[row * kInt8Side + column] = sum;
    }
}

void run_lengths(Arrays arrays, Part part) {
  for (std::size_t block = part.begin; block < part.end; ++block) {
    const std::size_t first = block * kRunBlock;
    const int* in = array<int>(arrays, 0) + first;
    std::size_t runs = 0;
    for (std::size_t i = 0; i < kRunBlock; ++i) {
      if (i == 0 || in[i] != in[i - 1]) array<int>(arrays, 1)[first + runs++] = in[i];
      ++array<int>(arrays, 2)[first + runs - 1];  // zeros before
    }
    array<int>(arrays, 3)[block] = static_cast<int>(runs);
  }
}

void arg_max(Arrays arrays, Part part) {
  for (std::size_t row = part.begin; row < part.end; ++row) {
    const float* from = array<float>(arrays, 0) + row * kTopWidth;
    const float* most = std::max_element(from, from + kTopWidth);
    array<float>(arrays, 1)[row] = *most;
    array<int>(arrays, 2)[row] = static_cast<int>(most - from);
  }
}

// The place of a key does not matter; here the distinct ones come first.
void hash_count(Arrays arrays, Part part) {
  std::map<std::uint32_t, std::uint32_t> counts;
  for (std::size_t i = part.begin * 1024; i < part.end * 1024; ++i)
    ++counts[array<std::uint32_t>(arrays, 0)[i]];
  std::size_t place = 0;
  for (const auto& [key, count] : counts) {
    array<std::uint32_t>(arrays, 1)[place] = key;
    array<std::uint32_t>(arrays, 2)[place++] = count;
  }
}

void skin(Arrays arrays, Part part) {
  for (std::size_t i = part.begin * 1024; i < part.end * 1024; ++i) {
    double moved_to[3]{}, turned[3]{}, squared = 0;
    for (std::size_t r = 0; r < 3; ++r) {
      for (std::size_t n = 0; n < 4; ++n) {
        const float* row = array<float>(arrays, 4) + array<std::uint8_t>(arrays, 2)[4 * i + n] * 12 + 4 * r;
        const auto weight = static_cast<double>(array<float>(arrays, 3)[4 * i + n]);
        for (std::size_t c = 0; c < 3; ++c) {
          moved_to[r] += weight * static_cast<double>(row[c] * array<float>(arrays, 0)[4 * i + c]);
          turned[r] += weight * static_cast<double>(row[c] * array<float>(arrays, 1)[4 * i + c]);
        }
        moved_to[r] += weight * static_cast<double>(row[3]);
      }
      squared += turned[r] * turned[r];
    }
    for (std::size_t r = 0; r < 3; ++r) {
      array<float>(arrays, 5)[4 * i + r] = static_cast<float>(moved_to[r]);
      array<float>(arrays, 6)[4 * i + r] = static_cast<float>(turned[r] / std::sqrt(squared));
    }
    array<float>(arrays, 5)[4 * i + 3] = 1;
  }
}

void assign(Arrays arrays, Part part) {
  double sums[kClusters][kFeatures]{};
  for (std::size_t i = part.begin * 1024; i < part.end * 1024; ++i) {
    const float* point = array<float>(arrays, 0) + i * kFeatures;
    std::size_t best = 0;
    double least = INFINITY;
    for (std::size_t k = 0; k < kClusters; ++k) {
      double distance = 0;
      for (std::size_t d = 0; d < kFeatures; ++d) {
        const auto difference = static_cast<double>(point[d] - array<float>(arrays, 1)[k * kFeatures + d]);
        distance += difference * difference;
      }
      if (distance < least) {
        least = distance;
        best = k;
      }
    }
    array<int>(arrays, 2)[i] = static_cast<int>(best);
    ++array<int>(arrays, 4)[best];
    for (std::size_t d = 0; d < kFeatures; ++d) sums[best][d] += static_cast<double>(point[d]);
  }
  for (std::size_t k = 0; k < kClusters; ++k)
    for (std::size_t d = 0; d < kFeatures; ++d)
      array<float>(arrays, 3)[k * kFeatures + d] += static_cast<float>(sums[k][d]);
}

}  // namespace quern::bench::reference
