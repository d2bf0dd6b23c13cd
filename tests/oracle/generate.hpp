// SPDX-License-Identifier: Apache-2.0
// Generates random PTX kernels with defined results. Every thread computes with its own registers. Threads
// exchange values by shuffles and shared memory only where all threads are together, use shared counters by
// atomic operations whose order does not matter, and write results to separate addresses.
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

/// The contents of `out`: first kOutWords 64-bit words for each thread, integers, then f32 and f64 values,
/// one in each word (f64 NaNs are equal whatever their bits are); then kScratchWords 32-bit integers for each
/// thread; then kAccumulators 64-bit words that all threads update.
inline constexpr unsigned kIntegerWords = 6;
inline constexpr unsigned kF32Words = 3;
inline constexpr unsigned kF64Words = 2;
inline constexpr unsigned kOutWords = kIntegerWords + kF32Words + kF64Words;
inline constexpr unsigned kScratchWords = 8;
inline constexpr unsigned kAccumulators = 8;
/// `out` contains this before the launch.
inline constexpr std::uint8_t kOutFill = 0x5a;

struct GenerateOptions {
  unsigned statements = 24;
  bool barriers = true;
  bool shuffles = true;
  bool memory = true;
  bool waiting = false;  ///< threads wait for each other in loops and at barriers for a part of the block
  bool indices = false;  ///< mostly arithmetic of indices: divisions by one number for all threads, bounds
  std::optional<Extents> block;  ///< otherwise chosen by the seed
};

/// The same seed and options always give the same kernel.
Generated generate(std::uint64_t seed, const GenerateOptions& options = {});

/// Data for the kernel. `set` selects the kind: mixed magnitudes, boundary values of integers and of
/// floating-point numbers, equal values in all threads, values that grow with the thread, zeros, or random
/// bits.
std::vector<std::byte> input_of(const Generated& kernel, std::uint64_t seed, unsigned set);

/// Returns the first significant difference as text; empty if there is none.
std::string difference(const Generated& kernel, const std::vector<std::byte>& expected,
                       const std::vector<std::byte>& got);

}  // namespace quern::oracle
