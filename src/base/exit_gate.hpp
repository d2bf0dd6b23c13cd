// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "quern/diagnostic.hpp"

namespace quern::base {

/// For work with a library whose static objects exit() destroys while other threads continue (NVRTC, LLVM):
/// exit() waits until no such work is in progress, ten seconds at most, and rejects new work. Work that takes
/// longer would crash; then the process ends without the remaining exit handlers, with its status and its
/// output. One for each library, of static storage duration; it is never destroyed. Thread-safe.
class ExitGate {
 public:
  constexpr ExitGate() = default;
  ExitGate(const ExitGate&) = delete;
  ExitGate& operator=(const ExitGate&) = delete;

  /// Work in progress. False: the process is exiting, and the work must not begin. Threads other than the
  /// exiting one get this answer after a second, by which time the process has usually ended: then their
  /// hosts need not handle an error.
  class Pass {
   public:
    explicit Pass(ExitGate& gate) noexcept : gate_(gate), open_(gate.enter()) {}
    ~Pass() {
      if (open_) gate_.leave();
    }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    explicit operator bool() const noexcept { return open_; }

   private:
    ExitGate& gate_;
    const bool open_;
  };

 private:
  bool enter() noexcept;
  void leave() noexcept;
  void register_handler() noexcept;
  static void at_exit(int status, void* gate) noexcept;

  std::atomic<std::uint32_t> inside_{0};
  std::atomic<std::uint32_t> registrations_{0};
  std::atomic<bool> closed_{false};
  std::atomic<pthread_t> exiting_{};
  std::atomic<int> process_{0};  ///< a forked child begins anew: the parent's other threads are not in it
};

/// The diagnostic of a rejected Pass: "cannot compile x.cu: the process is exiting".
Diagnostic process_exits(const std::string& attempted);

}  // namespace quern::base
