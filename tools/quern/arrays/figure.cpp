// SPDX-License-Identifier: Apache-2.0
#include "arrays/figure.hpp"

#include <fmt/format.h>
#include <quern/error.hpp>

#include <charconv>
#include <cmath>

namespace quern::cli {
namespace {

constexpr int kDeepest = 100;

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  double whole() {
    const double value = sum();
    if (peek() != '\0') fail();
    return value;
  }

 private:
  [[noreturn]] void fail() const {
    throw Error(ErrorCode::usage,
                fmt::format("'{}' is no arithmetic with numbers: see character {}", text_, at_ + 1));
  }
  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(std::string_view word) {
    peek();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  double sum() {
    double value = product();
    for (;;) {
      if (accept("+"))
        value += product();
      else if (accept("-"))
        value -= product();
      else
        return value;
    }
  }
  double product() {
    double value = power();
    for (;;) {
      if (!text_.substr(at_).starts_with("**") && accept("*"))
        value *= power();
      else if (accept("/"))
        value /= power();
      else
        return value;
    }
  }
  double power() {
    if (++depth_ > kDeepest) fail();
    const bool negative = accept("-");
    double value = negative ? -power() : atom();
    if (!negative && accept("**")) value = std::pow(value, power());
    peek();
    --depth_;
    return value;
  }
  double atom() {
    if (accept("(")) {
      const double value = sum();
      if (!accept(")")) fail();
      return value;
    }
    peek();
    double value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) fail();
    at_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

double evaluate_figure(std::string_view text) { return Reader(text).whole(); }

}  // namespace quern::cli
