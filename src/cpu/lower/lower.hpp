// SPDX-License-Identifier: Apache-2.0
// Translates PTX to functions of SIMT IR: resolves state spaces, legalises guards, vectors and calls, inlines
// callees. The passes of ssa/passes.hpp complete the functions; compiler/passes.cpp defines their order.
// Pure.
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

/// The functions of a kernel's code during translation to an ir::Module.
struct Translation {
  std::vector<FunctionBuilder> builders;  ///< [0]: the kernel
  std::vector<ir::Symbol> symbols;
  std::uint64_t static_shared_bytes = 0;
};

/// Returns the kernel's definition. Error: no kernel has that name.
Expected<const ptx::Function*> find_kernel(const ptx::Module& module, std::string_view kernel,
                                           std::string_view file_name);

/// Translates the kernel `entry` and its callees. The caller must have called check_parameters(). Each
/// unsupported instruction is an error with code "ptx-unsupported", which gives the instruction, the author's
/// line if known, the PTX line, and the reason.
Expected<Translation> translate(const ptx::Module& module, const ptx::Function& entry,
                                std::string_view file_name, CallForm calls);

/// Returns the module of finished functions. Critical edges are split, each function has one return block,
/// and loops are reducible, simplified (one preheader, one latch) and in LCSSA form.
ir::Module collect_functions(Translation translation);

/// Checks that no function of the module, called or not, passes a structure that is too large.
Expected<void> check_parameters(const ptx::Module& module, std::string_view file_name);

}  // namespace quern::cpu::lower
