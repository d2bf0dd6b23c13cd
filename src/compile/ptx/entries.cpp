// SPDX-License-Identifier: Apache-2.0
#include "compile/ptx/entries.hpp"

#include <algorithm>
#include <iterator>
#include <unordered_map>

#include "abi/failure.hpp"
#include "compile/ptx/names.hpp"
#include "compile/source/type_text.hpp"

namespace quern::compile {
namespace {

using std::string_view;

// "&ns::scale<float>" -> "ns::scale<float>"
string_view plain_expression(string_view expression) {
  while (!expression.empty() && (expression.front() == ' ' || expression.front() == '&'))
    expression.remove_prefix(1);
  while (!expression.empty() && expression.back() == ' ') expression.remove_suffix(1);
  return expression;
}

// "ns::scale<float>" -> "ns::scale"; also of an overload's "f(int)".
string_view without_arguments(string_view name) { return name.substr(0, name.find_first_of("<(")); }

// "(anonymous namespace)::f" is `f` to its author.
std::string without_anonymous(std::string name) {
  constexpr string_view kAnonymous = "(anonymous namespace)::";
  for (std::size_t at = name.find(kAnonymous); at != std::string::npos; at = name.find(kAnonymous))
    name.erase(at, kAnonymous.size());
  return name;
}

// "_INTERNAL_00000000_4_a_cu_12::ns::v" is `ns::v` to its author.
std::string without_internal(std::string name) {
  constexpr string_view kInternal = "_INTERNAL_";
  const std::size_t end = name.find("::");
  if (name.starts_with(kInternal) && end != std::string::npos) name.erase(0, end + 2);
  return without_anonymous(std::move(name));
}

/// The declarations of a source by their names, so that a source with tens of thousands of kernels is looked
/// through once and not for each entry.
class DeclarationIndex {
 public:
  /// `declarations` must outlive the index.
  explicit DeclarationIndex(const std::vector<KernelDeclaration>& declarations) {
    for (const KernelDeclaration& declaration : declarations) {
      std::string qualified = declaration.qualified_name();
      if (qualified != declaration.name) by_name_[declaration.name].push_back(&declaration);
      by_name_[std::move(qualified)].push_back(&declaration);
    }
  }
  /// The declarations with this name, with or without the namespaces around it, in source order.
  const std::vector<const KernelDeclaration*>& named(const std::string& name) const {
    static const std::vector<const KernelDeclaration*> none;
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? none : found->second;
  }

