// SPDX-License-Identifier: Apache-2.0
// numpy.random.default_rng(seed).random(), bit for bit: SeedSequence and PCG64 (XSL-RR).
// Sources: M. O'Neill, "PCG: A Family of Simple Fast Space-Efficient Statistically Good Algorithms for Random
// Number Generation" (HMC-CS-2014-0905); NumPy manual, "SeedSequence" and "PCG64".
#pragma once

#include <cstdint>

namespace quern::cli {

class Pcg64 {
 public:
  explicit Pcg64(std::uint64_t seed);
  std::uint64_t next64();
  /// Halves of one 64-bit draw, the low half first.
  std::uint32_t next32();
  double next_double() { return static_cast<double>(next64() >> 11) * 0x1p-53; }
  float next_float() { return static_cast<float>(next32() >> 8) * 0x1p-24f; }

 private:
  __extension__ using Word = unsigned __int128;
  void step();
  Word state_ = 0;
  Word increment_ = 0;
  std::uint32_t spare_ = 0;
  bool has_spare_ = false;
};

}  // namespace quern::cli
