// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>

#include "cpu/emit/operations/context.hpp"

namespace quern::cpu::emit {

/// Calls its argument for each warp of a gang, in their order; the context is that warp's meanwhile.
using ForEachWarp = llvm::function_ref<void(llvm::function_ref<void()>)>;

/// Emits an addition that the warps make as one operation (cuts/joint.hpp), in the order of the warps. Some
/// warps may have no running lanes.
void emit_joint(Context& context, ir::Value value, ForEachWarp for_each_warp);

}  // namespace quern::cpu::emit
