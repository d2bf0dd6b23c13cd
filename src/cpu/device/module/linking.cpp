// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/module/linking.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "ptx/link.hpp"
#include "ptx/ptx.hpp"

namespace quern::cpu::device {
namespace {

/// The names that a linked module defines or lacks.
class Names {
 public:
  void add(const ptx::Module& module) {
    for (const ptx::Function& function : module.functions)
      note(function.name, function.defined, function.linkage == ptx::Linkage::none);
    for (const ptx::Variable& variable : module.variables)
      if (variable.space != ptx::Space::shared)
        note(variable.name, variable.linkage != ptx::Linkage::extern_,
             variable.linkage == ptx::Linkage::none);
  }
  /// True if the module defines something that is lacking.
  bool need(const ptx::Module& module) const {
    for (const ptx::Function& function : module.functions)
      if (function.defined && function.linkage != ptx::Linkage::none && lacks(function.name)) return true;
    for (const ptx::Variable& variable : module.variables)
      if (variable.linkage != ptx::Linkage::extern_ && variable.linkage != ptx::Linkage::none &&
          lacks(variable.name))
        return true;
    return false;
  }

 private:
  void note(const std::string& name, bool defined, bool is_private) {
    if (!defined)
      wanted_.insert(name);
    else if (!is_private)
      defined_.insert(name);
  }
  bool lacks(const std::string& name) const { return wanted_.contains(name) && !defined_.contains(name); }

  std::set<std::string> wanted_;
  std::set<std::string> defined_;
};

Expected<ptx::LinkInput> read(const std::string& name, std::string_view text) {
  Expected<ptx::Module> module = ptx::parse(text, name);
  if (!module) return std::move(module).errors();
  return ptx::LinkInput{name, *std::move(module)};
}

/// A kernel's own limit, or the number of blocks that it asks for, comes before that of the link.
void limit_registers(ptx::Module& module, std::uint32_t most) {
  if (most == 0) return;
  for (ptx::Function& function : module.functions)
    if (function.entry && function.performance.maxnreg == 0 && function.performance.minnctapersm == 0)
      function.performance.maxnreg = most;
}

}  // namespace

Expected<ptx::Module> link_texts(const std::vector<LinkText>& texts, const ModuleSettings& settings) {
  std::vector<ptx::LinkInput> inputs, on_demand;
  Names names;
  for (const LinkText& text : texts) {
    Expected<ptx::LinkInput> input = read(text.name, text.ptx);
    if (!input) return std::move(input).errors();
    if (!text.of_archive) names.add(input->module);
    (text.of_archive ? on_demand : inputs).push_back(*std::move(input));
  }
  for (const std::string_view text : {kDeviceRuntime, kConditionSetter}) {
    Expected<ptx::LinkInput> runtime = read("<device runtime>", text);
    if (!runtime) return std::move(runtime).errors();
    on_demand.push_back(*std::move(runtime));
  }
  for (std::size_t i = 0; i < on_demand.size();) {
    if (!names.need(on_demand[i].module)) {
      ++i;
      continue;
    }
    names.add(on_demand[i].module);
    inputs.push_back(std::move(on_demand[i]));
    on_demand.erase(on_demand.begin() + static_cast<std::ptrdiff_t>(i));
    i = 0;  // what it lacks may be in a member before it
  }
  Expected<ptx::Module> linked = ptx::link(std::move(inputs));
  if (linked) limit_registers(*linked, settings.max_registers);
  return linked;
}

Expected<ptx::Module> with_driver_functions(ptx::Module module, const std::string& name) {
  const auto is_setter = [](const ptx::Function& function) {
    return !function.defined && function.name == "cudaGraphSetConditional";
  };
  if (std::ranges::none_of(module.functions, is_setter)) return module;
  Expected<ptx::LinkInput> setter = read("<device runtime>", kConditionSetter);
  if (!setter) return std::move(setter).errors();
  Names names;
  names.add(module);
  if (!names.need(setter->module)) return module;
  std::vector<ptx::LinkInput> inputs;
  inputs.push_back({name, std::move(module)});
  inputs.push_back(*std::move(setter));
  return ptx::link(std::move(inputs));
}

}  // namespace quern::cpu::device
