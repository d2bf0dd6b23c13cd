// SPDX-License-Identifier: Apache-2.0
// Integer operations on known numbers, as ops.def defines them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "cpu/ir/ir.hpp"

namespace quern::cpu::analysis {

/// The low `bits` of `value`.
std::uint64_t truncate(std::uint64_t value, std::uint32_t bits) noexcept;
/// The signed number in the low `bits` of `value`.
using ir::sign_extend;

/// The result of `inst` for operands with the bits `args`, masked to the result's width; nothing for
/// operations that this function does not know or that are not on integers. `bits`: width of the first
/// operand (of the second for select).
std::optional<std::uint64_t> fold(const ir::Inst& inst, std::uint32_t bits,
                                  std::span<const std::uint64_t> args) noexcept;

}  // namespace quern::cpu::analysis
