// SPDX-License-Identifier: Apache-2.0
// Estimates the registers that a kernel would need on a GPU.
#pragma once

#include <cstdint>

#include "cpu/ir/ir.hpp"

namespace quern::cpu {

/// Returns the largest number of 32-bit registers that live values of the function need at one place, plus
/// some for addresses and the like; between 16 and 255, as for threads of a GPU. This is an estimate: a
/// compiler for GPUs moves and recomputes values.
std::uint32_t estimate_registers(const ir::Function& function);

}  // namespace quern::cpu
