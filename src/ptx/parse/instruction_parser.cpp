// SPDX-License-Identifier: Apache-2.0
#include "ptx/parse/instruction_parser.hpp"

#include <fmt/format.h>

namespace quern::ptx {
namespace {

// type_positions has one bit for each word; no instruction has half as many words.
constexpr std::size_t kMaxWords = 32;

std::string nearest_opcode(std::string_view word) {
  NearestWord nearest(word);
#define QUERN_PTX_OPCODE(name, text) nearest.offer(text);
#include "ptx/isa.def"
  return nearest.hint();
}

std::string nearest_modifier(std::string_view word) {
  NearestWord nearest(word);
#define QUERN_PTX_TYPE(name, text, bits, kind) nearest.offer(text);
#define QUERN_PTX_MODIFIER(name, text) nearest.offer(text);
#include "ptx/words.def"
  return nearest.hint(".");
}

}  // namespace

bool InstructionParser::parse(std::uint32_t location) {
  Instruction& instruction = function_.body.emplace_back();
  instruction.location = location;
  const bool good =
      parse_guard(instruction) && parse_opcode(instruction) &&
      (instruction.opcode == Opcode::call ? parse_call(instruction) : parse_operands(instruction));
  if (!good) return false;
  if (tokens_.accept(';')) return true;
  if (!tokens_.on_new_line()) return context_.fail_expected("',' or ';'");
  // If a ';' is missing at the end of a line, the next line is parsed on its own.
  context_.fail(tokens_.behind_previous(), "expected ';' at the end of this line");
  return true;
}

bool InstructionParser::parse_guard(Instruction& into) {
  if (!tokens_.accept('@')) return true;
  Guard guard;
  guard.negated = tokens_.accept('!');
  const std::optional<std::uint32_t> index = operands_.parse_register_index("a predicate register");
  if (!index) return false;
  guard.register_index = *index;
  into.guard = guard;
  return true;
}

bool InstructionParser::parse_opcode(Instruction& into) {
  const Token word = tokens_.current();
  if (word.kind != TokenKind::identifier) return context_.fail_expected("an instruction");
  const std::optional<Opcode> opcode = opcode_named(word.text);
  if (!opcode)
    return context_.fail(word, fmt::format("{} is no PTX instruction", describe(word)),
                         nearest_opcode(word.text));
  tokens_.take();
  into.opcode = *opcode;
  into.position = word.position;
  while (tokens_.current().kind == TokenKind::word) {
    if (!parse_word(into)) return false;
  }
  return true;
}

bool InstructionParser::parse_word(Instruction& into) {
  const Token word = tokens_.take();
  const std::string_view text = word.text.substr(1);
  const std::size_t count = into.types.size() + into.modifier_order.size();
  if (count >= kMaxWords)
    return context_.fail(word, fmt::format("more than {} words after '{}'", kMaxWords, name(into.opcode)));
  if (const std::optional<Type> type = type_named(text)) {
    into.type_positions |= 1u << count;
    into.types.push_back(*type);
    return true;
  }
  const std::optional<Modifier> modifier = modifier_named(text);
  if (!modifier) {
    return context_.fail(word, fmt::format("'{}' is no word of a PTX instruction", word.text),
                         nearest_modifier(text));
  }
  into.modifiers.set(static_cast<std::size_t>(*modifier));
  into.modifier_order.push_back(*modifier);
  return true;
}

bool InstructionParser::parse_operands(Instruction& into) {
  if (tokens_.current().is(';')) return true;
  do {
    const auto slot = static_cast<std::uint32_t>(into.operands.size());
    into.operands.emplace_back();
    Operand operand;
    if (!operands_.parse(into, operand, slot)) return false;
    into.operands.back() = std::move(operand);
  } while (tokens_.accept(','));
  return true;
}

// Parses `call (returns), callee, (arguments), prototype;`, in which only the callee is required. The
// operands are always stored as returns, callee, arguments, and the prototype or table if there is one.
bool InstructionParser::parse_call(Instruction& into) {
  into.operands.resize(3);
  into.operands[0].value = VectorOperand{};
  into.operands[2].value = VectorOperand{};
  if (tokens_.current().is('(')) {
    VectorOperand returns;
    if (!parse_call_list(into, returns) || !context_.expect(',')) return false;
    into.operands[0].value = std::move(returns);
  }
  const Token callee = tokens_.current();
  if (!operands_.parse(into, into.operands[1], kNoIndex)) return false;
  const auto* symbol = into.operands[1].as<SymbolOperand>();
  const bool callable = into.operands[1].as<RegisterOperand>() != nullptr ||
                        (symbol != nullptr && symbol->symbol.kind == SymbolKind::function);
  if (!callable)
    return context_.fail(callee, fmt::format("{} cannot be called", describe(callee)), {}, kName);
  if (!tokens_.accept(',')) return true;
  if (tokens_.current().is('(')) {
    VectorOperand arguments;
    if (!parse_call_list(into, arguments)) return false;
    into.operands[2].value = std::move(arguments);
    if (!tokens_.accept(',')) return true;
  }
  const std::optional<Token> prototype = context_.expect_identifier("a prototype or a table of targets");
  if (!prototype) return false;
  into.operands.emplace_back();
  const auto instruction = static_cast<std::uint32_t>(function_.body.size() - 1);
  context_.scopes.use_later({prototype->text, prototype->position, false, instruction, 3});
  return true;
}

bool InstructionParser::parse_call_list(Instruction& into, VectorOperand& list) {
  tokens_.take();
  if (tokens_.accept(')')) return true;
  do {
    if (!operands_.parse(into, list.elements.emplace_back(), kNoIndex)) return false;
  } while (tokens_.accept(','));
  return context_.expect(')');
}

}  // namespace quern::ptx
