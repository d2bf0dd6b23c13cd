// SPDX-License-Identifier: Apache-2.0
#include "ptx/parse/operand_parser.hpp"

#include <fmt/format.h>

#include <limits>

#include "ptx/parse/expression.hpp"
#include "ptx/selector.hpp"

namespace quern::ptx {
namespace {

bool is_video(Opcode opcode) noexcept { return name(opcode)[0] == 'v' && opcode != Opcode::vote; }

bool names_label(Opcode opcode) noexcept { return opcode == Opcode::bra || opcode == Opcode::brx; }

}  // namespace

bool OperandParser::fail_unknown(const Token& name) {
  std::string hint;
  if (name.text.starts_with('%')) {
    NearestWord nearest(name.text);
#define QUERN_PTX_SPECIAL(id, text, type) nearest.offer(text);
#include "ptx/words.def"
    hint = nearest.hint();
  }
  return context_.fail(name, fmt::format("{} is not declared", describe(name)), std::move(hint), kName);
}

std::optional<std::uint32_t> OperandParser::parse_register_index(std::string_view what) {
  const std::optional<Token> name = context_.expect_identifier(what);
  if (!name) return std::nullopt;
  const std::optional<Entity> entity = registers_.find(*name);
  if (entity && entity->is_register) return entity->symbol.index;
  if (entity) {
    context_.fail(*name, fmt::format("'{}' is no register", name->text), {}, kName);
  } else {
    fail_unknown(*name);
  }
  return std::nullopt;
}

bool OperandParser::parse(Instruction& into, Operand& operand, std::uint32_t slot) {
  if (!parse_single(into, operand, slot)) return false;
  if (!tokens_.current().is('|')) return true;
  if (operand.as<RegisterOperand>() == nullptr && operand.as<SinkOperand>() == nullptr) return true;
  tokens_.take();
  PairOperand pair;
  pair.elements.push_back(operand);  // a copy: the pair keeps the operand's position
  if (!parse_single(into, pair.elements.emplace_back(), kNoIndex)) return false;
  operand.value = std::move(pair);
  return true;
}

bool OperandParser::parse_single(Instruction& into, Operand& operand, std::uint32_t slot) {
  const Token token = tokens_.current();
  const auto instruction = static_cast<std::uint32_t>(function_.body.size() - 1);
  if (token.is('{')) return parse_vector(into, operand);
  if (token.is('[')) return parse_bracket(into, operand);
  // Only `!%p1`, and `-%r1` of video instructions, are signs of registers; any other sign belongs to a
  // constant.
  const bool sign = token.is('!') || (token.is('-') && is_video(into.opcode));
  if (sign && tokens_.peek().kind == TokenKind::identifier && tokens_.peek().text != "WARP_SZ") {
    tokens_.take();
    if (!parse_name(operand, kNoIndex, instruction)) return false;
    auto* reg = std::get_if<RegisterOperand>(&operand.value);
    if (reg == nullptr) return context_.fail(token, "only a register can be negated");
    reg->negated = true;
    return true;
  }
  if (token.kind == TokenKind::identifier) {
    const bool plain_warp_size = token.text == "WARP_SZ" &&
                                 (tokens_.peek().is(',') || tokens_.peek().is(';') || tokens_.peek().is('}'));
    if (token.text != "WARP_SZ" || plain_warp_size) {
      const bool later = names_label(into.opcode) || slot != kNoIndex;
      return parse_name(operand, later ? slot : kNoIndex, instruction);
    }
  }
  if (starts_constant(token)) return parse_constant_operand(operand);
  return context_.fail_expected("an operand");
}

bool OperandParser::parse_constant_operand(Operand& operand) {
  const std::optional<Constant> value = parse_constant(context_);
  if (!value) return false;
  std::visit([&operand](const auto& constant) { operand.value = constant; }, *value);
  return true;
}

bool OperandParser::parse_name(Operand& operand, std::uint32_t slot, std::uint32_t instruction) {
  const Token name = tokens_.take();
  const bool label_wanted = slot != kNoIndex && names_label(function_.body[instruction].opcode);
  if (name.text == "_") {
    operand.value = SinkOperand{};
    return true;
  }
  const std::optional<Entity> entity = registers_.find(name);
  if (entity && entity->is_register) {
    RegisterOperand reg{entity->symbol.index, false, -1};
    if (!parse_register_suffix(reg)) return false;
    operand.value = reg;
    return true;
  }
  if (entity && (!label_wanted || entity->symbol.kind == SymbolKind::branch_table)) {
    // `ld.global.u32 %r1, table[2]` accesses the element; `mov.u64 %rd1, table[2]` takes its address.
    const bool access = tokens_.current().is('[') && function_.body[instruction].opcode != Opcode::mov;
    SymbolOperand symbol{entity->symbol, 0};
    if (!parse_symbol_offset(symbol.symbol, symbol.offset)) return false;
    operand.value = symbol;
    if (access) operand.value = AddressOperand{kNoIndex, symbol.symbol, symbol.offset};
    return true;
  }
  if (name.text[0] == '%' || name.text == "WARP_SZ") {
    std::string text(name.text);
    if (tokens_.current().kind == TokenKind::word) text += tokens_.current().text;
    if (const std::optional<SpecialRegister> special = special_register_named(text)) {
      if (text.size() > name.text.size()) tokens_.take();
      operand.value = SpecialOperand{*special};
      return true;
    }
    return fail_unknown(name);
  }
  if (slot == kNoIndex) return fail_unknown(name);
  context_.scopes.use_later({name.text, name.position, false, instruction, slot});
  return true;
}

bool OperandParser::parse_register_suffix(RegisterOperand& operand) {
  const Token word = tokens_.current();
  if (word.kind != TokenKind::word) return true;
  const std::optional<std::int16_t> component = component_named(word.text);
  if (!component)
    return context_.fail(word,
                         fmt::format("'{}' is no part of a register that this reader knows", word.text));
  tokens_.take();
  const Register& reg = function_.registers[operand.index];
  // ".b" can also name a vector component (blue); ".b0" always names a byte.
  if (*component < 4 && *component >= static_cast<int>(reg.vector)) {
    return context_.fail(word, fmt::format("'{}' has no component '{}'", reg.name, word.text));
  }
  operand.component = *component;
  return true;
}

// Parses `symbol+8`, or `symbol[2]` for the address of an element.
bool OperandParser::parse_symbol_offset(SymbolRef symbol, std::int64_t& offset) {
  const Token at = tokens_.current();
  if (at.is('+')) {
    const std::optional<IntegerOperand> value = parse_integer(context_, "an offset");
    if (value) offset = static_cast<std::int64_t>(value->bits);
    return value.has_value();
  }
  if (!at.is('[')) return true;
  const Variable* variable = nullptr;
  if (symbol.kind == SymbolKind::module_variable) variable = &context_.module.variables[symbol.index];
  if (symbol.kind == SymbolKind::function_variable) variable = &function_.variables[symbol.index];
  if (variable == nullptr) return context_.fail(at, "only a variable has elements");
  tokens_.take();
  if (!starts_constant(tokens_.current())) return context_.fail_expected("a constant index");
  const std::optional<IntegerOperand> index = parse_integer(context_, "an index");
  if (!index) return false;
  offset = static_cast<std::int64_t>(index->bits * byte_size(variable->type) * variable->vector);
  return context_.expect(']');
}

bool OperandParser::parse_vector(Instruction& into, Operand& operand) {
  const NestingGuard guard(context_);
  if (!guard.ok()) return false;
  tokens_.take();
  VectorOperand vector;
  do {
    if (!parse_single(into, vector.elements.emplace_back(), kNoIndex)) return false;
  } while (tokens_.accept(','));
  operand.value = std::move(vector);
  return context_.expect('}');
}

// Parses `[address]`, or the coordinates of a texture or tensor.
bool OperandParser::parse_bracket(Instruction& into, Operand& operand) {
  const NestingGuard guard(context_);
  if (!guard.ok()) return false;
  tokens_.take();
  AddressOperand address;
  if (!parse_address(address)) return false;
  if (!tokens_.current().is(',')) {
    operand.value = address;
    return context_.expect(']');
  }
  BracketOperand bracket;
  bracket.elements.emplace_back().value = address;
  while (tokens_.accept(',')) {
    if (!parse_single(into, bracket.elements.emplace_back(), kNoIndex)) return false;
  }
  operand.value = std::move(bracket);
  return context_.expect(']');
}

bool OperandParser::parse_address(AddressOperand& address) {
  const Token base = tokens_.current();
  if (base.kind != TokenKind::identifier || base.text == "WARP_SZ") {
    const std::optional<IntegerOperand> value = parse_integer(context_, "an address");
    if (value) address.offset = static_cast<std::int64_t>(value->bits);
    return value.has_value();
  }
  tokens_.take();
  const std::optional<Entity> entity = registers_.find(base);
  if (!entity) return fail_unknown(base);
  if (!entity->is_register) {
    address.symbol = entity->symbol;
    if (!parse_symbol_offset(entity->symbol, address.offset)) return false;
  } else {
    address.register_index = entity->symbol.index;
    if (tokens_.current().is('+')) {
      const std::optional<IntegerOperand> value = parse_integer(context_, "an offset");
      if (!value) return false;
      address.offset = static_cast<std::int64_t>(value->bits);
    }
  }
  if (tokens_.current().is('-'))
    return context_.fail(tokens_.current(), "an address has no '-'", "write '+-4' for an offset of -4");
  return true;
}

}  // namespace quern::ptx
