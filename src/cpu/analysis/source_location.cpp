// SPDX-License-Identifier: Apache-2.0
#include "cpu/analysis/source_location.hpp"

#include <fmt/format.h>

#include <utility>

namespace quern::cpu::analysis {
namespace {

const ir::Location* location_of(const ir::Function& function, ir::Value value) {
  if (value == ir::kNone || function[value].location >= function.locations.size()) return nullptr;
  return &function.locations[function[value].location];
}

}  // namespace

Span span_of(const ir::Function& function, ir::Value value) {
  const ir::Location* location = location_of(function, value);
  if (location == nullptr || location->line == 0) return {};
  const ir::Location& at = ir::author_location(function.locations, *location);
  return {at.file, at.line, at.column, 0};
}

std::string line_of(const ir::Function& function, ir::Value value) {
  const ir::Location* location = location_of(function, value);
  if (location != nullptr && location->line != 0)
    return fmt::format("line {}", ir::author_location(function.locations, *location).line);
  if (location != nullptr && location->ptx_line != 0) return fmt::format("PTX line {}", location->ptx_line);
  return "an unknown line";
}

ir::Value located_value(const ir::Function& function, ir::BlockId block) {
  const std::vector<ir::Value>& insts = function.blocks[block].insts;
  for (auto value = insts.rbegin(); value != insts.rend(); ++value)
    if (location_of(function, *value) != nullptr) return *value;
  return ir::kNone;
}

Diagnostic unsupported(const ir::Function& function, ir::Value value, std::string message, std::string hint) {
  Diagnostic diagnostic;
  diagnostic.code = "ptx-unsupported";
  diagnostic.span = span_of(function, value);
  diagnostic.message = std::move(message);
  const ir::Location* location = location_of(function, value);
  if (location != nullptr && location->ptx_line != 0)
    diagnostic.message += fmt::format(" (PTX line {})", location->ptx_line);
  diagnostic.hint = std::move(hint);
  return diagnostic;
}

}  // namespace quern::cpu::analysis
