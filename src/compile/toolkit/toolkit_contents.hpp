// SPDX-License-Identifier: Apache-2.0
// The identity of a toolkit by its contents, wherever and on whichever machine it is installed.
#pragma once

#include <optional>
#include <string>

#include "compile/toolkit/toolkit.hpp"

namespace quern::compile {

struct ToolkitContents {
  std::string nvrtc;    ///< version and identity of its libraries
  std::string headers;  ///< version and digest of the contents; empty if they cannot be read
  friend bool operator==(const ToolkitContents&, const ToolkitContents&) = default;
};

/// Returns nothing if NVRTC's libraries are not identified. `with_headers`: reads the toolkit's headers.
std::optional<ToolkitContents> toolkit_contents(const Toolkit& toolkit, bool with_headers);

/// The identity of quern's own part of a compilation: its front end and headers, and what it makes of
/// NVRTC's output.
std::string own_contents();

}  // namespace quern::compile
