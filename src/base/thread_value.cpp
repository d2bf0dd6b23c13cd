// SPDX-License-Identifier: Apache-2.0
#include "base/thread_value.hpp"

#include <limits.h>
#include <pthread.h>

#include <new>
#include <vector>

namespace quern::base {
namespace {

/// The functions that at_thread_end() was given on one thread. Only that thread uses them.
struct ThreadEnd {
  struct Entry {
    void (*destroy)(void*);
    void* object;
  };
  std::vector<Entry> entries;
  int rounds = 0;
};

/// The C library calls the destructors of keys in rounds, as long as keys have values. Sanitizers forget the
/// thread in the last round, so ours is the one before. (POSIX, pthread_key_create)
constexpr int kLastRound = PTHREAD_DESTRUCTOR_ITERATIONS - 1;

void end_thread(void* value) noexcept;

pthread_key_t make_key() {
  pthread_key_t key{};
  if (::pthread_key_create(&key, &end_thread) != 0) throw std::bad_alloc();  // the process has no key left
  return key;
}

pthread_key_t key() {
  static const pthread_key_t made = make_key();
  return made;
}

void end_thread(void* value) noexcept {
  auto* const end = static_cast<ThreadEnd*>(value);
  if (++end->rounds < kLastRound && ::pthread_setspecific(key(), end) == 0) return;
  for (const ThreadEnd::Entry& entry : end->entries) entry.destroy(entry.object);
  delete end;
}

}  // namespace

void at_thread_end(void (*destroy)(void*), void* object) {
  auto* end = static_cast<ThreadEnd*>(::pthread_getspecific(key()));
  if (end == nullptr) {
    auto made = std::make_unique<ThreadEnd>();
    if (::pthread_setspecific(key(), made.get()) != 0) throw std::bad_alloc();
    end = made.release();
  }
  end->entries.push_back({destroy, object});
}

}  // namespace quern::base
