// SPDX-License-Identifier: Apache-2.0
#include "cpu/engine/stream_queues.hpp"

#include <algorithm>
#include <utility>

#include "base/clock.hpp"

namespace quern::cpu::engine {
namespace {

/// The most launches that a thread takes at once.
constexpr std::size_t kMostFollowing = 255;

bool is_met(const Dependency& dependency) noexcept {
  return dependency.stream->completed() >= dependency.sequence;
}

/// True for launches that a thread runs one after another: cancelling then ends all of them.
bool runs_in_a_row(const Command& command) noexcept {
  const LaunchJob* launch = command.launch();
  return launch != nullptr && launch->alone && !launch->is_copy;
}

}  // namespace

bool is_cancellable(const Command& command) noexcept {
  const LaunchJob* launch = command.launch();
  return launch != nullptr && !launch->is_copy;
}

std::shared_ptr<Domain> StreamQueues::make_domain() {
  auto domain = std::make_shared<Domain>();
  domain->legacy_ = std::make_shared<Stream>(*domain, false);
  return domain;
}

void StreamQueues::add(const std::shared_ptr<Stream>& stream) {
  Domain& domain = *stream->domain_;
  domain.streams_.push_back(stream);
  std::erase_if(domain.waits_, &is_met);
  if (domain.waits_.empty()) return;
  auto command = std::make_unique<Command>();
  command->dependencies = domain.waits_;
  enqueue(stream, std::move(command));
}

void StreamQueues::enqueue_alone(const std::shared_ptr<Stream>& stream, std::unique_ptr<Command> command) {
  stream->retired_ = true;
  enqueue(stream, std::move(command));
}

void StreamQueues::wait(Domain& domain, const Dependency& before) {
  domain.waits_.push_back(before);
  for (const std::shared_ptr<Stream>& stream : streams_of(domain)) {
    if (stream == before.stream || stream->retired_) continue;
    auto command = std::make_unique<Command>();
    command->dependencies.push_back(before);
    enqueue(stream, std::move(command));
  }
}

void StreamQueues::exclude(Domain& domain, std::int64_t since_ns) {
  const auto is_empty = [](const std::shared_ptr<Stream>& stream) { return stream->queue_.empty(); };
  if (!is_empty(domain.legacy_) || !std::ranges::all_of(domain.streams_, is_empty)) return;
  const std::int64_t now = base::now_ns();
  domain.excluded_ns_ += now - std::max(since_ns, domain.last_end_ns_);
  domain.last_end_ns_ = now;  // no time is excluded twice
}

void StreamQueues::retire(Stream& stream) {
  stream.retired_ = true;
  if (stream.queue_.empty()) drop_from_domain(stream);
}

void StreamQueues::drop_from_domain(Stream& stream) {
  std::vector<std::shared_ptr<Stream>>& streams = stream.domain_->streams_;
  const auto found = std::find(streams.begin(), streams.end(), stream.shared_from_this());
  if (found == streams.end()) return;
  progress_.deferred.dropped.push_back(std::move(*found));  // kept until the mutex is released
  streams.erase(found);
}

void StreamQueues::enqueue(const std::shared_ptr<Stream>& stream, std::unique_ptr<Command> command) {
  Domain& domain = *stream->domain_;
  // The domain keeps it until the queue is empty. A thread may have found it before another one destroyed it.
  if (stream->retired_ && stream->queue_.empty()) domain.streams_.push_back(stream);
  if (stream == domain.legacy_) {
    for (const std::shared_ptr<Stream>& other : domain.streams_)
      if (other->blocking_ && !other->queue_.empty())
        command->dependencies.push_back({other, other->issued_});
  } else if (stream->blocking_ && !domain.legacy_->queue_.empty()) {
    command->dependencies.push_back({domain.legacy_, domain.legacy_->issued_});
  }
  command->stream = stream.get();
  command->sequence = ++stream->issued_;
  const bool in_a_row = command->dependencies.empty() && runs_in_a_row(*command);
  stream->queue_.push_back({std::move(command), in_a_row});
  if (stream->queue_.size() == 1) advance(stream);
}

/// Starts all commands that can start at the head of `stream`, and of every stream that this unblocks.
void StreamQueues::advance(const std::shared_ptr<Stream>& stream) {
  std::vector<std::shared_ptr<Stream>> unblocked;  // rarely contains any, so it usually allocates no memory
  for (std::shared_ptr<Stream> next = stream; next != nullptr;) {
    while (start_head(next, unblocked)) {
    }
    next = nullptr;
    if (unblocked.empty()) continue;
    next = std::move(unblocked.back());
    unblocked.pop_back();
  }
}

/// True if the head completed without a thread, so that the next command may start.
bool StreamQueues::start_head(const std::shared_ptr<Stream>& stream,
                              std::vector<std::shared_ptr<Stream>>& unblocked) {
  if (stream->queue_.empty() || stream->queue_.front().command->state != Command::State::queued) return false;
  Command& head = *stream->queue_.front().command;
  stream->blocked_on_ = nullptr;
  for (const Dependency& dependency : head.dependencies) {
    if (is_met(dependency)) continue;
    stream->blocked_on_ = dependency.stream;
    dependency.stream->dependents_.push_back(stream);
    return false;
  }
  const LaunchJob* const launch = head.launch();
  const auto* const host = std::get_if<HostJob>(&head.job);
  const bool after_fault = host != nullptr && host->after_fault;
  const bool dropped = (stream->domain_->fault() != FaultKind::none && !after_fault) ||
                       stream->domain_->closed_ ||
                       (launch != nullptr && launch->stopped.load(std::memory_order_relaxed));
  if (const auto* record_job = std::get_if<RecordJob>(&head.job)) {
    record_job->point->time_ns.store(base::now_ns() - stream->domain_->excluded_ns_,
                                     std::memory_order_relaxed);
    if (record_job->observer != nullptr) record_job->observer->passed(dropped);
  } else if (!dropped && !std::holds_alternative<WaitJob>(head.job)) {
    runnable_.add(head);
    return false;
  }
  pop_head(*stream, unblocked);
  return true;
}

void StreamQueues::pop_head(Stream& stream, std::vector<std::shared_ptr<Stream>>& unblocked) {
  std::unique_ptr<Command> done = std::move(stream.queue_.front().command);
  stream.queue_.pop_front();
  if (stream.queue_.empty()) stream.domain_->last_end_ns_ = base::now_ns();
  stream.completed_.store(done->sequence, std::memory_order_release);
  progress_.deferred.finished.push(std::move(done));
  for (std::shared_ptr<Stream>& dependent : stream.dependents_) unblocked.push_back(std::move(dependent));
  stream.dependents_.clear();
  progress_.note();
  if (stream.retired_ && stream.queue_.empty()) drop_from_domain(stream);
}

void StreamQueues::take_following(const Command& head, std::vector<Command*>& following) {
  following.clear();
  if (!head.launch()->alone) return;  // any more: others may run its last blocks when this thread is done
  const std::deque<Stream::Queued>& queue = head.stream->queue_;
  for (std::size_t i = 0; i <= kMostFollowing && i < queue.size() && queue[i].in_a_row; ++i) {
    if (i > 0) following.push_back(queue[i].command.get());
    if (queue[i].is_awaited) return;
  }
}

void StreamQueues::complete_passed(Stream& stream, std::uint32_t passed) {
  std::vector<std::shared_ptr<Stream>> unblocked;
  for (std::uint32_t i = 0; i < passed; ++i) pop_head(stream, unblocked);
  for (const std::shared_ptr<Stream>& each : unblocked) advance(each);
}

void StreamQueues::put_back_head(Stream& stream) {
  stream.queue_.front().command->state = Command::State::queued;
  advance(stream.shared_from_this());
}

void StreamQueues::complete_head(Stream& stream) {
  std::vector<std::shared_ptr<Stream>> unblocked;
  pop_head(stream, unblocked);
  for (const std::shared_ptr<Stream>& each : unblocked) advance(each);
  if (!stream.queue_.empty()) advance(stream.shared_from_this());
}

/// The commands get the number before the head's: nobody sees the stream pass the head until they are
/// complete.
void StreamQueues::put_before_head(Stream& stream, std::vector<std::unique_ptr<Command>> commands) {
  Command& head = *stream.queue_.front().command;
  head.state = Command::State::queued;
  for (auto command = commands.rbegin(); command != commands.rend(); ++command) {
    (*command)->stream = &stream;
    (*command)->sequence = head.sequence - 1;
    stream.queue_.push_front({std::move(*command)});
  }
  advance(stream.shared_from_this());
}

bool StreamQueues::runs_at_once(const Stream& stream) const {
  const Domain& domain = *stream.domain_;
  if (!stream.queue_.empty()) return false;
  if (&stream != domain.legacy_.get()) return !stream.blocking_ || domain.legacy_->queue_.empty();
  return std::all_of(domain.streams_.begin(), domain.streams_.end(),
                     [](const auto& other) { return !other->blocking_ || other->queue_.empty(); });
}

std::vector<std::shared_ptr<Stream>> StreamQueues::streams_of(const Domain& domain) const {
  std::vector<std::shared_ptr<Stream>> streams{domain.legacy_};
  streams.insert(streams.end(), domain.streams_.begin(), domain.streams_.end());
  return streams;
}

Dependency StreamQueues::await_last(const std::shared_ptr<Stream>& stream) {
  if (stream->queue_.empty()) return {};
  stream->queue_.back().is_awaited = true;
  return {stream, stream->issued_};
}

std::vector<Dependency> StreamQueues::await_last_ones(const Domain& domain) {
  std::vector<Dependency> last;
  for (const std::shared_ptr<Stream>& stream : domain.streams_)
    if (!stream->queue_.empty()) last.push_back(await_last(stream));
  return last;
}

Command* StreamQueues::head_for(const Stream& stream) const {
  const Stream* at = &stream;
  for (int depth = 0; at != nullptr && depth < 64; ++depth) {
    if (at->queue_.empty()) return nullptr;
    Command& head = *at->queue_.front().command;
    if (head.state != Command::State::queued) return &head;
    at = at->blocked_on_.get();
  }
  return nullptr;
}

void StreamQueues::end_domain(Domain& domain, FaultKind kind, FaultReport report) {
  if (domain.fault() != FaultKind::none) return;
  domain.end(kind, std::move(report));
  std::vector<std::shared_ptr<Stream>> streams = domain.streams_;
  streams.push_back(domain.legacy_);
  for (const std::shared_ptr<Stream>& stream : streams) stop_head(stream);
}

/// Stops the launch at the stream's head, if there is one. If no thread has taken it, it is complete.
void StreamQueues::stop_head(const std::shared_ptr<Stream>& stream) {
  if (stream->queue_.empty()) return;
  Command& head = *stream->queue_.front().command;
  LaunchJob* launch = head.launch();
  if (launch == nullptr || head.state == Command::State::queued) return;
  if (launch->stopped.exchange(true, std::memory_order_relaxed) || head.participants > 0) return;
  runnable_.remove(head);
  std::vector<std::shared_ptr<Stream>> unblocked;
  pop_head(*stream, unblocked);
  for (const std::shared_ptr<Stream>& each : unblocked) advance(each);
  advance(stream);
}

void StreamQueues::stop_launches(const std::shared_ptr<Stream>& stream) {
  for (const Stream::Queued& queued : stream->queue_)  // start_head() drops the stopped ones
    if (const Command& command = *queued.command;
        is_cancellable(command) && command.state == Command::State::queued)
      command.launch()->stopped.store(true, std::memory_order_relaxed);
  // The head is last: no thread can take a launch that is both ready and stopped.
  if (!stream->queue_.empty() && is_cancellable(*stream->queue_.front().command)) stop_head(stream);
}

}  // namespace quern::cpu::engine
