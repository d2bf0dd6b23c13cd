// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "quern/diagnostic.hpp"

namespace quern::base {

/// For work with libraries whose static objects exit() destroys while other threads continue (NVRTC,
/// OpenSSL): exit() waits until no such work is in progress, ten seconds at most, and rejects new work. Work
/// that takes longer would crash; then the process ends without the remaining exit handlers, with its status
/// and its output. A child that was forked during such work of another thread can do none: the libraries'
/// locks are held by threads that it does not have. One in a process, of static storage duration; it is never
/// destroyed. Thread-safe.
class ExitGate {
 public:
  constexpr ExitGate() = default;
  ExitGate(const ExitGate&) = delete;
  ExitGate& operator=(const ExitGate&) = delete;

  /// Work in progress; nests. Returns false if the process is exiting, or such a child, and the work must not
  /// begin. Threads other than the exiting one get this answer after a second, by which time the process has
  /// usually ended: then their hosts need not handle an error.
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
  /// destructors then, behind our handler, so exit() would run these first. Returns false if the process
  /// began to exit, and the library must not be loaded.
  class Loading {
   public:
    explicit Loading(ExitGate& gate) noexcept : gate_(gate), open_(gate.begin_loading()) {}
    ~Loading() {
      gate_.register_handler();  // in front of the library's own, before a thread continues to run them
      if (open_) gate_.loaded_.store(true);
      --gate_.loading_;
    }
    explicit operator bool() const noexcept { return open_; }
    Loading(const Loading&) = delete;
    Loading& operator=(const Loading&) = delete;

   private:
    ExitGate& gate_;
    const bool open_;
  };
  /// To be called within the Pass in which the library worked: objects that it makes when it first needs them
  /// register their destructors behind our handler.
  void library_has_worked() noexcept { register_handler(); }
  /// From now on this thread ends, and exit() called on it runs handlers, only while no other thread loads
  /// the library, ten seconds later at most: a thread's own objects are destroyed before any handler runs.
  void hold_this_thread() noexcept;

  /// Why a Pass is not open: false, because the process is exiting.
  bool is_torn_child() const noexcept { return torn_.load(); }

 private:
  class ThreadEnd;
  bool begin_loading() noexcept;
  void wait_for_loading() noexcept;
  void begin_in_this_process() noexcept;
  bool enter() noexcept;
  void leave() noexcept;
  void register_handler() noexcept;
  static void at_exit(int status, void* gate) noexcept;

  std::atomic<std::uint32_t> inside_{0};
  std::atomic<std::uint32_t> loading_{0};
  std::atomic<bool> loaded_{false};
  std::atomic<std::int64_t> thread_ended_ns_{0};  ///< monotonic; a held thread, which may be in exit()
  std::atomic<std::uint32_t> registrations_{0};
  std::atomic<bool> closed_{false};
  std::atomic<bool> torn_{false};  ///< a child that was forked while others were at work
  std::atomic<pthread_t> exiting_{};
  std::atomic<int> process_{0};  ///< a forked child begins anew: the parent's other threads are not in it
};

/// The diagnostic of a rejected Pass: "cannot compile x.cu: the process is exiting".
Diagnostic rejected(const ExitGate& gate, const std::string& attempted);

}  // namespace quern::base
