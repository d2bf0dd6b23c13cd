// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/digest.hpp"
#include "base/thread_annotations.hpp"
#include "serve/metrics.hpp"
#include "store/shared_store.hpp"

namespace quern::serve {

/// One compile for a key over all servers that share a store. A server that misses a value takes the key's
/// lock and compiles; the others wait for the value, or for the lock of a server that was killed. Waiting
/// takes no thread of its own. Thread-safe.
class Fleet {
 public:
  /// The relation of one compile to the others.
  struct Ticket;
  using TicketPointer = std::shared_ptr<Ticket>;

  /// Called by the fleet's thread without a lock, one of the first two once.
  struct Job {
    std::function<void(std::string value)> found;
    std::function<void()> compile;
    std::function<bool()> is_wanted;  ///< if it returns false, neither is called
  };
  enum class Step : std::uint8_t {
    found,    ///< `value` is set
    compile,  ///< and then call finish()
    wait,     ///< another server compiles: call wait()
  };

  /// `longest_wait`: after so long a wait for another server this one compiles itself.
  Fleet(std::unique_ptr<store::SharedStore> store, std::string address,
        std::chrono::nanoseconds longest_wait);
  /// Stores what is finished and releases the locks.
  ~Fleet();
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  Step begin(const base::Digest& key, TicketPointer& ticket, std::string& value);
  void wait(const TicketPointer& ticket, Job job) QUERN_EXCLUDES(mutex_);
  /// The compile has ended: the value is stored in the background, if there is one, then others may go on.
  void finish(const TicketPointer& ticket, std::string value = {}) QUERN_EXCLUDES(mutex_);

  store::SharedStore& store() noexcept { return *store_; }
  const std::string& address() const noexcept { return address_; }
  store::Statistics statistics() const { return store_->statistics(); }
  std::uint64_t waiting() const QUERN_EXCLUDES(mutex_);
  /// The lines of OpenMetrics about the store.
  std::string metrics() const QUERN_EXCLUDES(mutex_);

 private:
  struct Finished {
    TicketPointer ticket;
    std::string value;
  };
  using Due = std::multimap<std::int64_t, TicketPointer>;

  store::SharedStore::GetOutcome get(const base::Digest& key, std::string& value);
  /// Returns nothing if the store is not available.
  std::optional<Step> take_lock(Ticket& ticket, std::string& value);
  /// When something is due; a long time if nothing is.
  std::int64_t next_ns() const QUERN_REQUIRES(mutex_);
  TicketPointer take_due() QUERN_REQUIRES(mutex_);
  void hold(const TicketPointer& ticket) QUERN_EXCLUDES(mutex_);
  void watch() QUERN_EXCLUDES(mutex_);
  void extend(const TicketPointer& ticket);
  void ask_again(const TicketPointer& ticket);
  void write() QUERN_EXCLUDES(mutex_);
  void store_and_unlock(const Finished& finished);

  const std::unique_ptr<store::SharedStore> store_;
  const std::string address_;
  const std::int64_t longest_wait_ns_;
  Histogram seconds_;  // of a question to the store
  mutable base::Mutex mutex_;
  base::ConditionVariable due_changed_, finished_there_;
  bool stopping_ QUERN_GUARDED_BY(mutex_) = false;
  Due leases_ QUERN_GUARDED_BY(mutex_);  // locks to extend, before anything else
  Due waits_ QUERN_GUARDED_BY(mutex_);   // keys to ask for
  std::deque<Finished> finished_ QUERN_GUARDED_BY(mutex_);
  std::uint64_t finished_bytes_ QUERN_GUARDED_BY(mutex_) = 0;
  std::uint64_t waiting_ QUERN_GUARDED_BY(mutex_) = 0;
  std::uint64_t dropped_ QUERN_GUARDED_BY(mutex_) = 0;
  std::thread watcher_, writer_;
};

}  // namespace quern::serve
