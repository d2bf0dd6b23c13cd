// SPDX-License-Identifier: Apache-2.0
// The literals of Python that a .npy header is made of.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <quern/expected.hpp>

namespace tool {

/// A string, whole number, bool, None, tuple, list, or dict with string keys.
struct PythonLiteral {
  struct None {};
  struct Sequence {
    bool tuple = false;
    std::vector<PythonLiteral> items;
  };
  struct Dict {
    std::vector<std::pair<std::string, PythonLiteral>> items;
  };
  std::variant<None, bool, std::int64_t, std::string, Sequence, Dict> value;

  const std::string* string() const { return std::get_if<std::string>(&value); }
  const std::int64_t* integer() const { return std::get_if<std::int64_t>(&value); }
  const bool* boolean() const { return std::get_if<bool>(&value); }
  const Sequence* sequence() const { return std::get_if<Sequence>(&value); }
  const Dict* dict() const { return std::get_if<Dict>(&value); }
};

/// Reads one literal that fills all of `text` but white space. Nesting is bounded.
quern::Expected<PythonLiteral> read_python_literal(std::string_view text);

/// A string as Python would write it, in single quotes.
std::string python_string(std::string_view text);

}  // namespace tool
