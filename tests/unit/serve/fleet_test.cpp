// SPDX-License-Identifier: Apache-2.0
#include "serve/fleet.hpp"

#include <atomic>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "../store/fake_store.hpp"

using namespace quern;
using namespace quern::serve;
using namespace std::chrono_literals;
using store::FakeConnector;
using store::FakeStore;
using store::State;

namespace {

std::unique_ptr<Fleet> make_fleet(FakeStore& fake, std::chrono::nanoseconds longest_wait = 60s) {
  const store::SharedStore::Limits limits{2000ms, 300ms};
  auto shared =
      std::make_unique<store::SharedStore>(std::make_unique<FakeConnector>(fake), limits, [](const auto&) {});
  auto fleet = std::make_unique<Fleet>(std::move(shared), "fake", longest_wait);
  for (int i = 0; i < 1000 && !fleet->statistics().is_up; ++i) std::this_thread::sleep_for(5ms);
  REQUIRE(fleet->statistics().is_up);
  return fleet;
}

base::Digest key_of(int number) {
  base::Digest key;
  key.bytes[0] = static_cast<std::uint8_t>(number);
  return key;
}

bool becomes(const std::function<bool()>& condition) {
  for (int i = 0; i < 2000 && !condition(); ++i) std::this_thread::sleep_for(5ms);
  return condition();
}

/// A fleet that waits for another server's lock of key 1.
struct Waiting {
  explicit Waiting(FakeStore& fake, std::chrono::nanoseconds longest_wait = 60s)
      : fleet(make_fleet(fake, longest_wait)) {
    {
      const std::lock_guard lock(fake.mutex);
      fake.locks[key_of(1)] = "somebody";
    }
    std::string value;
    REQUIRE(fleet->begin(key_of(1), ticket, value) == Fleet::Step::wait);
    fleet->wait(ticket, {[this](const std::string& text) { found = text; }, [this] { compiles = true; },
                         [this] { return wanted.load(); }});
  }
  Fleet::TicketPointer ticket;
  std::string found;
  std::atomic<bool> compiles{false}, wanted{true};
  std::unique_ptr<Fleet> fleet;
};

}  // namespace

TEST_CASE("servers that share a store compile each key once, and all get its value") {
  FakeStore fake;
  constexpr int kFleets = 3, kKeys = 40;
  std::vector<std::unique_ptr<Fleet>> fleets;
  for (int i = 0; i < kFleets; ++i) fleets.push_back(make_fleet(fake));
  std::vector<std::atomic<int>> compiles(kKeys);
  std::atomic<int> values{0};
  const auto compile = [&](Fleet& fleet, const Fleet::TicketPointer& ticket, int key) {
    ++compiles[static_cast<std::size_t>(key)];
    std::this_thread::sleep_for(2ms);
    fleet.finish(ticket, "value " + std::to_string(key));
    ++values;
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kFleets; ++i)
    for (int part = 0; part < 4; ++part)
      threads.emplace_back([&, i, part] {
        Fleet& fleet = *fleets[static_cast<std::size_t>(i)];
        for (int key = part; key < kKeys; key += 4) {
          Fleet::TicketPointer ticket;
          std::string value;
          switch (fleet.begin(key_of(key), ticket, value)) {
            case Fleet::Step::found:
              values += value == "value " + std::to_string(key) ? 1 : 0;
              break;
            case Fleet::Step::compile:
              compile(fleet, ticket, key);
              break;
            case Fleet::Step::wait:
              fleet.wait(ticket, {[&, key](const std::string& text) {
                                    values += text == "value " + std::to_string(key) ? 1 : 0;
                                  },
                                  [&, ticket, key] { compile(fleet, ticket, key); }, [] { return true; }});
          }
        }
      });
  for (std::thread& each : threads) each.join();
  CHECK(becomes([&] { return values == kFleets * kKeys; }));
  for (const std::atomic<int>& count : compiles) CHECK(count == 1);
  CHECK(becomes([&] {
    const std::lock_guard lock(fake.mutex);
    return fake.locks.empty();
  }));
}

TEST_CASE("a server that waits compiles once the lock is gone") {
  FakeStore fake;
  Waiting waiting(fake);
  std::this_thread::sleep_for(50ms);
  CHECK_FALSE(waiting.compiles);
  {
    const std::lock_guard lock(fake.mutex);
    fake.locks.clear();
  }
  CHECK(becomes([&] { return waiting.compiles.load(); }));
  CHECK(waiting.fleet->waiting() == 0);
  // It holds the lock now, and releases it without a value if the compile has failed.
  {
    const std::lock_guard lock(fake.mutex);
    CHECK(fake.locks.size() == 1);
  }
  waiting.fleet->finish(waiting.ticket);
  CHECK(becomes([&] {
    const std::lock_guard lock(fake.mutex);
    return fake.locks.empty();
  }));
  CHECK(fake.values.empty());
}

TEST_CASE("a server that waits compiles when the store goes down") {
  FakeStore fake;
  Waiting waiting(fake);
  fake.state = State::refuses_connections;
  CHECK(becomes([&] { return waiting.compiles.load(); }));
}

TEST_CASE("a lock that is never released is waited for no longer than the longest wait") {
  FakeStore fake;
  const std::int64_t begin = base::now_ns();
  Waiting waiting(fake, 300ms);
  CHECK(becomes([&] { return waiting.compiles.load(); }));
  CHECK(base::now_ns() - begin >= 300'000'000);
}

TEST_CASE("what nobody wants any more is neither compiled nor asked for") {
  FakeStore fake;
  Waiting waiting(fake);
  waiting.wanted = false;
  CHECK(becomes([&] { return waiting.fleet->waiting() == 0; }));
  const std::lock_guard lock(fake.mutex);
  CHECK_FALSE(waiting.compiles);
  CHECK(waiting.found.empty());
}

TEST_CASE("a fleet that ends stores what is finished first") {
  FakeStore fake;
  std::unique_ptr<Fleet> fleet = make_fleet(fake);
  for (int i = 0; i < 20; ++i) {
    Fleet::TicketPointer ticket;
    std::string value;
    REQUIRE(fleet->begin(key_of(i), ticket, value) == Fleet::Step::compile);
    fleet->finish(ticket, "value");
  }
  fleet.reset();
  CHECK(fake.values.size() == 20);
  CHECK(fake.locks.empty());
}
