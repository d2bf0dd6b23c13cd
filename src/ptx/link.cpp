// SPDX-License-Identifier: Apache-2.0
// Source for the rules: NVIDIA, "Parallel Thread Execution ISA", section "Linking Directives".
#include "ptx/link.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

namespace quern::ptx {
namespace {

bool is_declaration(const Variable& variable) { return variable.linkage == Linkage::extern_; }
bool is_declaration(const Function& function) { return !function.defined; }
/// True for dynamic shared memory. It may have any type and extent in each module that declares it.
bool is_dynamic_shared(const Variable& variable) {
  return is_declaration(variable) && variable.space == Space::shared;
}

/// True for a variable that is visible in its own module only.
bool is_private(const Variable& variable) { return variable.linkage == Linkage::none; }
bool is_private(const Function& function) {
  return function.linkage == Linkage::none && function.defined && !function.entry;
}

bool same_list(const std::vector<Variable>& a, const std::vector<Variable>& b) {
  return std::ranges::equal(a, b, [](const Variable& x, const Variable& y) {
    return x.space == y.space && x.size_bytes() == y.size_bytes();
  });
}
bool agree(const Function& a, const Function& b) {
  return a.entry == b.entry && same_list(a.returns, b.returns) && same_list(a.parameters, b.parameters);
}
bool agree(const Variable& a, const Variable& b) {
  if (a.space != b.space) return false;
  if (is_dynamic_shared(a) && is_dynamic_shared(b)) return true;
  const bool open = (is_declaration(a) && a.element_count() == 0) ||
                    (is_declaration(b) && b.element_count() == 0) ||
                    (a.linkage == Linkage::common && b.linkage == Linkage::common);
  return open || a.size_bytes() == b.size_bytes();
}

/// True if `other` replaces `known`; both have the same name and agree.
bool replaces(const Function& other, const Function& known) {
  if (is_declaration(other)) return false;
  return is_declaration(known) || (known.linkage == Linkage::weak && other.linkage != Linkage::weak);
}
bool replaces(const Variable& other, const Variable& known) {
  if (is_declaration(other)) return is_declaration(known) && other.size_bytes() > known.size_bytes();
  if (is_declaration(known)) return true;
  if (other.linkage == Linkage::common)
    return known.linkage == Linkage::common && other.size_bytes() > known.size_bytes();
  return known.linkage == Linkage::common ||
         (known.linkage == Linkage::weak && other.linkage != Linkage::weak);
}
/// True if the two conflict.
template <class Symbol>
bool both_define(const Symbol& a, const Symbol& b) {
  const auto strong = [](const Symbol& symbol) {
    return !is_declaration(symbol) && symbol.linkage != Linkage::weak && symbol.linkage != Linkage::common;
  };
  return strong(a) && strong(b);
}

/// Maps a module's symbols and files to those of the result.
struct Mapping {
  std::vector<std::uint32_t> variables;
  std::vector<std::uint32_t> functions;
  /// new names of the symbols that are renamed in the result
  std::unordered_map<std::string, std::string> names;
  std::map<std::uint32_t, std::uint32_t> files;  ///< from file number to file number
};

class Linker {
 public:
  explicit Linker(std::vector<LinkInput> inputs) : inputs_(std::move(inputs)), mappings_(inputs_.size()) {}

  Expected<Module> run() {
    header();
    rename();
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      enter(i, inputs_[i].module.variables, result_.variables, mappings_[i].variables);
      enter(i, inputs_[i].module.functions, result_.functions, mappings_[i].functions);
    }
    for (const Variable& variable : result_.variables)
      if (is_declaration(variable) && !is_dynamic_shared(variable))
        error(origins_.at(variable.name), variable.position,
              fmt::format("'{}' is .extern and nothing defines it", variable.name),
              "add the module that defines it");
    if (!errors_.empty()) return std::move(errors_);
    for (std::size_t i = 0; i < inputs_.size(); ++i) append(i);
    return std::move(result_);
  }

 private:
  void error(std::size_t input, TextPosition at, std::string message, std::string hint) {
    Diagnostic diagnostic;
    diagnostic.code = "ptx-link";
    diagnostic.span = {.file = inputs_[input].name, .line = at.line, .column = at.column};
    diagnostic.message = std::move(message);
    diagnostic.hint = std::move(hint);
    errors_.push_back(std::move(diagnostic));
  }

  /// Sets the newest version and target of all inputs, and collects their files.
  void header() {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const Module& module = inputs_[i].module;
      if (i > 0 && module.address_size != result_.address_size)
        error(i, module.address_size_position, "the modules have addresses of different sizes",
              "compile all for 64-bit addresses");
      result_.address_size = module.address_size;
      result_.address_size_position = module.address_size_position;
      const auto version = std::pair(module.version_major, module.version_minor);
      std::tie(result_.version_major, result_.version_minor) =
          std::max(version, std::pair(result_.version_major, result_.version_minor));
      if (module.sm > result_.sm || (module.sm == result_.sm && module.sm_suffix != '\0')) {
        result_.sm = module.sm;
        result_.sm_suffix = module.sm_suffix;
      }
      for (const std::string& option : module.target_options)
        if (std::ranges::find(result_.target_options, option) == result_.target_options.end())
          result_.target_options.push_back(option);
      for (const SourceFile& file : module.files) {
        const auto number = static_cast<std::uint32_t>(result_.files.size() + 1);
        mappings_[i].files.emplace(file.number, number);
        result_.files.push_back({number, file.path, file.rest});
      }
    }
  }

