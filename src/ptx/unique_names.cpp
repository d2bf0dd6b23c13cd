// SPDX-License-Identifier: Apache-2.0
#include "ptx/unique_names.hpp"

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace quern::ptx {
namespace {

class Namer {
 public:
  Namer(Function& function, const std::unordered_set<std::string_view>& module_names)
      : function_(function), module_names_(module_names) {}

  void run();

 private:
  template <class Visit>
  void each_name(Visit visit);
  void rename(std::string& name);

  Function& function_;
  const std::unordered_set<std::string_view>& module_names_;
  std::unordered_set<std::string> used_;
  std::unordered_map<std::string, std::uint32_t> next_suffix_;
};

// Parameters in .reg space get the name of their register.
template <class Visit>
void Namer::each_name(Visit visit) {
  for (auto* list : {&function_.returns, &function_.parameters}) {
    for (Variable& variable : *list) {
      if (variable.space != Space::reg && variable.name != "_") visit(variable.name);
    }
  }
  for (Register& reg : function_.registers) visit(reg.name);
  for (Variable& variable : function_.variables) visit(variable.name);
  for (Label& label : function_.labels) visit(label.name);
  for (BranchTable& table : function_.branch_tables) visit(table.name);
  for (CallPrototype& prototype : function_.prototypes) visit(prototype.name);
}

void Namer::rename(std::string& name) {
  std::uint32_t& suffix = next_suffix_[name];
  std::string candidate;
  do {
    candidate = name + "__" + std::to_string(++suffix);
  } while (module_names_.contains(candidate) || used_.contains(candidate));
  name = candidate;
  used_.insert(std::move(candidate));
}

// Names that do not change are processed first, so that no new name equals one of them.
void Namer::run() {
  std::vector<std::string*> clashing;
  each_name([&](std::string& name) {
    if (module_names_.contains(name) || !used_.insert(name).second) clashing.push_back(&name);
  });
  if (clashing.empty()) return;
  for (std::string* name : clashing) rename(*name);
}

// The registers of .reg parameters come first: those of return values, then those of parameters.
void follow_register_names(Function& function) {
  std::size_t index = 0;
  for (auto* list : {&function.returns, &function.parameters}) {
    for (Variable& variable : *list) {
      if (variable.space == Space::reg && variable.name != "_" && index < function.registers.size()) {
        variable.name = function.registers[index++].name;
      }
    }
  }
}

/// A character that no PTX name contains.
constexpr char kProvisional = '\x01';

/// Replaces provisional names, also in initialisers, by names that are unique in the module.
void name_static_variables(Module& module) {
  std::unordered_set<std::string> taken;
  std::unordered_map<std::string, std::string> final_names;
  for (const Function& function : module.functions) taken.insert(function.name);
  for (const Variable& variable : module.variables) taken.insert(variable.name);
  for (Variable& variable : module.variables) {
    const std::size_t mark = variable.name.find(kProvisional);
    if (mark == std::string::npos) continue;
    std::string name = variable.name.substr(0, mark);
    for (std::uint32_t suffix = 1; !taken.insert(name).second; ++suffix)
      name = variable.name.substr(0, mark) + "__" + std::to_string(suffix);
    final_names.emplace(std::exchange(variable.name, name), name);
  }
  if (final_names.empty()) return;
  for (Variable& variable : module.variables)
    for (Initializer& value : variable.initializer)
      if (const auto found = final_names.find(value.symbol); found != final_names.end())
        value.symbol = found->second;
}

}  // namespace

std::string provisional_name(std::string_view name, std::uint32_t variable) {
  return std::string(name) + kProvisional + std::to_string(variable);
}

void make_names_unique(Module& module) {
  name_static_variables(module);
  std::unordered_set<std::string_view> names;
  for (const Variable& variable : module.variables) names.insert(variable.name);
  for (const Function& function : module.functions) names.insert(function.name);
  for (Function& function : module.functions) {
    if (!function.defined) continue;
    Namer(function, names).run();
    follow_register_names(function);
  }
}

}  // namespace quern::ptx
