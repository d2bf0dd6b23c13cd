// SPDX-License-Identifier: Apache-2.0
#include "store/shared_store.hpp"

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "base/clock.hpp"
#include "fake_store.hpp"

using namespace quern;
using namespace quern::store;
using namespace std::chrono_literals;

namespace {

struct Watched {
  explicit Watched(FakeStore& fake, SharedStore::Limits limits = {})
      : store(std::make_unique<FakeConnector>(fake), limits, [this](const Event& event) {
          const std::lock_guard lock(mutex);
          events.push_back(event);
        }) {
    store.set_keys(std::make_shared<base::SigningKeys>(*base::SigningKeys::parse(std::string(64, '1'), "k")));
  }
  bool becomes(bool is_up) const {
    for (int i = 0; i < 1000 && store.statistics().is_up != is_up; ++i) std::this_thread::sleep_for(10ms);
    return store.statistics().is_up == is_up;
  }
  std::size_t count(Event::What what) {
    const std::lock_guard lock(mutex);
    std::size_t count = 0;
    for (const Event& each : events) count += each.what == what ? 1 : 0;
    return count;
  }

  std::mutex mutex;
  std::vector<Event> events;
  SharedStore store;
};

base::Digest key_of(std::uint8_t byte) {
  base::Digest key;
  key.bytes.fill(byte);
  return key;
}

constexpr Kind kKind = Kind::compile_answer;
using GetOutcome = SharedStore::GetOutcome;
using LockOutcome = SharedStore::LockOutcome;

}  // namespace

TEST_CASE("values are put and got") {
  FakeStore fake;
  Watched watched(fake, {2000ms, 1000ms});
  REQUIRE(watched.becomes(true));
  std::string value;
  CHECK(watched.store.get(kKind, key_of(1), value) == GetOutcome::miss);
  watched.store.put(kKind, key_of(1), "one");
  CHECK(watched.store.get(kKind, key_of(1), value) == GetOutcome::hit);
  CHECK(value == "one");
  CHECK(watched.store.statistics().puts == 1);
}

TEST_CASE("a value that was copied to another key is refused, counted and reported") {
  FakeStore fake;
  Watched watched(fake, {2000ms, 1000ms});
  REQUIRE(watched.becomes(true));
  watched.store.put(kKind, key_of(1), "one");
  fake.values[key_of(2)] = fake.values[key_of(1)];
  fake.values[key_of(3)] = "nonsense";
  std::string value = "before";
  CHECK(watched.store.get(kKind, key_of(2), value) == GetOutcome::miss);
  CHECK(watched.store.get(kKind, key_of(3), value) == GetOutcome::miss);
  CHECK(value == "before");
  CHECK(watched.store.statistics().refused[static_cast<std::size_t>(Refusal::other_key)] == 1);
  CHECK(watched.store.statistics().refused[static_cast<std::size_t>(Refusal::damaged)] == 1);
  CHECK(watched.count(Event::What::refused) == 2);
  CHECK(watched.store.statistics().is_up);
}

TEST_CASE("a store that does not answer costs the budget once, and comes back by itself") {
  FakeStore fake;
  Watched watched(fake, {50ms, 1000ms});
  REQUIRE(watched.becomes(true));
  fake.state = State::does_not_answer;
  std::string value;
  const std::int64_t begin = base::now_ns();
  CHECK(watched.store.get(kKind, key_of(1), value) == GetOutcome::unavailable);
  CHECK(base::now_ns() - begin >= 45'000'000);
  // From now on only probes are sent: none of a thousand requests reaches the store.
  const int asked = fake.questions;
  const std::int64_t again = base::now_ns();
  for (int i = 0; i < 1000; ++i) {
    CHECK(watched.store.get(kKind, key_of(1), value) == GetOutcome::unavailable);
    watched.store.put(kKind, key_of(1), "x");
  }
  CHECK(base::now_ns() - again < 2'000'000'000);
  CHECK(fake.questions - asked <= 5);  // probes
  CHECK(watched.count(Event::What::down) == 1);
  fake.state = State::good;
  REQUIRE(watched.becomes(true));
  CHECK(watched.store.get(kKind, key_of(1), value) == GetOutcome::miss);
  CHECK(watched.count(Event::What::up) == 2);
  CHECK(watched.store.statistics().failures == 1);
}

TEST_CASE("a store that is down at the start is reported once and found later") {
  FakeStore fake;
  fake.state = State::refuses_connections;
  Watched watched(fake);
  std::string value;
  for (int i = 0; i < 100 && fake.connects < 3; ++i) {
    CHECK(watched.store.get(kKind, key_of(1), value) == GetOutcome::unavailable);
    std::this_thread::sleep_for(10ms);
  }
  CHECK(fake.connects >= 3);
  CHECK(watched.count(Event::What::down) == 1);
  fake.state = State::good;
  CHECK(watched.becomes(true));
}

TEST_CASE("a refused command is no failure of the store") {
  FakeStore fake;
  Watched watched(fake, {2000ms, 1000ms});
  REQUIRE(watched.becomes(true));
  // A connection must be open. Otherwise the ping of a new one would be refused too, and that means that the
  // store is down.
  watched.store.put(kKind, key_of(1), "x");
  REQUIRE(watched.store.statistics().puts == 1);
  fake.state = State::refuses_commands;
  for (int i = 0; i < 3; ++i) watched.store.put(kKind, key_of(1), "x");
  CHECK(watched.store.statistics().puts_failed == 3);
  CHECK(watched.store.statistics().is_up);
  CHECK(watched.count(Event::What::failed) == 1);  // at most one report a second
}

TEST_CASE("a lock belongs to one, and is unlocked by nobody else") {
  FakeStore fake;
  Watched watched(fake, {1000ms, 1000ms});
  REQUIRE(watched.becomes(true));
  Lock one = watched.store.new_lock(key_of(1)), other = watched.store.new_lock(key_of(1));
  CHECK(one.owner != other.owner);
  CHECK(watched.store.try_lock(one) == LockOutcome::acquired);
  CHECK(watched.store.try_lock(other) == LockOutcome::held);
  watched.store.unlock(other);
  CHECK(watched.store.extend(one) == LockOutcome::acquired);
  CHECK(watched.store.extend(other) == LockOutcome::held);
  watched.store.unlock(one);
  CHECK(watched.store.try_lock(other) == LockOutcome::acquired);
}

TEST_CASE("many threads share few connections") {
  FakeStore fake;
  Watched watched(fake, {2000ms, 1000ms});
  REQUIRE(watched.becomes(true));
  watched.store.put(kKind, key_of(1), "one");
  std::atomic<int> hits{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 32; ++i)
    threads.emplace_back([&] {
      std::string value;
      for (int k = 0; k < 50; ++k)
        hits += watched.store.get(kKind, key_of(1), value) == GetOutcome::hit ? 1 : 0;
    });
  for (std::thread& each : threads) each.join();
  CHECK(hits == 32 * 50);
  // A machine that is too busy to answer in time opens new connections instead of reusing old ones.
  CHECK(fake.most_open.load() <= 16);
}
