// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "ptx/module.hpp"

namespace quern::ptx {

/// Returns the error in a call's arguments and returned values ("Abstracting the ABI", "call"); nothing if
/// they fit the callee.
std::optional<std::string> check_call(const Module& module, const Function& function,
                                      const Instruction& call);

}  // namespace quern::ptx
