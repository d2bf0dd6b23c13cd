// SPDX-License-Identifier: Apache-2.0
// Prints modules as text that parses back to an equal module. PTX requires that names are declared before
// their use. So if anything refers to a later symbol, declarations of all symbols come first.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <unordered_map>

#include "ptx/printer.hpp"

namespace quern::ptx {
namespace {

constexpr std::size_t kLineLength = 100;

class ModulePrinter {
 public:
  explicit ModulePrinter(const Module& module) : module_(module) {}
  std::string run();

 private:
  template <class... Arguments>
  void write(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Arguments>(arguments)...);
  }
  void header();
  void linkage(Linkage linkage);
  void variable(const Variable& variable, bool initialized);
  void initializer(const Variable& variable);
  void rows(const Variable& variable, std::size_t dimension, std::size_t& next);
  void element(const Variable& variable, const Initializer& value);
  bool functions_refer_forward() const;
  bool variables_refer_forward() const;
  bool variables_refer_to_functions() const;

  void parameter(const Variable& parameter);
  void parameters(const std::vector<Variable>& list);
  void signature(const Function& function);
  void performance(const Function& function);
  void function(const Function& function);
  void registers(const Function& function);
  void body(const Function& function);
  void tables_at(const Function& function, std::uint32_t position);
  void location(const Function& function, std::uint32_t index);
  void locations_up_to(const Function& function, std::uint32_t end);

