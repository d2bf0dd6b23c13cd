// SPDX-License-Identifier: Apache-2.0
// Generates objects or assembly from LLVM IR.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <string>

#include "quern/expected.hpp"

namespace quern::cpu::emit {

/// Generates an ELF object in memory. Changes `module`. Errors (code "internal"): LLVM's code generator
/// rejects the code.
Expected<std::unique_ptr<llvm::MemoryBuffer>> make_object(llvm::Module& module, llvm::TargetMachine& machine);

/// Generates assembly text.
Expected<std::string> make_assembly(llvm::Module& module, llvm::TargetMachine& machine);

}  // namespace quern::cpu::emit
