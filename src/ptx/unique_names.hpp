// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ptx/module.hpp"

namespace quern::ptx {

/// Renames symbols that inner scopes declare again ("p" -> "p__1"), so that each function's names are one
/// flat list that shadows no name of the module. Unique names are kept.
void make_names_unique(Module& module);

}  // namespace quern::ptx
