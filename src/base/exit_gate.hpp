// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "quern/diagnostic.hpp"

namespace quern::base {

/// For work with a library whose static objects exit() destroys while other threads go on (NVRTC, LLVM):
/// exit() waits until no such work is under way, ten seconds at most, and none begins any more. What takes
/// longer would crash in the midst of it; then the process ends without the exit handlers that are left, with
/// its status and its output. One for a library, of static storage duration; it is never destroyed.
/// Thread-safe.
class ExitGate {
 public:
  constexpr ExitGate() = default;
  ExitGate(const ExitGate&) = delete;
  ExitGate& operator=(const ExitGate&) = delete;

  /// Work under way. False: the process is exiting, the work must not begin. Threads other than the one that
  /// exits are told so after a second, by which time the process has ended as a rule: their hosts need not
  /// handle an error then.
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

  /// The library is being loaded; to be held within a Pass. The library's own objects register their
  /// destructors then, behind our handler, so exit() would run these first.
  class Loading {
   public:
    explicit Loading(ExitGate& gate) noexcept : gate_(gate) { ++gate_.loading_; }
    ~Loading() {
      gate_.register_handler();  // in front of the library's own, before anyone goes on to run them
      --gate_.loading_;
    }
    Loading(const Loading&) = delete;
    Loading& operator=(const Loading&) = delete;

   private:
    ExitGate& gate_;
  };
  /// From now on this thread ends, and exit() called on it runs handlers, only while no other thread loads
  /// the library, ten seconds later at most: a thread's own objects are destroyed before any handler runs.
  void hold_this_thread() noexcept;

 private:
  class ThreadEnd;
  void wait_for_loading() const noexcept;
  void begin_in_this_process() noexcept;
  bool enter() noexcept;
  void leave() noexcept;
  void register_handler() noexcept;
  static void at_exit(int status, void* gate) noexcept;

  std::atomic<std::uint32_t> inside_{0};
  std::atomic<std::uint32_t> loading_{0};
  std::atomic<std::uint32_t> registrations_{0};
  std::atomic<bool> closed_{false};
  std::atomic<pthread_t> exiting_{};
  std::atomic<int> process_{0};  ///< a forked child begins anew: the parent's other threads are not in it
};

/// The diagnostic of a refused Pass: "cannot compile x.cu: the process is exiting".
Diagnostic process_exits(const std::string& attempted);

}  // namespace quern::base
