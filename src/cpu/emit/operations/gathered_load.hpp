// SPDX-License-Identifier: Apache-2.0
// Loads from addresses whose differences between the lanes are not known at compile time.
#pragma once

#include <vector>

#include "cpu/emit/operations/address.hpp"

namespace quern::cpu::emit {

/// Returns one <32 x T> for each element of the access. Lanes that do not run get zero.
std::vector<llvm::Value*> load_gathered(const Access& access);

/// Loads without a mask, with the access's alignment, order and metadata.
llvm::Value* load_one(const Access& access, llvm::Type* type, llvm::Value* pointer);

}  // namespace quern::cpu::emit
