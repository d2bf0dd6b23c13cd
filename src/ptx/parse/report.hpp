// SPDX-License-Identifier: Apache-2.0
// Collects the errors of one run over a PTX text, each with its position and source line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ptx/parse/lexer.hpp"
#include "quern/diagnostic.hpp"

namespace quern::ptx {

inline constexpr std::string_view kSyntax = "ptx-syntax";
inline constexpr std::string_view kName = "ptx-name";
inline constexpr std::string_view kForm = "ptx-form";
inline constexpr std::string_view kVersion = "ptx-version";

class Report {
 public:
  Report(std::string_view text, std::string_view file, std::uint32_t max_errors)
      : text_(text), file_(file), max_errors_(max_errors) {}

  /// Adds an error at `token`. Errors beyond the limit and further errors at the same position are dropped.
  void error(std::string_view code, const Token& token, std::string message, std::string hint = {});
  /// Adds an error at a position whose text is not available.
  void error(std::string_view code, TextPosition at, std::string message, std::string hint = {});

  bool empty() const noexcept { return errors_.empty(); }
  bool full() const noexcept { return errors_.size() >= max_errors_; }
  Diagnostics take() && { return std::move(errors_); }

 private:
  std::string line_around(std::string_view token) const;

  std::string_view text_;
  std::string_view file_;
  std::uint32_t max_errors_;
  TextPosition last_;
  Diagnostics errors_;
};

/// Finds the word of `known` (a table's names by index) closest to `word`, as a hint: "did you mean 'add'?".
/// The hint is empty if no word is close.
class NearestWord {
 public:
  explicit NearestWord(std::string_view word) : word_(word) {}
  void offer(std::string_view candidate);
  std::string hint(std::string_view prefix = {}) const;

 private:
  std::string_view word_;
  std::string_view best_;
  std::size_t distance_ = 3;  ///< one more than the largest distance of a useful hint
};

}  // namespace quern::ptx
