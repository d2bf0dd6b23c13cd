// SPDX-License-Identifier: Apache-2.0
#include "runtime/copy/host_targets.hpp"

#include <exception>

#include "runtime/device/exit.hpp"

namespace quern::runtime {

void HostTargets::Target::filled() noexcept {
  List done;  // released after the lock
  const base::LockGuard lock(all_->mutex_);
  if (!listed_) return;
  listed_ = false;
  done.splice(done.end(), all_->expected_, self_);
  all_->count_.fetch_sub(1, std::memory_order_release);  // readers of the new count see the values
}

void HostTargets::Target::queued() const {
  if (all_->context_.api().cuEventRecord(expected_->copied, expected_->stream) == CUDA_SUCCESS) return;
  all_->waiting_.synchronize(expected_->stream);  // then the copy has run, and nobody needs the event
}

/// A free event or a new one, for which free_ has room.
CUevent HostTargets::take_event() {
  {
    const base::LockGuard lock(mutex_);
    if (!free_.empty()) {
      CUevent const event = free_.back();
      free_.pop_back();
      return event;
    }
    free_.reserve(event_count_ + 1);
    ++event_count_;
  }
  CUevent event = nullptr;
  const CUresult result = context_.api().cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
  if (result == CUDA_SUCCESS) return event;
  {
    const base::LockGuard lock(mutex_);
    --event_count_;
  }
  context_.fail(result, "cuEventCreate", "create an event");
}

void HostTargets::give_back(CUevent event) noexcept {
  const base::LockGuard lock(mutex_);
  free_.push_back(event);  // take_event() reserved space
}

std::shared_ptr<HostTargets::Target> HostTargets::expect(const std::byte* begin, std::size_t size_bytes,
                                                         CUstream stream) {
  const auto release = [this](const Expected* done) {
    if (done->copied != nullptr) give_back(done->copied);
    delete done;
  };
  auto fresh = std::make_unique<Expected>(Expected{begin, begin + size_bytes, nullptr, stream});
  Expected* const expected = fresh.get();
  List one(1);
  one.front() = std::shared_ptr<const Expected>(fresh.release(), release);
  expected->copied = take_event();
  const auto target = std::make_shared<Target>(shared_from_this(), one.begin());
  const base::LockGuard lock(mutex_);
  expected_.splice(expected_.end(), one);
  count_.fetch_add(1, std::memory_order_relaxed);
  return target;
}

HostTargets::List HostTargets::overlapping(const std::byte* begin, const std::byte* end) {
  List found;
  const base::LockGuard lock(mutex_);
  for (const auto& one : expected_)
    if (one->begin < end && begin < one->end) found.push_back(one);
  return found;
}

void HostTargets::wait_for_overlapping(const std::byte* begin, const std::byte* end) {
  if (InFlight::is_running_here()) return;
  for (const auto& one : overlapping(begin, end)) waiting_.wait_for(one->copied, one->stream);
}

void HostTargets::order_behind(const std::byte* begin, std::size_t size_bytes, CUstream stream) {
  if (count_.load(std::memory_order_acquire) == 0) return;
  for (const auto& one : overlapping(begin, begin + size_bytes)) {
    if (one->stream == stream) continue;
    context_.check(context_.api().cuStreamWaitEvent(stream, one->copied, 0), "cuStreamWaitEvent",
                   [] { return "order a copy behind earlier ones into the same host memory"; });
  }
}

void HostTargets::trim() noexcept {
  std::vector<CUevent> events;
  {
    const base::LockGuard lock(mutex_);
    events.swap(free_);
    event_count_ -= events.size();
  }
  if (events.empty() || process_is_exiting() || context_.lost())
    return;                           // the driver destroyed them with the context
  for (CUevent event : events) try {  // one by one: a failure loses one event only
      const CurrentContext current(context_);
      context_.api().cuEventDestroy_v2(event);
    } catch (const std::exception&) {  // the context is lost
    }
}

}  // namespace quern::runtime
