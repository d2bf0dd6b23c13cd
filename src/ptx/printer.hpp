// SPDX-License-Identifier: Apache-2.0
// Shared by the parts of the printer and the messages of the verifier.
#pragma once

#include <string>
#include <string_view>

#include "ptx/ptx.hpp"

namespace quern::ptx {

/// The name behind a reference; "?" for one that refers to nothing.
std::string_view symbol_name(const Module& module, const Function& function, SymbolRef symbol);

/// "add.rn.f32": the opcode with its words.
std::string instruction_name(const Instruction& instruction);

}  // namespace quern::ptx
