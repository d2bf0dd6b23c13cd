// SPDX-License-Identifier: Apache-2.0
#include "frontend/cpp/lines.hpp"

#include <iterator>
#include <utility>

namespace quern::frontend {

void Lines::open(CppText text) {
  lines_.push_back({std::move(text), depth_, source_});
  ++depth_;
}

void Lines::close(CppText text) {
  --depth_;
  lines_.push_back({std::move(text), depth_, 0});
}

void Lines::reopen(CppText text) {
  close(std::move(text));
  ++depth_;
}

void Lines::reopen_at_source(CppText text) {
  reopen(std::move(text));
  lines_.back().source = source_;
}

std::vector<Line> Lines::cut(std::size_t mark) {
  const auto begin = lines_.begin() + static_cast<std::ptrdiff_t>(mark);
  std::vector<Line> behind(std::make_move_iterator(begin), std::make_move_iterator(lines_.end()));
  lines_.erase(begin, lines_.end());
  return behind;
}

}  // namespace quern::frontend
