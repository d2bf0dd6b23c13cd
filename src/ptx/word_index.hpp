// SPDX-License-Identifier: Apache-2.0
// A table from words to their numbers, computed at compile time: open addressing with twice as many slots as
// words.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace quern::ptx {

template <std::size_t N>
class WordIndex {
 public:
  constexpr explicit WordIndex(const std::array<std::string_view, N>& words) : words_(words) {
    slots_.fill(kFree);
    for (std::size_t i = 0; i < N; ++i) {
      std::size_t slot = hash(words_[i]) % kSlots;
      while (slots_[slot] != kFree) slot = (slot + 1) % kSlots;
      slots_[slot] = static_cast<std::uint16_t>(i);
    }
  }

  constexpr std::optional<std::size_t> find(std::string_view word) const noexcept {
    for (std::size_t slot = hash(word) % kSlots; slots_[slot] != kFree; slot = (slot + 1) % kSlots) {
      if (words_[slots_[slot]] == word) return slots_[slot];
    }
    return std::nullopt;
  }

  constexpr std::string_view operator[](std::size_t index) const noexcept { return words_[index]; }
  static constexpr std::size_t size() noexcept { return N; }

 private:
  static constexpr std::size_t kSlots = std::bit_ceil(2 * N + 2);
  static constexpr std::uint16_t kFree = 0xffff;

  // FNV-1a, 32 bits.
  static constexpr std::size_t hash(std::string_view word) noexcept {
    std::uint32_t value = 2166136261u;
    for (const char c : word) value = (value ^ static_cast<unsigned char>(c)) * 16777619u;
    return value;
  }

  std::array<std::string_view, N> words_;
  std::array<std::uint16_t, kSlots> slots_{};
};

template <std::size_t N>
WordIndex(const std::array<std::string_view, N>&) -> WordIndex<N>;

}  // namespace quern::ptx
