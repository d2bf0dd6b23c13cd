// SPDX-License-Identifier: Apache-2.0
#include "ptx/parse/register_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace quern::ptx {
namespace {

void renumber(Operand& operand, const std::vector<std::uint32_t>& new_index) {
  if (auto* reg = std::get_if<RegisterOperand>(&operand.value)) reg->index = new_index[reg->index];
  if (auto* address = std::get_if<AddressOperand>(&operand.value);
      address != nullptr && address->register_index != kNoIndex) {
    address->register_index = new_index[address->register_index];
  }
  const auto all = [&](std::vector<Operand>& elements) {
    for (Operand& element : elements) renumber(element, new_index);
  };
  if (auto* vector = std::get_if<VectorOperand>(&operand.value)) all(vector->elements);
  if (auto* pair = std::get_if<PairOperand>(&operand.value)) all(pair->elements);
  if (auto* bracket = std::get_if<BracketOperand>(&operand.value)) all(bracket->elements);
}

}  // namespace

std::optional<std::uint32_t> RegisterTable::add(std::string_view name, Type type, std::uint8_t vector,
                                                Order order) {
  if (context_.register_count >= context_.limits.max_registers) {
    context_.fail(context_.tokens.current(),
                  fmt::format("more than {} registers", context_.limits.max_registers));
    return std::nullopt;
  }
  ++context_.register_count;
  function_.registers.push_back({std::string(name), type, vector});
  order_.push_back(order);
  return static_cast<std::uint32_t>(function_.registers.size() - 1);
}

std::optional<Entity> RegisterTable::find(const Token& name) {
  return context_.scopes.find(name.text, [&](const RegisterRange& range, std::uint32_t number) {
    return add(name.text, range.type, range.vector, {range.sequence, number});
  });
}

void RegisterTable::sort() {
  if (std::is_sorted(order_.begin(), order_.end())) return;
  std::vector<std::uint32_t> by_declaration(order_.size());
  std::iota(by_declaration.begin(), by_declaration.end(), 0u);
  std::sort(by_declaration.begin(), by_declaration.end(),
            [this](std::uint32_t a, std::uint32_t b) { return order_[a] < order_[b]; });
  std::vector<std::uint32_t> new_index(by_declaration.size());
  std::vector<Register> sorted;
  sorted.reserve(by_declaration.size());
  for (std::uint32_t i = 0; i < by_declaration.size(); ++i) {
    new_index[by_declaration[i]] = i;
    sorted.push_back(std::move(function_.registers[by_declaration[i]]));
  }
  function_.registers = std::move(sorted);
  for (Instruction& instruction : function_.body) {
    if (instruction.guard) instruction.guard->register_index = new_index[instruction.guard->register_index];
    for (Operand& operand : instruction.operands) renumber(operand, new_index);
  }
}

}  // namespace quern::ptx
