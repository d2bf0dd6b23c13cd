// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ptx/forms.hpp"
#include "ptx/module.hpp"

namespace quern::ptx {

/// Has the module the .version and the .target that the form needs?
bool is_available(const Form& form, const Module& module) noexcept;

/// The form that verify() gives a valid instruction: the first one of isa.def that its words and operands fit
/// and that is available; kNoForm if there is none. For modules that were verified in another process.
std::uint16_t match_form(const Module& module, const Function& function, const Instruction& instruction);

}  // namespace quern::ptx
