// SPDX-License-Identifier: Apache-2.0
#include "serve/fleet.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.hpp"

namespace quern::serve {
namespace {

using GetOutcome = store::SharedStore::GetOutcome;
using LockOutcome = store::SharedStore::LockOutcome;

constexpr store::Kind kKind = store::Kind::compile_answer;
constexpr std::int64_t kFirstPause_ns = 2'000'000;  // between two questions about a key
constexpr std::int64_t kHour_ns = 3'600'000'000'000;
constexpr std::int64_t kLongestPause_ns = 100'000'000;
// A store that went down for want of one answer is up again within this time, if it is: the first probe is
// sent at once.
constexpr std::int64_t kDownPatience_ns = 20'000'000;
constexpr std::uint64_t kMaxFinishedBytes = std::uint64_t{64} << 20;

std::int64_t nanoseconds(std::chrono::nanoseconds time) { return time.count(); }

}  // namespace

struct Fleet::Ticket {
  base::Mutex mutex;  // while the store is asked about the lock
  store::Lock lock QUERN_GUARDED_BY(mutex);
  bool held QUERN_GUARDED_BY(mutex) = false;
  base::Digest key;
  // Only the watcher thread uses the members below.
  Job job;
  bool waits = false;
  std::int64_t pause_ns = kFirstPause_ns;
  std::int64_t give_up_ns = 0;
  std::int64_t unavailable_since_ns = 0;  // 0 if it answers
};

Fleet::Fleet(std::unique_ptr<store::SharedStore> store, std::string address,
             std::chrono::nanoseconds longest_wait)
    : store_(std::move(store)), address_(std::move(address)), longest_wait_ns_(nanoseconds(longest_wait)) {
  watcher_ = std::thread([this] { watch(); });
  writer_ = std::thread([this] { write(); });
}

Fleet::~Fleet() {
  {
    const base::LockGuard lock(mutex_);
    stopping_ = true;
  }
  due_changed_.notify_all();
  finished_there_.notify_all();
  watcher_.join();
  writer_.join();
}

GetOutcome Fleet::get(const base::Digest& key, std::string& value) {
  const std::int64_t begin = base::now_ns();
  const GetOutcome outcome = store_->get(kKind, key, value);
  seconds_.add(static_cast<double>(base::now_ns() - begin) * 1e-9);
  return outcome;
}

Fleet::Step Fleet::begin(const base::Digest& key, TicketPointer& ticket, std::string& value) {
  ticket = std::make_shared<Ticket>();
  ticket->key = key;
  switch (get(key, value)) {
    case GetOutcome::hit:
      return Step::found;
    case GetOutcome::unavailable:
      return Step::compile;
    case GetOutcome::miss:
      break;
  }
  {
    const base::LockGuard lock(ticket->mutex);
    ticket->lock = store_->new_lock(key);
  }
  const Step step = take_lock(*ticket, value).value_or(Step::compile);
  bool held = false;
  {
    const base::LockGuard lock(ticket->mutex);
    held = ticket->held;
  }
  if (held) hold(ticket);
  return step;
}

/// The server that gets the lock asks for the value again, since the former holder may just have stored it.
std::optional<Fleet::Step> Fleet::take_lock(Ticket& ticket, std::string& value) {
  const base::LockGuard lock(ticket.mutex);
  switch (store_->try_lock(ticket.lock)) {
    case LockOutcome::acquired:
      break;
    case LockOutcome::held:
      return Step::wait;
    case LockOutcome::unsupported:
      return Step::compile;
    case LockOutcome::unavailable:
      return std::nullopt;
  }
  if (get(ticket.key, value) == GetOutcome::hit) {
    store_->unlock(ticket.lock);
    return Step::found;
  }
  ticket.held = true;
  return Step::compile;
}

void Fleet::wait(const TicketPointer& ticket, Job job) {
  const std::int64_t now = base::now_ns();
  ticket->job = std::move(job);
  ticket->waits = true;
  ticket->give_up_ns = now + longest_wait_ns_;
  const base::LockGuard lock(mutex_);
  ++waiting_;
  waits_.emplace(now + ticket->pause_ns, ticket);
  due_changed_.notify_one();
}

void Fleet::finish(const TicketPointer& ticket, std::string value) {
  const base::LockGuard lock(mutex_);
  if (finished_bytes_ + value.size() > kMaxFinishedBytes) {
    value.clear();
    ++dropped_;
  }
  finished_bytes_ += value.size();
  finished_.push_back({ticket, std::move(value)});
  finished_there_.notify_one();
}

void Fleet::hold(const TicketPointer& ticket) {
  const base::LockGuard lock(mutex_);
  leases_.emplace(base::now_ns() + nanoseconds(store_->lease()) / 3, ticket);
  due_changed_.notify_one();
}

std::int64_t Fleet::next_ns() const {
  std::int64_t next = base::now_ns() + kHour_ns;
  if (!leases_.empty()) next = std::min(next, leases_.begin()->first);
  if (!waits_.empty()) next = std::min(next, waits_.begin()->first);
  return next;
}

Fleet::TicketPointer Fleet::take_due() {
  for (Due* const due : {&leases_, &waits_})
    if (!due->empty() && due->begin()->first <= base::now_ns()) {
      TicketPointer ticket = std::move(due->begin()->second);
      due->erase(due->begin());
      return ticket;
    }
  return nullptr;
}

void Fleet::watch() {
  for (;;) {
    TicketPointer ticket;
    {
      const base::LockGuard lock(mutex_);
      while (!stopping_ && !(ticket = take_due())) {
        const std::int64_t next = next_ns();
        const std::chrono::nanoseconds time(std::max<std::int64_t>(0, next - base::now_ns()));
        due_changed_.wait_for(mutex_, time,
                              [&]() QUERN_REQUIRES(mutex_) { return stopping_ || next_ns() < next; });
      }
      if (stopping_) return;
    }
    if (ticket->waits)
      ask_again(ticket);
    else
      extend(ticket);
  }
}

void Fleet::extend(const TicketPointer& ticket) {
  {
    const base::LockGuard lock(ticket->mutex);
    if (!ticket->held) return;
    // A store that is down for less than the lease does not end the lock.
    if (store_->extend(ticket->lock) == LockOutcome::held) {
      ticket->held = false;
      return;
    }
  }
  hold(ticket);
}

void Fleet::ask_again(const TicketPointer& ticket) {
  std::string value;
  Step step = Step::wait;
  const std::int64_t now = base::now_ns();
  const bool wanted = ticket->job.is_wanted();
  if (wanted) {
    const GetOutcome outcome = get(ticket->key, value);
    const std::optional<Step> answered = outcome == GetOutcome::unavailable ? std::optional<Step>()
                                         : outcome == GetOutcome::hit       ? Step::found
                                                                            : take_lock(*ticket, value);
    if (answered) ticket->unavailable_since_ns = 0;
    if (!answered && ticket->unavailable_since_ns == 0) ticket->unavailable_since_ns = now;
    const bool down = !answered && now - ticket->unavailable_since_ns > kDownPatience_ns;
    step = down || (answered == Step::wait && now > ticket->give_up_ns) ? Step::compile
                                                                        : answered.value_or(Step::wait);
  }
  if (wanted && step == Step::wait) {
    ticket->pause_ns = std::min(ticket->pause_ns * 3 / 2, kLongestPause_ns);
    const bool down = ticket->unavailable_since_ns != 0;
    const base::LockGuard lock(mutex_);
    waits_.emplace(now + (down ? kDownPatience_ns / 2 : ticket->pause_ns), ticket);
    return;
  }
  {
    const base::LockGuard lock(mutex_);
    --waiting_;
  }
  ticket->waits = false;
  const Job job = std::exchange(ticket->job, {});
  if (!wanted) return;
  if (step == Step::found) return job.found(std::move(value));
  hold(ticket);
  job.compile();
}

void Fleet::write() {
  for (;;) {
    Finished finished;
    {
      const base::LockGuard lock(mutex_);
      finished_there_.wait(mutex_,
                           [this]() QUERN_REQUIRES(mutex_) { return stopping_ || !finished_.empty(); });
      if (finished_.empty()) return;
      finished = std::move(finished_.front());
      finished_.pop_front();
      finished_bytes_ -= finished.value.size();
    }
    store_and_unlock(finished);
  }
}

void Fleet::store_and_unlock(const Finished& finished) {
  if (!finished.value.empty()) store_->put(kKind, finished.ticket->key, finished.value);
  const base::LockGuard lock(finished.ticket->mutex);
  if (finished.ticket->held) store_->unlock(finished.ticket->lock);
  finished.ticket->held = false;
}

std::uint64_t Fleet::waiting() const {
  const base::LockGuard lock(mutex_);
  return waiting_;
}

std::string Fleet::metrics() const {
  const store::Statistics statistics = store_->statistics();
  std::uint64_t refused = 0, dropped = 0, waiting = 0;
  for (const std::uint64_t each : statistics.refused) refused += each;
  {
    const base::LockGuard lock(mutex_);
    dropped = dropped_;
    waiting = waiting_;
  }
  std::string text;
  const auto counter = [&](const char* name, const char* label,
                           std::initializer_list<std::pair<const char*, std::uint64_t>> rows) {
    text += fmt::format("# TYPE {} counter\n", name);
    for (const auto& [value, count] : rows)
      text += fmt::format("{}_total{{{}=\"{}\"}} {}\n", name, label, value, count);
  };
  counter("quern_store_gets", "result",
          {{"hit", statistics.hits},
           {"miss", statistics.misses},
           {"refused", refused},
           {"unavailable", statistics.unavailable}});
  counter("quern_store_puts", "result",
          {{"ok", statistics.puts}, {"failed", statistics.puts_failed}, {"dropped", dropped}});
  counter("quern_store_locks", "result",
          {{"acquired", statistics.locks_acquired},
           {"held", statistics.locks_held},
           {"unavailable", statistics.locks_failed}});
  text += "# TYPE quern_store_refused counter\n";
  for (std::size_t i = 0; i < statistics.refused.size(); ++i)
    text += fmt::format("quern_store_refused_total{{reason=\"{}\"}} {}\n",
                        name(static_cast<store::Refusal>(i)), statistics.refused[i]);
  text += fmt::format("# TYPE quern_store_failures counter\nquern_store_failures_total {}\n",
                      statistics.failures);
  text += fmt::format("# TYPE quern_store_up gauge\nquern_store_up {}\n", statistics.is_up ? 1 : 0);
  text += fmt::format("# TYPE quern_store_waiting gauge\nquern_store_waiting {}\n", waiting);
  return text + seconds_.text("quern_store_seconds");
}

}  // namespace quern::serve
