// SPDX-License-Identifier: Apache-2.0
// The table of instructions: how each form is lowered, by family and opcode.
#pragma once

#include <span>
#include <string>

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
std::span<const Row> bulk_rows();
/// The row that lowers a form of isa.def (its number), or null if that is refused or ptx::kNoForm.
const Row* row_of(std::uint16_t form);
/// Forms without the row that isa.def promises, and rows without a form, a line each. A test checks that
/// there are none.
std::string row_defects();

}  // namespace quern::cpu::lower
