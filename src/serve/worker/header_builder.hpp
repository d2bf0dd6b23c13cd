// SPDX-License-Identifier: Apache-2.0
// Makes precompiled headers for the workers of a nursery, one at a time, each in its own process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "serve/worker/private_folder.hpp"
#include "serve/worker/shared_messages.hpp"
#include "session/request_compiler.hpp"

namespace quern::serve {

/// Thread-compatible, for a process with one thread.
class HeaderBuilder {
 public:
  /// The largest file: NVRTC's heap for precompiled headers and a margin.
  static constexpr std::uint64_t kMostFileBytes = std::uint64_t{288} << 20;

  HeaderBuilder(session::RequestCompiler& compiler, const WorkerHello& hello)
      : compiler_(compiler), hello_(hello) {}

  /// NVRTC's heap for precompiled headers is allocated when it is first used, and all processes must have it
  /// at the same address: this process allocates it here, before it forks.
  void prepare();

  /// Starts a process that has NVRTC write the precompiled header of a source of #include lines. Returns
  /// false if one is at work already, or none could be started.
  bool begin(const abi::KernelRequest& lines);
  /// Readable when that process has ended; -1: none is at work.
  int ended() const noexcept { return pipe_; }
  /// After ended() became readable. The compiler uses the precompiled header from now on, as do children that
  /// are forked later. Returns its size in bytes, or why there is none.
  Expected<std::uint64_t> finish();

 private:
  [[noreturn]] void build(const abi::KernelRequest& lines, int answer);

  session::RequestCompiler& compiler_;
  const WorkerHello& hello_;
  std::unique_ptr<PrivateFolder> folder_;
  pid_t process_ = -1;
  int pipe_ = -1;
  int memory_ = -1;  ///< the file in memory that is being written
};

}  // namespace quern::serve
