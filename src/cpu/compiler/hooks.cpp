// SPDX-License-Identifier: Apache-2.0
#include "cpu/compiler/hooks.hpp"

#include <algorithm>

#include "cpu/emit/emit.hpp"
#include "cpu/lower/lower.hpp"
#include "cpu/lower/ssa/verify.hpp"

namespace quern::cpu {
namespace {

/// While a function is under construction, all blocks share the values without operands. They are added to
/// the entry block last.
ir::Function with_prologue(const lower::FunctionBuilder& builder) {
  ir::Function function = builder.function;
  if (function.blocks.empty()) return function;
  std::vector<ir::Value>& insts = function.blocks[0].insts;
  std::vector<ir::Value> missing;
  for (const ir::Value value : builder.prologue)
    if (std::ranges::find(insts, value) == insts.end()) missing.push_back(value);
  insts.insert(insts.begin(), missing.begin(), missing.end());
  return function;
}

ir::Module snapshot(const lower::Translation& translation) {
  ir::Module module;
  module.symbols = translation.symbols;
  module.static_shared_bytes = translation.static_shared_bytes;
  for (const lower::FunctionBuilder& builder : translation.builders)
    module.functions.push_back(with_prologue(builder));
  return module;
}

Expected<void> verify(Compilation& compilation, Form form) {
  switch (form) {
    case Form::builder:
    case Form::object:
    case Form::image:
      return {};
    case Form::simt:
    case Form::checked:
    case Form::cut:
      return lower::verify(compilation.module);
    case Form::llvm:
      return emit::verify_llvm(*compilation.llvm);
  }
  return {};
}

}  // namespace

Expected<std::string> print(Compilation& compilation, Form form) {
  switch (form) {
    case Form::builder:
      return ir::print(snapshot(compilation.translation));
    case Form::simt:
    case Form::checked:
    case Form::cut:
      return ir::print(compilation.module);
    case Form::llvm:
    case Form::object:
    case Form::image:
      break;
  }
  return emit::print_llvm(*compilation.llvm);
}

AfterPass record_times(std::vector<PassTime>& times) {
  return [&times](const Pass& pass, Compilation&, std::chrono::nanoseconds time) -> Expected<void> {
    auto row = std::ranges::find(times, pass.name, &PassTime::name);
    if (row == times.end()) row = times.insert(row, PassTime{.name = pass.name});
    ++row->runs;
    row->time += time;
    return {};
  };
}

AfterPass print_after(std::string_view name, std::string& text) {
  return
      [name, &text](const Pass& pass, Compilation& compilation, std::chrono::nanoseconds) -> Expected<void> {
        if (pass.name != name) return {};
        Expected<std::string> printed = print(compilation, pass.form);
        if (!printed) return std::move(printed).errors();
        text = std::move(*printed);
        return {};
      };
}

AfterPass verify_ir() {
  return [](const Pass& pass, Compilation& compilation, std::chrono::nanoseconds) -> Expected<void> {
    const Expected<void> verified = verify(compilation, pass.form);
    if (verified) return {};
    Diagnostics errors = verified.errors();
    for (Diagnostic& error : errors) error.message += " (after the pass " + std::string(pass.name) + ")";
    return errors;
  };
}

}  // namespace quern::cpu
