// SPDX-License-Identifier: Apache-2.0
// The helpers that emitted code calls (cpu/abi/helpers.hpp).
#pragma once

#include <cstdint>
#include <span>

#include "cpu/abi/helpers.hpp"

namespace quern::cpu::emit {

/// All functions that emitted code may call by name, including those of the scheduler (abi/state.hpp) and
/// those that LLVM itself may call.
std::span<const Helper> helpers();

// Numbers that emitted code passes to helpers.
enum class RoundedOp : std::uint32_t { add, sub, mul, div, sqrt, fma };

/// Operand types of atomic operations for which the processor has no instruction: b16 for compare and swap,
/// b64 for arrivals at an mbarrier, the others for additions, minimum and maximum.
enum class AtomicType : std::uint32_t { b16, b64, f16, bf16 };

}  // namespace quern::cpu::emit
