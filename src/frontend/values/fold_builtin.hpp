// SPDX-License-Identifier: Apache-2.0
// Built-ins at a file's own level, as Python computes them.
#pragma once

#include <vector>

#include "frontend/builtins/builtins.hpp"
#include "frontend/values/value.hpp"

namespace quern::frontend {

/// The result of the call by the rule's column `fold`; unknown where Python alone computes it.
Value fold_builtin(const Builtin& row, const std::vector<Value>& arguments);

}  // namespace quern::frontend
