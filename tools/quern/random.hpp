// SPDX-License-Identifier: Apache-2.0
// numpy.random.default_rng(seed).random(...), bit for bit: SeedSequence, PCG64 (XSL-RR 128/64), and how NumPy
// makes floats.
#pragma once

#include <cstdint>
#include <optional>

namespace tool {

__extension__ typedef unsigned __int128 Uint128;

/// The generator behind numpy.random.default_rng(seed) for a seed of up to 64 bits.
class Pcg64 {
 public:
  explicit Pcg64(std::uint64_t seed);

  std::uint64_t next64();
  /// The halves of next64(), the low one first.
  std::uint32_t next32();
  /// In [0, 1): 53 and 24 bits.
  double next_double() { return static_cast<double>(next64() >> 11) * 0x1p-53; }
  float next_float() { return static_cast<float>(next32() >> 8) * 0x1p-24f; }

 private:
  Uint128 state_ = 0;
  Uint128 increment_ = 0;
  std::optional<std::uint32_t> half_;
};

}  // namespace tool
