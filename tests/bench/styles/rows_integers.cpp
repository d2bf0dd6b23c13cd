// SPDX-License-Identifier: Apache-2.0
// Rows of counting and moving, of barriers in loops, of integers, of atomic operations.
#include <cmath>
#include <numbers>

#include "slots.hpp"

namespace quern::bench {

using enum Dtype;

namespace {

Fill twiddles() {
  return fill_of<float>([](std::size_t i) {
    const double angle = -2 * std::numbers::pi * static_cast<double>(i / 2) / kPoints;
    return i % 2 == 0 ? std::cos(angle) : std::sin(angle);
  });
}
Fill residues() {
  return fill_of<std::uint64_t>([](std::size_t i) { return mixed(i) % kModulus; });
}
Fill bases() {
  return fill_of<std::uint8_t>([](std::size_t i) { return mixed(i) % 4; });
}

}  // namespace

std::vector<Row> counting_rows() {
  const std::size_t radix_blocks = kKeys / kRadixBlock;
  const std::vector<Slot> counted{in(uint8, kHistogram, bytes()), count(kHistogram), state(uint32, 256)};
  const std::vector<Native> histogram{QUERN_BOTH(histogram)};
  // clang-format off
  return {
      {"histogram_global", "histogram by global atomics", "counting.cu", "histogram_global",
       kHistogram / 256, 256, 0, counted, kHistogram / 1024, histogram, reference::histogram,
       kHistogram / 1024, 4},
      {"histogram_shared", "histogram in shared memory", "counting.cu", "histogram_shared", 512, 256, 0,
       counted, kHistogram / 1024, histogram, nullptr, 0, 3},
      {"compact", "stream compaction, an atomic a warp", "counting.cu", "compact", kKept / 256, 256, 0,
       {in(int32, kKept, ints(0, INT32_MAX)), count(kKept), count(kThreshold),
       out(int32, kKept, {.any_order = true}), state(int32, 1)}, kKept / 4096, {QUERN_BOTH(compact)},
       reference::compact, kKept / 4096, 9},
      {"radix_scatter", "a pass of radix sort", "counting.cu", "radix_scatter", radix_blocks, 256, 0,
       {in(uint32, kKeys, words()), in(int32, kDigits * radix_blocks, fill_with(radix_offsets())),
       out(uint32, kKeys), count(kRadixShift)}, radix_blocks, {QUERN_BOTH(radix_scatter)},
       reference::radix_scatter, radix_blocks, 8},
      {"search", "string search", "counting.cu", "search", kText / 256, 256, 0, {in(int8, kText, letters()),
       count(kText), in(int8, kPattern, pattern()), count(kPattern), out(int32, 4096, {.any_order = true}),
       state(int32, 1)}, kText / 4096, {QUERN_BOTH(search)}, reference::search, kText / 4096, 55},
      {"bitonic", "bitonic sort in shared memory", "networks.cu", "bitonic", kSort / kSortBlock, 256, 0,
       {in(int32, kSort, ints(INT32_MIN, INT32_MAX)), out(int32, kSort)}, kSort / kSortBlock,
       {QUERN_BOTH(bitonic)}, reference::bitonic, kSort / kSortBlock, 10},
      {"smith_waterman", "alignment by anti-diagonals", "networks.cu", "smith_waterman", kPairs, kQuery, 0,
       {in(uint8, kPairs * kQuery, bases()), in(uint8, kPairs * kTarget, bases()), count(kTarget),
       out(int32, kPairs)}, kPairs, {QUERN_BOTH(smith_waterman)}, reference::smith_waterman, kPairs, 14},
      {"fft64", "transforms of 64 points", "networks.cu", "fft64", kTransforms / 8, {32, 8}, 0,
       {in(float32, 2 * kPoints * kTransforms, floats(-1, 1)), in(float32, kPoints, twiddles()),
       out(float32, 2 * kPoints * kTransforms, {.error = 1e-4})}, kTransforms / 16, {QUERN_BOTH(fft64)},
       reference::fft64, 256, 6},
  };
  // clang-format on
}

std::vector<Row> integer_rows() {
  const Tree tree = search_tree();
  const Tolerance rounded{.error = 1e-9};
  // clang-format off
  return {
      {"sha256", "SHA-256, a message a thread", "integers.cu", "sha256", kMessages / 256, 256, 0,
       {in(uint32, 16 * kMessages, words()), out(uint32, 8 * kMessages), count(kMessages)}, kMessages / 16,
       {QUERN_BOTH(sha256)}, reference::sha256, kMessages / 16, 3},
      {"philox_normal", "normal numbers by Philox, Box, Muller", "integers.cu", "philox_normal",
       kDraws / 256, 256, 0, {out(float32, 4 * kDraws, {.error = 1e-4}), number(uint32, kSeed0),
       number(uint32, kSeed1)}, kDraws / 256, {QUERN_BOTH(philox_normal)}, reference::philox_normal,
       kDraws / 256, 1.5},
      {"powers", "powers modulo a 64-bit prime", "integers.cu", "powers", kPowers / 256, 256, 0,
       {in(uint64, kPowers, residues()), out(uint64, kPowers), count(kPowerSteps)}, kPowers / 32,
       {QUERN_BOTH(powers), QUERN_BOTH(powers_vector)}, reference::powers, 512, 1.5},
      {"hash64", "64-bit hashes", "integers.cu", "hash64", kHashes / 256, 256, 0,
       {in(uint64, kHashes, residues()), out(uint64, kHashes), count(kHashes)}, kHashes / 1024,
       {QUERN_BOTH(hash64)}, nullptr, 0, 2},
      {"tree_walk", "walk down a binary tree", "integers.cu", "tree_walk", kLookups / 256, 256, 0,
       {in(int32, kNodes, fill_with(tree.key)), in(int32, kNodes, fill_with(tree.left)),
       in(int32, kNodes, fill_with(tree.right)), in(int32, kLookups, ints(0, extent(2 * kNodes))),
       out(int32, kLookups), count(kLookups)}, kLookups / 32, {QUERN_BOTH(tree_walk),
       bench::strict::tree_walk_scalar}, reference::tree_walk, kLookups / 32, 4},
      {"lennard_jones", "f64 forces from neighbour lists", "molecules.cu", "lennard_jones", kAtoms / 128,
       128, 0, {count(kAtoms), count(kNeighbours), in(float64, kAtoms, coordinates(0)),
       in(float64, kAtoms, coordinates(1)), in(float64, kAtoms, coordinates(2)),
       in(int32, kNeighbours * kAtoms, fill_with(neighbours())), number(float64, kCutoffSquared),
       out(float64, kAtoms, rounded), out(float64, kAtoms, rounded), out(float64, kAtoms, rounded)},
       kAtoms / 8, {QUERN_BOTH(lennard_jones)}, reference::lennard_jones, kAtoms / 8, 5},
  };
  // clang-format on
}

std::vector<Row> atomic_rows() {
  const auto row = [](const char* name, const char* what, std::size_t count_of, Slot input, Slot target,
                      std::vector<Native> natives, double limit) {
    return Row{name,
               what,
               "atomics.cu",
               name,
               count_of / 256,
               256,
               0,
               {std::move(input), std::move(target), count(count_of)},
               count_of / 1024,
               std::move(natives),
               nullptr,
               0,
               limit};
  };
  const auto whole = [](Dtype dtype, std::size_t number_of) {  // whole numbers: their sums are exact
    return dtype == float32 ? in(dtype, number_of, fill_of<float>([](std::size_t i) { return mixed(i) % 2; }))
                            : in(dtype, number_of, words());
  };
  const Fill largest = fill_of<std::int32_t>([](std::size_t) { return INT32_MAX; });
  const std::size_t n = kAtomics;
  std::vector<Row> rows{
      row("add_spread", "atomicAdd, own addresses", n, whole(uint32, n), out(uint32, n),
          {QUERN_BOTH(add_spread)}, 5),
      row("add_one", "atomicAdd, one address", n, whole(uint32, n), state(uint32, 1), {QUERN_BOTH(add_one)},
          2.5),
      row("min_spread", "atomicMin, own addresses", n, whole(int32, n), out(int32, n, {}, largest),
          {QUERN_BOTH(min_spread)}, 5),
      row("min_one", "atomicMin, one address", n, whole(int32, n), state(int32, 1, largest),
          {QUERN_BOTH(min_one)}, 2.5),
      row("max_spread", "atomicMax, own addresses", n, whole(uint32, n), out(uint32, n),
          {QUERN_BOTH(max_spread)}, 5),
      row("max_one", "atomicMax, one address", n, whole(uint32, n), state(uint32, 1), {QUERN_BOTH(max_one)},
          2.5),
      row("or_spread", "atomicOr, own addresses", n, whole(uint32, n), out(uint32, n),
          {QUERN_BOTH(or_spread)}, 5),
      row("or_one", "atomicOr, one address", n, whole(uint32, n), state(uint32, 1), {QUERN_BOTH(or_one)},
          2.5),
      row("float_add_spread", "atomicAdd of f32, own addresses", n, whole(float32, n), out(float32, n),
          {QUERN_BOTH(float_add_spread)}, 5),
      row("float_add_one", "atomicAdd of f32, one address", n, whole(float32, n), state(float32, 1),
          {QUERN_BOTH(float_add_one)}, 8),
      row("cas_spread", "compare and swap, own addresses", n, whole(float32, n), out(float32, n),
          {QUERN_BOTH(float_add_spread)}, 5),
      row("cas_one", "compare and swap, one address", kCas, whole(float32, kCas), state(float32, 1),
          {QUERN_BOTH(cas_one)}, 5),
  };
  return rows;
}

}  // namespace quern::bench
