// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace quern::oracle {

// splitmix64 (G. Steele, D. Lea, C. Flood, "Fast Splittable Pseudorandom Number Generators", 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  unsigned below(unsigned n) { return static_cast<unsigned>(next() % n); }
  bool chance(unsigned percent) { return below(100) < percent; }
  template <class T, std::size_t N>
  const T& pick(const T (&list)[N]) {
    return list[below(N)];
  }

 private:
  std::uint64_t state_;
};

// fmt::format with arguments evaluated from left to right, as in any braced list: with every compiler, the
// same seed gives the same kernel.
struct Text : std::string {
  template <class... Arguments>
  explicit Text(fmt::format_string<Arguments...> format, Arguments&&... arguments)
      : std::string(fmt::format(format, std::forward<Arguments>(arguments)...)) {}
};

}  // namespace quern::oracle
