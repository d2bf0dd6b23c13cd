// SPDX-License-Identifier: Apache-2.0
// The fourth set: twelve kernels of language models, of DNA, of graphs, of hashes, of grids, of points.
#include <cmath>
#include <numbers>

#include "sizes_fourth.hpp"
#include "slots.hpp"

namespace quern::bench {

using enum Dtype;

namespace {

Fill doubles(double low, double high, std::size_t salt) {
  return fill_of<double>([=](std::size_t i) { return low + (high - low) * unit(i + (salt << 32)); });
}

std::int8_t activation(std::size_t i) {
  return static_cast<std::int8_t>(static_cast<int>(mixed(i) % 255) - 127);
}
float activation_scale(std::size_t group) { return static_cast<float>(0.005 + 0.005 * unit(group)); }
/// The sum of a group, with its scale.
Fill activation_sums() {
  return fill_of<float>([](std::size_t group) {
    int sum = 0;
    for (std::size_t i = 0; i < kQuantGroup; ++i) sum += activation(group * kQuantGroup + i);
    return activation_scale(group) * static_cast<float>(sum);
  });
}

Fill strand() {
  return fill_of<std::uint8_t>([](std::size_t i) { return "ACGT"[mixed(i) % 4]; });
}

std::uint64_t barcode(std::size_t i) { return mixed(i + (std::size_t{1} << 40)) % 4; }
/// Letters; somewhere among them the barcode, with one wrong letter of eight.
Fill reads() {
  return fill_of<std::uint8_t>([](std::size_t i) {
    const std::size_t place = i % kRead - mixed(i / kRead) % (kRead - kBarcode);  // wraps before the barcode
    const bool part = place < kBarcode && mixed(i) >> 32 & 7;
    return part ? barcode(place) : mixed(i) % 4;
  });
}

bool in_frontier(std::size_t vertex) { return mixed(vertex) % 8 == 0; }
/// The vertices of the frontier in no order; there are more than kFrontier, the rest belongs to another grid.
std::vector<std::int32_t> frontier() {
  std::vector<std::int32_t> list;
  for (std::size_t i = 0; list.size() < kFrontier; ++i) {
    const std::size_t vertex = i * 0x9e3779b1 % kGraphNodes;
    if (in_frontier(vertex)) list.push_back(static_cast<std::int32_t>(vertex));
  }
  return list;
}
/// Three vertices of eight have been found.
Fill distances() {
  return fill_of<std::int32_t>([](std::size_t vertex) {
    return in_frontier(vertex) ? kLevel - 1 : mixed(vertex) % 8 < 3 ? 2 : -1;
  });
}

/// exp(-r^2 / (2 s^2)) of the places around a pixel.
Fill space_weights() {
  return fill_of<float>([](std::size_t i) {
    const double dx = static_cast<double>(i % kTaps) - kRadius, dy = static_cast<double>(i / kTaps) - kRadius;
    return std::exp(-(dx * dx + dy * dy) / 4.5);
  });
}

/// Waves with noise.
Fill photograph() {
  return fill_of<std::uint8_t>([](std::size_t i) {
    const auto x = static_cast<double>(i % kDctWidth), y = static_cast<double>(i / kDctWidth);
    return 128 + 70 * std::sin(x / 37) * std::cos(y / 23) + 40 * unit(i);
  });
}
Fill cosines() {
  return fill_of<float>([](std::size_t i) {
    const auto u = static_cast<double>(i / 8), x = static_cast<double>(i % 8);
    return (i < 8 ? std::numbers::sqrt2 / 4 : 0.5) * std::cos((2 * x + 1) * u * std::numbers::pi / 16);
  });
}
Fill divisors() {
  return fill_of<float>([](std::size_t i) { return 10 + 5 * (i / 8 + i % 8); });
}

/// Particles in the cells that `begins` tells.
Fill particles(std::vector<std::int32_t> begins) {
  return [begins = std::move(begins)](std::byte* to, std::size_t) {
    float* pos = reinterpret_cast<float*>(to);
    for (std::size_t cell = 0; cell < kFluidCells; ++cell) {
      const std::size_t corner[3] = {cell % kFluidSide, cell / kFluidSide % kFluidSide,
                                     cell / kFluidSide / kFluidSide};
      for (auto i = static_cast<std::size_t>(begins[cell]); i < static_cast<std::size_t>(begins[cell + 1]);
           ++i)
        for (std::size_t d = 0; d < 3; ++d)
          pos[3 * i + d] = static_cast<float>(
              (static_cast<double>(corner[d]) + 0.02 + 0.96 * unit(3 * i + d)) * static_cast<double>(kReach));
    }
  };
}

std::vector<Row> language_rows() {
  const std::size_t hidden = kTokens * kHidden, groups = kQuantRows * kQuantGroups;
  // clang-format off
  return {
      {"rms_norm", "RMS norm of halves with a residual", "fourth/language.cu", "rms_norm", kTokens, 256, 0,
       {in(float16, hidden, halves(-1, 1)), in(float16, hidden, halves(2, -2)), in(float16, kHidden, halves(0.5, 1.5)),
       out(float16, hidden), out(float16, hidden, {.error = 1e-3}), count(kHidden), number(float32, kRmsEpsilon)},
       kTokens, {QUERN_BOTH(rms_norm), QUERN_BOTH(rms_norm_stored)}, reference::rms_norm, kTokens, 4},
      {"gemv_q4", "4-bit weights times a vector, dp4a", "fourth/language.cu", "gemv_q4", kQuantRows / 4, 128, 0,
       {in(uint32, 4 * groups, words()), in(float16, groups, halves(0.005, 0.015)),
       in(int8, kQuantWidth, fill_of<std::int8_t>(activation)), in(float32, kQuantGroups, fill_of<float>(activation_scale)),
       in(float32, kQuantGroups, activation_sums()), out(float32, kQuantRows, {.error = 1e-4}), count(kQuantGroups)},
       kQuantRows, {QUERN_BOTH(gemv_q4)}, reference::gemv_q4, kQuantRows, 4},
      {"route", "softmax and the four largest of 64", "fourth/language.cu", "route", kRouted / 4, 128, 0,
       {in(float32, kRouted * kExperts, floats(-4, 4)), out(float32, kRouted * kChosen, {.error = 1e-6}),
       out(int32, kRouted * kChosen), count(kRouted)}, kRouted / 16, {QUERN_BOTH(route)}, reference::route,
       kRouted / 16, 3.5},
  };
  // clang-format on
}

std::vector<Row> sequence_rows() {
  const std::vector<std::int32_t> begins = row_begins(kGraphNodes, 4, 20);
  const auto edges = static_cast<std::size_t>(begins.back());
  // clang-format off
  return {
      {"minimizers", "minimizers of DNA, windows in shared memory", "fourth/sequences.cu", "minimizers", kWindows / 256,
       256, 0, {in(uint8, kStrand, strand()), out(uint32, kWindows)}, kWindows / 1024, {QUERN_BOTH(minimizers)},
       reference::minimizers, kWindows / 1024, 4},
      {"barcodes", "edit distances by Myers' bit vectors", "fourth/sequences.cu", "barcodes", kReads / 128, 128, 0,
       {in(uint8, kBarcode, fill_of<std::uint8_t>(barcode)), in(uint8, kReads * kRead, reads()), out(int32, kReads),
       out(int32, kReads), count(kReads)}, kReads / 32, {QUERN_BOTH(barcodes)}, reference::barcodes, 64, 3},
      {"bfs_level", "breadth-first level, queue of a block", "fourth/graphs.cu", "bfs_level", kFrontier / 128, 128, 0,
       {in(int32, kGraphNodes + 1, fill_with(begins)), in(int32, edges, ints(0, extent(kGraphNodes))),
       in(int32, kFrontier, fill_with(frontier())), count(kFrontier), number(int32, kLevel),
       state(int32, kGraphNodes, distances()), out(int32, kGraphNodes, {.any_order = true}), state(int32, 1)},
       kFrontier / 64, {QUERN_BOTH(bfs_level)}, reference::bfs_level, kFrontier / 64, 4.5},
      {"keccak", "Keccak-256 of pairs of hashes", "fourth/keccak.cu", "keccak", kPairsHashed / 128, 128, 0,
       {in(uint64, 8 * kPairsHashed, fill_of<std::uint64_t>(mixed)), out(uint64, 4 * kPairsHashed), count(kPairsHashed)},
       kPairsHashed / 8, {QUERN_BOTH(keccak), QUERN_BOTH(keccak_scalar)}, reference::keccak, 1024, 2},
  };
  // clang-format on
}

std::vector<Row> grid_rows() {
  const std::size_t space = kSpaceX * kSpaceY * kSpaceZ;
  const Shape noisy{extent(kNoisySide), extent(kNoisySide)}, taps{extent(kTaps), extent(kTaps)}, eight{8, 8},
      photo{extent(kDctHeight), extent(kDctWidth)};
  // clang-format off
  return {
      {"jacobi3", "7-point stencil in 3 dimensions, planes", "fourth/jacobi.cu", "jacobi3", {kSpaceX / 32, kSpaceY / 8},
       {32, 8}, 0, {in(float32, space, floats(-1, 1)), out(float32, space, {.error = 1e-6}), count(kSpaceX),
       count(kSpaceY), count(kSpaceZ), number(float32, kCentreWeight), number(float32, kSideWeight)}, kSpaceZ,
       {QUERN_BOTH(jacobi3), QUERN_BOTH(jacobi3_stored)}, reference::jacobi3, kSpaceZ, 8},
      {"py_bilateral", "bilateral filter 5 x 5 in Python", "fourth/idioms.py", "bilateral",
       {kNoisySide / 16, kNoisySide / 16}, {16, 16}, 0, {in(float32, noisy, floats(0, 1)),
       in(float32, taps, space_weights()), number(float32, kRangeScale), out(float32, noisy, {.error = 1e-5})},
       kNoisySide, {QUERN_BOTH(bilateral)}, reference::bilateral, kNoisySide, 4.5},
      {"py_dct", "JPEG's transform 8 x 8 in Python", "fourth/idioms.py", "dct", {kDctWidth / 8, kDctHeight / 8}, {8, 8},
       0, {in(uint8, photo, photograph()), in(float32, eight, cosines()), in(float32, eight, divisors()),
       out(int16, photo, {.fraction = 5e-4})}, kDctHeight / 8, {QUERN_BOTH(dct)}, reference::dct, kDctHeight / 8,
       5.5},
  };
  // clang-format on
}

std::vector<Row> point_rows() {
  const std::vector<std::int32_t> begins = row_begins(kFluidCells, 4, 12);
  const auto fluid = static_cast<std::size_t>(begins.back());
  // clang-format off
  return {
      {"py_density", "density of particles in cells in Python", "fourth/idioms.py", "density",
       static_cast<unsigned>((fluid + 127) / 128), 128, 0, {in(float32, Shape{extent(fluid), 3}, particles(begins)),
       in(int32, kFluidCells + 1, fill_with(begins)), number(float32, kReach), number(float32, kMass),
       out(float32, fluid, {.error = 1e-5})}, kFluidSide, {QUERN_BOTH(density)}, reference::density, 2, 17},
      {"py_nearest", "nearest station on the globe in Python", "fourth/idioms.py", "nearest", kPlacesFound / 128, 128, 0,
       {in(float64, kPlacesFound, doubles(-60, 60, 0)), in(float64, kPlacesFound, doubles(-180, 180, 1)),
       in(float64, kStations, doubles(-60, 60, 2)), in(float64, kStations, doubles(-180, 180, 3)),
       out(int32, kPlacesFound, {.fraction = 1e-3}), out(float64, kPlacesFound, {.error = 1e-9})}, kPlacesFound / 32,
       {QUERN_BOTH(nearest)}, reference::nearest, kPlacesFound / 32, 4, bench::fast::nearest_by_square},
  };
  // clang-format on
}

}  // namespace

std::vector<Row> fourth_rows() {
  std::vector<Row> all = language_rows();
  for (std::vector<Row> rows : {sequence_rows(), grid_rows(), point_rows()})
    for (Row& row : rows) all.push_back(std::move(row));
  return all;
}

}  // namespace quern::bench
