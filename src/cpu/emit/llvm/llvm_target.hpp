// SPDX-License-Identifier: Apache-2.0
// Creates the target machine. Uses no global LLVM option and initialises only the X86 target. Thread-safe.
#pragma once

#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <string>

#include "cpu/abi/specialisation.hpp"

namespace quern::cpu::emit {

/// Targets this processor if the code need not be `portable` and `isa` is its widest instruction set, or
/// AVX2 where it has AVX-512; otherwise a processor of that class, so that code for any class can be
/// inspected. Code is
/// position-independent. A multiplication and an addition are never fused (PTX has explicit fma
/// instructions).
std::unique_ptr<llvm::TargetMachine> make_target_machine(Isa isa, unsigned opt_level, bool portable = false);

/// True if that machine multiplies bytes and adds four products to a word by one instruction (AVX-512 VNNI).
bool multiplies_bytes(Isa isa, bool portable);

/// True if LLVM's name of a processor is that of a Zen core (AMD).
bool is_zen(llvm::StringRef cpu);

/// True if that machine is faster when blocks farther ahead are prefetched to its first cache: AMD's
/// processors but Zen 4 (docs/decisions/0057-masked-accesses.md).
bool fills_first_cache(Isa isa, bool portable);

/// Sets the attributes of every emitted function: 512-bit registers if the ISA has them, no unwinding, and a
/// probe of every page of a large frame, so that recursion always hits the guard page of the stack.
void set_function_attributes(llvm::Function& function, Isa isa);

/// This processor's name and features, and LLVM's version: everything that make_target_machine() gets from
/// the system.
std::string host_identity();

/// True if this processor has the instructions of portable code for `isa`.
bool has_class(Isa isa);

/// The widest instruction set of this processor that the emitter uses, ignoring the environment variable.
Isa widest_isa();

}  // namespace quern::cpu::emit
