// SPDX-License-Identifier: Apache-2.0
// Random PTX kernels with defined results: every thread computes on its own registers, exchanges values by
// shuffles and shared memory only where all threads are together, and writes what it has to its own places.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace quern::oracle {

struct Generated {
  std::string ptx;  ///< kernel "k" (const void* in, void* out, u32 threads)
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{1, 1, 1};
  std::uint64_t in_bytes = 0;  ///< any bits
  std::uint64_t out_bytes = 0;
  /// Each thread owns kOutWords 64-bit words of `out`: first integers, then from word kFirstFloat f32 and f64
  /// values, one a word; NaNs among those are equal whatever their bits.
};
inline constexpr unsigned kIntegerWords = 6;
inline constexpr unsigned kF32Words = 3;
inline constexpr unsigned kF64Words = 2;
inline constexpr unsigned kOutWords = kIntegerWords + kF32Words + kF64Words;

struct GenerateOptions {
  unsigned statements = 24;
  bool barriers = true;
  bool shuffles = true;
  bool memory = true;
  bool waiting = false;  ///< threads wait for each other in loops and at barriers for a part of the block
};

/// The same seed gives the same kernel everywhere.
Generated generate(std::uint64_t seed, const GenerateOptions& options = {});

}  // namespace quern::oracle