  /// Renames symbols that are private to a module if another module has the name.
  void rename() {
    std::map<std::string_view, int> uses;
    for (const LinkInput& input : inputs_) {
      for (const Variable& variable : input.module.variables) ++uses[variable.name];
      for (const Function& function : input.module.functions) ++uses[function.name];
    }
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const auto try_name = [&](const auto& symbol) {
        if (!is_private(symbol) || uses.at(symbol.name) == 1) return;
        std::string name = fmt::format("{}$link{}", symbol.name, i);
        while (uses.contains(name)) name += '_';
        mappings_[i].names.emplace(symbol.name, std::move(name));
      };
      for (const Variable& variable : inputs_[i].module.variables) try_name(variable);
      for (const Function& function : inputs_[i].module.functions) try_name(function);
    }
  }

  std::string renamed(std::size_t input, const std::string& name) const {
    const auto found = mappings_[input].names.find(name);
    return found == mappings_[input].names.end() ? name : found->second;
  }

  /// Gives every symbol of a module its index in the result; append() adds the bodies of functions.
  template <class Symbol>
  void enter(std::size_t input, std::vector<Symbol>& symbols, std::vector<Symbol>& into,
             std::vector<std::uint32_t>& mapping) {
    std::unordered_map<std::string, std::uint32_t>& index = index_of(into);
    for (Symbol& symbol : symbols) {
      symbol.name = renamed(input, symbol.name);
      const auto [known, is_new] = index.emplace(symbol.name, static_cast<std::uint32_t>(into.size()));
      mapping.push_back(known->second);
      if (is_new) {
        const bool taken = !origins_.emplace(symbol.name, input).second;
        if (taken)
          error(input, symbol.position,
                fmt::format("'{}' is a variable in one module and a function in another", symbol.name),
                "give one of them another name");
        into.push_back(symbol);
        continue;
      }
      Symbol& before = into[known->second];
      check(input, symbol, before);
      if (!replaces(symbol, before)) continue;
      before = symbol;
      origins_[symbol.name] = input;
    }
  }
  std::unordered_map<std::string, std::uint32_t>& index_of(const std::vector<Variable>&) {
    return variables_;
  }
  std::unordered_map<std::string, std::uint32_t>& index_of(const std::vector<Function>&) {
    return functions_;
  }

  template <class Symbol>
  void check(std::size_t input, const Symbol& symbol, const Symbol& before) {
    const LinkInput& other = inputs_[origins_.at(symbol.name)];
    if (both_define(symbol, before))
      error(input, symbol.position,
            fmt::format("'{}' is defined here and in {}, line {}", symbol.name, other.name,
                        before.position.line),
            "define it once, and declare it extern elsewhere; or make it static");
    else if (!agree(symbol, before))
      error(input, symbol.position,
            fmt::format("'{}' is not what it is in {}, line {}: size, state space or parameters differ",
                        symbol.name, other.name, before.position.line),
            "declare it as it is defined");
  }

  void append(std::size_t input) {
    Module& module = inputs_[input].module;
    for (std::size_t i = 0; i < module.variables.size(); ++i)
      if (origins_.at(module.variables[i].name) == input)
        for (Initializer& initializer : result_.variables[mappings_[input].variables[i]].initializer)
          initializer.symbol = renamed(input, initializer.symbol);
    for (std::size_t i = 0; i < module.functions.size(); ++i)
      if (origins_.at(module.functions[i].name) == input)
        remap(input, result_.functions[mappings_[input].functions[i]]);
    for (const Alias& alias : module.aliases)
      result_.aliases.push_back({renamed(input, alias.name), renamed(input, alias.target)});
    for (const std::string& pragma : module.pragmas) result_.pragmas.push_back(pragma);
  }

  void remap(std::size_t input, Function& function) {
    const Mapping& mapping = mappings_[input];
    for (Instruction& instruction : function.body)
      for (Operand& operand : instruction.operands) remap(mapping, operand);
    for (BranchTable& table : function.branch_tables)
      for (SymbolRef& target : table.targets) remap(mapping, target);
    for (Variable& variable : function.variables)
      for (Initializer& initializer : variable.initializer)
        initializer.symbol = renamed(input, initializer.symbol);
    for (SourceLocation& location : function.locations) {
      const auto file = mapping.files.find(location.file);
      if (file != mapping.files.end()) location.file = file->second;
      location.function_name.clear();  // the debug section that it refers to is dropped
    }
  }

  static void remap(const Mapping& mapping, SymbolRef& symbol) {
    if (symbol.kind == SymbolKind::module_variable) symbol.index = mapping.variables.at(symbol.index);
    if (symbol.kind == SymbolKind::function) symbol.index = mapping.functions.at(symbol.index);
  }
  static void remap(const Mapping& mapping, Operand& operand) {
    if (auto* symbol = std::get_if<SymbolOperand>(&operand.value)) remap(mapping, symbol->symbol);
    if (auto* address = std::get_if<AddressOperand>(&operand.value); address != nullptr && address->symbol)
      remap(mapping, *address->symbol);
    const auto parts = [&](auto* list) {
      if (list == nullptr) return;
      for (Operand& part : list->elements) remap(mapping, part);
    };
    parts(std::get_if<VectorOperand>(&operand.value));
    parts(std::get_if<PairOperand>(&operand.value));
    parts(std::get_if<BracketOperand>(&operand.value));
  }

  std::vector<LinkInput> inputs_;
  std::vector<Mapping> mappings_;
  Module result_;
  std::unordered_map<std::string, std::uint32_t> variables_, functions_;  ///< indices in the result
  /// the input that each symbol of the result comes from
  std::unordered_map<std::string, std::size_t> origins_;
  Diagnostics errors_;
};

}  // namespace

Expected<Module> link(std::vector<LinkInput> inputs) { return Linker(std::move(inputs)).run(); }

}  // namespace quern::ptx
