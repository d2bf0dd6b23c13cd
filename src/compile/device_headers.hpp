// SPDX-License-Identifier: Apache-2.0
// quern's own device-side headers (include/quern/device.cuh, include/quern/cuda/), embedded by the build.
#pragma once

#include <span>

#include "base/embedded_text.hpp"

namespace quern::compile {

/// The headers by the names under which a kernel includes them: "quern/device.cuh", "quern/cuda/array.cuh",
/// ...
std::span<const quern::base::EmbeddedText> device_headers();

}  // namespace quern::compile
