// SPDX-License-Identifier: Apache-2.0
// Compiling elsewhere, as far as this component knows of it: session gives the compiler an implementation.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "abi/kernel_request.hpp"
#include "base/progress.hpp"
#include "compile/toolkit/toolkit_contents.hpp"
#include "quern/expected.hpp"

namespace quern::compile {

/// The code of errors that say nothing of the source: no server answered, and this process must not compile.
inline constexpr const char* kNoServer = "remote-unavailable";

/// All that decides what a server makes of a request, beside the request.
struct RemoteToolkit {
  ToolkitContents contents;
  std::string own;  ///< own_contents() of the server's quern
  /// Returns false if the server does not say what it compiles with, and nothing that it makes may be kept.
  bool is_known() const { return !contents.nvrtc.empty() && !contents.headers.empty() && !own.empty(); }
  friend bool operator==(const RemoteToolkit&, const RemoteToolkit&) = default;
};

struct RemoteOutcome {
  Expected<abi::PtxImage> image;
  RemoteToolkit toolkit;  ///< empty where the image is an error
};

/// Thread-safe.
class RemoteCompiler {
 public:
  RemoteCompiler() = default;
  RemoteCompiler(const RemoteCompiler&) = delete;
  RemoteCompiler& operator=(const RemoteCompiler&) = delete;
  virtual ~RemoteCompiler() = default;

  /// Returns nothing if it must be compiled here. `toolkit_directories` hold headers that a server has
  /// itself. `progress` (may be null) may cancel: diagnostic "cancelled".
  virtual std::optional<RemoteOutcome> compile(const abi::KernelRequest& request,
                                               const std::vector<std::string>& toolkit_directories,
                                               base::ProgressSlot* progress) = 0;

  /// The toolkit of the first server that answers; nothing if none does.
  virtual std::optional<RemoteToolkit> toolkit() = 0;

  /// Equal for equal settings of the servers.
  virtual std::string name() const = 0;
};

}  // namespace quern::compile
