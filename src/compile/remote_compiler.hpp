// SPDX-License-Identifier: Apache-2.0
// Compiling elsewhere, as far as this room knows of it: session gives the compiler an implementation.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "abi/kernel_request.hpp"
#include "base/progress.hpp"
#include "quern/expected.hpp"

namespace quern::compile {

/// The code of errors that say nothing of the source: no server answered, and this process must not compile.
inline constexpr const char* kNoServer = "remote-unavailable";

struct RemoteOutcome {
  Expected<abi::PtxImage> image;
  std::string nvrtc_version;  ///< of the server: "13.0"; empty where the image is an error of kNoServer
  std::string headers_version;
};

/// Thread-safe.
class RemoteCompiler {
 public:
  RemoteCompiler() = default;
  RemoteCompiler(const RemoteCompiler&) = delete;
  RemoteCompiler& operator=(const RemoteCompiler&) = delete;
  virtual ~RemoteCompiler() = default;

  /// Nothing: compile it here. `toolkit_directories` hold headers that a server has its own of. `progress`
  /// (may be null) may cancel: diagnostic "cancelled".
  virtual std::optional<RemoteOutcome> compile(const abi::KernelRequest& request,
                                               const std::vector<std::string>& toolkit_directories,
                                               base::ProgressSlot* progress) = 0;
};

}  // namespace quern::compile
