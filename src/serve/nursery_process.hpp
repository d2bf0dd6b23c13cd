// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "abi/kernel_request.hpp"
#include "base/thread_annotations.hpp"
#include "serve/toolkit_identity.hpp"
#include "serve/worker/nursery.hpp"
#include "serve/worker_process.hpp"

namespace quern::serve {

/// A nursery, seen from the server. Workers outlive it. Thread-safe; precompile() is for one thread at a
/// time.
class NurseryProcess {
 public:
  /// Starts this program again as a nursery, and waits for its first message. The thread that calls this must
  /// outlive the nursery and its workers, which the kernel ends with it.
  static Expected<std::shared_ptr<NurseryProcess>> start(const NurseryOptions& options,
                                                         std::chrono::milliseconds timeout);
  NurseryProcess(const NurseryProcess&) = delete;
  NurseryProcess& operator=(const NurseryProcess&) = delete;
  /// Kills it.
  ~NurseryProcess();

  const WorkerHello& hello() const noexcept { return hello_; }

  /// The toolkit that its workers compile with; to be set before others know of the nursery.
  void set_toolkit(ToolkitState toolkit) { toolkit_ = std::move(toolkit); }
  const ToolkitState& toolkit() const noexcept { return toolkit_; }

  Expected<WorkerProcess> fork_worker(std::chrono::milliseconds timeout) QUERN_EXCLUDES(mutex_);

  /// Makes the precompiled header of a source of #include lines, for workers that are forked later. Returns
  /// its size in bytes.
  Expected<std::uint64_t> precompile(const abi::KernelRequest& lines, const std::function<bool()>& goes_on);
  /// The number of precompiled headers made.
  std::uint64_t header_count() const noexcept { return header_count_; }

 private:
  NurseryProcess(int workers, int headers) : workers_(workers), headers_(headers) {}

  base::Mutex mutex_;
  pid_t process_ = -1;
  const int workers_;  ///< the socket by which workers are asked for
  const int headers_;
  WorkerHello hello_;
  ToolkitState toolkit_;
  std::atomic<std::uint64_t> header_count_{0};
};

}  // namespace quern::serve
