// SPDX-License-Identifier: Apache-2.0
#include "base/thread_value.hpp"

#include <doctest/doctest.h>
#include <pthread.h>

#include <string>
#include <thread>

using namespace quern::base;

namespace {

/// The events at the end of the threads of one test, in order: a letter each.
std::string events;

struct Counted {
  int number = 0;
  ~Counted() { events += number == 7 ? 'v' : 'w'; }
};
struct OtherTag;

struct UsesAtEnd {
  bool is_used = false;
  ~UsesAtEnd() {
    if (is_used) events += thread_value<Counted>().number == 7 ? 't' : 'x';
  }
};

}  // namespace

TEST_CASE("each thread has a value of its own, and one for each tag") {
  events.clear();
  thread_value<Counted>().number = 1;
  std::thread([] {
    CHECK(thread_value<Counted>().number == 0);
    thread_value<Counted>().number = 7;
    CHECK(thread_value<Counted>().number == 7);
    CHECK(thread_value<Counted, OtherTag>().number == 0);
    CHECK(events.empty());
  }).join();
  CHECK(events == "vw");
  CHECK(thread_value<Counted>().number == 1);
}

TEST_CASE("a value outlives thread_local objects, and destructors of other keys use it") {
  events.clear();
  pthread_key_t key{};
  REQUIRE(::pthread_key_create(
              &key, [](void*) { events += thread_value<Counted>().number == 7 ? 'k' : 'x'; }) == 0);
  std::thread([&] {
    static thread_local UsesAtEnd destroyed_last;
    destroyed_last.is_used = true;
    thread_value<Counted>().number = 7;
    REQUIRE(::pthread_setspecific(key, &key) == 0);
  }).join();
  CHECK(events == "tkv");
  CHECK(::pthread_key_delete(key) == 0);
}
