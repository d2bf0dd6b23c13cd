// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory/dealloc_queue.hpp"

#include <optional>

#include "base/env.hpp"

namespace quern::runtime {
namespace {

constexpr double kDefaultRatio = 0.2;

constexpr base::EnvRange kRatio{0, 1, "a number from 0 to 1"};

}  // namespace

void DeallocQueue::schedule(const Release& item) noexcept {
  bool crossed = false;
  try {
    crossed = push(item);
  } catch (...) {  // no memory for the queue: release it now
    release_one(item);
    return;
  }
  if (crossed) flush();
}

bool DeallocQueue::push(const Release& item) {
  const base::LockGuard lock(mutex_);
  pending_.push_back(item);
  pending_bytes_ += item.size_bytes;
  return deferred_ == 0 && (pending_.size() > limits_.count || pending_bytes_ > limits_.size_bytes);
}

std::optional<Release> DeallocQueue::take() noexcept {
  const base::LockGuard lock(mutex_);
  if (deferred_ > 0 || pending_.empty()) return std::nullopt;
  std::optional<Release> item(std::move(pending_.front()));
  pending_.pop_front();
  pending_bytes_ -= item->size_bytes;
  return item;
}

void DeallocQueue::flush() noexcept {
  // An item is destroyed outside the lock: it may hold the last reference to its stream, which comes back
  // here.
  while (const std::optional<Release> item = take())
    if (!release_one(*item))
      return;  // the driver may fail for good after an error: the rest stays for a later flush
}

bool DeallocQueue::release_one(const Release& item) noexcept {
  try {
    const std::string failure = release_(item);
    if (failure.empty()) return true;
    if (report_) report_(failure);
  } catch (...) {  // this runs in destructors; a failure that cannot be reported is dropped
  }
  return false;
}

void DeallocQueue::defer() noexcept {
  const base::LockGuard lock(mutex_);
  ++deferred_;
}

void DeallocQueue::resume() noexcept {
  bool outermost = false;
  {
    const base::LockGuard lock(mutex_);
    outermost = --deferred_ == 0;
  }
  if (outermost) flush();
}

bool DeallocQueue::is_deferred() const noexcept {
  const base::LockGuard lock(mutex_);
  return deferred_ > 0;
}

std::size_t DeallocQueue::pending_count() const noexcept {
  const base::LockGuard lock(mutex_);
  return pending_.size();
}

std::size_t DeallocQueue::pending_bytes() const noexcept {
  const base::LockGuard lock(mutex_);
  return pending_bytes_;
}

DeallocQueue::Limits limits_from_environment(std::size_t device_memory_bytes) {
  DeallocQueue::Limits limits;
  for (const char* name : {"NUMBA_CUDA_MAX_PENDING_DEALLOCS_COUNT", "QUERN_MAX_PENDING_DEALLOCS_COUNT"})
    if (const std::optional<std::uint64_t> count = base::env_number(name, &base::warn_of_env))
      limits.count = *count;
  double ratio = kDefaultRatio;
  for (const char* name : {"NUMBA_CUDA_MAX_PENDING_DEALLOCS_RATIO", "QUERN_MAX_PENDING_DEALLOCS_RATIO"})
    if (const std::optional<double> value = base::env_real(name, kRatio, &base::warn_of_env)) ratio = *value;
  limits.size_bytes = static_cast<std::size_t>(static_cast<double>(device_memory_bytes) * ratio);
  return limits;
}

}  // namespace quern::runtime
