// SPDX-License-Identifier: Apache-2.0
// The machine that code is made for. Uses no global LLVM option and initialises only the X86 target.
// Thread-safe.
#pragma once

#include <llvm/Target/TargetMachine.h>

#include <memory>

#include "cpu/specialisation.hpp"

namespace quern::cpu::emit {

/// This processor where `isa` is the widest it has; else a processor of that class, so that text of any class
/// can be looked at. Position-independent code; a product and a sum are never fused (PTX says where an fma
/// is).
std::unique_ptr<llvm::TargetMachine> make_target_machine(Isa isa, unsigned opt_level);

/// Gives `function` the attributes every emitted function has: 512-bit registers where the ISA has them, no
/// unwinding, and a probe of every page of a large frame, so that recursion meets the guard page of the stack
/// and never jumps over it.
void set_function_attributes(llvm::Function& function, Isa isa);

/// The widest instruction set of this processor that the emitter uses, whatever the environment says.
Isa widest_isa();

}  // namespace quern::cpu::emit
