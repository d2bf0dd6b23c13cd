// SPDX-License-Identifier: Apache-2.0
#include "base/env.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <functional>
#include <set>

#include "base/log.hpp"
#include "base/thread_annotations.hpp"

namespace quern::base {
namespace {

std::nullopt_t pass_over(const char* name, const std::string& kind, const std::string& text,
                         EnvComplaint complain) {
  if (complain != nullptr)
    complain(name, std::string(name) + " is not " + kind + ", and is ignored: " + text);
  return std::nullopt;
}

/// The warnings that this process has already printed.
struct Warnings {
  Mutex mutex;
  std::set<std::string, std::less<>> given QUERN_GUARDED_BY(mutex);
};

/// "baseline, avx2 or avx512".
std::string choice_text(std::span<const std::string_view> words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

}  // namespace

void warn_of_env(const char* variable, std::string_view message) {
  static auto* const warnings = new Warnings;  // outlives every static object
  {
    const LockGuard lock(warnings->mutex);
    if (!warnings->given.emplace(message).second) return;
  }
  log({LogLevel::warning, std::string(message), {{"variable", variable}}});
}

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

std::optional<double> env_real(const char* name, const EnvRange& range, EnvComplaint complain) {
  const std::optional<std::string> text = env(name);
  if (!text) return std::nullopt;
  double number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  const bool good = error == std::errc() && end == text->data() + text->size();
  if (!good || !(number >= range.least && number <= range.most))
    return pass_over(name, range.kind, *text, complain);
  return number;
}

std::optional<std::size_t> env_word(const char* name, std::span<const std::string_view> words,
                                    EnvComplaint complain) {
  const std::optional<std::string> text = env(name);
  if (!text) return std::nullopt;
  const auto found = std::find(words.begin(), words.end(), *text);
  if (found == words.end()) return pass_over(name, choice_text(words), *text, complain);
  return static_cast<std::size_t>(found - words.begin());
}

std::optional<bool> env_switch(const char* name, EnvComplaint complain) {
  constexpr std::string_view kWords[] = {"0", "1"};
  const std::optional<std::size_t> word = env_word(name, kWords, complain);
  if (!word) return std::nullopt;
  return *word == 1;
}

}  // namespace quern::base
