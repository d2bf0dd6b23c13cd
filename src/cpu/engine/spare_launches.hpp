// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "base/thread_annotations.hpp"
#include "cpu/engine/stream.hpp"

namespace quern::cpu::engine {

/// Commands of launches that have run, for launches to come. Otherwise a thread that runs the launches of
/// another one would free memory of that one's heap, whose lock the two would meet at. Thread-safe.
class SpareLaunches {
 public:
  /// A command with a new launch.
  std::unique_ptr<Command> take() QUERN_EXCLUDES(mutex_);
  /// Destroys what the commands own.
  void put(CommandList finished) QUERN_EXCLUDES(mutex_);

 private:
  static constexpr std::size_t kMost = 1024;
  base::Mutex mutex_;
  CommandList spare_ QUERN_GUARDED_BY(mutex_);
  std::size_t count_ QUERN_GUARDED_BY(mutex_) = 0;
};

}  // namespace quern::cpu::engine
