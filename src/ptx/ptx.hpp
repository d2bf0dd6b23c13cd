// SPDX-License-Identifier: Apache-2.0
// The component's interface: PTX text <-> module. Pure: no files, no globals, no exceptions but
// std::bad_alloc.
#pragma once

#include <string>
#include <string_view>

#include "ptx/module.hpp"
#include "quern/expected.hpp"

namespace quern::ptx {

/// Limits that keep any input bounded in time and memory.
struct Limits {
  std::uint64_t max_text_bytes = std::uint64_t{1} << 30;
  std::uint32_t max_registers = 1u << 22;  ///< `%r<4000000000>` must not allocate
  std::uint32_t max_nesting = 1000;
  std::uint32_t max_errors = 20;
};

/// Parses `text` and resolves every name. Errors carry `file_name`, line and column, and the source line.
/// All names resolve in the result; opcodes, modifiers and types are known words. Says nothing about whether
/// an instruction's form exists: that is verify().
Expected<Module> parse(std::string_view text, std::string_view file_name = "<ptx>",
                       const Limits& limits = {});

/// Checks every instruction against isa.def (form, operand count and types, .version and .target it needs)
/// and the module's own rules, and sets Instruction::form.
Expected<void> verify(Module& module, std::string_view file_name = "<ptx>", const Limits& limits = {});

/// The form that verify() gives a valid instruction: the first one of isa.def that its words and operands fit
/// and whose .version and .target the module has; kNoForm if there is none. For modules that were verified in
/// another process.
std::uint16_t match_form(const Module& module, const Function& function, const Instruction& instruction);

/// PTX text that parses back to an equal module.
std::string print(const Module& module);

/// One instruction as text ("ld.global.v2.f32 {%f1, %f2}, [%rd1+8]"), for messages.
std::string print(const Module& module, const Function& function, const Instruction& instruction);

}  // namespace quern::ptx
