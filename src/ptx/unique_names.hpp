// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ptx/module.hpp"

namespace quern::ptx {

/// Renames what inner scopes declared again ("p" -> "p__1"), so that each function's names are one flat list
/// that shadows no name of the module. Names that are unique stay.
void make_names_unique(Module& module);

}  // namespace quern::ptx
