// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace quern::compile {

/// SHA-256 of this component's sources, in hexadecimal digits; the build computes it. Part of every key: a
/// changed reading of PTX or of NVRTC's log must not find what the former one left on the disk.
std::string_view source_digest();

}  // namespace quern::compile
