// SPDX-License-Identifier: Apache-2.0
// The ARG language of the command line and of case files:
//   arg     := [NAME '='] value
//   value   := tuple | '#' N | number | 'true' | 'false' | DTYPE '(' number [',' number] ')' | 'value(' file
//   ')' | call | file call    := ('zeros' | 'ones' | 'empty') '(' shape [',' DTYPE] ')' | 'full(' shape ','
//   number
//   [',' DTYPE] ')'
//            | 'arange(' [start ','] stop [',' step] [',' DTYPE] ')' | 'linspace(' start ',' stop [',' num]
//            [',' DTYPE] ')' | 'random(' shape [',' DTYPE] [', seed=' N] ')'
//   file    := PATH '.npy' ( '[' index, ... ']' | '.T' )*        index := N | [start] ':' [stop] [':' step] |
//   '...'
//   tuple   := '(' item ',' [item ',' ...] [item] ')'    item := number | 'true' | 'false' | DTYPE '(' ...
//   ')'
// Positional arguments may also be given by their NumPy names (shape=, dtype=, ...). Defaults are NumPy's;
// seed's is 0.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "arrays/array.hpp"
#include "arrays/scalar.hpp"

namespace quern::cli {

/// `#2`: the first extent... of argument 2: its number of elements along axis 0.
struct LengthOf {
  unsigned argument = 0;
};
/// `value(x.npy)`: the one element of the array, passed by value.
struct ByValue {
  Array array;
};

/// `(3, 4.5)`: a tuple of Kernel Python.
struct TupleOf {
  std::vector<Scalar> items;
};

struct Argument {
  std::string text;                 ///< as given
  std::optional<std::string> name;  ///< from NAME=
  std::variant<Scalar, LengthOf, ByValue, Array, TupleOf> value;
  bool unwritten = false;  ///< empty(...): its contents count as not yet written
};

/// Parses and evaluates one argument. File names are relative to `directory` (empty: the current one). Throws
/// quern::Error: usage for text that is not an argument (the message points at the error), io for files.
Argument parse_argument(std::string_view text, const std::string& directory = {});

/// "16", "16x16", "8x8x4" -> {x, y, z}. Throws quern::Error (usage) naming `option`.
std::array<std::uint32_t, 3> parse_dimensions(std::string_view text, std::string_view option);

}  // namespace quern::cli
