// SPDX-License-Identifier: Apache-2.0
// Loads a case on a device, launches it, and compares the results with its expectations.
#pragma once

#include <optional>
#include <string>

#include "cases.hpp"

namespace quern::cli {

/// The kernel that FILE::KERNEL names, compiled for the signature that `launch` gives, if any;
/// `load.constants` come from `launch.bind`.
Kernel load_kernel(const Session& session, const std::string& text, LoadOptions load,
                   const LaunchText& launch);

/// Describes the first of the case's arrays that has wrong contents after the launch; nothing if all are
/// correct.
std::optional<std::string> wrong_result(const Session& session, const Case& of, const Job& job);

}  // namespace quern::cli
