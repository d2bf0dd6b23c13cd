// SPDX-License-Identifier: Apache-2.0
// Device functions that are called rather than inlined (recursion): an LLVM function each, for the lanes of a
// mask, with vectors as arguments and results, on the worker's own stack.
// Source: docs/decisions/0009-called-functions.md.
#pragma once

#include <llvm/IR/Module.h>

#include "cpu/emit/warp/warp_body.hpp"

namespace quern::cpu::emit {

/// An LLVM function for device function `index` of the module, without a body yet: functions may call each
/// other.
llvm::Function* declare_device_function(llvm::Module& module, const ir::Function& function,
                                        std::uint32_t index, Isa isa);

/// Its body: masked code, which runs the lanes that called it.
void emit_device_function(llvm::Function& function, const Plan& plan, const Specialisation& specialisation,
                          const DeviceFunctions& callees);

}  // namespace quern::cpu::emit
