// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ptx/module.hpp"

namespace quern::ptx {

/// The name, until the module is complete, of the module's variable number `variable` that a function's body
/// declares as `name`. No PTX name equals it.
std::string provisional_name(std::string_view name, std::uint32_t variable);

/// Replaces provisional names, the declared name if the module has no other symbol of it, and renames symbols
/// that inner scopes declare again ("p" -> "p__1"), so that each function's names are one flat list that
/// shadows no name of the module. Unique names are kept.
void make_names_unique(Module& module);

}  // namespace quern::ptx
