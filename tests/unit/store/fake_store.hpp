// SPDX-License-Identifier: Apache-2.0
// A store in this process that fails on request.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/clock.hpp"
#include "store/engine.hpp"

namespace quern::store {

enum class State { good, refuses_connections, does_not_answer, refuses_commands };

struct FakeStore {
  std::mutex mutex;
  std::map<base::Digest, std::string> values;
  std::map<base::Digest, std::string> locks;
  std::atomic<State> state{State::good};
  std::atomic<int> connects{0}, questions{0};
  std::atomic<int> open{0}, most_open{0};  ///< connections at a time
};

inline Diagnostic failure(const char* code) {
  Diagnostic made;
  made.code = code;
  made.message = std::string("fake: ") + code;
  return made;
}

class FakeConnection final : public Connection {
 public:
  explicit FakeConnection(FakeStore& store) : store_(store) {
    const int now = ++store_.open;
    int most = store_.most_open;
    while (now > most && !store_.most_open.compare_exchange_weak(most, now)) {
    }
  }
  ~FakeConnection() override { --store_.open; }
  Expected<void> ping(const remote::Pace& pace) override { return answer(pace); }
  Expected<std::optional<std::string>> get(const base::Digest& key, const remote::Pace& pace) override {
    if (Expected<void> fine = answer(pace); !fine) return fine.errors();
    const std::lock_guard lock(store_.mutex);
    const auto found = store_.values.find(key);
    return found == store_.values.end() ? std::optional<std::string>() : found->second;
  }
  Expected<void> put(const base::Digest& key, std::string_view value, const remote::Pace& pace) override {
    if (Expected<void> fine = answer(pace); !fine) return fine;
    const std::lock_guard lock(store_.mutex);
    store_.values[key] = value;
    return {};
  }
  Expected<LockResult> try_lock(Lock& lock, const remote::Pace& pace) override {
    if (Expected<void> fine = answer(pace); !fine) return fine.errors();
    const std::lock_guard guard(store_.mutex);
    return store_.locks.emplace(lock.key, lock.owner).second ? LockResult::acquired : LockResult::held;
  }
  Expected<bool> extend(Lock& lock, const remote::Pace& pace) override {
    if (Expected<void> fine = answer(pace); !fine) return fine.errors();
    const std::lock_guard guard(store_.mutex);
    return store_.locks[lock.key] == lock.owner;
  }
  Expected<void> unlock(Lock& lock, const remote::Pace& pace) override {
    if (Expected<void> fine = answer(pace); !fine) return fine;
    const std::lock_guard guard(store_.mutex);
    if (store_.locks[lock.key] == lock.owner) store_.locks.erase(lock.key);
    return {};
  }
  bool is_usable() const override { return true; }

 private:
  Expected<void> answer(const remote::Pace& pace) {
    ++store_.questions;
    if (store_.state == State::refuses_commands) return failure("refused");
    if (store_.state == State::good) return {};
    const std::int64_t left_ns = pace.deadline_ns - base::now_ns();
    if (left_ns > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(left_ns));
    return failure("timeout");
  }
  FakeStore& store_;
};

class FakeConnector final : public Connector {
 public:
  explicit FakeConnector(FakeStore& store) : store_(store) {}
  Expected<std::unique_ptr<Connection>> connect(std::chrono::milliseconds) override {
    ++store_.connects;
    if (store_.state == State::refuses_connections) return failure("unreachable");
    return std::unique_ptr<Connection>(new FakeConnection(store_));
  }

 private:
  FakeStore& store_;
};

}  // namespace quern::store
