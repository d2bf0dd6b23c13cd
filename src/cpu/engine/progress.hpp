// SPDX-License-Identifier: Apache-2.0
// Changes made under the scheduler's mutex of which other threads must be notified. The mutex guards all of
// this.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cpu/engine/stream.hpp"

namespace quern::cpu::engine {

/// The kinds of work. Each kind has separate threads.
enum class GroupId : std::uint8_t { compute, copy, host, value };
inline constexpr std::size_t kGroupCount = 4;

/// Actions to carry out after the mutex is released.
struct DeferredActions {
  std::array<std::uint32_t, kGroupCount> notify{};  ///< parked threads to notify
  std::array<std::uint32_t, kGroupCount> start{};   ///< threads to start
  bool progress = false;                            ///< notify callers that wait for progress
  CommandList finished;                             ///< to be destroyed
  std::vector<std::shared_ptr<Stream>> dropped;     ///< to be released

  bool empty() const noexcept {
    std::uint32_t threads = 0;
    for (std::size_t i = 0; i < kGroupCount; ++i) threads |= notify[i] | start[i];
    return !progress && threads == 0 && finished.empty() && dropped.empty();
  }
};

struct Progress {
  std::uint64_t count = 0;  ///< commands that became ready or ended
  std::uint32_t waiting_callers = 0;
  DeferredActions deferred;

  /// Records that a command became ready, so that a waiting caller may take it, or ended.
  void note() noexcept {
    ++count;
    deferred.progress = waiting_callers > 0;
  }
};

}  // namespace quern::cpu::engine
