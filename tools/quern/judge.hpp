// SPDX-License-Identifier: Apache-2.0
// A case on a device: loaded, launched, and compared with its expectations.
#pragma once

#include <optional>
#include <string>

#include "cases.hpp"

namespace quern::cli {

/// The kernel that FILE::KERNEL names, compiled for the signature that `launch` gives, if any;
/// `load.constants` come from `launch.bind`.
Kernel load_kernel(const Session& session, const std::string& text, LoadOptions load,
                   const LaunchText& launch);

/// Describes the first of the case's arrays whose contents are wrong after the launch; nothing if all are
/// right.
std::optional<std::string> wrong_result(const Session& session, const Case& of, const Job& job);

}  // namespace quern::cli
