// SPDX-License-Identifier: Apache-2.0
#include "base/env.hpp"

#include <charconv>
#include <cstdlib>

namespace quern::base {
namespace {

std::nullopt_t pass_over(const char* name, const char* kind, const std::string& text, EnvComplaint complain) {
  if (complain != nullptr) complain(std::string(name) + " is not " + kind + ", and is passed over: " + text);
  return std::nullopt;
}

}  // namespace

std::optional<std::string> env(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

std::optional<std::uint64_t> env_number(const char* name, EnvComplaint complain) {
  const std::optional<std::string> text = env(name);
  if (!text) return std::nullopt;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || end != text->data() + text->size())
    return pass_over(name, "a whole number", *text, complain);
  return number;
}

std::optional<std::uint64_t> env_bytes(const char* name, EnvComplaint complain) {
  const std::optional<std::string> text = env(name);
  if (!text) return std::nullopt;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  const auto pass = [&] { return pass_over(name, "a size as in 512M or 4G", *text, complain); };
  if (error != std::errc()) return pass();
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
    return pass();
  if (shift != 0 && number > (UINT64_MAX >> shift)) return pass();
  return number << shift;
}

}  // namespace quern::base
