// SPDX-License-Identifier: Apache-2.0
// Prints instructions and operands as text.
#include <fmt/format.h>

#include <iterator>

#include "ptx/printer.hpp"
#include "ptx/selector.hpp"

namespace quern::ptx {
namespace {

class OperandPrinter {
 public:
  OperandPrinter(const Module& module, const Function& function, Opcode opcode, std::string& out)
      : module_(module), function_(function), opcode_(opcode), out_(out) {}

  void print(const Operand& operand) {
    std::visit([this](const auto& value) { (*this)(value); }, operand.value);
  }
  void list(const std::vector<Operand>& elements, std::string_view separator) {
    for (std::size_t i = 0; i < elements.size(); ++i) {
      if (i > 0) out_ += separator;
      print(elements[i]);
    }
  }

  void operator()(const SinkOperand&) { out_ += '_'; }
  void operator()(const RegisterOperand& reg) {
    if (reg.negated) out_ += name(opcode_)[0] == 'v' && opcode_ != Opcode::vote ? '-' : '!';
    out_ += register_name(reg.index);
    if (reg.component >= 0) out_ += component_text(reg.component);
  }
  void operator()(const IntegerOperand& integer);
  void operator()(const FloatOperand& number) {
    fmt::format_to(std::back_inserter(out_), fmt::runtime(number.single ? "0f{:08X}" : "0d{:016X}"),
                   number.bits);
  }
  void operator()(const SymbolOperand& symbol) {
    out_ += symbol_name(module_, function_, symbol.symbol);
    if (symbol.offset != 0) fmt::format_to(std::back_inserter(out_), "+{}", symbol.offset);
  }
  void operator()(const AddressOperand& address) {
    out_ += '[';
    (this->address)(address);
    out_ += ']';
  }
  void operator()(const SpecialOperand& special) { out_ += name(special.which); }
  void operator()(const VectorOperand& vector) {
    out_ += '{';
    list(vector.elements, ", ");
    out_ += '}';
  }
  void operator()(const PairOperand& pair) { list(pair.elements, "|"); }
  void operator()(const BracketOperand& bracket) {
    out_ += '[';
    for (std::size_t i = 0; i < bracket.elements.size(); ++i) {
      if (i > 0) out_ += ", ";
      const auto* base = bracket.elements[i].as<AddressOperand>();
      if (i == 0 && base != nullptr) {
        address(*base);
      } else {
        print(bracket.elements[i]);
      }
    }
    out_ += ']';
  }

 private:
  std::string_view register_name(std::uint32_t index) const {
    return index < function_.registers.size() ? std::string_view(function_.registers[index].name) : "?";
  }
  void address(const AddressOperand& address);

  const Module& module_;
  const Function& function_;
  Opcode opcode_;
  std::string& out_;
};

void OperandPrinter::operator()(const IntegerOperand& integer) {
  const auto value = static_cast<std::int64_t>(integer.bits);
  if (!integer.is_unsigned && integer.bits == std::uint64_t{1} << 63) {
    out_ += "(-9223372036854775807-1)";  // the literal -9223372036854775808 would be unsigned
  } else if (!integer.is_unsigned) {
    fmt::format_to(std::back_inserter(out_), "{}", value);
  } else {
    fmt::format_to(std::back_inserter(out_), "{}{}", integer.bits, value >= 0 ? "U" : "");
  }
}

void OperandPrinter::address(const AddressOperand& address) {
  const bool based = address.register_index != kNoIndex || address.symbol;
  if (address.register_index != kNoIndex) out_ += register_name(address.register_index);
  if (address.symbol) out_ += symbol_name(module_, function_, *address.symbol);
  if (!based) fmt::format_to(std::back_inserter(out_), "{}", address.offset);
  if (based && address.offset != 0) fmt::format_to(std::back_inserter(out_), "+{}", address.offset);
}

void print_words(const Instruction& instruction, std::string& out) {
  std::size_t type = 0;
  std::size_t modifier = 0;
  for (std::size_t i = 0; i < instruction.types.size() + instruction.modifier_order.size(); ++i) {
    const bool is_type = type < instruction.types.size() && (modifier >= instruction.modifier_order.size() ||
                                                             ((instruction.type_positions >> i) & 1u) != 0);
    out += '.';
    out += is_type ? name(instruction.types[type++]) : name(instruction.modifier_order[modifier++]);
  }
}

void print_call(const Instruction& instruction, OperandPrinter& printer, std::string& out) {
  const auto list = [&](const Operand& operand) {
    const auto* vector = operand.as<VectorOperand>();
    out += '(';
    if (vector != nullptr) printer.list(vector->elements, ", ");
    out += ')';
  };
  const auto empty = [](const Operand& operand) {
    const auto* vector = operand.as<VectorOperand>();
    return vector == nullptr || vector->elements.empty();
  };
  const std::vector<Operand>& operands = instruction.operands;
  if (operands.size() < 3) return;
  out += ' ';
  if (!empty(operands[0])) {
    list(operands[0]);
    out += ", ";
  }
  printer.print(operands[1]);
  if (!empty(operands[2]) || operands.size() > 3) {
    out += ", ";
    list(operands[2]);
  }
  if (operands.size() > 3) {
    out += ", ";
    printer.print(operands[3]);
  }
}

template <class T>
std::string_view name_at(const std::vector<T>& items, std::uint32_t index) {
  return index < items.size() ? std::string_view(items[index].name) : "?";
}

}  // namespace

std::string_view symbol_name(const Module& module, const Function& function, SymbolRef symbol) {
  switch (symbol.kind) {
    case SymbolKind::module_variable:
      return name_at(module.variables, symbol.index);
    case SymbolKind::function_variable:
      return name_at(function.variables, symbol.index);
    case SymbolKind::parameter:
      return name_at(function.parameters, symbol.index);
    case SymbolKind::return_parameter:
      return name_at(function.returns, symbol.index);
    case SymbolKind::function:
      return name_at(module.functions, symbol.index);
    case SymbolKind::label:
      return name_at(function.labels, symbol.index);
    case SymbolKind::branch_table:
      return name_at(function.branch_tables, symbol.index);
    case SymbolKind::call_prototype:
      return name_at(function.prototypes, symbol.index);
  }
  return "?";
}

std::string instruction_name(const Instruction& instruction) {
  std::string out(name(instruction.opcode));
  print_words(instruction, out);
  return out;
}

std::string print(const Module& module, const Function& function, const Instruction& instruction) {
  std::string out;
  OperandPrinter printer(module, function, instruction.opcode, out);
  if (instruction.guard) {
    out += instruction.guard->negated ? "@!" : "@";
    printer(RegisterOperand{instruction.guard->register_index, false, -1});
    out += ' ';
  }
  out += name(instruction.opcode);
  print_words(instruction, out);
  if (instruction.opcode == Opcode::call) {
    print_call(instruction, printer, out);
  } else if (!instruction.operands.empty()) {
    out += ' ';
    printer.list(instruction.operands, ", ");
  }
  return out;
}

}  // namespace quern::ptx
