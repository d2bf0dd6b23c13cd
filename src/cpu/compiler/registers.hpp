// SPDX-License-Identifier: Apache-2.0
// The registers that a kernel would take on a GPU.
#pragma once

#include <cstdint>

#include "cpu/ir/ir.hpp"

namespace quern::cpu {

/// The most 32-bit registers that the function's values take at one place, and some for addresses and the
/// like; from 16 to 255, as a thread has them. An estimate: a compiler for GPUs moves and recomputes values.
std::uint32_t estimate_registers(const ir::Function& function);

}  // namespace quern::cpu
