// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/IR/Module.h>

#include "cpu/emit/warp/warp_body.hpp"

namespace quern::cpu::emit {

/// The name of the function that emit_run makes: an engine::RunBlocks.
inline constexpr const char* kRunName = "quern_run";

/// CodeFacts::streamed for the kernel.
std::uint64_t streamed_parameters(const Plan& plan);

/// Emits the kernel: the loop over blocks and warps, and the bodies of the full warps and of the last,
/// partial one. Returns the size of a warp's frame in bytes (0: it needs none).
std::uint32_t emit_run(llvm::Module& module, const Plan& plan, const Specialisation& specialisation,
                       const DeviceFunctions& callees);

}  // namespace quern::cpu::emit
