// SPDX-License-Identifier: Apache-2.0
#include "base/env.hpp"

#include <charconv>
#include <cstdlib>

namespace quern::base {

std::optional<std::string> env(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

std::optional<std::uint64_t> env_number(const char* name) {
  const std::optional<std::string> text = env(name);
  if (!text) return std::nullopt;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return number;
}

std::optional<std::uint64_t> env_bytes(const char* name) {
  const std::optional<std::string> text = env(name);
  if (!text) return std::nullopt;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc()) return std::nullopt;
  const std::string suffix(end, text->data() + text->size());
  unsigned shift = 0;
  if (suffix == "K" || suffix == "k")
    shift = 10;
  else if (suffix == "M" || suffix == "m")
    shift = 20;
  else if (suffix == "G" || suffix == "g")
    shift = 30;
  else if (suffix == "T" || suffix == "t")
    shift = 40;
  else if (!suffix.empty())
    return std::nullopt;
  if (shift != 0 && number > (UINT64_MAX >> shift)) return std::nullopt;
  return number << shift;
}

}  // namespace quern::base