  const Module& module_;
  std::string out_;
  std::size_t next_label_ = 0;
  std::size_t next_pragma_ = 0;
  std::size_t next_table_ = 0;
  std::size_t next_prototype_ = 0;
  std::uint32_t next_location_ = 0;
  std::uint32_t current_location_ = kNoIndex;
};

std::string_view linkage_word(Linkage linkage) noexcept {
  switch (linkage) {
    case Linkage::none:
      return "";
    case Linkage::extern_:
      return ".extern ";
    case Linkage::visible:
      return ".visible ";
    case Linkage::weak:
      return ".weak ";
    case Linkage::common:
      return ".common ";
  }
  return "";
}

std::uint32_t natural_alignment(const Variable& variable) noexcept {
  return std::max(byte_size(variable.type) * variable.vector, 1u);
}

bool is_function(const Module& module, std::string_view symbol) {
  return module.find_function(symbol) != nullptr;
}

std::string extents(const Variable& variable) {
  std::string out;
  for (std::size_t i = 0; i < variable.extents.size(); ++i) {
    out += i == 0 && variable.extents[i] == 0 ? "[]" : fmt::format("[{}]", variable.extents[i]);
  }
  return out;
}

void ModulePrinter::header() {
  write(".version {}.{}\n.target sm_{}", module_.version_major, module_.version_minor, module_.sm);
  if (module_.sm_suffix != '\0') out_ += module_.sm_suffix;
  for (const std::string& option : module_.target_options) write(", {}", option);
  write("\n.address_size {}\n\n", module_.address_size);
  for (const SourceFile& file : module_.files) {
    write(".file {} \"{}\"{}{}\n", file.number, file.path, file.rest.empty() ? "" : ", ", file.rest);
  }
  for (const std::string& pragma : module_.pragmas) write(".pragma \"{}\";\n", pragma);
}

// --- variables

void ModulePrinter::variable(const Variable& variable, bool initialized) {
  out_ += linkage_word(variable.linkage);
  write(".{}", name(variable.space));
  if (!variable.attributes.empty()) write(" .attribute({})", variable.attributes);
  write(" .align {}", variable.align);
  if (variable.vector > 1) write(" .v{}", variable.vector);
  write(" .{} {}{}", name(variable.type), variable.name, extents(variable));
  if (initialized && !variable.initializer.empty()) initializer(variable);
  out_ += ";\n";
}

void ModulePrinter::initializer(const Variable& variable) {
  out_ += " = ";
  std::size_t next = 0;
  if (variable.extents.empty() && variable.vector == 1) {
    element(variable, variable.initializer[0]);
  } else {
    rows(variable, 0, next);
  }
}

// Prints the list of one row of `dimension`; it contains a list for each row of the next dimension.
void ModulePrinter::rows(const Variable& variable, std::size_t dimension, std::size_t& next) {
  const bool innermost = dimension + 1 >= variable.extents.size();
  std::uint64_t length = variable.vector;
  for (std::size_t i = dimension; i < variable.extents.size(); ++i) length *= variable.extents[i];
  out_ += '{';
  const std::size_t start = next;
  while (next < variable.initializer.size() && (next - start < length || dimension == 0)) {
    if (next != start) out_ += ", ";
    if (innermost) {
      element(variable, variable.initializer[next++]);
    } else {
      rows(variable, dimension + 1, next);
    }
  }
  out_ += '}';
}

void ModulePrinter::element(const Variable& variable, const Initializer& value) {
  if (value.symbol.empty()) {
    if (variable.type == Type::f32) return write("0f{:08X}", value.bits);
    if (variable.type == Type::f64) return write("0d{:016X}", value.bits);
    return write("{}", value.bits);
  }
  if (value.mask != 0) write("{:#x}(", value.mask);
  out_ += value.generic ? fmt::format("generic({})", value.symbol) : value.symbol;
  if (value.addend != 0) write("{:+}", value.addend);
  if (value.mask != 0) out_ += ')';
}

bool ModulePrinter::variables_refer_forward() const {
  std::unordered_map<std::string_view, std::size_t> index;
  for (std::size_t i = 0; i < module_.variables.size(); ++i) index.emplace(module_.variables[i].name, i);
  for (std::size_t i = 0; i < module_.variables.size(); ++i) {
    for (const Initializer& value : module_.variables[i].initializer) {
      if (value.symbol.empty()) continue;
      const auto found = index.find(value.symbol);
      if (found != index.end() && found->second > i) return true;
    }
  }
  return false;
}

bool ModulePrinter::variables_refer_to_functions() const {
  const auto refers = [this](const Initializer& value) {
    return !value.symbol.empty() && is_function(module_, value.symbol);
  };
  return std::any_of(module_.variables.begin(), module_.variables.end(), [&](const Variable& variable) {
    return std::any_of(variable.initializer.begin(), variable.initializer.end(), refers);
  });
}

// --- functions

bool operand_refers_beyond(const Operand& operand, std::uint32_t limit) {
  const auto beyond = [limit](const SymbolRef& symbol) {
    return symbol.kind == SymbolKind::function && symbol.index > limit;
  };
  if (const auto* symbol = operand.as<SymbolOperand>()) return beyond(symbol->symbol);
  if (const auto* address = operand.as<AddressOperand>()) return address->symbol && beyond(*address->symbol);
  const auto any = [limit](const std::vector<Operand>& elements) {
    return std::any_of(elements.begin(), elements.end(),
                       [limit](const Operand& e) { return operand_refers_beyond(e, limit); });
  };
  if (const auto* vector = operand.as<VectorOperand>()) return any(vector->elements);
  if (const auto* bracket = operand.as<BracketOperand>()) return any(bracket->elements);
  return false;
}

bool ModulePrinter::functions_refer_forward() const {
  for (std::uint32_t i = 0; i < module_.functions.size(); ++i) {
    const Function& function = module_.functions[i];
    for (const Instruction& instruction : function.body) {
      for (const Operand& operand : instruction.operands) {
        if (operand_refers_beyond(operand, i)) return true;
      }
    }
    for (const BranchTable& table : function.branch_tables) {
      for (const SymbolRef& target : table.targets) {
        if (target.kind == SymbolKind::function && target.index > i) return true;
      }
    }
  }
  return false;
}

void ModulePrinter::parameter(const Variable& parameter) {
  write(".{}", name(parameter.space));
  if (parameter.align != natural_alignment(parameter)) write(" .align {}", parameter.align);
  if (parameter.vector > 1) write(" .v{}", parameter.vector);
  write(" .{}", name(parameter.type));
  if (parameter.pointer_space) {
    out_ += " .ptr";
    if (*parameter.pointer_space != Space::none) write(" .{}", name(*parameter.pointer_space));
    if (parameter.pointer_align != 0) write(" .align {}", parameter.pointer_align);
  }
  write(" {}{}", parameter.name, extents(parameter));
}

void ModulePrinter::parameters(const std::vector<Variable>& list) {
  out_ += '(';
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i > 0) out_ += ", ";
    parameter(list[i]);
  }
  out_ += ')';
}

