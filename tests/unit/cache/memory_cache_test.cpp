// SPDX-License-Identifier: Apache-2.0
#include "cache/memory_cache.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace quern;
using quern::base::Digest;
using quern::cache::MemoryCache;

namespace {

using Cache = MemoryCache<std::string>;

Digest key(std::uint8_t number) {
  Digest digest;
  digest.bytes[0] = number;
  return digest;
}
Cache make(std::uint64_t max_bytes) {
  return Cache(max_bytes, [](const std::string& text) { return text.size(); });
}
Expected<Cache::Value> text(std::string value) {
  return Cache::Value(std::make_shared<const std::string>(std::move(value)));
}
Diagnostic failure(std::string message) {
  Diagnostic diagnostic;
  diagnostic.message = std::move(message);
  return diagnostic;
}
Expected<Cache::Value> unexpected_call() {
  FAIL("a cached value was computed again");
  return failure("computed again");
}

}  // namespace

TEST_CASE("a value is computed once and then found") {
  Cache cache = make(100);
  CHECK(cache.find(key(1)) == nullptr);
  const auto first = cache.get_or_compute(key(1), [] { return text("one"); });
  REQUIRE(first);
  CHECK(**first == "one");
  const auto second = cache.get_or_compute(key(1), unexpected_call);
  REQUIRE(second);
  CHECK(*second == *first);
  CHECK(cache.find(key(1)) == *first);
  CHECK(cache.stats().misses == 1);
  CHECK(cache.stats().hits == 2);
  CHECK(cache.stats().size_bytes == 3);
}

TEST_CASE("a dropped value is computed again, and its size is given back") {
  Cache cache = make(100);
  const auto held = cache.get_or_compute(key(1), [] { return text("one"); });
  REQUIRE(cache.get_or_compute(key(2), [] { return text("other"); }));
  cache.drop(key(1));
  cache.drop(key(3));
  CHECK(cache.find(key(1)) == nullptr);
  CHECK(cache.find(key(2)) != nullptr);
  CHECK(**held == "one");
  CHECK(cache.stats().size_bytes == 5);
  CHECK(**cache.get_or_compute(key(1), [] { return text("new"); }) == "new");
}

TEST_CASE("of many threads that ask for one key at once, one computes and all get its value") {
  Cache cache = make(100);
  constexpr int kThreads = 8;
  std::atomic<int> computed = 0;
  std::latch start(kThreads);
  std::vector<Cache::Value> values(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      auto value = cache.get_or_compute(key(1), [&] {
        ++computed;
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        return text("one");
      });
      if (value) values[static_cast<std::size_t>(i)] = *value;
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(computed == 1);
  for (const Cache::Value& value : values) {
    REQUIRE(value);
    CHECK(value == values[0]);
  }
  CHECK(cache.stats().misses == 1);
  CHECK(cache.stats().hits + cache.stats().waits == kThreads - 1);
}

TEST_CASE("a failure reaches everyone who waited and is not kept") {
  Cache cache = make(100);
  std::atomic<bool> inside = false;
  std::string waiter_message;
  std::thread waiter;
  const auto failed = cache.get_or_compute(key(1), [&]() -> Expected<Cache::Value> {
    waiter = std::thread([&] {
      inside = true;
      const auto same =
          cache.get_or_compute(key(1), [] { return Expected<Cache::Value>(failure("second")); });
      if (!same) waiter_message = same.errors().front().message;
    });
    while (!inside || cache.stats().waits == 0) std::this_thread::yield();
    return failure("first");
  });
  waiter.join();
  REQUIRE_FALSE(failed);
  CHECK(failed.errors().front().message == "first");
  CHECK(waiter_message == "first");
  CHECK(cache.stats().failures == 1);
  const auto again = cache.get_or_compute(key(1), [] { return text("now it works"); });
  REQUIRE(again);
  CHECK(**again == "now it works");
}

TEST_CASE("an exception reaches the caller and leaves the key free") {
  Cache cache = make(100);
  CHECK_THROWS_AS(
      (void)cache.get_or_compute(key(1), []() -> Expected<Cache::Value> { throw std::runtime_error("no"); }),
      std::runtime_error);
  REQUIRE(cache.get_or_compute(key(1), [] { return text("yes"); }));
}

TEST_CASE("other keys are served while one is being computed") {
  Cache cache = make(100);
  const auto outer = cache.get_or_compute(key(1), [&] {
    const auto inner = cache.get_or_compute(key(2), [] { return text("inner"); });
    return text("outer of " + **inner);
  });
  REQUIRE(outer);
  CHECK(**outer == "outer of inner");
}

TEST_CASE("a computation that asks for its own key is told so instead of waiting for ever") {
  Cache cache = make(100);
  const auto outer = cache.get_or_compute(
      key(1), [&] { return cache.get_or_compute(key(1), [] { return text("never"); }); });
  REQUIRE_FALSE(outer);
  CHECK(outer.errors().front().code == "cache-recursion");
}

TEST_CASE("the least recently used values go first when the bound is exceeded") {
  Cache cache = make(10);
  for (std::uint8_t i = 1; i <= 3; ++i) REQUIRE(cache.get_or_compute(key(i), [] { return text("abc"); }));
  REQUIRE(cache.find(key(1)));  // now 2 is the oldest
  REQUIRE(cache.get_or_compute(key(4), [] { return text("abc"); }));
  CHECK(cache.find(key(1)));
  CHECK_FALSE(cache.find(key(2)));
  CHECK(cache.find(key(3)));
  CHECK(cache.stats().evictions == 1);
  CHECK(cache.stats().entry_count == 3);
  CHECK(cache.stats().size_bytes == 9);
}

TEST_CASE("a value larger than the bound is returned but not kept") {
  Cache cache = make(4);
  REQUIRE(cache.get_or_compute(key(1), [] { return text("abc"); }));
  const auto large = cache.get_or_compute(key(2), [] { return text("abcdef"); });
  REQUIRE(large);
  CHECK(**large == "abcdef");
  CHECK_FALSE(cache.find(key(2)));
  CHECK(cache.find(key(1)));
}

TEST_CASE("a value outlives its place in the cache") {
  Cache cache = make(10);
  const auto value = cache.get_or_compute(key(1), [] { return text("kept"); });
  cache.clear();
  CHECK(cache.stats().entry_count == 0);
  CHECK(cache.stats().size_bytes == 0);
  CHECK(**value == "kept");
}

TEST_CASE("many threads over few keys within a small bound agree on every value") {
  Cache cache = make(20);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) {
        const auto number = static_cast<std::uint8_t>((i * 7 + t) % 9);
        const auto value =
            cache.get_or_compute(key(number), [&] { return text("value " + std::to_string(number)); });
        if (!value || **value != "value " + std::to_string(number)) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(cache.stats().size_bytes <= 20);
}
