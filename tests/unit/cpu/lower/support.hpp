// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "cpu/ir/ir.hpp"
#include "cpu/lower/lower.hpp"
#include "quern/diagnostic.hpp"

namespace quern::test {

/// A module with one kernel `k` with one 64-bit parameter `out`: first the declarations and functions, then
/// its registers (%p, %rs, %r, %rd, %f, %fd; %rd1 contains `out`), then `body`.
std::string kernel_text(std::string_view body, std::string_view before = "");

/// Returns the lowered and verified kernel of a PTX text. Fails the test if there is an error.
cpu::ir::Module lowered(const std::string& text, std::string_view kernel = "k",
                        cpu::lower::CallForm calls = cpu::lower::CallForm::functions);

/// Returns the errors that lowering reports.
Diagnostics refusals(const std::string& text, std::string_view kernel = "k");

/// A file of tests/unit/cpu/lower/data.
std::string data(std::string_view file);

std::size_t count(const cpu::ir::Function& function, cpu::ir::Op op);
/// Returns the first instruction with that operation. Fails the test if there is none.
const cpu::ir::Inst& first(const cpu::ir::Function& function, cpu::ir::Op op);
const cpu::ir::Inst& operand(const cpu::ir::Function& function, const cpu::ir::Inst& inst, std::size_t index);

}  // namespace quern::test
