// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "base/thread_annotations.hpp"

namespace quern::base {

/// Holds a function of the program that may be exchanged while threads call it. Thread-safe.
template <class Signature>
class HandlerSlot {
 public:
  using Handler = std::function<Signature>;

  HandlerSlot() = default;
  HandlerSlot(const HandlerSlot&) = delete;
  HandlerSlot& operator=(const HandlerSlot&) = delete;

  /// Returns the former handler, when no thread except the calling one is inside it.
  Handler exchange(Handler handler) QUERN_EXCLUDES(mutex_) {
    const std::shared_ptr<Entry> entry =
        handler != nullptr ? std::make_shared<Entry>(Entry{std::move(handler)}) : nullptr;
    mutex_.lock();
    const std::shared_ptr<Entry> former = std::exchange(current_, entry);
    if (former == nullptr) {
      mutex_.unlock();
      return nullptr;
    }
    const std::uint32_t own = former.get() == inside_ ? 1 : 0;
    left_.wait(mutex_, [&]() QUERN_NO_THREAD_SAFETY_ANALYSIS { return former->inside == own; });
    mutex_.unlock();
    return own == 0 ? std::move(former->handler) : former->handler;
  }

  bool empty() QUERN_EXCLUDES(mutex_) {
    const LockGuard lock(mutex_);
    return current_ == nullptr;
  }

  /// Calls `call` with the handler, without a lock. Returns false if there is none. Inside a handler of the
  /// same signature it calls nothing. Passes on exceptions of `call`.
  template <class Call>
  bool visit(Call&& call) QUERN_EXCLUDES(mutex_) {
    if (inside_ != nullptr) return true;
    const Visit visit(*this);
    if (visit.entry() == nullptr) return false;
    call(std::as_const(visit.entry()->handler));
    return true;
  }

 private:
  struct Entry {
    Handler handler;
    std::uint32_t inside = 0;  ///< threads; guarded by the slot's mutex
  };
  /// Keeps the current handler in place while this thread is inside it.
  class Visit {
   public:
    explicit Visit(HandlerSlot& slot) : slot_(slot) {
      const LockGuard lock(slot_.mutex_);
      entry_ = slot_.current_;
      if (entry_ != nullptr) ++entry_->inside;
      inside_ = entry_.get();
    }
    ~Visit() {
      inside_ = nullptr;
      if (entry_ == nullptr) return;
      {
        const LockGuard lock(slot_.mutex_);
        --entry_->inside;
      }
      slot_.left_.notify_all();
    }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;
    Entry* entry() const noexcept { return entry_.get(); }

   private:
    HandlerSlot& slot_;
    std::shared_ptr<Entry> entry_;
  };

  /// The entry whose handler this thread is in.
  static inline thread_local const Entry* inside_ = nullptr;

  Mutex mutex_;
  ConditionVariable left_;
  std::shared_ptr<Entry> current_ QUERN_GUARDED_BY(mutex_);
};

}  // namespace quern::base