void ModulePrinter::signature(const Function& function) {
  out_ += linkage_word(function.linkage);
  out_ += function.entry ? ".entry " : ".func ";
  if (!function.attributes.empty()) write(".attribute({}) ", function.attributes);
  if (!function.returns.empty()) {
    parameters(function.returns);
    out_ += ' ';
  }
  out_ += function.name;
  parameters(function.parameters);
  performance(function);
}

void ModulePrinter::performance(const Function& function) {
  const PerformanceDirectives& directives = function.performance;
  if (function.noreturn) out_ += "\n.noreturn";
  const auto extent = [this](std::string_view word, const std::array<std::uint32_t, 3>& values) {
    if (values[0] != 0 || values[1] != 0 || values[2] != 0)
      write("\n.{} {}, {}, {}", word, values[0], values[1], values[2]);
  };
  const auto number = [this](std::string_view word, std::uint32_t value) {
    if (value != 0) write("\n.{} {}", word, value);
  };
  extent("maxntid", directives.maxntid);
  extent("reqntid", directives.reqntid);
  number("minnctapersm", directives.minnctapersm);
  number("maxnctapersm", directives.maxnctapersm);
  number("maxnreg", directives.maxnreg);
  for (const std::string& other : directives.others) write("\n{}", other);
}

// Consecutive registers of one type share a line. Parameters in .reg space are the first registers; they are
// declared already.
void ModulePrinter::registers(const Function& function) {
  const auto in_registers = [](const std::vector<Variable>& list) {
    return static_cast<std::size_t>(std::count_if(
        list.begin(), list.end(), [](const Variable& v) { return v.space == Space::reg && v.name != "_"; }));
  };
  std::size_t line_start = out_.size();
  const std::size_t first = in_registers(function.returns) + in_registers(function.parameters);
  for (std::size_t i = first; i < function.registers.size(); ++i) {
    const Register& reg = function.registers[i];
    const Register* before = i > first ? &function.registers[i - 1] : nullptr;
    const bool joins = before != nullptr && before->type == reg.type && before->vector == reg.vector &&
                       out_.size() - line_start < kLineLength;
    if (joins) {
      write(", {}", reg.name);
      continue;
    }
    if (before != nullptr) out_ += ";\n";
    line_start = out_.size();
    out_ += "  .reg";
    if (reg.vector > 1) write(" .v{}", reg.vector);
    write(" .{} {}", name(reg.type), reg.name);
  }
  if (function.registers.size() > first) out_ += ";\n";
}

void ModulePrinter::function(const Function& function) {
  signature(function);
  if (!function.defined) {
    out_ += ";\n";
    return;
  }
  out_ += "\n{\n";
  registers(function);
  for (const Variable& variable : function.variables) {
    out_ += "  ";
    this->variable(variable, true);
  }
  body(function);
  out_ += "}\n";
}

void ModulePrinter::location(const Function& function, std::uint32_t index) {
  const SourceLocation& at = function.locations[index];
  write("  .loc {} {} {}", at.file, at.line, at.column);
  if (!at.function_name.empty()) write(", function_name {}", at.function_name);
  if (at.inlined_at < function.locations.size()) {
    const SourceLocation& outer = function.locations[at.inlined_at];
    write(", inlined_at {} {} {}", outer.file, outer.line, outer.column);
  }
  out_ += '\n';
}

