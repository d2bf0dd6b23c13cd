// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "remote/messages.hpp"
#include "serve/shared_messages.hpp"

namespace quern::serve {

/// Reads NVRTC, the libraries beside it and every header of the toolkit: their contents are its identity, so
/// that equal installations on two machines have the same. Takes a second or so.
remote::ToolkitIdentity identify_toolkit(const WorkerHello& hello);

/// A cheap sign that tells whether NVRTC is still the same file on this machine.
std::string nvrtc_stamp(const std::string& nvrtc_path);

}  // namespace quern::serve
