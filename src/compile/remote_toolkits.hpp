// SPDX-License-Identifier: Apache-2.0
// The toolkits that servers compile with, as a machine without NVRTC knows them: the disk keeps results under
// the toolkit that made them.
#pragma once

#include <mutex>
#include <optional>

#include "base/thread_annotations.hpp"
#include "cache/disk_store.hpp"
#include "compile/key.hpp"
#include "compile/own_headers.hpp"
#include "compile/remote_compiler.hpp"

namespace quern::compile {

/// The toolkit that servers use, as far as this process knows. Thread-safe.
class RemoteToolkits {
 public:
  /// Either may be null; both must outlive this.
  RemoteToolkits(RemoteCompiler* servers, cache::DiskStore* store) : servers_(servers), store_(store) {}

  /// The toolkit of the last answer. Before the first answer, servers are asked once; if none answers, it is
  /// the one that an earlier process noted. Returns nothing if it is not known, or there is no store.
  std::optional<RemoteToolkit> toolkit() QUERN_EXCLUDES(mutex_);

  /// A server has answered with this toolkit.
  void note(const RemoteToolkit& toolkit) QUERN_EXCLUDES(mutex_);

 private:
  base::Digest key() const;
  std::optional<RemoteToolkit> recall();

  RemoteCompiler* const servers_;
  cache::DiskStore* const store_;
  std::once_flag asked_;
  base::Mutex mutex_;
  std::optional<RemoteToolkit> last_ QUERN_GUARDED_BY(mutex_);
};

/// The key of what a server with this toolkit makes of the request. The names of files are in the outcome, so
/// they are in the key.
CudaKey remote_key(const WholeRequest& whole, const RemoteToolkit& toolkit);

}  // namespace quern::compile
