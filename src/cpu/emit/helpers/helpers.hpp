// SPDX-License-Identifier: Apache-2.0
// The helpers that emitted code calls (cpu/abi/helpers.hpp).
#pragma once

#include <cstdint>
#include <span>

#include "cpu/abi/helpers.hpp"

namespace quern::cpu::emit {

/// Every function that emitted code may call by name, including the scheduler's (abi/state.hpp) and those
/// that LLVM itself may call.
std::span<const Helper> helpers();

// The numbers that emitted code passes.
enum class RoundedOp : std::uint32_t { add, sub, mul, div, sqrt, fma };

/// Operand types of atomic operations that the machine does not have: b16 for compare and swap, b64 for
/// arrivals at a barrier object, the others for additions and extremes.
enum class AtomicType : std::uint32_t { b16, b64, f16, bf16 };

}  // namespace quern::cpu::emit
