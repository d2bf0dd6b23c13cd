// SPDX-License-Identifier: Apache-2.0
#include "ptx/check/call_check.hpp"

#include <fmt/format.h>

#include "ptx/check/operand_check.hpp"
#include "ptx/printer.hpp"

namespace quern::ptx {
namespace {

using Problem = std::optional<std::string>;

struct Signature {
  const std::vector<Variable>* returns = nullptr;
  const std::vector<Variable>* parameters = nullptr;
};

const std::vector<Operand>& elements_of(const Operand& list) {
  static const std::vector<Operand> none;
  const auto* vector = list.as<VectorOperand>();
  return vector == nullptr ? none : vector->elements;
}

// An argument may be a register (for a vector in .reg space, a vector register of its length), a constant, or
// a .param variable of the function with the parameter's size.
bool fits(const Function& function, const Operand& argument, const Variable& parameter, bool returned) {
  if (const auto* reg = argument.as<RegisterOperand>()) {
    const Register& declared = function.registers[reg->index];
    const std::uint8_t length = reg->component < 0 ? declared.vector : std::uint8_t{1};
    return !reg->negated && parameter.extents.empty() && length == parameter.vector &&
           register_fits(declared.type, parameter.type, false);
  }
  if (const auto* symbol = argument.as<SymbolOperand>()) {
    if (symbol->symbol.kind != SymbolKind::function_variable) return false;
    const Variable& variable = function.variables[symbol->symbol.index];
    return variable.space == Space::param && variable.size_bytes() == parameter.size_bytes();
  }
  if (returned) return argument.as<SinkOperand>() != nullptr;
  if (parameter.vector > 1) return false;
  return argument.as<IntegerOperand>() != nullptr || argument.as<FloatOperand>() != nullptr;
}

Problem check_list(const Function& function, const std::vector<Operand>& arguments,
                   const std::vector<Variable>& parameters, bool returned, std::string_view callee) {
  const std::string_view what = returned ? "return value" : "argument";
  if (arguments.size() != parameters.size()) {
    return fmt::format("'{}' has {} {}s; this call gives {}", callee, parameters.size(), what,
                       arguments.size());
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!fits(function, arguments[i], parameters[i], returned))
      return fmt::format("{} {} does not fit what '{}' declares", what, i + 1, callee);
  }
  return std::nullopt;
}

// Returns the signature of the callee, of the prototype, or of the first function in a table.
std::optional<Signature> signature_of(const Module& module, const Function& function,
                                      const Instruction& call) {
  SymbolRef symbol;
  if (const auto* direct = call.operands[1].as<SymbolOperand>()) {
    symbol = direct->symbol;
  } else {
    if (call.operands.size() < 4) return std::nullopt;
    const auto* named = call.operands[3].as<SymbolOperand>();
    if (named == nullptr) return std::nullopt;
    symbol = named->symbol;
    if (symbol.kind == SymbolKind::branch_table) {
      const std::vector<SymbolRef>& targets = function.branch_tables[symbol.index].targets;
      if (targets.empty()) return std::nullopt;
      symbol = targets[0];
    }
  }
  if (symbol.kind == SymbolKind::call_prototype) {
    const CallPrototype& prototype = function.prototypes[symbol.index];
    return Signature{&prototype.returns, &prototype.parameters};
  }
  if (symbol.kind != SymbolKind::function) return std::nullopt;
  return Signature{&module.functions[symbol.index].returns, &module.functions[symbol.index].parameters};
}

}  // namespace

std::optional<std::string> check_call(const Module& module, const Function& function,
                                      const Instruction& call) {
  if (call.operands.size() < 3) return "a call needs a callee";
  const std::optional<Signature> signature = signature_of(module, function, call);
  if (!signature) return "a call through a register needs a prototype or a table of targets";
  const auto* direct = call.operands[1].as<SymbolOperand>();
  if (direct != nullptr && module.functions[direct->symbol.index].entry) return "a kernel cannot be called";
  if (const auto* reg = call.operands[1].as<RegisterOperand>()) {
    const Type type = function.registers[reg->index].type;
    if (!register_fits(type, Type::u64, false) && !register_fits(type, Type::u32, false))
      return "the callee's address must be an integer register";
  }
  const std::string_view callee =
      direct == nullptr ? "the prototype" : symbol_name(module, function, direct->symbol);
  if (Problem problem =
          check_list(function, elements_of(call.operands[0]), *signature->returns, true, callee))
    return problem;
  return check_list(function, elements_of(call.operands[2]), *signature->parameters, false, callee);
}

}  // namespace quern::ptx
