// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "frontend/cpp/cpp_text.hpp"

namespace quern::frontend {

/// A line of CUDA C++ and the author's line that it comes from; 0 if there is none.
struct Line {
  CppText text;   ///< without its indentation
  int depth = 0;  ///< the number of blocks around it
  std::uint32_t source = 0;
  bool is_statement = false;  ///< a whole statement, so other statements may share its line

  std::size_t indent() const { return static_cast<std::size_t>(depth) * 2; }
};

/// The statements of a function, in lines.
class Lines {
 public:
  /// The following lines come from that line of the author.
  void set_source(std::uint32_t source) { source_ = source; }
  /// Adds a whole statement.
  void add(CppText text) { lines_.push_back({std::move(text), depth_, source_, true}); }
  /// Adds a line that begins a block.
  void open(CppText text);
  void close(CppText text = "}");
  /// Ends a block and begins another one on the same line: `} else {`.
  void reopen(CppText text);
  /// The same, for a line that comes from the author's line: `} else if (x) {`.
  void reopen_at_source(CppText text);

  /// The number of lines. cut() removes those after a mark.
  std::size_t mark() const { return lines_.size(); }
  std::vector<Line> cut(std::size_t mark);
  std::vector<Line> take() { return cut(0); }

 private:
  std::vector<Line> lines_;
  std::uint32_t source_ = 0;
  int depth_ = 0;
};

}  // namespace quern::frontend
