// SPDX-License-Identifier: Apache-2.0
// Maps machine code to instructions of the IR by means of LLVM's line tables: a site is an instruction, and
// its number replaces the line number. Computed only when a fault must be explained: the same module is then
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

/// Called before emission, if the instructions of `module` need sites.
void begin_sites(llvm::Module& module);
/// Null if begin_sites() was not called.
llvm::DISubprogram* scope_of_sites(const llvm::Module& module);
/// Instructions that `builder` creates from now on get the site `value` of `function`, a function of `of`.
void set_site(llvm::IRBuilder<>& builder, llvm::DISubprogram& scope, const ir::Module& of,
              const ir::Function& function, ir::Value value);
/// Instructions that `builder` creates from now on have no site.
void clear_site(llvm::IRBuilder<>& builder);
/// Called after emission and before the optimiser.
void end_sites(llvm::Module& module);

/// Returns the sites in ascending order of offsets in the code; each site ends where the next one begins.
std::vector<CodeSite> read_sites(llvm::MemoryBufferRef object, const ir::Module& of);
/// A digest of the object's code before linking: equal code has equal digests.
std::uint64_t code_digest(llvm::MemoryBufferRef object);

}  // namespace quern::cpu::emit
