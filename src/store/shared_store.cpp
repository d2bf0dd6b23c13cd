// SPDX-License-Identifier: Apache-2.0
#include "store/shared_store.hpp"

#include <openssl/rand.h>

#include <cstdlib>
#include <utility>

#include "base/clock.hpp"

namespace quern::store {
namespace {

// A transfer must reach 4 MiB/s: the budget is for the first byte of a large value, not for its last.
constexpr std::int64_t kNsPerByte = 1'000'000'000 / (4 << 20);
constexpr std::int64_t kQuiet_ns = 1'000'000'000;  // between two reports of one kind

/// True if the last report was long enough ago: this one is to be made.
bool is_time(std::atomic<std::int64_t>& last_ns) {
  const std::int64_t now = base::now_ns();
  std::int64_t last = last_ns;
  if (last != 0 && now - last < kQuiet_ns) return false;
  return last_ns.compare_exchange_strong(last, now);
}

std::string random_name() {
  base::Digest bytes;
  // Without random numbers OpenSSL has nothing to offer for TLS either.
  if (RAND_bytes(bytes.bytes.data(), 16) != 1) std::abort();
  return bytes.hex().substr(0, 32);
}

}  // namespace

SharedStore::SharedStore(std::unique_ptr<Connector> connector, const Limits& limits, OnEvent on_event)
    : limits_(limits),
      on_event_(std::move(on_event)),
      connector_(std::move(connector)),
      connections_(*connector_, limits.budget, [this](bool is_up, const std::string& reason) {
        on_event_({is_up ? Event::What::up : Event::What::down, {}, reason});
      }) {}

void SharedStore::set_keys(std::shared_ptr<const base::SigningKeys> keys) {
  {
    const base::LockGuard lock(mutex_);
    keys_ = std::move(keys);
  }
  connections_.renew();
}

template <class T, class Operation>
std::optional<T> SharedStore::use(Operation&& operation) {
  const remote::Pace pace{base::now_ns() + limits_.budget.count(), kNsPerByte};
  std::unique_ptr<Connection> connection = connections_.take(pace.deadline_ns);
  if (!connection) return std::nullopt;
  Expected<T> result = operation(*connection, pace);
  if (result) {
    connections_.give_back(std::move(connection));
    return *std::move(result);
  }
  const Diagnostic& reason = result.errors().front();
  if (reason.code != "refused") {
    connections_.fail(reason);
    return std::nullopt;
  }
  connections_.give_back(std::move(connection));
  note_failure(reason);
  return std::nullopt;
}

void SharedStore::note_failure(const Diagnostic& reason) {
  if (is_time(last_failed_ns_)) on_event_({Event::What::failed, {}, reason.message});
}

void SharedStore::note_refusal(const base::Digest& key, Refusal refusal) {
  const auto index = static_cast<std::size_t>(refusal);
  ++refused_[index];
  if (is_time(last_refused_ns_[index]))
    on_event_({Event::What::refused, key.hex(), std::string(name(refusal))});
}

SharedStore::GetOutcome SharedStore::get(Kind kind, const base::Digest& key, std::string& value) {
  std::shared_ptr<const base::SigningKeys> keys;
  {
    const base::LockGuard lock(mutex_);
    keys = keys_;
  }
  const auto stored = use<std::optional<std::string>>(
      [&](Connection& connection, const remote::Pace& pace) { return connection.get(key, pace); });
  if (!stored) return ++unavailable_, GetOutcome::unavailable;
  if (!*stored) return ++misses_, GetOutcome::miss;
  std::variant<std::string, Refusal> opened = open_value(keys.get(), kind, key, **stored);
  if (std::string* const content = std::get_if<std::string>(&opened)) {
    value = std::move(*content);
    return ++hits_, GetOutcome::hit;
  }
  note_refusal(key, std::get<Refusal>(opened));
  return GetOutcome::miss;
}

void SharedStore::put(Kind kind, const base::Digest& key, std::string_view value) {
  std::shared_ptr<const base::SigningKeys> keys;
  {
    const base::LockGuard lock(mutex_);
    keys = keys_;
  }
  if (!connections_.is_up() || value.size() > kMaxValueBytes) return void(++puts_failed_);
  const std::string stored = seal_value(keys.get(), kind, key, value);
  const auto done = use<bool>([&](Connection& connection, const remote::Pace& pace) -> Expected<bool> {
    if (Expected<void> put = connection.put(key, stored, pace); !put) return std::move(put).errors();
    return true;
  });
  ++(done ? puts_ : puts_failed_);
}

Lock SharedStore::new_lock(const base::Digest& key) const {
  Lock lock;
  lock.key = key;
  lock.owner = random_name();
  lock.lease = limits_.lease;
  return lock;
}

SharedStore::LockOutcome SharedStore::try_lock(Lock& lock) {
  const auto result = use<LockResult>(
      [&](Connection& connection, const remote::Pace& pace) { return connection.try_lock(lock, pace); });
  if (!result) return ++locks_failed_, LockOutcome::unavailable;
  switch (*result) {
    case LockResult::acquired:
      return ++locks_acquired_, LockOutcome::acquired;
    case LockResult::held:
      return ++locks_held_, LockOutcome::held;
    case LockResult::unsupported:
      break;
  }
  return LockOutcome::unsupported;
}

SharedStore::LockOutcome SharedStore::extend(Lock& lock) {
  const auto ours = use<bool>(
      [&](Connection& connection, const remote::Pace& pace) { return connection.extend(lock, pace); });
  if (!ours) return LockOutcome::unavailable;
  return *ours ? LockOutcome::acquired : LockOutcome::held;
}

void SharedStore::unlock(Lock& lock) {
  use<bool>([&](Connection& connection, const remote::Pace& pace) -> Expected<bool> {
    if (Expected<void> done = connection.unlock(lock, pace); !done) return std::move(done).errors();
    return true;
  });
}

Statistics SharedStore::statistics() const {
  Statistics statistics{hits_,
                        misses_,
                        unavailable_,
                        puts_,
                        puts_failed_,
                        locks_acquired_,
                        locks_held_,
                        locks_failed_,
                        {},
                        connections_.failures(),
                        connections_.is_up()};
  for (std::size_t i = 0; i < kRefusalCount; ++i) statistics.refused[i] = refused_[i];
  return statistics;
}

}  // namespace quern::store
