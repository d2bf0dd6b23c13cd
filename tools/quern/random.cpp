// SPDX-License-Identifier: Apache-2.0
#include "tools/quern/random.hpp"

#include <array>
#include <bit>

namespace tool {
namespace {

// Constants of the published algorithms: M. E. O'Neill, "PCG: A Family of Simple Fast Space-Efficient
// Statistically Good Algorithms for Random Number Generation" (the 128-bit multiplier), and her seed_seq
// design as NumPy's SeedSequence uses it.
constexpr Uint128 kMultiplier = (Uint128{2549297995355413924ull} << 64) | 4865540595714422341ull;
constexpr std::uint32_t kInitA = 0x43b0d7e5, kMultA = 0x931e8875;
constexpr std::uint32_t kInitB = 0x8b51f9dd, kMultB = 0x58f38ded;
constexpr std::uint32_t kMixL = 0xca01f9dd, kMixR = 0x4973f715;
constexpr std::size_t kPoolWords = 4;

std::uint32_t fold(std::uint32_t value) { return value ^ (value >> 16); }

class SeedSequence {
 public:
  explicit SeedSequence(std::uint64_t seed) {
    const std::array<std::uint32_t, kPoolWords> entropy = {static_cast<std::uint32_t>(seed),
                                                           static_cast<std::uint32_t>(seed >> 32)};
    for (std::size_t i = 0; i < kPoolWords; ++i) pool_[i] = hash(entropy[i]);
    for (std::size_t source = 0; source < kPoolWords; ++source)
      for (std::size_t target = 0; target < kPoolWords; ++target)
        if (source != target) pool_[target] = fold(kMixL * pool_[target] - kMixR * hash(pool_[source]));
  }

  std::array<std::uint64_t, 4> generate() const {
    std::uint32_t constant = kInitB;
    std::array<std::uint64_t, 4> words{};
    for (std::size_t i = 0; i < 8; ++i) {
      std::uint32_t value = pool_[i % kPoolWords] ^ constant;
      constant *= kMultB;
      value = fold(value * constant);
      words[i / 2] |= std::uint64_t{value} << (32 * (i % 2));
    }
    return words;
  }

 private:
  std::uint32_t hash(std::uint32_t value) {
    value ^= constant_;
    constant_ *= kMultA;
    return fold(value * constant_);
  }
  std::uint32_t constant_ = kInitA;
  std::array<std::uint32_t, kPoolWords> pool_{};
};

}  // namespace

Pcg64::Pcg64(std::uint64_t seed) {
  const std::array<std::uint64_t, 4> words = SeedSequence(seed).generate();
  increment_ = (((Uint128{words[2]} << 64) | words[3]) << 1) | 1;
  state_ = (increment_ + ((Uint128{words[0]} << 64) | words[1])) * kMultiplier + increment_;
}

std::uint64_t Pcg64::next64() {
  state_ = state_ * kMultiplier + increment_;
  const auto high = static_cast<std::uint64_t>(state_ >> 64);
  return std::rotr(high ^ static_cast<std::uint64_t>(state_), static_cast<int>(high >> 58));
}

std::uint32_t Pcg64::next32() {
  if (half_) {
    const std::uint32_t high = *half_;
    half_.reset();
    return high;
  }
  const std::uint64_t both = next64();
  half_ = static_cast<std::uint32_t>(both >> 32);
  return static_cast<std::uint32_t>(both);
}

}  // namespace tool
