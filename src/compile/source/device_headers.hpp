// SPDX-License-Identifier: Apache-2.0
// quern's own device-side headers (include/quern/device.cuh, include/quern/cuda/), embedded by the build.
#pragma once

#include <span>
#include <string_view>

#include "base/embedded_text.hpp"

namespace quern::compile {

/// The headers by the names under which a kernel includes them: "quern/device.cuh", "quern/cuda/array.cuh",
/// ...
std::span<const quern::base::EmbeddedText> device_headers();

/// SHA-256 of all their names and texts, in hexadecimal digits; the build computes it.
std::string_view device_headers_digest();

}  // namespace quern::compile
