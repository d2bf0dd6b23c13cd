// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "cpu/emit/operations/address.hpp"

namespace quern::cpu::emit {

/// True if a lane's 16 bytes must be one access: .b128 accesses that other threads may use for ordering.
/// (Processors with AVX carry out aligned accesses of 16 bytes whole; of wider ones only their parts.)
bool is_whole(const Access& access);
/// The two elements, in their memory form; scalars if the address is uniform.
std::vector<llvm::Value*> load_whole(const Access& access);
void store_whole(const Access& access);

}  // namespace quern::cpu::emit
