// SPDX-License-Identifier: Apache-2.0
// The table of instructions: how each form is lowered, by family and opcode.
#pragma once

#include <span>
#include <string>

#include "cpu/lower/translate/translator.hpp"

namespace quern::cpu::lower {

/// The rows for instructions on integers, for those on floating-point numbers, and for those that do not
/// depend on the type.
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
/// Returns the row that lowers form number `form` of isa.def, or null if the form is refused or ptx::kNoForm.
const Row* row_of(std::uint16_t form);
/// Lists forms that lack the row that isa.def requires, and rows without a form, one in each line. A test
/// checks that there are none.
std::string row_defects();

}  // namespace quern::cpu::lower
