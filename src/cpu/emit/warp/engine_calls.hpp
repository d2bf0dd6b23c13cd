// SPDX-License-Identifier: Apache-2.0
// Calls of the engine's functions (cpu/abi/helpers.hpp), and stores of facts for error reports.
#pragma once

#include <string_view>

#include "cpu/emit/warp/launch_constants.hpp"

namespace quern::cpu::emit {

class EngineCalls : private BodyPart {
 public:
  EngineCalls(BodyState& body, LaunchConstants& constants) : BodyPart(body), constants_(constants) {}

  /// The function `name`, declared in the module under construction.
  llvm::FunctionCallee function(std::string_view name, llvm::FunctionType* type);
  llvm::Value* call(const char* name, llvm::Type* result, llvm::ArrayRef<llvm::Value*> args);
  /// Stores `what` in the field of WorkerState at `offset`.
  void note(std::uint64_t offset, llvm::Value* what);
  /// Called before a host call that may report (a failed assertion): the report contains the block and the
  /// warp.
  void note_block_and_warp();
  /// Ends the launch; records the location (an index into KernelCode::locations or kNone) and the first
  /// affected lane.
  void trap(std::uint64_t which, std::uint32_t location);

 private:
  LaunchConstants& constants_;
};

}  // namespace quern::cpu::emit
