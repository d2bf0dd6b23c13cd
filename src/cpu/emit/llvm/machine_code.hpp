// SPDX-License-Identifier: Apache-2.0
// LLVM IR -> object or assembly.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <string>

#include "quern/expected.hpp"

namespace quern::cpu::emit {

/// An ELF object in memory. Changes `module`. Errors (code "internal"): code that LLVM's code generator
/// rejects.
Expected<std::unique_ptr<llvm::MemoryBuffer>> make_object(llvm::Module& module, llvm::TargetMachine& machine);

/// Assembly text.
Expected<std::string> make_assembly(llvm::Module& module, llvm::TargetMachine& machine);

}  // namespace quern::cpu::emit
