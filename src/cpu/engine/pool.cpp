// SPDX-License-Identifier: Apache-2.0
// The threads: taking work, doing it, and waiting for more.
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <system_error>
#include <thread>

#include "base/thread.hpp"
#include "cpu/abi/warp_size.hpp"
#include "cpu/engine/fault_text.hpp"
#include "cpu/engine/output.hpp"
#include "cpu/engine/section.hpp"

namespace quern::cpu::engine {
namespace {

constexpr std::chrono::microseconds kPollInterval{50};
/// A polling thread parks after that many looks without any new job: 2 ms.
constexpr int kPollCount = 40;

}  // namespace

Scheduler::GroupId Scheduler::group_of(const Command& command) noexcept {
  if (command.launch() != nullptr) return GroupId::compute;
  return std::holds_alternative<HostJob>(command.job) ? GroupId::host : GroupId::copy;
}

bool Scheduler::is_big(const LaunchJob& launch) noexcept {
  constexpr std::uint64_t kBigLaunchThreads = 4096;
  return launch.block_count > 1 &&
         (launch.cooperative || launch.block_count * launch.needs.warps * kWarpSize >= kBigLaunchThreads);
}

/// Sees to it that a thread of the group will look for work. Urgent: soon.
void Scheduler::call_for_help(GroupId id, bool urgent) {
  Group& its_group = group(id);
  const auto index = static_cast<std::size_t>(id);
  if (its_group.polling && !urgent) return;
  if (its_group.parked > 0) {
    --its_group.parked;
    ++its_group.notified;
    ++deferred_.notify[index];
  } else if ((urgent || !its_group.polling) && its_group.threads < its_group.max_threads) {
    ++its_group.threads;
    ++deferred_.start[index];
  }
}

void Scheduler::carry_out(DeferredActions deferred) {
  for (std::size_t index = 0; index < kGroupCount; ++index) {
    // The condition variable needs no lock; the groups are never moved.
    base::ConditionVariable& wake = [&]() QUERN_NO_THREAD_SAFETY_ANALYSIS -> base::ConditionVariable& {
      return groups_[index].wake;
    }();
    for (; deferred.notify[index] > 0; --deferred.notify[index]) wake.notify_one();
    for (; deferred.start[index] > 0; --deferred.start[index]) start_thread(static_cast<GroupId>(index));
  }
  if (deferred.progress) progress_.notify_all();
}

void Scheduler::start_thread(GroupId id) {
  try {
    base::start_thread([this, id] { thread_main(id); });
  } catch (const std::system_error& error) {
    // The threads there are, and those that wait, do the work.
    report(std::string("cannot start another thread: ") + error.what());
    const base::LockGuard lock(mutex_);
    --group(id).threads;
  }
}

bool Scheduler::can_take(const Command& command) const {
  const LaunchJob* launch = command.launch();
  if (launch == nullptr) return command.state == Command::State::ready;
  return command.state != Command::State::queued && !launch->exhausted() && !free_workers_.empty() &&
         (!launch->cooperative || cooperative_ == nullptr || cooperative_ == &command);
}

bool Scheduler::has_work(GroupId id) {
  for (const Command* command : group(id).ready)
    if (can_take(*command)) return true;
  return false;
}

std::optional<Scheduler::Task> Scheduler::try_take(Command& command) {
  if (!can_take(command)) return std::nullopt;
  command.state = Command::State::running;
  const LaunchJob* launch = command.launch();
  if (launch == nullptr) {
    std::erase(group(group_of(command)).ready, &command);
    return Task{&command, nullptr, {}};
  }
  if (launch->cooperative) cooperative_ = &command;
  Worker* worker = free_workers_.back();
  free_workers_.pop_back();
  worker->thread = ::pthread_self();
  worker->command = &command;
  ++command.participants;
  return Task{&command, worker, {}};
}

/// For a thread of the group. It calls the next thread itself, if there is work for more: a launch that ends
/// soon wakes few.
std::optional<Scheduler::Task> Scheduler::take_from(GroupId id) {
  for (Command* command : group(id).ready) {
    const std::optional<Task> task = try_take(*command);
    if (!task) continue;
    if (has_work(id)) call_for_help(id, true);
    return task;
  }
  return std::nullopt;
}

/// A task that a thread waiting for `stream` may run: the stream's head, or the head of the stream that
/// blocks it.
std::optional<Scheduler::Task> Scheduler::take_for(const Stream& stream) {
  const Stream* at = &stream;
  for (int depth = 0; at != nullptr && depth < 64; ++depth) {
    if (at->queue_.empty()) return std::nullopt;
    Command& head = *at->queue_.front();
    if (head.state == Command::State::queued) {
      at = at->blocked_on_.get();
      continue;
    }
    if (std::holds_alternative<HostJob>(head.job)) return std::nullopt;  // only on the thread for them
    const std::optional<Task> task = try_take(head);
    if (task && task->worker != nullptr && is_big(*head.launch())) call_for_help(GroupId::compute, true);
    return task;
  }
  return std::nullopt;
}

void Scheduler::execute(Task& task) {
  if (task.worker != nullptr) {
    task.fault = run_launch(*task.command->launch(), *task.worker, worker_count(), watchdog_);
  } else if (auto* transfer = std::get_if<TransferJob>(&task.command->job)) {
    run(*transfer);
    // Released before anyone learns that the copy is done: a thread that then frees memory finds it unused.
    transfer->keep_source.reset();
    transfer->keep_destination.reset();
  } else if (const auto* host = std::get_if<HostJob>(&task.command->job)) {
    host->function(host->user);
  }
}

/// Ends the domain's other launches as well.
void Scheduler::end_domain(Domain& domain, FaultKind kind, FaultReport report) {
  if (domain.fault() != FaultKind::none) return;
  domain.end(kind, std::move(report));
  std::vector<std::shared_ptr<Stream>> streams = domain.streams_;
  streams.push_back(domain.legacy_);
  for (const std::shared_ptr<Stream>& stream : streams) stop_head(stream);
}

void Scheduler::ask_to_leave(const Domain& domain) {
  for (const std::unique_ptr<Worker>& worker : workers_)
    if (worker->command != nullptr && worker->command->stream->domain_ == &domain) worker->ask_to_leave();
}

/// Stops the launch at the stream's head, if one is there. One that no thread has taken yet is over then.
void Scheduler::stop_head(const std::shared_ptr<Stream>& stream) {
  if (stream->queue_.empty()) return;
  Command& head = *stream->queue_.front();
  LaunchJob* launch = head.launch();
  if (launch == nullptr || head.state == Command::State::queued) return;
  if (launch->stopped.exchange(true, std::memory_order_relaxed) || head.participants > 0) return;
  std::erase(group(GroupId::compute).ready, &head);
  std::vector<std::shared_ptr<Stream>> unblocked;
  pop_head(*stream, unblocked);
  for (const std::shared_ptr<Stream>& each : unblocked) advance(each);
  advance(stream);
}

void Scheduler::finish(Task& task) {
  Command& command = *task.command;
  Stream& stream = *command.stream;
  if (LaunchJob* launch = command.launch()) {
    free_workers_.push_back(task.worker);
    task.worker->command = nullptr;
    --command.participants;
    if (task.fault.kind != FaultKind::none) {
      launch->stopped.store(true, std::memory_order_relaxed);
      end_domain(*stream.domain_, task.fault.kind, report(task.fault, *launch));
    }
    if (launch->exhausted()) std::erase(group(GroupId::compute).ready, &command);
    if (has_work(GroupId::compute)) call_for_help(GroupId::compute, false);  // a worker is free again
    if (!launch->exhausted() || command.participants > 0) return;
    if (cooperative_ == &command) {
      cooperative_ = nullptr;
      if (has_work(GroupId::compute)) call_for_help(GroupId::compute, true);
    }
  }
  std::vector<std::shared_ptr<Stream>> unblocked;
  pop_head(stream, unblocked);
  for (const std::shared_ptr<Stream>& each : unblocked) advance(each);
  if (!stream.queue_.empty()) advance(stream.shared_from_this());
}

void Scheduler::thread_main(GroupId id) {
  ::prctl(PR_SET_TIMERSLACK, 1UL);
  ::prctl(PR_SET_NAME, id == GroupId::compute ? "quern-compute"
                       : id == GroupId::copy  ? "quern-copy"
                                              : "quern-host");
  for (;;) {
    Task task = wait_for_task(id);
    execute(task);
    const Section section(*this);
    finish(task);
  }
}

Scheduler::Task Scheduler::wait_for_task(GroupId id) {
  Section section(*this);
  for (;;) {
    if (std::optional<Task> task = take_from(id)) return *task;
    if (!group(id).polling && id != GroupId::host)
      poll(id, section);
    else
      park(id, section);
  }
}

/// Returns when there may be work, or when there has been none for long: then the caller parks.
void Scheduler::poll(GroupId id, Section& section) {
  Group& its_group = group(id);
  its_group.polling = true;
  std::uint64_t seen = its_group.activity;
  for (int look = 0; look < kPollCount; ++look) {
    section.outside([] { std::this_thread::sleep_for(kPollInterval); });
    if (its_group.activity != seen) look = 0;
    seen = its_group.activity;
    if (has_work(id)) break;
  }
  its_group.polling = false;
  if (!has_work(id)) park(id, section);
}

void Scheduler::park(GroupId id, Section& section) {
  Group& its_group = group(id);
  ++its_group.parked;
  section.wait(its_group.wake, [&]() QUERN_NO_THREAD_SAFETY_ANALYSIS { return its_group.notified > 0; });
  --its_group.notified;
}

}  // namespace quern::cpu::engine
