// SPDX-License-Identifier: Apache-2.0
#include "ptx/parse/location_table.hpp"

#include <fmt/format.h>

namespace quern::ptx {

std::uint32_t LocationTable::add(SourceLocation location) {
  const auto [found, fresh] = locations_.try_emplace(
      {location.file, location.line, location.column, location.function_name, location.inlined_at},
      static_cast<std::uint32_t>(function_.locations.size()));
  if (!fresh) return found->second;
  last_at_[{location.file, location.line, location.column}] = found->second;
  function_.locations.push_back(std::move(location));
  return found->second;
}

std::uint32_t LocationTable::find_or_add(std::uint32_t file, std::uint32_t line, std::uint32_t column) {
  const auto found = last_at_.find({file, line, column});
  return found != last_at_.end() ? found->second : add({file, line, column, {}, kNoIndex});
}

bool LocationTable::parse_line_and_column(std::uint32_t& file, std::uint32_t& line, std::uint32_t& column) {
  for (std::uint32_t* into : {&file, &line, &column}) {
    const std::optional<std::uint32_t> value = context_.expect_u32("a number");
    if (!value) return false;
    *into = *value;
  }
  return true;
}

bool LocationTable::parse_loc() {
  TokenStream& tokens = context_.tokens;
  tokens.take();
  SourceLocation location;
  if (!parse_line_and_column(location.file, location.line, location.column)) return false;
  while (tokens.accept(',')) {
    const std::optional<Token> attribute = context_.expect_identifier("'function_name' or 'inlined_at'");
    if (!attribute) return false;
    if (attribute->text == "function_name") {
      const std::optional<Token> label = context_.expect_identifier("a label");
      if (!label) return false;
      location.function_name = label->text;
      if (!tokens.accept('+')) continue;
      const std::optional<std::uint32_t> offset = context_.expect_u32("an offset");
      if (!offset) return false;
      location.function_name += fmt::format("+{}", *offset);
    } else if (attribute->text == "inlined_at") {
      std::uint32_t file = 0;
      std::uint32_t line = 0;
      std::uint32_t column = 0;
      if (!parse_line_and_column(file, line, column)) return false;
      location.inlined_at = find_or_add(file, line, column);
    } else {
      return context_.fail(*attribute, fmt::format("'{}' is no part of .loc", attribute->text));
    }
  }
  current_ = add(std::move(location));
  return true;
}

}  // namespace quern::ptx
