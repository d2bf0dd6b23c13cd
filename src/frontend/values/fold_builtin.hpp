// SPDX-License-Identifier: Apache-2.0
// Evaluates built-ins at the file's level as Python does.
#pragma once

#include <vector>

#include "frontend/builtins/builtins.hpp"
#include "frontend/values/value.hpp"

namespace quern::frontend {

/// The result of the call, according to the rule's column `fold`; unknown if only Python can compute it.
Value fold_builtin(const Builtin& row, const std::vector<Value>& arguments);

}  // namespace quern::frontend
