// SPDX-License-Identifier: Apache-2.0
// Folds integer operations on constants, as ops.def defines them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "cpu/ir/ir.hpp"

namespace quern::cpu::ir {

/// The low `bits` of `value`.
std::uint64_t truncate(std::uint64_t value, std::uint32_t bits) noexcept;

/// Returns the result of `inst` for operands with the bits `args`, masked to the result's width, or nothing
/// for operations that ops.def does not fold. `bits`: width of the first operand (for select, of the second).
std::optional<std::uint64_t> fold(const Inst& inst, std::uint32_t bits,
                                  std::span<const std::uint64_t> args) noexcept;

}  // namespace quern::cpu::ir
