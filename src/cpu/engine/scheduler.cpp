// SPDX-License-Identifier: Apache-2.0
// The queues: commands that may start, and the consequences of finished ones.
#include "cpu/engine/scheduler.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "base/clock.hpp"
#include "base/thread.hpp"
#include "cpu/engine/section.hpp"

namespace quern::cpu::engine {
namespace {

/// Launches that a fault elsewhere ended stop at the end of a chunk of blocks. Only threads that have not
/// come to one by then are sent a signal, which the host's own handlers may see...
constexpr std::chrono::milliseconds kTimeout{50};
/// The same for launches that the host cancels: somebody waits for them to end.
constexpr std::chrono::milliseconds kCancelTimeout{5};
/// ... and again this soon, as long as they are in code that is not the kernel's.
constexpr std::chrono::milliseconds kAskAgain{1};
/// Times for exit(): how long launches may continue, and when the process has usually ended.
constexpr std::chrono::milliseconds kExitGrace{500};
constexpr std::chrono::milliseconds kExitTime{1000};
/// The time that a waiting caller spins before it sleeps; about the cost of a sleep and a wake-up.
constexpr std::chrono::microseconds kCallerSpin{10};

bool spin_until(const Stream& stream, std::uint64_t sequence) noexcept {
  const auto end = std::chrono::steady_clock::now() + kCallerSpin;
  while (stream.completed() < sequence) {
    if (std::chrono::steady_clock::now() > end) return false;
    __builtin_ia32_pause();
  }
  return true;
}

}  // namespace

bool EventPoint::done() const noexcept { return stream->completed() >= sequence; }

Scheduler::Scheduler(std::vector<std::unique_ptr<Worker>> workers, std::chrono::milliseconds limit)
    : workers_(std::move(workers)), limit_(limit) {
  for (const auto& worker : workers_) free_workers_.push_back(worker.get());
  std::reverse(free_workers_.begin(), free_workers_.end());  // worker 0 is taken first
  groups_[static_cast<std::size_t>(GroupId::compute)].max_threads = worker_count();
}

std::shared_ptr<Domain> Scheduler::make_domain() {
  auto domain = std::make_shared<Domain>();
  domain->legacy_ = std::make_shared<Stream>(*domain, false);
  return domain;
}

std::shared_ptr<Stream> Scheduler::make_stream(Domain& domain, bool blocking, int priority) {
  auto stream = std::make_shared<Stream>(domain, blocking, priority);
  const Section section(*this);
  domain.streams_.push_back(stream);
  std::erase_if(domain.waits_,
                [](const Dependency& each) { return each.stream->completed() >= each.sequence; });
  if (!domain.waits_.empty()) {
    auto command = std::make_unique<Command>();
    command->dependencies = domain.waits_;
    enqueue(stream, std::move(command));
  }
  return stream;
}

void Scheduler::retire(Stream& stream) {
  const Section section(*this);
  stream.retired_ = true;
  if (stream.queue_.empty()) drop_from_domain(stream);
}

void Scheduler::drop_from_domain(Stream& stream) {
  std::vector<std::shared_ptr<Stream>>& streams = stream.domain_->streams_;
  const auto found = std::find(streams.begin(), streams.end(), stream.shared_from_this());
  if (found == streams.end()) return;
  deferred_.dropped.push_back(std::move(*found));  // kept until the mutex is free
  streams.erase(found);
}

void Scheduler::close(Domain& domain) {
  const Section section(*this);
  domain.closed_ = true;
}

void Scheduler::submit(const std::shared_ptr<Stream>& stream, Job job) {
  auto command = std::make_unique<Command>();
  command->job = std::move(job);
  if (LaunchJob* launch = command->launch(); launch != nullptr && launch->limit.count() == 0)
    launch->limit = limit_;
  const Section section(*this);
  enqueue(stream, std::move(command));
}

std::shared_ptr<EventPoint> Scheduler::record(const std::shared_ptr<Stream>& stream) {
  auto point = std::make_shared<EventPoint>();
  point->stream = stream;
  auto command = std::make_unique<Command>();
  command->job = RecordJob{point};
  const Section section(*this);
  point->sequence = stream->issued_ + 1;
  enqueue(stream, std::move(command));
  return point;
}

void Scheduler::wait_event(const std::shared_ptr<Stream>& stream, const EventPoint& point) {
  if (point.done() || point.stream == stream) return;
  auto command = std::make_unique<Command>();
  command->dependencies.push_back({point.stream, point.sequence});
  const Section section(*this);
  enqueue(stream, std::move(command));
}

void Scheduler::exclude(Domain& domain, std::int64_t since_ns) {
  const Section section(*this);
  const auto is_empty = [](const std::shared_ptr<Stream>& stream) { return stream->queue_.empty(); };
  if (!is_empty(domain.legacy_) || !std::ranges::all_of(domain.streams_, is_empty)) return;
  const std::int64_t now = base::now_ns();
  domain.excluded_ns_ += now - std::max(since_ns, domain.last_end_ns_);
  domain.last_end_ns_ = now;  // no time is taken out twice
}

std::shared_ptr<EventPoint> Scheduler::record(Domain& domain) {
  // A stream for this alone, which leaves the domain when the point is reached.
  const auto stream = std::make_shared<Stream>(domain, false);
  auto point = std::make_shared<EventPoint>();
  point->stream = stream;
  point->sequence = 1;
  auto command = std::make_unique<Command>();
  command->job = RecordJob{point};
  const Section section(*this);
  if (!domain.legacy_->queue_.empty())
    command->dependencies.push_back({domain.legacy_, domain.legacy_->issued_});
  for (const std::shared_ptr<Stream>& other : domain.streams_)
    if (!other->queue_.empty()) command->dependencies.push_back({other, other->issued_});
  domain.streams_.push_back(stream);
  stream->retired_ = true;
  enqueue(stream, std::move(command));
  return point;
}

void Scheduler::wait_event(Domain& domain, const EventPoint& point) {
  if (point.done()) return;
  const Section section(*this);
  domain.waits_.push_back({point.stream, point.sequence});
  std::vector<std::shared_ptr<Stream>> streams = domain.streams_;
  streams.push_back(domain.legacy_);
  for (const std::shared_ptr<Stream>& stream : streams) {
    if (stream == point.stream || stream->retired_) continue;
    auto command = std::make_unique<Command>();
    command->dependencies.push_back({point.stream, point.sequence});
    enqueue(stream, std::move(command));
  }
}

void Scheduler::enqueue(const std::shared_ptr<Stream>& stream, std::unique_ptr<Command> command) {
  Domain& domain = *stream->domain_;
  if (stream == domain.legacy_) {
    for (const std::shared_ptr<Stream>& other : domain.streams_)
      if (other->blocking_ && !other->queue_.empty())
        command->dependencies.push_back({other, other->issued_});
  } else if (stream->blocking_ && !domain.legacy_->queue_.empty()) {
    command->dependencies.push_back({domain.legacy_, domain.legacy_->issued_});
  }
  command->stream = stream.get();
  command->sequence = ++stream->issued_;
  stream->queue_.push_back(std::move(command));
  if (stream->queue_.size() == 1) advance(stream);
}

/// Starts what can start at the head of `stream`, and of every stream that this unblocks.
void Scheduler::advance(const std::shared_ptr<Stream>& stream) {
  std::vector<std::shared_ptr<Stream>> unblocked;  // rarely any: the queue of a launch takes no memory for it
  for (std::shared_ptr<Stream> next = stream; next != nullptr;) {
    while (start_head(next, unblocked)) {
    }
    next = nullptr;
    if (unblocked.empty()) continue;
    next = std::move(unblocked.back());
    unblocked.pop_back();
  }
}

/// True if the head was done on the spot and the next one may be looked at.
bool Scheduler::start_head(const std::shared_ptr<Stream>& stream,
                           std::vector<std::shared_ptr<Stream>>& unblocked) {
  if (stream->queue_.empty() || stream->queue_.front()->state != Command::State::queued) return false;
  Command& head = *stream->queue_.front();
  stream->blocked_on_ = nullptr;
  for (const Dependency& dependency : head.dependencies) {
    if (dependency.stream->completed() >= dependency.sequence) continue;
    stream->blocked_on_ = dependency.stream;
    dependency.stream->dependents_.push_back(stream);
    return false;
  }
  const LaunchJob* const launch = head.launch();
  const bool dropped = stream->domain_->fault() != FaultKind::none || stream->domain_->closed_ ||
                       (launch != nullptr && launch->stopped.load(std::memory_order_relaxed));
  if (const auto* record_job = std::get_if<RecordJob>(&head.job)) {
    record_job->point->time_ns.store(base::now_ns() - stream->domain_->excluded_ns_,
                                     std::memory_order_relaxed);
  } else if (!dropped && !std::holds_alternative<WaitJob>(head.job)) {
    make_ready(head);
    return false;
  }
  pop_head(*stream, unblocked);
  return true;
}

void Scheduler::pop_head(Stream& stream, std::vector<std::shared_ptr<Stream>>& unblocked) {
  std::unique_ptr<Command> done = std::move(stream.queue_.front());
  stream.queue_.pop_front();
  if (stream.queue_.empty()) stream.domain_->last_end_ns_ = base::now_ns();
  stream.completed_.store(done->sequence, std::memory_order_release);
  deferred_.finished.push_back(std::move(done));
  for (std::shared_ptr<Stream>& dependent : stream.dependents_) unblocked.push_back(std::move(dependent));
  stream.dependents_.clear();
  ++progress_count_;
  deferred_.progress = waiting_callers_ > 0;
  if (stream.retired_ && stream.queue_.empty()) drop_from_domain(stream);
}

void Scheduler::make_ready(Command& command) {
  command.state = Command::State::ready;
  const GroupId id = group_of(command);
  Group& its_group = group(id);
  const auto is_before = [](const Command* one, const Command* other) {
    return one->stream->priority() < other->stream->priority();
  };
  its_group.ready.insert(
      std::upper_bound(its_group.ready.begin(), its_group.ready.end(), &command, is_before), &command);
  ++its_group.activity;
  ++progress_count_;
  deferred_.progress = waiting_callers_ > 0;  // a caller that waits for this stream may take it
  const bool urgent = command.launch() != nullptr ? is_big(*command.launch()) : id == GroupId::host;
  call_for_help(id, urgent);
}

bool Scheduler::idle(const Stream& stream) {
  const Section section(*this);
  return stream.queue_.empty();
}

bool Scheduler::runs_at_once(const Stream& stream) {
  const Section section(*this);
  const Domain& domain = *stream.domain_;
  if (!stream.queue_.empty()) return false;
  if (&stream != domain.legacy_.get()) return !stream.blocking_ || domain.legacy_->queue_.empty();
  return std::all_of(domain.streams_.begin(), domain.streams_.end(),
                     [](const auto& other) { return !other->blocking_ || other->queue_.empty(); });
}

void Scheduler::synchronize(const std::shared_ptr<Stream>& stream) {
  std::uint64_t last = 0;
  {
    const Section section(*this);
    last = stream->issued_;
  }
  wait_until(stream, last);
}

void Scheduler::synchronize(const Domain& domain) {
  Dependency legacy;
  std::vector<Dependency> others;
  {
    const Section section(*this);
    if (!domain.legacy_->queue_.empty()) legacy = {domain.legacy_, domain.legacy_->issued_};
    for (const std::shared_ptr<Stream>& stream : domain.streams_)
      if (!stream->queue_.empty()) others.push_back({stream, stream->issued_});
  }
  if (legacy.stream != nullptr) wait_until(legacy.stream, legacy.sequence);
  for (const Dependency& each : others) wait_until(each.stream, each.sequence);
  // The thread that finished the last command may still access its stream, and the caller may be about to
  // destroy the stream with the domain.
  const Section section(*this);
}

void Scheduler::synchronize(const EventPoint& point) { wait_until(point.stream, point.sequence); }

void Scheduler::wait_until(const std::shared_ptr<Stream>& stream, std::uint64_t sequence) {
  if (stream->completed() >= sequence) return;
  const base::NoCancellation whole;
  std::optional<FaultSignals> fault_signals;  // this is a thread of the host's
  Section section(*this);
  bool spun = false;
  std::chrono::milliseconds timeout = kTimeout;
  while (stream->completed() < sequence) {
    if (std::optional<Task> task = take_for(*stream)) {
      section.outside([&] {
        if (task->worker != nullptr && !fault_signals) fault_signals.emplace();
        execute(*task);
      });
      finish(*task);
    } else if (!spun) {
      spun = true;
      section.outside([&] { spin_until(*stream, sequence); });
    } else {
      const std::uint64_t seen = progress_count_;
      const auto progressed = [&]() QUERN_NO_THREAD_SAFETY_ANALYSIS { return progress_count_ != seen; };
      ++waiting_callers_;
      if (stream->domain_->fault() == FaultKind::none) {
        section.wait(progress_, progressed);
      } else if (!section.wait_for(progress_, timeout, progressed)) {
        ask_to_leave(*stream->domain_);
        timeout = kAskAgain;
      }
      --waiting_callers_;
    }
  }
  if (exiting_thread_ != pthread_t{} && exiting_thread_ != ::pthread_self())
    section.outside([] { std::this_thread::sleep_for(kExitTime); });
}

void Scheduler::cancel(const std::shared_ptr<Stream>& stream) {
  const base::NoCancellation whole;
  Section section(*this);
  const std::uint64_t last = stream->issued_;
  const auto is_to_end = [](const Command& command) {
    const LaunchJob* launch = command.launch();
    return launch != nullptr && !launch->is_copy;
  };
  for (const std::unique_ptr<Command>& command : stream->queue_)  // dropped when their turn comes
    if (is_to_end(*command) && command->state == Command::State::queued)
      command->launch()->stopped.store(true, std::memory_order_relaxed);
  // Last: a launch that is ready and stopped would be taken by nobody.
  if (!stream->queue_.empty() && is_to_end(*stream->queue_.front())) stop_head(stream);
  const auto runs = [&](const std::unique_ptr<Worker>& worker) {
    return worker->command != nullptr && worker->command->stream == stream.get() &&
           worker->command->sequence <= last && is_to_end(*worker->command);
  };
  for (std::chrono::milliseconds timeout = kCancelTimeout;
       std::any_of(workers_.begin(), workers_.end(), runs); timeout = kAskAgain) {
    const std::uint64_t seen = progress_count_;
    const auto progressed = [&]() QUERN_NO_THREAD_SAFETY_ANALYSIS { return progress_count_ != seen; };
    ++waiting_callers_;
    const bool moved = section.wait_for(progress_, timeout, progressed);
    --waiting_callers_;
    if (moved) continue;
    for (const std::unique_ptr<Worker>& worker : workers_)
      if (runs(worker)) worker->ask_to_leave();
  }
}

void Scheduler::cancel(const Domain& domain) {
  std::vector<std::shared_ptr<Stream>> streams{domain.legacy_};
  {
    const Section section(*this);
    streams.insert(streams.end(), domain.streams_.begin(), domain.streams_.end());
  }
  for (const std::shared_ptr<Stream>& stream : streams) cancel(stream);
}

bool Scheduler::any_launch_runs() const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [](const auto& each) { return each->command != nullptr; });
}

void Scheduler::end_at_exit() {
  using Clock = std::chrono::steady_clock;
  Section section(*this);
  const auto pause = [&] { section.outside([] { std::this_thread::sleep_for(kAskAgain); }); };
  for (const auto end = Clock::now() + kExitGrace; any_launch_runs() && Clock::now() < end;) pause();
  if (!any_launch_runs()) return;
  exiting_thread_ = ::pthread_self();
  for (const auto end = Clock::now() + kExitGrace / 2; any_launch_runs() && Clock::now() < end; pause())
    for (const std::unique_ptr<Worker>& worker : workers_) {
      if (worker->command == nullptr) continue;
      FaultReport report;
      report.text = "ended by exit()";
      end_domain(*worker->command->stream->domain_, FaultKind::launch_timeout, std::move(report));
      worker->ask_to_leave();
    }
}

}  // namespace quern::cpu::engine
