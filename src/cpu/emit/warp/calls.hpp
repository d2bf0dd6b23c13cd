// SPDX-License-Identifier: Apache-2.0
// Calls of device functions, and the arguments and results of the one being emitted. Their local memory is a
// stack: each activation has a part of every lane's local memory, after its caller's part.
// Source: docs/decisions/0009-called-functions.md.
#pragma once

#include <map>

#include "cpu/emit/warp/engine_calls.hpp"
#include "cpu/emit/warp/values.hpp"

namespace quern::cpu::emit {

/// Device functions that are called and not inlined, by index in ir::Module::functions.
using DeviceFunctions = std::map<std::uint32_t, llvm::Function*>;

class Calls : private BodyPart {
 public:
  Calls(BodyState& body, Values& values, LaunchConstants& constants, EngineCalls& engine,
        const DeviceFunctions& callees)
      : BodyPart(body), values_(values), constants_(constants), engine_(engine), callees_(callees) {}

  /// Called before a device function is emitted: sets its arguments, <32 x T> each.
  void set_arguments(std::vector<llvm::Value*> arguments) { arguments_ = std::move(arguments); }
  llvm::Value* argument(const ir::Inst& arg) const {
    return arguments_.at(static_cast<std::size_t>(arg.imm));
  }
  /// Creates a variable for each result; `at` is in the entry block.
  void create_results(llvm::IRBuilder<>& at);
  void clear_results();
  void emit_set_result(ir::Value value);
  /// Called after emission: loads result `index`, as each lane has set it.
  llvm::Value* result(unsigned index, llvm::IRBuilder<>& at) const;

  void emit(ir::Value value);

 private:
  llvm::Value* begin_activation(const ir::Inst& call);

  Values& values_;
  LaunchConstants& constants_;
  EngineCalls& engine_;
  const DeviceFunctions& callees_;
  std::vector<llvm::Value*> arguments_;
  std::vector<llvm::AllocaInst*> results_;
};

}  // namespace quern::cpu::emit
