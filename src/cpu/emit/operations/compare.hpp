// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/IR/InstrTypes.h>

#include "cpu/ir/ir.hpp"

namespace quern::cpu::emit {

llvm::CmpInst::Predicate predicate_of(ir::Icmp how);

}  // namespace quern::cpu::emit
