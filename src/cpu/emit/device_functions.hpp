// SPDX-License-Identifier: Apache-2.0
// Device functions that are called rather than inlined (recursion). Each is an LLVM function that runs the
// lanes of a mask, with vectors as arguments and results, on the worker's own stack.
// Source: docs/decisions/0009-called-functions.md.
#pragma once

#include <llvm/IR/Module.h>

#include "cpu/emit/warp/warp_body.hpp"

namespace quern::cpu::emit {

/// Declares an LLVM function for device function `index` of the module. Its body is emitted later, since
/// functions may call each other.
llvm::Function* declare_device_function(llvm::Module& module, const ir::Function& function,
                                        std::uint32_t index, Isa isa);

/// Emits the body: masked code that runs the lanes that called the function.
void emit_device_function(llvm::Function& function, const Plan& plan, const Specialisation& specialisation,
                          const DeviceFunctions& callees);

}  // namespace quern::cpu::emit
