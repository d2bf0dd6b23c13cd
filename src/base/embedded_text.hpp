// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace quern::base {

/// A text that the build put into the library (tools/embed.py). Both views end with a zero byte.
struct EmbeddedText {
  std::string_view name;  ///< its path below the root it was embedded from: "quern/device.cuh"
  std::string_view text;
};

}  // namespace quern::base
