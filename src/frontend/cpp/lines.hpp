// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace quern::frontend {

/// A line of CUDA C++ and the author's line that it was made from; 0: none.
struct Line {
  std::string text;  ///< without its indentation
  int depth = 0;     ///< the number of blocks around it
  std::uint32_t source = 0;

  std::size_t indent() const { return static_cast<std::size_t>(depth) * 2; }
};

/// The statements of a function, in lines.
class Lines {
 public:
  /// The lines that follow are made from that line of the author's.
  void set_source(std::uint32_t source) { source_ = source; }
  void add(std::string text) { lines_.push_back({std::move(text), depth_, source_}); }
  /// A line that a block follows.
  void open(std::string text);
  void close(std::string text = "}");
  /// Ends a block and begins another one on the same line: `} else {`.
  void reopen(std::string text);
  /// The same, made from the author's line: `} else if (x) {`.
  void reopen_at_source(std::string text);

  /// The number of lines. cut() takes away those behind a mark.
  std::size_t mark() const { return lines_.size(); }
  std::vector<Line> cut(std::size_t mark);
  std::vector<Line> take() { return cut(0); }

 private:
  std::vector<Line> lines_;
  std::uint32_t source_ = 0;
  int depth_ = 0;
};

}  // namespace quern::frontend
