// SPDX-License-Identifier: Apache-2.0
// SIMT IR + shapes -> LLVM IR -> machine code. This folder is the only place that includes LLVM.
#pragma once

#include <memory>
#include <string>

#include "cpu/compiler.hpp"
#include "cpu/ir/ir.hpp"

namespace quern::cpu::emit {

/// Everything in `module` that the emitter has no code for: operations, barriers and ends of threads in
/// device functions. All of it, as errors with code "ptx-unsupported".
Expected<void> check_emittable(const ir::Module& module);

/// Machine code of functions[0] of `module` and the functions it calls. Takes the module by value: emission
/// may split blocks.
Expected<CodeImage> emit_image(ir::Module module, const Specialisation& specialisation);

/// Maps machine code of emit_image() to instructions.
Expected<CodeSites> emit_sites(ir::Module module, const Specialisation& specialisation);

/// The optimised LLVM IR, or the assembly, as text.
Expected<std::string> emit_text(ir::Module module, const Specialisation& specialisation, Stage stage);

/// The processor as LLVM generates code for it: name and features. Starts no code generator.
std::string processor_identity();

/// The widest instruction set of this processor, whatever the environment variable says.
Isa processor_isa();

}  // namespace quern::cpu::emit
