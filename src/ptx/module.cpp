// SPDX-License-Identifier: Apache-2.0
#include "ptx/module.hpp"

#include <algorithm>

namespace quern::ptx {

std::uint64_t Variable::element_count() const noexcept {
  std::uint64_t count = 1;
  for (const std::uint64_t extent : extents) count *= extent;
  return count;
}

std::uint64_t Variable::size_bytes() const noexcept { return element_count() * vector * byte_size(type); }

Space Instruction::space() const noexcept {
  struct SpaceWord {
    Modifier modifier;
    Space space;
  };
  static constexpr SpaceWord kRows[] = {
      {Modifier::global, Space::global},     {Modifier::shared, Space::shared},
      {Modifier::shared_cta, Space::shared}, {Modifier::shared_cluster, Space::shared},
      {Modifier::local, Space::local},       {Modifier::const_, Space::const_},
      {Modifier::param, Space::param},       {Modifier::param_entry, Space::param},
      {Modifier::param_func, Space::param},
  };
  for (const SpaceWord& row : kRows) {
    if (has(row.modifier)) return row.space;
  }
  return Space::none;
}

unsigned Instruction::vector_count() const noexcept {
  if (has(Modifier::v2)) return 2;
  if (has(Modifier::v4)) return 4;
  return has(Modifier::v8) ? 8 : 1;
}

bool operator==(const VectorOperand& a, const VectorOperand& b) noexcept { return a.elements == b.elements; }
bool operator==(const PairOperand& a, const PairOperand& b) noexcept { return a.elements == b.elements; }
bool operator==(const BracketOperand& a, const BracketOperand& b) noexcept {
  return a.elements == b.elements;
}

namespace {

void clear_positions(std::vector<Variable>& variables) {
  for (Variable& variable : variables) variable.position = {};
}

void clear_positions(Module& module) {
  module.address_size_position = {};
  clear_positions(module.variables);
  for (Function& function : module.functions) {
    function.position = {};
    clear_positions(function.returns);
    clear_positions(function.parameters);
    clear_positions(function.variables);
    for (CallPrototype& prototype : function.prototypes) {
      clear_positions(prototype.returns);
      clear_positions(prototype.parameters);
    }
    for (Label& label : function.labels) label.text_position = {};
    for (Instruction& instruction : function.body) instruction.position = {};
  }
}

}  // namespace

bool equal_ignoring_positions(Module a, Module b) {
  clear_positions(a);
  clear_positions(b);
  return a == b;
}

const Function* Module::find_function(std::string_view wanted) const noexcept {
  const auto found =
      std::find_if(functions.begin(), functions.end(), [&](const Function& f) { return f.name == wanted; });
  return found == functions.end() ? nullptr : &*found;
}

std::uint32_t Module::definition_of(std::uint32_t function) const noexcept {
  if (function >= functions.size()) return kNoIndex;
  if (functions[function].defined) return function;
  const auto alias = std::find_if(aliases.begin(), aliases.end(),
                                  [&](const Alias& a) { return a.name == functions[function].name; });
  if (alias == aliases.end()) return kNoIndex;
  const auto target = std::find_if(functions.begin(), functions.end(),
                                   [&](const Function& f) { return f.defined && f.name == alias->target; });
  return target == functions.end() ? kNoIndex : static_cast<std::uint32_t>(target - functions.begin());
}

}  // namespace quern::ptx
