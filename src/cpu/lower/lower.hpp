// SPDX-License-Identifier: Apache-2.0
// PTX -> SIMT IR: resolve state spaces, legalise guards, vectors and calls, inline callees, build SSA. Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "cpu/ir/ir.hpp"
#include "ptx/module.hpp"
#include "quern/expected.hpp"

namespace quern::cpu::lower {

/// The treatment of functions that cannot be inlined.
enum class CallForm : std::uint8_t {
  functions,    ///< functions of the IR, called by ir::Op::call: threads cannot wait for others in them
  activations,  ///< parts of the kernel's own graph; what is live across a call is kept in local memory
};

/// The kernel `name` and its callees, in SSA form: critical edges split, single return block, reducible loops
/// in simplified (one preheader, one latch) and LCSSA form. Unsupported instructions are errors with code
/// "ptx-unsupported": the instruction, the author's line if known, the PTX line, and the reason; all of them
/// are reported, not only the first.
Expected<ir::Module> lower(const ptx::Module& module, std::string_view kernel,
                           std::string_view file_name = "<ptx>", CallForm calls = CallForm::functions);
/// The same for a kernel that is already found, for callers that process all kernels of a module and have
/// called check_parameters().
Expected<ir::Module> lower(const ptx::Module& module, const ptx::Function& entry,
                           std::string_view file_name = "<ptx>", CallForm calls = CallForm::functions);

/// No function of the module, called or not, passes a structure that is too large.
Expected<void> check_parameters(const ptx::Module& module, std::string_view file_name);

/// Checks that the IR is well formed (types, dominance, phis, terminators). For tests and debug builds.
Expected<void> verify(const ir::Module& module);

}  // namespace quern::cpu::lower
