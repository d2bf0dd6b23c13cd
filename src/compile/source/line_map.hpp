// SPDX-License-Identifier: Apache-2.0
// Applies the `#line` directives of CUDA C++ source: maps its lines to the file and the line that messages
// name, and to the text of that line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quern::compile {

class LineMap {
 public:
  /// `source` must outlive the map. `file_name` is the file of the lines before the first directive. Without
  /// `directives`, for languages that have none, all lines belong to that file.
  LineMap(std::string_view source, std::string file_name, bool directives = true);

  /// Every name that lines of the source have, each once.
  std::vector<std::string> file_names() const;
  /// The text of the line that messages call `line` of `file`. Nothing if there is none, or more than one, or
  /// if a directive is inside a conditional, which only a preprocessor can evaluate.
  std::optional<std::string_view> text_of(std::string_view file, std::uint32_t line) const;

 private:
  /// Lines that follow each other in the source and in the count.
  struct LineRun {
    std::string file;
    std::uint32_t line;   ///< the number of the first one
    std::size_t begin;    ///< its line in the source, from 0
    std::size_t end = 0;  ///< behind the last one
  };

  void read_directives(std::string_view source);

  std::vector<std::string_view> lines_;
  std::vector<LineRun> stretches_;
  bool certain_ = true;
};

/// The string literal at the beginning of `text`, with its escapes resolved; nothing if there is none.
std::optional<std::string> string_literal(std::string_view text);

}  // namespace quern::compile
