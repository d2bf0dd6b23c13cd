// SPDX-License-Identifier: Apache-2.0
// The small language of arguments: numbers and their arithmetic as in Python, tuples, names, calls, slices.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/quern/number.hpp"

namespace tool {

struct Expression;

/// name(positional..., keyword=...)
struct Call {
  std::string name;
  std::vector<Expression> positional;
  std::vector<std::pair<std::string, Expression>> keywords;
};

/// A value of the language: a number, a tuple, a bare name (a dtype), or a call that is not evaluated yet.
struct Expression {
  enum class Kind : std::uint8_t { number, tuple, name, call };
  Kind kind = Kind::number;
  Number number;
  std::vector<Expression> items;  ///< of a tuple
  std::string name;
  std::shared_ptr<const Call> call;
  std::string text;  ///< as it was written
};

/// One part of [...]: a place, a slice, `...` or a new axis.
struct Index {
  enum class Kind : std::uint8_t { place, slice, ellipsis, new_axis };
  Kind kind = Kind::place;
  std::optional<std::int64_t> start;  ///< of a slice, or the place
  std::optional<std::int64_t> stop;
  std::optional<std::int64_t> step;
};

/// What `#2`, `#2.size` and `#2.shape[1]` stand for.
using Lookup = std::function<Number(std::size_t argument, std::string_view attribute, std::size_t axis)>;

/// Reads all of `text`. Throws quern::Error(usage) with the text and the place of what is wrong.
Expression read_expression(std::string_view text, const Lookup& lookup);

/// Reads the inside of [...] of an array.
std::vector<Index> read_indices(std::string_view text, const Lookup& lookup);

/// A number with no lookups: "2*256**3".
Number evaluate_number(std::string_view text);

}  // namespace tool