 private:
  std::unordered_map<std::string, std::vector<const KernelDeclaration*>> by_name_;
};

bool same_types(const KernelDeclaration& declaration, const std::vector<std::string>& types) {
  return std::equal(
      declaration.parameters.begin(), declaration.parameters.end(), types.begin(), types.end(),
      [](const ParameterDeclaration& parameter, const std::string& type) { return parameter.type == type; });
}

bool same_parameters(const KernelDeclaration& a, const KernelDeclaration& b) {
  return std::equal(a.parameters.begin(), a.parameters.end(), b.parameters.begin(), b.parameters.end(),
                    [](const ParameterDeclaration& x, const ParameterDeclaration& y) {
                      return x.type == y.type && x.pointer == y.pointer;
                    });
}

bool named(const KernelDeclaration& declaration) {
  return std::any_of(declaration.parameters.begin(), declaration.parameters.end(),
                     [](const ParameterDeclaration& parameter) { return !parameter.name.empty(); });
}

// The declaration chosen for an entry.
struct ChosenDeclaration {
  const KernelDeclaration* declaration = nullptr;  // null if there is none, or several contradict each other
  bool knows_types = false;                        // the others that might be meant have the same types
};

// Selects among several declarations (overloads, forward declarations, untaken #if branches) the one whose
// types agree with the lowered name, otherwise one whose parameter names agree in all of them.
ChosenDeclaration find_declaration(const DeclarationIndex& declarations, const abi::EntryInfo& entry,
                                   const DemangledName& demangled) {
  const std::string full = without_anonymous(demangled.name);
  const std::string name(without_arguments(full));
  std::vector<const KernelDeclaration*> candidates;
  for (const KernelDeclaration* declaration : declarations.named(name))
    if (declaration->parameters.size() == entry.parameters.size()) candidates.push_back(declaration);
  std::vector<const KernelDeclaration*> exact;
  std::copy_if(candidates.begin(), candidates.end(), std::back_inserter(exact),
               [&](const KernelDeclaration* candidate) {
                 return candidate->qualified_name() == name &&
                        (!demangled.mangled || same_types(*candidate, demangled.parameter_types));
               });
  if (!exact.empty()) candidates = std::move(exact);
  const KernelDeclaration* chosen = nullptr;
  for (const KernelDeclaration* candidate : candidates) {
    if (!named(*candidate)) continue;
    if (chosen == nullptr) chosen = candidate;
    for (std::size_t i = 0; i < candidate->parameters.size(); ++i)
      if (candidate->parameters[i].name != chosen->parameters[i].name) return {};
  }
  if (chosen == nullptr && candidates.size() == 1) chosen = candidates.front();
  const bool agree =
      chosen != nullptr && std::all_of(candidates.begin(), candidates.end(),
                                       [&](const auto* other) { return same_parameters(*other, *chosen); });
  return {chosen, agree};
}

void describe(abi::ParameterInfo& parameter, const std::string& type) {
  PointerType pointer = pointer_type(type);
  parameter.type = type;
  parameter.pointer = parameter.pointer || pointer.pointer;
  parameter.read_only = pointer.read_only;
  parameter.pointee = std::move(pointer.pointee);
}

void describe(abi::EntryInfo& entry, const DemangledName& demangled, const ChosenDeclaration& spokesman) {
  const KernelDeclaration* const declaration = spokesman.declaration;
  for (std::size_t i = 0; i < entry.parameters.size(); ++i) {
    abi::ParameterInfo& parameter = entry.parameters[i];
    if (demangled.parameter_types.size() == entry.parameters.size()) {
      describe(parameter, demangled.parameter_types[i]);
    } else if (declaration != nullptr && spokesman.knows_types) {
      describe(parameter, declaration->parameters[i].type);
      parameter.pointer = parameter.pointer || declaration->parameters[i].pointer;
    }
    if (declaration != nullptr) parameter.name = declaration->parameters[i].name;
  }
}

std::string with_parameters(const std::string& name, const DemangledName& demangled) {
  std::string text = name + "(";
  for (const std::string& type : demangled.parameter_types) text += (text.ends_with('(') ? "" : ", ") + type;
  return text + ")";
}

/// Refers to `expressions`; of several for one name the last counts.
std::unordered_map<string_view, const std::string*> by_lowered_name(
    const std::vector<LoweredName>& expressions) {
  std::unordered_map<string_view, const std::string*> meant;
  for (const auto& [expression, lowered] : expressions) meant.insert_or_assign(lowered, &expression);
  return meant;
}

}  // namespace

void name_entries(std::vector<abi::EntryInfo>& entries, const std::vector<LoweredName>& expressions,
                  const std::vector<KernelDeclaration>& declarations) {
  const DeclarationIndex index(declarations);
  std::vector<DemangledName> demangled;
  for (abi::EntryInfo& entry : entries) {
    demangled.push_back(demangle(entry.lowered_name));
    entry.name = without_anonymous(demangled.back().name);
    describe(entry, demangled.back(), find_declaration(index, entry, demangled.back()));
  }
  std::unordered_map<std::string, std::size_t> counts;  // modules may have tens of thousands of kernels
  for (const abi::EntryInfo& entry : entries) ++counts[entry.name];
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (demangled[i].mangled && counts.at(entries[i].name) > 1)
      entries[i].name = with_parameters(entries[i].name, demangled[i]);
  const std::unordered_map<string_view, const std::string*> meant = by_lowered_name(expressions);
  for (abi::EntryInfo& entry : entries)
    if (const auto found = meant.find(entry.lowered_name); found != meant.end())
      entry.name = plain_expression(*found->second);
}

void name_variables(std::vector<abi::VariableInfo>& variables, const std::vector<LoweredName>& expressions) {
  const std::unordered_map<string_view, const std::string*> meant = by_lowered_name(expressions);
  for (abi::VariableInfo& variable : variables) {
    const auto found = meant.find(variable.lowered_name);
    variable.name = found == meant.end() ? without_internal(demangle(variable.lowered_name).name)
                                         : std::string(plain_expression(*found->second));
  }
}

void note_python_facts(abi::PtxImage& image) {
  if (!image.of_python) return;
  const bool reports_failures = image.ptx.find(abi::kFailureVariable) != std::string::npos;
  // The register with the address of the grid's barrier is set for cooperative launches only.
  const bool grid_wide = image.ptx.find("%envreg2") != std::string::npos;
  for (abi::EntryInfo& entry : image.entries) {
    entry.reports_failures = reports_failures;
    entry.grid_wide = grid_wide;
  }
}

}  // namespace quern::compile
