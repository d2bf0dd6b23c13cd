// SPDX-License-Identifier: Apache-2.0
// PTX -> functions of SIMT IR: resolves state spaces, legalises guards, vectors and calls, inlines callees.
// The passes of ssa/passes.hpp finish them; compiler/passes.cpp has their order. Pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "cpu/ir/ir.hpp"
#include "cpu/lower/ssa/function_builder.hpp"
#include "cpu/lower/translate/program.hpp"
#include "ptx/module.hpp"
#include "quern/expected.hpp"

namespace quern::cpu::lower {

/// The functions that a kernel's code is made of, on their way to an ir::Module.
struct Translation {
  std::vector<FunctionBuilder> builders;  ///< [0]: the kernel
  std::vector<ir::Symbol> symbols;
  std::uint64_t static_shared_bytes = 0;
};

/// The kernel's definition. Errors: no kernel has that name.
Expected<const ptx::Function*> find_kernel(const ptx::Module& module, std::string_view kernel,
                                           std::string_view file_name);

/// Translates the kernel `entry` and its callees, for callers that have called check_parameters().
/// Unsupported instructions are errors with code "ptx-unsupported": the instruction, the author's line if
/// known, the PTX line, and the reason; all of them are reported, not only the first.
Expected<Translation> translate(const ptx::Module& module, const ptx::Function& entry,
                                std::string_view file_name, CallForm calls);

/// The module of finished functions: critical edges split, single return block, reducible loops in simplified
/// (one preheader, one latch) and LCSSA form.
ir::Module collect_functions(Translation translation);

/// No function of the module, called or not, passes a structure that is too large.
Expected<void> check_parameters(const ptx::Module& module, std::string_view file_name);

}  // namespace quern::cpu::lower
