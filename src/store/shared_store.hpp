// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/signing_keys.hpp"
#include "base/thread_annotations.hpp"
#include "store/connections.hpp"
#include "store/engine.hpp"
#include "store/sealed_value.hpp"

namespace quern::store {

/// An event for the operator.
struct Event {
  enum class What : std::uint8_t {
    up,       ///< the store answers
    down,     ///< it does not; `text` says why
    refused,  ///< a stored value is not used: `key`, and the reason in `text`; one a second for each reason
    failed,   ///< the store answered that it does not do this; `text` says what it said; one a second
  } what = What::up;
  std::string key;
  std::string text;
};

/// Counts since the start.
struct Statistics {
  std::uint64_t hits = 0, misses = 0, unavailable = 0;  // of get()
  std::uint64_t puts = 0, puts_failed = 0;
  std::uint64_t locks_acquired = 0, locks_held = 0, locks_failed = 0;  // of try_lock(); held: by another
  std::array<std::uint64_t, kRefusalCount> refused{};
  std::uint64_t failures = 0;  // the store went down
  bool is_up = false;
};

/// Values under digests in a store that several servers share. A store that is down, or that does not answer
/// within the budget, costs a request at most the budget, and nothing until a probe in the background has
/// found it up again. Values are sealed, and checked when they are read. Thread-safe.
class SharedStore {
 public:
  struct Limits {
    std::chrono::nanoseconds budget{20'000'000};
    std::chrono::milliseconds lease{4000};
  };
  using OnEvent = std::function<void(const Event&)>;  ///< called by any thread, without a lock

  SharedStore(std::unique_ptr<Connector> connector, const Limits& limits, OnEvent on_event);

  /// Without keys (null) all writers of the store are trusted. Reopens connections.
  void set_keys(std::shared_ptr<const base::SigningKeys> keys) QUERN_EXCLUDES(mutex_);

  enum class GetOutcome : std::uint8_t { hit, miss, unavailable };
  /// A value that is refused counts as a miss.
  GetOutcome get(Kind kind, const base::Digest& key, std::string& value) QUERN_EXCLUDES(mutex_);
  void put(Kind kind, const base::Digest& key, std::string_view value) QUERN_EXCLUDES(mutex_);

  Lock new_lock(const base::Digest& key) const;
  enum class LockOutcome : std::uint8_t { acquired, held, unsupported, unavailable };
  LockOutcome try_lock(Lock& lock);
  /// `acquired` for another lease; `held`: by another, since it was not extended in time.
  LockOutcome extend(Lock& lock);
  void unlock(Lock& lock);

  std::chrono::milliseconds lease() const noexcept { return limits_.lease; }
  Statistics statistics() const;

 private:
  /// Calls `operation` with a connection; null if the store is not available.
  template <class T, class Operation>
  std::optional<T> use(Operation&& operation);
  void note_failure(const Diagnostic& reason);
  void note_refusal(const base::Digest& key, Refusal refusal);

  const Limits limits_;
  const OnEvent on_event_;
  std::atomic<std::uint64_t> hits_{0}, misses_{0}, unavailable_{0}, puts_{0}, puts_failed_{0};
  std::atomic<std::uint64_t> locks_acquired_{0}, locks_held_{0}, locks_failed_{0};
  std::array<std::atomic<std::uint64_t>, kRefusalCount> refused_{};
  std::atomic<std::int64_t> last_failed_ns_{0};  // when it was reported last
  std::array<std::atomic<std::int64_t>, kRefusalCount> last_refused_ns_{};
  mutable base::Mutex mutex_;
  std::shared_ptr<const base::SigningKeys> keys_ QUERN_GUARDED_BY(mutex_);
  const std::unique_ptr<Connector> connector_;
  Connections connections_;  // the last: its thread uses the rest
};

}  // namespace quern::store
