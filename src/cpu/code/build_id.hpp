// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace quern::cpu {

/// The build-id that the linker wrote into the library or program that this function is part of, in
/// hexadecimal digits: builds of different code have different ones. Empty: it has none.
std::string own_build_id();

}  // namespace quern::cpu
