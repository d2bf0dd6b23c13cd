// SPDX-License-Identifier: Apache-2.0
// The third set: twelve kernels in styles that the others do not have.
#include "sizes_third.hpp"
#include "slots.hpp"

namespace quern::bench {

using enum Dtype;

namespace {

/// Numbers of f64 from `low` to `high`; `salt` tells arrays apart.
Fill doubles(double low, double high, std::size_t salt) {
  return fill_of<double>([=](std::size_t i) { return low + (high - low) * unit(i + (salt << 32)); });
}

/// Populations at rest, disturbed a little.
Fill populations() {
  return fill_of<float>([](std::size_t i) {
    return static_cast<double>(kDirectionWeight[i / kCells]) * (0.95 + 0.1 * unit(i));
  });
}
/// Two walls along x, and a disc.
Fill walls() {
  return fill_of<std::uint8_t>([](std::size_t i) {
    const std::size_t x = i % kLatticeWidth, y = i / kLatticeWidth;
    const auto dx = static_cast<double>(x) - 256, dy = static_cast<double>(y) - 250;
    return y == 0 || y == kLatticeHeight - 1 || dx * dx + dy * dy < 40 * 40;
  });
}
Fill cells() {
  return fill_of<std::uint8_t>([](std::size_t i) { return mixed(i) % 3 == 0; });
}

/// Symmetric, with a diagonal that outweighs the rest of its row.
Fill positive_definite() {
  return fill_of<double>([](std::size_t i) {
    const std::size_t r = i / kFactorSide % kFactorSide, c = i % kFactorSide;
    const std::size_t matrix = i / (kFactorSide * kFactorSide),
                      place = std::max(r, c) * kFactorSide + std::min(r, c);
    return (r == c ? 17.0 : -1.0) + 2 * unit(matrix * kFactorSide * kFactorSide + place);
  });
}

/// Runs of four elements on average.
std::vector<std::int32_t> runs() {
  std::vector<std::int32_t> elements(kRunElements);
  std::int32_t value = 0;
  for (std::size_t i = 0; i < kRunElements; ++i) {
    if (mixed(i) % 4 == 0) value = static_cast<std::int32_t>(mixed(i) >> 40 & 255);
    elements[i] = value;
  }
  return elements;
}

/// Half as many different keys as keys, none of them 0.
Fill keys() {
  return fill_of<std::uint32_t>(
      [](std::size_t i) { return 1 + mixed(mixed(i) % (kCountedKeys / 2)) % 0xfffffffe; });
}

/// Four parts a vertex, the last one is 0.
Fill directions() {
  return fill_of<float>([](std::size_t i) { return i % 4 == 3 ? 0 : 0.1 + unit(i); });
}
/// Four parts a vertex, of sum 1.
Fill shares() {
  return fill_of<float>([](std::size_t i) {
    double sum = 0;
    for (std::size_t n = 0; n < 4; ++n) sum += 0.1 + unit(i / 4 * 4 + n);
    return (0.1 + unit(i)) / sum;
  });
}
Fill bones() {
  return fill_of<std::uint8_t>([](std::size_t i) { return mixed(i) % kBones; });
}
/// Three rows a bone: a turn with a stretch, and a shift.
Fill palette() {
  return fill_of<float>([](std::size_t i) {
    const std::size_t r = i / 4 % 3, c = i % 4;
    return (r == c ? 1.0 : 0.0) + 0.3 * (unit(i) - 0.5);
  });
}

Slot pairs(Dtype dtype, Shape shape, Tolerance tolerance) {
  return {Slot::Use::state, dtype, std::move(shape), {}, tolerance};
}

std::vector<Row> grid_rows() {
  const Tolerance rim{.error = 1e-3, .fraction = 0.02};  // rays that graze
  const std::size_t pixels = kViewWidth * kViewHeight;
  const Shape world{extent(kWorld), extent(kWorld)};
  // clang-format off
  return {
      {"lbm_step", "lattice Boltzmann, D2Q9", "third/fluids.cu", "lbm_step", {kLatticeWidth / 64, kLatticeHeight / 4},
       {64, 4}, 0, {in(float32, 9 * kCells, populations()), in(uint8, kCells, walls()),
       out(float32, 9 * kCells, {.error = 1e-6}), count(kLatticeWidth), count(kLatticeHeight),
       number(float32, kOmega)}, kLatticeHeight, {QUERN_BOTH(lbm), QUERN_BOTH(lbm_stored)}, reference::lbm,
       kLatticeHeight, 3.7},
      {"ray_march", "rays through a distance field", "third/fluids.cu", "ray_march",
       {kViewWidth / 16, kViewHeight / 16}, {16, 16}, 0, {out(float32, pixels, rim), out(int32, pixels, rim),
       count(kViewWidth), count(kViewHeight)}, kViewHeight, {QUERN_BOTH(march), QUERN_BOTH(march_newton),
       QUERN_BOTH(march_two)}, reference::march, kViewHeight, 2.1},
      {"py_life", "Game of Life in Python", "third/idioms.py", "life", {kWorld / 16, kWorld / 16}, {16, 16}, 0,
       {in(uint8, world, cells()), out(uint8, world)}, kWorld, {QUERN_BOTH(life), QUERN_BOTH(life_stored)},
       reference::life, kWorld, 20.0},
      {"resize", "image of uchar4 resized, bilinear", "third/bytes.cu", "resize",
       {kSmallWidth / 32, kSmallHeight / 8}, {32, 8}, 0, {in(uint8, 4 * kPhotoWidth * kPhotoHeight, bytes()),
       count(kPhotoWidth), count(kPhotoHeight), out(uint8, 4 * kSmallWidth * kSmallHeight), count(kSmallWidth),
       count(kSmallHeight), number(float32, kPhotoStep)}, kSmallHeight, {QUERN_BOTH(resize), QUERN_BOTH(resize_shorts)}, reference::resize,
       kSmallHeight, 5.3},
  };
  // clang-format on
}

std::vector<Row> matrix_rows() {
  const std::size_t unknowns = kSystems * kUnknowns, elements = kFactors * kFactorSide * kFactorSide;
  const std::size_t square = kInt8Side * kInt8Side;
  // clang-format off
  return {
      {"thomas", "f64 tridiagonal systems, one a thread", "third/batches.cu", "thomas", kSystems / 128, 128, 0,
       {in(float64, unknowns, doubles(-1, 1, 0)), in(float64, unknowns, doubles(3, 4, 1)),
       in(float64, unknowns, doubles(-1, 1, 2)), in(float64, unknowns, doubles(-1, 1, 3)),
       in(float64, unknowns, {}), out(float64, unknowns, {.error = 1e-12}), count(kSystems), count(kUnknowns)},
       kSystems / 256, {QUERN_BOTH(thomas), QUERN_BOTH(thomas_wide)}, reference::thomas, kSystems / 256, 3.4},
      {"cholesky", "f64 factors of 16 x 16, half a warp each", "third/batches.cu", "cholesky", kFactors / 16, 256, 0,
       {in(float64, elements, positive_definite()), out(float64, elements, {.error = 1e-12}), count(kFactors)},
       kFactors / 8, {QUERN_BOTH(cholesky), QUERN_BOTH(cholesky_stored)}, reference::cholesky, kFactors / 8,
       6.5},
      {"gemm_int8", "int8 matrix product by dp4a", "third/bytes.cu", "gemm_int8", {kInt8Side / 64, kInt8Side / 64},
       256, 0, {in(int8, square, bytes()), in(int8, square, fill_of<std::int8_t>([](std::size_t i) {
       return mixed(i) >> 48; })), out(int32, square), count(kInt8Side), count(kInt8Side)}, kInt8Side / 32,
       {QUERN_BOTH(gemm_int8)}, reference::gemm_int8, 4, 5.5},
      {"skin", "vertices moved by bones, float4", "third/skinning.cu", "skin", kVertices / 256, 256, 0,
       {in(float32, 4 * kVertices, floats(-1, 1)), in(float32, 4 * kVertices, directions()),
       in(uint8, 4 * kVertices, bones()), in(float32, 4 * kVertices, shares()), in(float32, 12 * kBones, palette()),
       out(float32, 4 * kVertices, {.error = 1e-5}), out(float32, 4 * kVertices, {.error = 1e-5}),
       count(kVertices)}, kVertices / 1024, {QUERN_BOTH(skin)}, reference::skin, kVertices / 1024, 4.6},
  };
  // clang-format on
}

std::vector<Row> list_rows() {
  const std::size_t top = kTopWidth * kTopRows;
  const Tolerance set{.any_order = true}, ties{.fraction = 1e-4}, sums{.error = 1e-4};
  const Shape points{extent(kSamples), extent(kFeatures)}, centres{extent(kClusters), extent(kFeatures)};
  const Fill middle =
      fill_of<float>([](std::size_t i) { return 0.05 + 0.9 * unit(i + (std::size_t{1} << 40)); });
  // clang-format off
  return {
      {"run_lengths", "run lengths by CUB", "third/lists.cu", "run_lengths", kRunElements / kRunBlock, 256, 0,
       {in(int32, kRunElements, fill_with(runs())), out(int32, kRunElements), out(int32, kRunElements),
       out(int32, kRunElements / kRunBlock)}, kRunElements / kRunBlock, {QUERN_BOTH(run_lengths)},
       reference::run_lengths, kRunElements / kRunBlock, 11.0},
      {"arg_max", "largest of a row, cooperative groups", "third/lists.cu", "arg_max", kTopRows / 8, 256, 0,
       {in(float32, top, floats(-1, 1)), out(float32, kTopRows), out(int32, kTopRows), count(kTopWidth)},
       kTopRows, {QUERN_BOTH(arg_max), QUERN_BOTH(arg_max_twice)}, reference::arg_max, kTopRows, 4.8},
      {"hash_count", "keys counted in a hash table", "third/lists.cu", "hash_count", kCountedKeys / 256, 256, 0,
       {in(uint32, kCountedKeys, keys()), pairs(uint32, {extent(kPlaces)}, set),
       pairs(uint32, {extent(kPlaces)}, set), count(kCountedKeys), number(uint32, kPlaces - 1)},
       kCountedKeys / 1024, {QUERN_BOTH(hash_count)}, reference::hash_count, kCountedKeys / 1024, 2.8},
      {"py_kmeans", "step of k-means in Python", "third/idioms.py", "assign", 256, 256, 0,
       {in(float32, points, floats(0, 1)), in(float32, centres, middle), out(int32, kSamples, ties),
       pairs(float32, centres, sums), pairs(int32, {extent(kClusters)}, sums)}, kSamples / 1024,
       {QUERN_BOTH(assign)}, reference::assign, kSamples / 1024, 5.4, bench::fast::assign_expanded},
  };
  // clang-format on
}

}  // namespace

std::vector<Row> third_rows() {
  std::vector<Row> all = grid_rows();
  for (std::vector<Row> rows : {matrix_rows(), list_rows()})
    for (Row& row : rows) all.push_back(std::move(row));
  return all;
}

}  // namespace quern::bench
