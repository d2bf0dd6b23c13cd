// SPDX-License-Identifier: Apache-2.0
#include "cache/memory_cache.hpp"

#include <exception>
#include <list>
#include <optional>
#include <thread>
#include <unordered_map>

#include "base/thread_annotations.hpp"

namespace quern::cache {
namespace {

using Value = MemoryCacheCore::Value;
using Computed = MemoryCacheCore::Computed;
using base::Digest;

// One computation in progress. Its fields are written once, under the cache's mutex, before `done` becomes
// true; waiters hold it by shared_ptr, so it outlives its entry in the table.
struct Flight {
  std::thread::id owner = std::this_thread::get_id();
  bool done = false;
  std::optional<Expected<Value>> result;
  std::exception_ptr exception;
};

struct Entry {
  Digest key;
  Value value;
  std::size_t size_bytes = 0;
};

Diagnostic own_computation(const Digest& key) {
  Diagnostic diagnostic;
  diagnostic.code = "cache-recursion";
  diagnostic.message =
      "the computation of cache entry " + key.hex().substr(0, 16) + " asks for that same entry";
  diagnostic.hint = "this is a defect of quern; please report it";
  return diagnostic;
}

}  // namespace

struct MemoryCacheCore::State {
  explicit State(std::uint64_t bound) : max_bytes(bound) {}

  mutable base::Mutex mutex;
  std::uint64_t max_bytes QUERN_GUARDED_BY(mutex);
  base::ConditionVariable finished;
  std::list<Entry> entries QUERN_GUARDED_BY(mutex);  // most recently used first
  std::unordered_map<Digest, std::list<Entry>::iterator> index QUERN_GUARDED_BY(mutex);
  std::unordered_map<Digest, std::shared_ptr<Flight>> flights QUERN_GUARDED_BY(mutex);
  CacheStats counters QUERN_GUARDED_BY(mutex);

  Value lookup(const Digest& key) QUERN_REQUIRES(mutex) {
    const auto found = index.find(key);
    if (found == index.end()) return nullptr;
    entries.splice(entries.begin(), entries, found->second);
    ++counters.hits;
    return found->second->value;
  }

  // Moves entries beyond the limit into `dropped`: values are destroyed after the lock is released.
  void insert(const Digest& key, const Computed& made, std::list<Entry>& dropped) QUERN_REQUIRES(mutex) {
    if (made.size_bytes > max_bytes) return;
    entries.push_front({key, made.value, made.size_bytes});
    index[key] = entries.begin();
    counters.size_bytes += made.size_bytes;
    shrink(dropped);
  }

  void shrink(std::list<Entry>& dropped) QUERN_REQUIRES(mutex) {
    while (counters.size_bytes > max_bytes) {
      const auto last = std::prev(entries.end());
      counters.size_bytes -= last->size_bytes;
      ++counters.evictions;
      index.erase(last->key);
      dropped.splice(dropped.end(), entries, last);
    }
  }

  // Ends `flight`: publishes its result, keeps a value, wakes the waiters.
  void land(const Digest& key, Flight& flight, const std::optional<Computed>& made) QUERN_EXCLUDES(mutex) {
    std::list<Entry> dropped;
    const base::LockGuard lock(mutex);
    if (made) insert(key, *made, dropped);
    ++(made ? counters.misses : counters.failures);
    flight.done = true;
    flights.erase(key);
    finished.notify_all();
  }

  Expected<Value> wait(const Digest& key, const std::shared_ptr<Flight>& flight) QUERN_REQUIRES(mutex) {
    if (flight->owner == std::this_thread::get_id()) return own_computation(key);
    ++counters.waits;
    finished.wait(mutex, [&] { return flight->done; });
    if (flight->exception) std::rethrow_exception(flight->exception);
    return *flight->result;
  }
};

MemoryCacheCore::MemoryCacheCore(std::uint64_t max_bytes) : state_(std::make_unique<State>(max_bytes)) {}
MemoryCacheCore::~MemoryCacheCore() = default;

Value MemoryCacheCore::find(const Digest& key) {
  const base::LockGuard lock(state_->mutex);
  return state_->lookup(key);
}

Expected<Value> MemoryCacheCore::get_or_compute(const Digest& key, const Compute& compute) {
  State& state = *state_;
  std::shared_ptr<Flight> flight;
  {
    const base::LockGuard lock(state.mutex);
    if (Value value = state.lookup(key)) return value;
    std::shared_ptr<Flight>& slot = state.flights[key];
    if (slot) return state.wait(key, std::shared_ptr<Flight>(slot));
    flight = slot = std::make_shared<Flight>();
  }
  // Until land() only this thread uses the fields of the flight.
  std::optional<Computed> made;
  try {
    Expected<Computed> computed = compute();
    if (computed) {
      made = *computed;
      flight->result.emplace(made->value);
    } else {
      flight->result.emplace(std::move(computed).errors());
    }
  } catch (...) {
    flight->exception = std::current_exception();
  }
  state.land(key, *flight, made);
  if (flight->exception) std::rethrow_exception(flight->exception);
  return *flight->result;
}

void MemoryCacheCore::drop(const Digest& key) {
  std::list<Entry> dropped;
  const base::LockGuard lock(state_->mutex);
  const auto found = state_->index.find(key);
  if (found == state_->index.end()) return;
  state_->counters.size_bytes -= found->second->size_bytes;
  dropped.splice(dropped.end(), state_->entries, found->second);
  state_->index.erase(found);
}

void MemoryCacheCore::clear() {
  std::list<Entry> dropped;
  const base::LockGuard lock(state_->mutex);
  dropped.swap(state_->entries);
  state_->index.clear();
  state_->counters.size_bytes = 0;
}

void MemoryCacheCore::set_max_bytes(std::uint64_t max_bytes) {
  std::list<Entry> dropped;
  const base::LockGuard lock(state_->mutex);
  state_->max_bytes = max_bytes;
  state_->shrink(dropped);
}

CacheStats MemoryCacheCore::stats() const {
  const base::LockGuard lock(state_->mutex);
  CacheStats stats = state_->counters;
  stats.max_bytes = state_->max_bytes;
  stats.entry_count = state_->entries.size();
  return stats;
}

}  // namespace quern::cache
