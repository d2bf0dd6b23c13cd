// SPDX-License-Identifier: Apache-2.0
// Random PTX kernels with defined results: every thread computes on its own registers, exchanges values by
// shuffles and shared memory only where all threads are together, uses shared counters by atomic operations
// whose order does not matter, and writes its results to its own addresses.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace quern::oracle {

using Extents = std::array<std::uint32_t, 3>;

struct Generated {
  std::string ptx;  ///< kernel "k" (const void* in, void* out, u32 threads)
  Extents grid{1, 1, 1};
  Extents block{1, 1, 1};
  std::uint64_t in_bytes = 0;  ///< any bits
  std::uint64_t out_bytes = 0;
  std::uint64_t threads = 0;  ///< of the grid
};

/// The contents of `out`: kOutWords 64-bit words for each thread, first integers, then f32 and f64 values,
/// one a word (NaNs among the f64 values are equal for any bits); kScratchWords 32-bit words for each
/// thread, integers; kAccumulators 64-bit words that all threads update.
inline constexpr unsigned kIntegerWords = 6;
inline constexpr unsigned kF32Words = 3;
inline constexpr unsigned kF64Words = 2;
inline constexpr unsigned kOutWords = kIntegerWords + kF32Words + kF64Words;
inline constexpr unsigned kScratchWords = 8;
inline constexpr unsigned kAccumulators = 8;
/// `out` is filled with this before the launch.
inline constexpr std::uint8_t kOutFill = 0x5a;

struct GenerateOptions {
  unsigned statements = 24;
  bool barriers = true;
  bool shuffles = true;
  bool memory = true;
  bool waiting = false;  ///< threads wait for each other in loops and at barriers for a part of the block
  std::optional<Extents> block;  ///< otherwise chosen by the seed
};

/// The same seed and options give the same kernel everywhere.
Generated generate(std::uint64_t seed, const GenerateOptions& options = {});

/// Data for the kernel: the kinds of data, by `set`, are mixed magnitudes, boundary values of integers and of
/// floating-point numbers, the same in all threads, growing with the thread, zeros, and any bits.
std::vector<std::byte> input_of(const Generated& kernel, std::uint64_t seed, unsigned set);

/// The first significant difference, as text; empty if there is none.
std::string difference(const Generated& kernel, const std::vector<std::byte>& expected,
                       const std::vector<std::byte>& got);

}  // namespace quern::oracle
