// SPDX-License-Identifier: Apache-2.0
// component: abi
// States for the generators of cuda.random, computed on the host with Numba's algorithm:
//
//   auto states = session.to_device(create_xoroshiro128p_states(blocks * threads, 1));
//   kernel(config)(states, out);      // ... xoroshiro128p_uniform_float32(states, i)
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace quern {

/// One generator. Its numbers are Numba's for the same seed.
struct Xoroshiro128pState {
  std::uint64_t s0 = 0;
  std::uint64_t s1 = 0;

  /// 64 random bits.
  constexpr std::uint64_t next() noexcept {
    const std::uint64_t result = s0 + s1, mixed = s1 ^ s0;
    s0 = rotated(s0, 55) ^ mixed ^ (mixed << 14);
    s1 = rotated(mixed, 36);
    return result;
  }
  /// 2**64 steps forward.
  constexpr void jump() noexcept {
    std::uint64_t jumped0 = 0, jumped1 = 0;
    for (const std::uint64_t bits : {0xBEAC0467EBA5FACBu, 0xD86B048B86AA9922u})
      for (int i = 0; i < 64; ++i) {
        if (bits >> i & 1) {
          jumped0 ^= s0;
          jumped1 ^= s1;
        }
        next();
      }
    s0 = jumped0;
    s1 = jumped1;
  }

 private:
  static constexpr std::uint64_t rotated(std::uint64_t x, int by) noexcept {
    return (x << by) | (x >> (64 - by));
  }
};

/// `count` generators, each 2**64 numbers after the one before, so that no two produce the same numbers; the
/// first starts `subsequence_start` such steps after the seed.
inline std::vector<Xoroshiro128pState> create_xoroshiro128p_states(std::size_t count, std::uint64_t seed,
                                                                   std::uint64_t subsequence_start = 0) {
  // SplitMix64 removes the pattern of small seeds.
  std::uint64_t z = seed + 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  z ^= z >> 31;
  Xoroshiro128pState state;
  state.s0 = state.s1 = z;
  for (std::uint64_t i = 0; i < subsequence_start; ++i) state.jump();
  std::vector<Xoroshiro128pState> states;
  states.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    states.push_back(state);
    state.jump();
  }
  return states;
}

}  // namespace quern
