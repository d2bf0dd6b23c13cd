// SPDX-License-Identifier: Apache-2.0
// Computes the facts about a kernel that hold for every specialisation.
#pragma once

#include "cpu/abi/specialisation.hpp"
#include "cpu/code/kernel_info.hpp"
#include "cpu/ir/ir.hpp"
#include "ptx/module.hpp"

namespace quern::cpu {

/// `lowered`: the SIMT IR of the kernel `entry` of `module`.
KernelInfo describe_kernel(const ptx::Module& module, const ptx::Function& entry, const ir::Module& lowered);

/// The specialisation for checks before any launch: the block shape that the kernel requires, or else a
/// common one. The shape affects errors only through the branches that it makes uniform.
Specialisation usual_specialisation(const ptx::PerformanceDirectives& directives, Isa isa);

}  // namespace quern::cpu
