// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace quern::cpu {

/// The build-id of the library or program that contains this function, in hexadecimal digits. The linker
/// computes it; builds of different code have different ids. Empty: there is no build-id.
std::string own_build_id();

}  // namespace quern::cpu
