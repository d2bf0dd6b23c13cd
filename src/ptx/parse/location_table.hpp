// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "ptx/parse/context.hpp"

namespace quern::ptx {

/// The source locations of a function while it is read, each stored once.
class LocationTable {
 public:
  LocationTable(ParseContext& context, Function& function) : context_(context), function_(function) {}

  /// The location of the instructions that follow, or kNoIndex if none is known.
  std::uint32_t current() const noexcept { return current_; }
  /// Parses `.loc file line column [, function_name label[+offset], inlined_at file line column]`.
  bool parse_loc();

 private:
  bool parse_line_and_column(std::uint32_t& file, std::uint32_t& line, std::uint32_t& column);
  std::uint32_t add(SourceLocation location);
  std::uint32_t find_or_add(std::uint32_t file, std::uint32_t line, std::uint32_t column);

  ParseContext& context_;
  Function& function_;
  std::uint32_t current_ = kNoIndex;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::string, std::uint32_t>, std::uint32_t>
      locations_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t> last_at_;
};

}  // namespace quern::ptx
