// SPDX-License-Identifier: Apache-2.0
// The environment for programs that know nothing of quern and run on the CPU device.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace quern::cli {

/// Variables and their new values, in the order in which they are printed.
using Variables = std::vector<std::pair<std::string, std::string>>;

/// The variables for a program that should find quern's libcuda.so.1. `counts`: the file in which its calls
/// are counted; empty: they are not counted. Throws Error(not_found) if a library is missing.
Variables drop_in_variables(const std::string& counts);

}  // namespace quern::cli
