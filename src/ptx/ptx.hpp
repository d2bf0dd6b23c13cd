// SPDX-License-Identifier: Apache-2.0
// The component's interface: PTX text <-> module. Its functions are pure: no files, no global state, and no
// exceptions except std::bad_alloc.
#pragma once

#include <string>
#include <string_view>

#include "ptx/module.hpp"
#include "quern/expected.hpp"

namespace quern::ptx {

/// Limits on time and memory for any input.
struct Limits {
  std::uint64_t max_text_bytes = std::uint64_t{1} << 30;
  std::uint32_t max_registers = 1u << 22;  ///< `%r<4000000000>` must not allocate
  std::uint32_t max_nesting = 1000;
  std::uint32_t max_errors = 20;
};

/// Parses `text` and resolves every name. Errors carry `file_name`, line and column, and the source line. In
/// the result every name is resolved, and opcodes, modifiers and types are known words. Use verify() to check
/// that each instruction has a valid form.
Expected<Module> parse(std::string_view text, std::string_view file_name = "<ptx>",
                       const Limits& limits = {});

/// Checks every instruction against isa.def (form, operand count and types, required .version and .target)
/// and the rules about modules, and sets Instruction::form.
Expected<void> verify(Module& module, std::string_view file_name = "<ptx>", const Limits& limits = {});

/// Returns the form that verify() sets for a valid instruction: the first form of isa.def that its words and
/// operands fit, and whose .version and .target the module has. Returns kNoForm if there is none. Meant for
/// modules that another process has verified.
std::uint16_t match_form(const Module& module, const Function& function, const Instruction& instruction);

/// Prints PTX text that parses back to an equal module.
std::string print(const Module& module);

/// Prints one instruction ("ld.global.v2.f32 {%f1, %f2}, [%rd1+8]"), for messages.
std::string print(const Module& module, const Function& function, const Instruction& instruction);

}  // namespace quern::ptx
