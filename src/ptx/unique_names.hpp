// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ptx/module.hpp"

namespace quern::ptx {

/// The provisional name of the variable number `variable` of the module, which a function's body declares as
/// `name`. No PTX name equals it. It is replaced when the module is complete.
std::string provisional_name(std::string_view name, std::uint32_t variable);

/// Makes the names of each function one flat list that shadows no name of the module. Provisional names
/// become the declared name if no other symbol of the module has it. Symbols that inner scopes declare again
/// are renamed ("p" -> "p__1"). Names that are unique already do not change.
void make_names_unique(Module& module);

}  // namespace quern::ptx
