// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "cpu/emit/operations/address.hpp"

namespace quern::cpu::emit {

/// True if the 16 bytes of a lane must be accessed at once: .b128 accesses that other threads may use for
/// ordering. (Processors with AVX perform aligned accesses of 16 bytes as a whole, but wider ones only in
/// parts.)
bool is_whole(const Access& access);
/// Loads the two elements, in their memory form; scalars if the address is uniform.
std::vector<llvm::Value*> load_whole(const Access& access);
void store_whole(const Access& access);

}  // namespace quern::cpu::emit
