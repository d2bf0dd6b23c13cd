// SPDX-License-Identifier: Apache-2.0
// Functions that the printer and the messages of the verifier share.
#pragma once

#include <string>
#include <string_view>

#include "ptx/ptx.hpp"

namespace quern::ptx {

/// The name of the symbol; "?" if the reference is to no symbol.
std::string_view symbol_name(const Module& module, const Function& function, SymbolRef symbol);

/// The opcode with its words, such as "add.rn.f32".
std::string instruction_name(const Instruction& instruction);

}  // namespace quern::ptx
