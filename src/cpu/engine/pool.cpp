// SPDX-License-Identifier: Apache-2.0
// The threads of the groups: they take and run commands, and wait for more.
#include <sys/prctl.h>

#include <chrono>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/floating_point.hpp"
#include "base/thread.hpp"
#include "cpu/engine/fault_text.hpp"
#include "cpu/engine/mapping.hpp"
#include "cpu/engine/output.hpp"
#include "cpu/engine/section.hpp"

namespace quern::cpu::engine {
namespace {

constexpr std::chrono::microseconds kPollInterval{50};
/// A polling thread parks after this many polls without a new command: 2 ms.
constexpr int kPollCount = 40;
/// The time between two checks of a value that a stream waits for.
constexpr std::chrono::microseconds kValueInterval{20};

thread_local bool calls_host_function = false;

/// This may be a thread of the host. An exception would leave the stream without its end, also there.
void call(const HostJob& job) noexcept {
  const base::FloatingPointScope floating_point;
  const bool before = std::exchange(calls_host_function, true);
  job.function(job.user);
  calls_host_function = before;
}

std::unique_ptr<Fault> lost_memory() {
  return std::make_unique<Fault>(Fault{.kind = FaultKind::illegal_address});
}

void wait_on(Task& task, Awaited state, FaultKind if_lost) {
  task.again = state == Awaited::ahead;
  if (state == Awaited::lost) task.fault = std::make_unique<Fault>(Fault{.kind = if_lost});
}

constexpr const char* kLostMemory =
    "registered host memory is not there any more, as after its file was truncated";

/// The reason for the fault of a command that is not a launch.
const char* reason_of(const Command& command) noexcept {
  if (std::holds_alternative<PeerJob>(command.job))
    return "a stream waited for an event of another process, which ended or failed before it";
  if (std::holds_alternative<SourceJob>(command.job))
    return "the body of a conditional node names memory or a module that is gone";
  return kLostMemory;
}

}  // namespace

void Scheduler::lose_memory(Domain& domain) {
  const Section section(*this);
  FaultReport failed;
  failed.text = kLostMemory;
  queues_.end_domain(domain, FaultKind::illegal_address, std::move(failed));
}

bool in_host_function() noexcept { return calls_host_function; }

void Scheduler::carry_out(DeferredActions deferred) {
  for (std::size_t index = 0; index < kGroupCount; ++index) {
    // The condition variable needs no lock; the groups are never moved.
    base::ConditionVariable& wake = [&]() QUERN_NO_THREAD_SAFETY_ANALYSIS -> base::ConditionVariable& {
      return groups_[static_cast<GroupId>(index)].wake;
    }();
    for (; deferred.notify[index] > 0; --deferred.notify[index]) wake.notify_one();
    for (; deferred.start[index] > 0; --deferred.start[index]) start_thread(static_cast<GroupId>(index));
  }
  if (deferred.progress) progressed_.notify_all();
  if (!deferred.finished.empty()) spare_.put(std::move(deferred.finished));
}

void Scheduler::start_thread(GroupId id) {
  try {
    base::start_thread([this, id] { thread_main(id); });
    told_of_refusal_ = false;
  } catch (const std::system_error& error) {
    // The existing threads, and callers that wait or ask, do the work. Later work tries again.
    was_refused_ = true;
    if (!told_of_refusal_.exchange(true)) report(std::string("cannot start another thread: ") + error.what());
    const Section section(*this);
    groups_.refuse_thread(id);
  }
}

void Scheduler::take_following(const Task& task) {
  if (task.worker != nullptr) queues_.take_following(*task.command, task.worker->following);
}

/// Launches that follow each other with no command between need no mutex: it and the queues take longer than
/// a small launch.
void Scheduler::run_launches(Task& task) {
  const Turn turn;
  const auto run = [&] {
    task.fault =
        run_launch(*task.command->launch(), *task.worker, turn, worker_count(), watchdog_, help_in_kernel_);
  };
  run();
  for (Command* const next : task.worker->following) {
    const LaunchJob& launch = *task.command->launch();
    // Stopped by a fault of another stream: it may not have begun, and nothing may run after it.
    const bool complete = launch.exhausted() && !launch.stopped.load(std::memory_order_relaxed);
    if (task.fault != nullptr || !complete || turn.is_over()) break;
    task.command = next;
    ++task.passed;
    run();
  }
  if (task.fault == nullptr) task.commands = split_chain(*task.command->launch());
}

void Scheduler::execute(Task& task) {
  if (task.worker != nullptr) {
    run_launches(task);
  } else if (auto* transfer = std::get_if<TransferJob>(&task.command->job)) {
    if (!run(*transfer)) task.fault = lost_memory();
    // Release this before the copy counts as complete: a thread that then frees the memory finds it unused.
    transfer->keep_source.reset();
    transfer->keep_destination.reset();
  } else if (const auto* host = std::get_if<HostJob>(&task.command->job)) {
    call(*host);
  } else if (const auto* value = std::get_if<ValueJob>(&task.command->job)) {
    wait_on(task, look(*value), FaultKind::illegal_address);
  } else if (const auto* peer = std::get_if<PeerJob>(&task.command->job)) {
    wait_on(task, peer->point->look(), FaultKind::peer_ended);
  } else if (const auto* both = std::get_if<MappingJob>(&task.command->job)) {
    if (!both->mapping->bring_together()) task.fault = lost_memory();
  } else if (const auto* source = std::get_if<SourceJob>(&task.command->job)) {
    try {
      task.commands = source->source->next();
    } catch (...) {
      task.fault = lost_memory();
    }
  }
}

void Scheduler::finish_launches(Task& task) {
  Command& command = *task.command;
  Stream& stream = *command.stream;
  LaunchJob& launch = *command.launch();
  if (launch.alone) runnable_.remove(*task.worker->command);
  runnable_.give_back(*task.worker);
  queues_.complete_passed(stream, task.passed);
  if (task.fault != nullptr) {
    launch.stopped.store(true, std::memory_order_relaxed);
    queues_.end_domain(queues_.domain_of(stream), task.fault->kind, report(*task.fault, launch));
  }
  if (runnable_.is_over(command)) return queues_.complete_head(stream);
  if (!launch.alone) return;
  if (!task.commands.empty()) {
    command.job = WaitJob{};
    return queues_.put_before_head(stream, std::move(task.commands));
  }
  launch.alone = !launch.chain.empty();  // of a launch, others may run the rest as well
  queues_.put_back_head(stream);
}

void Scheduler::finish(Task& task) {
  if (task.worker != nullptr) return finish_launches(task);
  Command& command = *task.command;
  Stream& stream = *command.stream;
  if (task.fault != nullptr) {
    FaultReport failed;
    failed.text = reason_of(command);
    queues_.end_domain(queues_.domain_of(stream), task.fault->kind, std::move(failed));
  }
  const Domain& domain = queues_.domain_of(stream);
  if (task.again && domain.fault() == FaultKind::none && !queues_.is_closed(domain))
    return runnable_.add_again(command);
  if (!task.commands.empty()) return queues_.put_before_head(stream, std::move(task.commands));
  queues_.complete_head(stream);
}

void Scheduler::thread_main(GroupId id) {
  ::prctl(PR_SET_TIMERSLACK, 1UL);
  ::prctl(PR_SET_NAME, id == GroupId::compute ? "quern-compute"
                       : id == GroupId::copy  ? "quern-copy"
                       : id == GroupId::host  ? "quern-host"
                                              : "quern-value");
  for (;;) {
    Task task = wait_for_task(id);
    execute(task);
    if (task.again) std::this_thread::sleep_for(kValueInterval);
    const Section section(*this);
    --groups_[id].busy;
    if (task.lent) --groups_[id].lent;
    finish(task);
  }
}

/// Values come last: a thread that looked at one first would do so again and again.
std::optional<Task> Scheduler::take_stranded() {
  for (const WorkKind kind : {WorkKind::transfer, WorkKind::launch, WorkKind::host_function,
                              WorkKind::waiting_launch, WorkKind::value})
    if (std::optional<Task> task = runnable_.take_stranded(kind)) return task;
  return std::nullopt;
}

Task Scheduler::wait_for_task(GroupId id) {
  Section section(*this);
  for (;;) {
    const bool last = id == GroupId::value;  // the value that it looks at may be what the others will write
    std::optional<Task> task = last ? std::nullopt : runnable_.take(id);
    if (!task && (task = take_stranded())) {
      task->lent = true;
      ++groups_[id].lent;
    }
    if (!task && last) task = runnable_.take(id);
    if (task) {
      take_following(*task);
      ++groups_[id].busy;
      return std::move(*task);
    }
    if (!groups_[id].polling && id != GroupId::host && id != GroupId::value)
      poll(id, section);
    else
      park(id, section);
  }
}

/// Polls for work. Parks the thread if there was no work for some time.
void Scheduler::poll(GroupId id, Section& section) {
  ThreadGroup& group = groups_[id];
  const auto has_work = [&]() QUERN_NO_THREAD_SAFETY_ANALYSIS {
    return runnable_.has_work(id) || runnable_.has_stranded_work();
  };
  group.polling = true;
  std::uint64_t seen = group.activity;
  for (int polls = 0; polls < kPollCount; ++polls) {
    section.outside([] { std::this_thread::sleep_for(kPollInterval); });
    if (group.activity != seen) polls = 0;
    seen = group.activity;
    if (has_work()) break;
  }
  group.polling = false;
  if (!has_work()) park(id, section);
}

void Scheduler::park(GroupId id, Section& section) {
  ThreadGroup& group = groups_[id];
  ++group.parked;
  section.wait(group.wake, [&]() QUERN_NO_THREAD_SAFETY_ANALYSIS { return group.notified > 0; });
  --group.notified;
}

}  // namespace quern::cpu::engine