// Prints locations in the order of their numbers: each one before its first use, after all earlier ones.
void ModulePrinter::locations_up_to(const Function& function, std::uint32_t end) {
  for (; next_location_ < end && next_location_ < function.locations.size(); ++next_location_) {
    location(function, next_location_);
    current_location_ = next_location_;
  }
}

void ModulePrinter::tables_at(const Function& function, std::uint32_t position) {
  for (; next_pragma_ < function.pragmas.size() && function.pragmas[next_pragma_].position == position;
       ++next_pragma_) {
    write("  .pragma \"{}\";\n", function.pragmas[next_pragma_].text);
  }
  for (; next_label_ < function.labels.size() && function.labels[next_label_].position == position;
       ++next_label_) {
    write("{}:\n", function.labels[next_label_].name);
  }
  for (; next_table_ < function.branch_tables.size() &&
         function.branch_tables[next_table_].position == position;
       ++next_table_) {
    const BranchTable& table = function.branch_tables[next_table_];
    const bool calls = !table.targets.empty() && table.targets[0].kind == SymbolKind::function;
    write("  {}: {} ", table.name, calls ? ".calltargets" : ".branchtargets");
    for (std::size_t i = 0; i < table.targets.size(); ++i) {
      write("{}{}", i == 0 ? "" : ", ", symbol_name(module_, function, table.targets[i]));
    }
    out_ += ";\n";
  }
  for (; next_prototype_ < function.prototypes.size() &&
         function.prototypes[next_prototype_].position == position;
       ++next_prototype_) {
    const CallPrototype& prototype = function.prototypes[next_prototype_];
    write("  {}: .callprototype ", prototype.name);
    if (!prototype.returns.empty()) {
      parameters(prototype.returns);
      out_ += ' ';
    }
    out_ += "_ ";
    parameters(prototype.parameters);
    out_ += prototype.noreturn ? " .noreturn;\n" : ";\n";
  }
}

void ModulePrinter::body(const Function& function) {
  next_label_ = next_pragma_ = next_table_ = next_prototype_ = 0;
  next_location_ = 0;
  current_location_ = kNoIndex;
  for (std::uint32_t i = 0; i < function.body.size(); ++i) {
    const Instruction& instruction = function.body[i];
    tables_at(function, i);
    if (instruction.location != kNoIndex) {
      locations_up_to(function, instruction.location + 1);
      if (current_location_ != instruction.location) location(function, instruction.location);
      current_location_ = instruction.location;
    }
    write("  {};\n", print(module_, function, instruction));
  }
  tables_at(function, static_cast<std::uint32_t>(function.body.size()));
  locations_up_to(function, static_cast<std::uint32_t>(function.locations.size()));
}

std::string ModulePrinter::run() {
  header();
  const bool declare_functions = variables_refer_to_functions() || functions_refer_forward();
  if (declare_functions) {
    for (const Function& function : module_.functions) {
      signature(function);
      out_ += ";\n";
    }
  }
  if (variables_refer_forward()) {
    for (const Variable& variable : module_.variables) {
      Variable declaration = variable;
      declaration.linkage = Linkage::extern_;
      this->variable(declaration, false);
    }
  }
  for (const Variable& variable : module_.variables) this->variable(variable, true);
  for (const Function& function : module_.functions) {
    if (!declare_functions || function.defined) this->function(function);
  }
  for (const Alias& alias : module_.aliases) write(".alias {}, {};\n", alias.name, alias.target);
  for (const std::string& section : module_.sections) write("{}\n", section);
  return std::move(out_);
}

}  // namespace

std::string print(const Module& module) { return ModulePrinter(module).run(); }

}  // namespace quern::ptx
