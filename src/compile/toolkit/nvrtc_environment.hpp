// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace quern::compile {

/// The process's environment as far as it changes what NVRTC does.
struct NvrtcEnvironment {
  std::string values;    ///< "NAME=value" of each variable that changes results, separated by zero bytes
  std::string uncached;  ///< a variable by which NVRTC reads other files or options; empty if none is set

  bool is_plain() const { return values.empty() && uncached.empty(); }
};

NvrtcEnvironment nvrtc_environment();

}  // namespace quern::compile
