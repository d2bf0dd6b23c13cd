// SPDX-License-Identifier: Apache-2.0
// Maps machine code to instructions of the IR by LLVM's line tables: a site is an instruction, and its number
// takes the place of a line number. Computed only when a fault is to be explained: the same module is then
// compiled again with debug locations, which do not change the code.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/MemoryBufferRef.h>

#include <cstdint>
#include <vector>

#include "cpu/ir/code_sites.hpp"
#include "cpu/ir/ir.hpp"

namespace quern::cpu::emit {

/// Before emission: the instructions of `module` shall have sites.
void begin_sites(llvm::Module& module);
/// Null without begin_sites().
llvm::DISubprogram* scope_of_sites(const llvm::Module& module);
/// Gives the instructions that `builder` makes from now on the site `value` of `function`, a function of
/// `of`.
void set_site(llvm::IRBuilder<>& builder, llvm::DISubprogram& scope, const ir::Module& of,
              const ir::Function& function, ir::Value value);
/// Code that `builder` makes from here on belongs to no instruction.
void clear_site(llvm::IRBuilder<>& builder);
/// After emission, before the optimiser.
void end_sites(llvm::Module& module);

/// By the offset in the code, ascending; each reaches to the next one's begin.
std::vector<CodeSite> read_sites(llvm::MemoryBufferRef object, const ir::Module& of);
/// A digest of the object's code before linking: equal code has equal digests.
std::uint64_t code_digest(llvm::MemoryBufferRef object);

}  // namespace quern::cpu::emit
