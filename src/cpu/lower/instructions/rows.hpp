// SPDX-License-Identifier: Apache-2.0
// The table of instructions: how each opcode is translated, and what of it is supported.
#pragma once

#include <span>

#include "cpu/lower/translate/translator.hpp"

namespace quern::cpu::lower {

/// Rows of instructions on integers, on floating-point numbers, and those for which the type makes no
/// difference.
std::span<const Row> integer_rows();
std::span<const Row> floating_rows();
std::span<const Row> compare_rows();
std::span<const Row> convert_rows();
std::span<const Row> move_rows();
std::span<const Row> memory_rows();
std::span<const Row> atomic_rows();
std::span<const Row> warp_rows();
std::span<const Row> control_rows();
std::span<const Row> field_rows();
std::span<const Row> video_rows();
std::span<const Row> async_rows();
/// The row of an instruction by its opcode and first type, or null.
const Row* row_of(const ptx::Instruction& instruction);

}  // namespace quern::cpu::lower
