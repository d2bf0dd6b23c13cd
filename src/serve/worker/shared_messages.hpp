// SPDX-License-Identifier: Apache-2.0
// The messages of server and worker, beside the requests, which are those of the protocol with every
// header's text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "quern/expected.hpp"
#include "remote/messages.hpp"
#include "serve/worker/frames.hpp"
#include "serve/worker/sandbox.hpp"

namespace quern::serve {

/// A worker's first frame.
struct WorkerHello {
  std::string nvrtc_path;
  std::string nvrtc_version;
  std::string headers_version;
  std::string libraries, header_contents, quern;  ///< as remote::ToolkitIdentity has them
  std::vector<std::string> include_directories;
  std::string problem;  ///< why it cannot compile CUDA C++; empty if it can
  SandboxState sandbox;
};
std::string write_hello(const WorkerHello& hello);
/// The worker is the server's own program, but not trusted after its first request; this is before.
Expected<WorkerHello> read_hello(std::string_view json);

/// The answer to a request: the protocol's answer without key and toolkit, which the server adds, and machine
/// code as bytes.
Frame image_frame(const abi::PtxImage& image);
Frame error_frame(const Diagnostics& errors);

/// The statuses of these frames.
inline constexpr std::uint32_t kImageFrame = 1;
inline constexpr std::uint32_t kErrorFrame = 2;
/// An image that was made with a precompiled header.
inline constexpr std::uint32_t kFastImageFrame = 3;

}  // namespace quern::serve
