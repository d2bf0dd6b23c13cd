// SPDX-License-Identifier: Apache-2.0
#include "arrays/random.hpp"

#include <array>
#include <bit>

namespace quern::cli {
namespace {

// SeedSequence: mixes the seed's words into a pool of four words, and hashes the output from the pool.
class SeedSequence {
 public:
  explicit SeedSequence(std::uint64_t seed) {
    const std::array<std::uint32_t, 2> entropy{static_cast<std::uint32_t>(seed),
                                               static_cast<std::uint32_t>(seed >> 32)};
    std::uint32_t constant = 0x43b0d7e5u;
    for (std::size_t i = 0; i < pool_.size(); ++i)
      pool_[i] = hash(i < entropy.size() ? entropy[i] : 0, constant);
    for (std::size_t from = 0; from < pool_.size(); ++from)
      for (std::size_t to = 0; to < pool_.size(); ++to)
        if (from != to) pool_[to] = mix(pool_[to], hash(pool_[from], constant));
  }

  std::array<std::uint64_t, 4> state() const {
    std::array<std::uint32_t, 8> words{};
    std::uint32_t constant = 0x8b51f9ddu;
    for (std::size_t i = 0; i < words.size(); ++i) {
      std::uint32_t value = pool_[i % pool_.size()] ^ constant;
      constant *= 0x58f38dedu;
      value *= constant;
      words[i] = value ^ (value >> 16);
    }
    std::array<std::uint64_t, 4> state{};
    for (std::size_t i = 0; i < state.size(); ++i)
      state[i] = words[2 * i] | (static_cast<std::uint64_t>(words[2 * i + 1]) << 32);
    return state;
  }

 private:
  static std::uint32_t hash(std::uint32_t value, std::uint32_t& constant) {
    value ^= constant;
    constant *= 0x931e8875u;
    value *= constant;
    return value ^ (value >> 16);
  }
  static std::uint32_t mix(std::uint32_t x, std::uint32_t y) {
    const std::uint32_t value = 0xca01f9ddu * x - 0x4973f715u * y;
    return value ^ (value >> 16);
  }
  std::array<std::uint32_t, 4> pool_{};
};

}  // namespace

Pcg64::Pcg64(std::uint64_t seed) {
  const std::array<std::uint64_t, 4> words = SeedSequence(seed).state();
  increment_ = (((static_cast<Word>(words[2]) << 64) | words[3]) << 1) | 1;
  step();
  state_ += (static_cast<Word>(words[0]) << 64) | words[1];
  step();
}

void Pcg64::step() {
  constexpr Word kMultiplier = (static_cast<Word>(0x2360ed051fc65da4u) << 64) | 0x4385df649fccf645u;
  state_ = state_ * kMultiplier + increment_;
}

std::uint64_t Pcg64::next64() {
  step();
  const std::uint64_t folded = static_cast<std::uint64_t>(state_ >> 64) ^ static_cast<std::uint64_t>(state_);
  return std::rotr(folded, static_cast<int>(state_ >> 122));
}

std::uint32_t Pcg64::next32() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  const std::uint64_t both = next64();
  spare_ = static_cast<std::uint32_t>(both >> 32);
  has_spare_ = true;
  return static_cast<std::uint32_t>(both);
}

}  // namespace quern::cli
