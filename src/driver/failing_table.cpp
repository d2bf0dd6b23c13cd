// SPDX-License-Identifier: Apache-2.0
#include "driver/failing_table.hpp"

#include <array>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <optional>

#include "base/thread_annotations.hpp"
#include "driver/function_facts.hpp"

namespace quern::driver {
namespace {

constexpr std::size_t kSlotCount = std::size(kFunctions);
constexpr std::size_t kAnySlot = kSlotCount;
constexpr std::size_t kTraceLength = 65536;

std::optional<std::size_t> slot_named(std::string_view name) noexcept {
  if (name.empty()) return kAnySlot;
  const FunctionFacts* function = find_function(name);
  if (function == nullptr) return std::nullopt;
  return static_cast<std::size_t>(function - kFunctions);
}

struct PlannedFailure {
  std::size_t slot;
  std::uint64_t calls_left;
  CUresult result;
  bool for_good = false;  ///< every later call as well
};

/// The state behind the trampolines; a process-wide one, because a C function pointer carries none.
class Decorator {
 public:
  void start(const DriverTable& inner) QUERN_EXCLUDES(mutex_) {
    const base::LockGuard lock(mutex_);
    if (inner_) std::abort();  // two decorators at once would count each other's calls
    inner_ = inner;
    counts_.fill(0);
    trace_.clear();
    failures_.clear();
  }
  void stop() QUERN_EXCLUDES(mutex_) {
    const base::LockGuard lock(mutex_);
    inner_.reset();
  }

  /// Counts a call. Gives the inner table, or nothing and the result to answer.
  std::optional<DriverTable> enter(std::size_t slot, CUresult& answer) QUERN_EXCLUDES(mutex_) {
    const base::LockGuard lock(mutex_);
    answer = CUDA_ERROR_DEINITIALIZED;
    if (!inner_) return std::nullopt;
    ++counts_[slot];
    if (trace_.size() == kTraceLength) trace_.pop_front();
    trace_.push_back(slot);
    for (auto failure = failures_.begin(); failure != failures_.end(); ++failure) {
      if ((failure->slot != slot && failure->slot != kAnySlot) || --failure->calls_left != 0) continue;
      answer = failure->result;
      if (failure->for_good)
        failure->calls_left = 1;
      else
        failures_.erase(failure);
      return std::nullopt;
    }
    return inner_;
  }

  void plan(const PlannedFailure& failure) QUERN_EXCLUDES(mutex_) {
    const base::LockGuard lock(mutex_);
    failures_.push_back(failure);
  }
  void clear() QUERN_EXCLUDES(mutex_) {
    const base::LockGuard lock(mutex_);
    failures_.clear();
  }
  std::uint64_t count(std::size_t slot) QUERN_EXCLUDES(mutex_) {
    const base::LockGuard lock(mutex_);
    if (slot != kAnySlot) return counts_[slot];
    std::uint64_t total = 0;
    for (const std::uint64_t count : counts_) total += count;
    return total;
  }
  std::vector<std::string> trace() QUERN_EXCLUDES(mutex_) {
    const base::LockGuard lock(mutex_);
    std::vector<std::string> names;
    for (const std::size_t slot : trace_) names.emplace_back(kFunctions[slot].symbol);
    return names;
  }

 private:
  base::Mutex mutex_;
  std::optional<DriverTable> inner_ QUERN_GUARDED_BY(mutex_);
  std::array<std::uint64_t, kSlotCount> counts_ QUERN_GUARDED_BY(mutex_){};
  std::deque<std::size_t> trace_ QUERN_GUARDED_BY(mutex_);
  std::vector<PlannedFailure> failures_ QUERN_GUARDED_BY(mutex_);
};

Decorator& decorator() {
  static Decorator instance;
  return instance;
}

std::atomic<void (*)(bool) noexcept> observer{nullptr};

struct ObservedCall {
  void (*const told)(bool) noexcept = observer.load(std::memory_order_relaxed);
  ObservedCall() {
    if (told != nullptr) told(true);
  }
  ~ObservedCall() {
    if (told != nullptr) told(false);
  }
  ObservedCall(const ObservedCall&) = delete;
  ObservedCall& operator=(const ObservedCall&) = delete;
};

template <FunctionRow kSlot, class F, F DriverTable::* kMember>
struct Trampoline;
template <FunctionRow kSlot, class... Args, CUresult (*DriverTable::*kMember)(Args...)>
struct Trampoline<kSlot, CUresult (*)(Args...), kMember> {
  static CUresult call(Args... args) {
    const ObservedCall observed;
    CUresult answer = CUDA_SUCCESS;
    const std::optional<DriverTable> inner = decorator().enter(static_cast<std::size_t>(kSlot), answer);
    return inner ? ((*inner).*kMember)(args...) : answer;
  }
};

}  // namespace

FailingTable::FailingTable(const DriverTable& inner) { decorator().start(inner); }
FailingTable::~FailingTable() {
  observer.store(nullptr, std::memory_order_relaxed);
  decorator().stop();
}

void FailingTable::observe(void (*told)(bool) noexcept) { observer.store(told, std::memory_order_relaxed); }

DriverTable FailingTable::table() const noexcept {
  DriverTable table;
#define QUERN_DRIVER_FUNCTION(name, ...) \
  table.name = &Trampoline<FunctionRow::name, decltype(table.name), &DriverTable::name>::call;
#include "driver/functions.def"
  return table;
}

bool FailingTable::fail_call(std::uint64_t nth, CUresult result, std::string_view function) {
  const std::optional<std::size_t> slot = slot_named(function);
  if (!slot || nth == 0) return false;
  decorator().plan({*slot, nth, result});
  return true;
}

void FailingTable::fail_from(std::uint64_t nth, CUresult result) {
  decorator().plan({kAnySlot, nth, result, true});
}

void FailingTable::clear_failures() { decorator().clear(); }

std::uint64_t FailingTable::call_count(std::string_view function) const {
  const std::optional<std::size_t> slot = slot_named(function);
  return slot ? decorator().count(*slot) : 0;
}

std::vector<std::string> FailingTable::trace() const { return decorator().trace(); }

}  // namespace quern::driver
