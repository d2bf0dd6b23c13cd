// SPDX-License-Identifier: Apache-2.0
// The interface of the streams, and waiting callers.
#include "cpu/engine/scheduler.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "base/thread.hpp"
#include "cpu/engine/section.hpp"

namespace quern::cpu::engine {
namespace {

/// A launch that ends because of another launch's fault stops at the end of a chunk of blocks. Only threads
/// that have not reached such an end after this time receive a signal, which the host's own handlers may see.
constexpr std::chrono::milliseconds kTimeout{50};
/// The same for launches that the host cancels, for whose end a caller waits.
constexpr std::chrono::milliseconds kCancelTimeout{5};
/// The signal is sent again after this time, as long as the thread runs code outside the kernel.
constexpr std::chrono::milliseconds kAskAgain{1};
/// Times for exit(): how long launches may continue, and after which time the process has usually ended.
constexpr std::chrono::milliseconds kExitGrace{500};
constexpr std::chrono::milliseconds kExitTime{1000};
/// A waiting caller spins for this time before it sleeps. It is about the cost of a sleep and a wake-up.
constexpr std::chrono::microseconds kCallerSpin{10};
/// Waiting callers look at the values that streams wait for if no thread does: this long after they looked
/// last, doubled each time.
constexpr std::chrono::microseconds kFirstNap{20};
constexpr std::chrono::microseconds kLongestNap{1000};

bool spin_until(const Stream& stream, std::uint64_t sequence) noexcept {
  const auto end = std::chrono::steady_clock::now() + kCallerSpin;
  while (stream.completed() < sequence) {
    if (std::chrono::steady_clock::now() > end) return false;
    __builtin_ia32_pause();
  }
  return true;
}

/// True if other streams may have to come farther for the command to end. A kernel that waits helps them
/// itself (help_in_kernel).
bool may_wait_for_others(const Command* command) noexcept {
  return command == nullptr || std::holds_alternative<ValueJob>(command->job) ||
         std::holds_alternative<PeerJob>(command->job) || std::holds_alternative<HostJob>(command->job);
}

/// Sets the limit of a launch that has none, and divides its blocks if several workers run it. Throws
/// std::bad_alloc.
void complete(const Command& command, std::chrono::milliseconds limit, std::uint32_t workers) {
  LaunchJob* const launch = command.launch();
  if (launch == nullptr) return;
  if (launch->limit.count() == 0) launch->limit = limit;
  if (workers > 1 && !launch->alone && !launch->cooperative && !launch->waits() && launch->chain.empty())
    launch->shares = std::make_unique<BlockShares>(launch->own.block_count, workers);
}

}  // namespace

bool EventPoint::done() const noexcept { return stream->completed() >= sequence; }

Scheduler::Scheduler(std::vector<std::unique_ptr<Worker>> workers, std::chrono::milliseconds limit)
    : workers_(std::move(workers)),
      limit_(limit),
      groups_(worker_count(), progress_),
      runnable_(workers_, groups_, progress_),
      queues_(runnable_, progress_) {}

std::shared_ptr<Stream> Scheduler::make_stream(Domain& domain, bool blocking, int priority) {
  auto stream = std::make_shared<Stream>(domain, blocking, priority);
  const Section section(*this);
  queues_.add(stream);
  return stream;
}

void Scheduler::retire(Stream& stream) {
  const Section section(*this);
  queues_.retire(stream);
}

void Scheduler::close(Domain& domain) {
  const Section section(*this);
  queues_.close(domain);
}

void Scheduler::submit(const std::shared_ptr<Stream>& stream, Job job) {
  auto command = std::make_unique<Command>();
  command->job = std::move(job);
  submit(stream, std::move(command));
}

void Scheduler::submit(const std::shared_ptr<Stream>& stream, std::unique_ptr<Command> command) {
  complete(*command, limit_, worker_count());
  const Section section(*this);
  queues_.enqueue(stream, std::move(command));
}

std::shared_ptr<EventPoint> Scheduler::submit_all(const std::shared_ptr<Stream>& stream,
                                                  std::vector<std::unique_ptr<Command>> commands,
                                                  std::shared_ptr<const void> keep) {
  auto point = std::make_shared<EventPoint>();
  auto last = std::make_unique<Command>();
  last->job = RecordJob{point};
  last->keep = std::move(keep);
  commands.push_back(std::move(last));
  for (const std::unique_ptr<Command>& command : commands) complete(*command, limit_, worker_count());
  const Section section(*this);
  for (std::unique_ptr<Command>& command : commands) {
    if (const auto* record_job = std::get_if<RecordJob>(&command->job)) {
      record_job->point->stream = stream;
      record_job->point->sequence = queues_.issued(*stream) + 1;
    }
    queues_.enqueue(stream, std::move(command));
  }
  return point;
}

std::shared_ptr<EventPoint> Scheduler::record(const std::shared_ptr<Stream>& stream,
                                              std::shared_ptr<PointObserver> observer) {
  auto point = std::make_shared<EventPoint>();
  point->stream = stream;
  auto command = std::make_unique<Command>();
  command->job = RecordJob{point, std::move(observer)};
  const Section section(*this);
  point->sequence = queues_.issued(*stream) + 1;
  queues_.enqueue(stream, std::move(command));
  return point;
}

void Scheduler::wait_event(const std::shared_ptr<Stream>& stream, const EventPoint& point) {
  if (point.done() || point.stream == stream) return;
  auto command = std::make_unique<Command>();
  command->dependencies.push_back({point.stream, point.sequence});
  const Section section(*this);
  queues_.enqueue(stream, std::move(command));
}

void Scheduler::exclude(Domain& domain, std::int64_t since_ns) {
  const Section section(*this);
  queues_.exclude(domain, since_ns);
}

std::shared_ptr<EventPoint> Scheduler::record(Domain& domain, std::shared_ptr<PointObserver> observer) {
  // Use a separate stream. It leaves the domain when the point is reached.
  const auto stream = std::make_shared<Stream>(domain, false);
  auto point = std::make_shared<EventPoint>();
  point->stream = stream;
  point->sequence = 1;
  auto command = std::make_unique<Command>();
  command->job = RecordJob{point, std::move(observer)};
  const Section section(*this);
  for (const std::shared_ptr<Stream>& other : queues_.streams_of(domain))
    if (const Dependency last = queues_.await_last(other); last.stream != nullptr)
      command->dependencies.push_back(last);
  queues_.enqueue_alone(stream, std::move(command));
  return point;
}

void Scheduler::wait_event(Domain& domain, const EventPoint& point) {
  if (point.done()) return;
  const Section section(*this);
  queues_.wait(domain, {point.stream, point.sequence});
}

bool Scheduler::idle(const Stream& stream) {
  Section section(*this);
  run_stranded_for(stream, section);
  const bool legacy = queues_.domain_of(stream).legacy_stream().get() == &stream;
  return legacy ? queues_.runs_at_once(stream) : queues_.is_idle(stream);
}

bool Scheduler::is_passed(const EventPoint& point) {
  if (point.done()) return true;
  Section section(*this);
  run_stranded_for(*point.stream, section);
  return point.done();
}

bool Scheduler::run_here(Task& task, Section& section, std::optional<FaultSignals>& signals) {
  take_following(task);
  section.outside([&] {
    if (task.worker != nullptr && !signals) signals.emplace();
    execute(task);
  });
  const bool done = !task.again;
  finish(task);
  return done;
}

bool Scheduler::run_for(const Stream& stream, Section& section, std::optional<FaultSignals>& signals) {
  if (Command* const head = queues_.head_for(stream))
    if (std::optional<Task> task = runnable_.take(*head))
      if (run_here(*task, section, signals)) return true;
  return may_wait_for_others(queues_.head_for(stream)) &&
         run_stranded(WorkKind::waiting_launch, section, signals);
}

bool Scheduler::run_stranded(WorkKind last, Section& section, std::optional<FaultSignals>& signals) {
  for (const WorkKind kind : kWorkKinds) {
    if (kind > last) return false;
    for (std::size_t left = runnable_.ready_count(kind); left > 0; --left) {
      std::optional<Task> task = runnable_.take_stranded(kind);
      if (!task) break;
      if (run_here(*task, section, signals)) return true;
    }
  }
  return false;
}

/// For a caller that asks whether the stream is done.
void Scheduler::run_stranded_for(const Stream& stream, Section& section) {
  if (!runnable_.has_stranded_work()) return;
  const base::NoCancellation whole;
  runnable_.call_for_help();
  section.outside([] {});
  std::optional<FaultSignals> signals;
  run_for(stream, section, signals);
}

void Scheduler::help() {
  if (!was_refused_) return;
  Section section(*this);
  if (!runnable_.has_stranded_work()) return;
  const base::NoCancellation whole;
  runnable_.call_for_help();
  section.outside([] {});
  std::optional<FaultSignals> signals;
  run_stranded(WorkKind::waiting_launch, section, signals);
}

/// Without launches that wait: the kernel that helps could continue only after they have ended.
void Scheduler::help_in_kernel() {
  if (!was_refused_) return;
  Section section(*this);
  std::optional<FaultSignals> signals;
  run_stranded(WorkKind::host_function, section, signals);
}

bool Scheduler::runs_at_once(const Stream& stream) {
  const Section section(*this);
  return queues_.runs_at_once(stream);
}

void Scheduler::synchronize(const std::shared_ptr<Stream>& stream) {
  Dependency last;
  std::vector<Dependency> others;
  {
    const Section section(*this);
    last = queues_.await_last(stream);
    if (const Domain& domain = queues_.domain_of(*stream); domain.legacy_stream() == stream) {
      others = queues_.await_last_ones(domain);
      std::erase_if(others, [](const Dependency& each) { return !each.stream->blocking(); });
    }
  }
  if (last.stream != nullptr) wait_until(stream, last.sequence);
  for (const Dependency& each : others) wait_until(each.stream, each.sequence);
}

void Scheduler::synchronize(const Domain& domain) {
  Dependency legacy;
  std::vector<Dependency> others;
  {
    const Section section(*this);
    legacy = queues_.await_last(domain.legacy_stream());
    others = queues_.await_last_ones(domain);
  }
  if (legacy.stream != nullptr) wait_until(legacy.stream, legacy.sequence);
  for (const Dependency& each : others) wait_until(each.stream, each.sequence);
  // The thread that finished the last command may still access its stream, and the caller may be about to
  // destroy the stream with the domain. Taking the mutex waits for that thread.
  const Section section(*this);
}

void Scheduler::synchronize(const EventPoint& point) { wait_until(point.stream, point.sequence); }

void Scheduler::wait_until(const std::shared_ptr<Stream>& stream, std::uint64_t sequence) {
  if (stream->completed() >= sequence) return;
  const base::NoCancellation whole;
  Section section(*this);
  if (runnable_.has_stranded_work()) runnable_.call_for_help();
  std::optional<FaultSignals> signals;  // this is a thread of the host
  bool spun = false;
  std::chrono::milliseconds timeout = kTimeout;
  std::chrono::microseconds nap = kFirstNap;
  while (stream->completed() < sequence) {
    if (run_for(*stream, section, signals)) {
      nap = kFirstNap;
    } else if (!spun) {
      spun = true;
      section.outside([&] { spin_until(*stream, sequence); });
    } else {
      const std::uint64_t seen = progress_.count;
      const auto progressed = [&]() QUERN_NO_THREAD_SAFETY_ANALYSIS { return progress_.count != seen; };
      const Domain& domain = queues_.domain_of(*stream);
      ++progress_.waiting_callers;
      if (domain.fault() != FaultKind::none) {
        if (!section.wait_for(progressed_, timeout, progressed)) {
          runnable_.ask_to_leave(
              [&](const Command& command) { return &StreamQueues::domain_of(*command.stream) == &domain; });
          timeout = kAskAgain;
        }
      } else if (groups_.lacks_threads(GroupId::value)) {  // only callers look at values
        section.wait_for(progressed_, nap, progressed);
        nap = std::min(2 * nap, kLongestNap);
      } else {
        section.wait(progressed_, progressed);
      }
      --progress_.waiting_callers;
    }
  }
  if (exiting_thread_ != pthread_t{} && exiting_thread_ != ::pthread_self())
    section.outside([] { std::this_thread::sleep_for(kExitTime); });
}

void Scheduler::wait_for_disposal() {
  disposal_.wait([this](const auto& work) {
    const Section section(*this);
    work();
  });
}

void Scheduler::cancel(const std::shared_ptr<Stream>& stream) {
  const base::NoCancellation whole;
  Section section(*this);
  const std::uint64_t last = queues_.issued(*stream);
  queues_.stop_launches(stream);
  const auto is_cancelled = [&](const Command& command) {
    return command.stream == stream.get() && command.sequence <= last && is_cancellable(command);
  };
  for (std::chrono::milliseconds timeout = kCancelTimeout; runnable_.any_runs(is_cancelled);
       timeout = kAskAgain) {
    const std::uint64_t seen = progress_.count;
    const auto progressed = [&]() QUERN_NO_THREAD_SAFETY_ANALYSIS { return progress_.count != seen; };
    ++progress_.waiting_callers;
    const bool moved = section.wait_for(progressed_, timeout, progressed);
    --progress_.waiting_callers;
    if (!moved) runnable_.ask_to_leave(is_cancelled);
  }
}

void Scheduler::cancel(const Domain& domain) {
  std::vector<std::shared_ptr<Stream>> streams;
  {
    const Section section(*this);
    streams = queues_.streams_of(domain);
  }
  for (const std::shared_ptr<Stream>& stream : streams) cancel(stream);
}

void Scheduler::end_at_exit() {
  using Clock = std::chrono::steady_clock;
  Section section(*this);
  const auto every = [](const Command&) { return true; };
  const auto pause = [&] { section.outside([] { std::this_thread::sleep_for(kAskAgain); }); };
  for (const auto end = Clock::now() + kExitGrace; runnable_.any_runs(every) && Clock::now() < end;) pause();
  if (!runnable_.any_runs(every)) return;
  exiting_thread_ = ::pthread_self();
  for (const auto end = Clock::now() + kExitGrace / 2; runnable_.any_runs(every) && Clock::now() < end;
       pause())
    for (const std::unique_ptr<Worker>& worker : workers_) {
      if (worker->command == nullptr) continue;
      FaultReport report;
      report.text = "ended by exit()";
      queues_.end_domain(queues_.domain_of(*worker->command->stream), FaultKind::launch_timeout,
                         std::move(report));
      worker->ask_to_leave();
    }
}

}  // namespace quern::cpu::engine
