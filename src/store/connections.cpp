// SPDX-License-Identifier: Apache-2.0
#include "store/connections.hpp"

#include <utility>

#include "base/clock.hpp"

namespace quern::store {

Connections::Connections(Connector& connector, std::chrono::nanoseconds budget,
                         std::function<void(bool, const std::string&)> on_change)
    : connector_(connector), budget_ns_(budget.count()), on_change_(std::move(on_change)) {
  thread_ = std::thread([this] { tend(); });
}

Connections::~Connections() {
  {
    const base::LockGuard lock(mutex_);
    stopping_ = true;
  }
  wanted_.notify_all();
  changed_.notify_all();
  thread_.join();
}

std::unique_ptr<Connection> Connections::take(std::int64_t deadline_ns) {
  std::string reason;
  {
    const base::LockGuard lock(mutex_);
    const std::uint64_t moves = moves_;
    while (breaker_.closed() && !stopping_) {
      while (!idle_.empty()) {
        std::unique_ptr<Connection> connection = std::move(idle_.back());
        idle_.pop_back();
        if (!connection->is_usable()) continue;
        ++used_;
        return connection;
      }
      const std::int64_t left_ns = deadline_ns - base::now_ns();
      if (left_ns <= 0) break;
      ++waiting_;
      wanted_.notify_one();
      changed_.wait_for(mutex_, std::chrono::nanoseconds(left_ns), [this]() QUERN_REQUIRES(mutex_) {
        return !idle_.empty() || !breaker_.closed() || stopping_;
      });
      --waiting_;
    }
    // If all connections are busy, the store works.
    if (moves != moves_ || used_ >= kMost || stopping_ || !open_breaker()) return nullptr;
  }
  on_change_(false, "no connection in time");
  return nullptr;
}

void Connections::give_back(std::unique_ptr<Connection> connection) {
  const base::LockGuard lock(mutex_);
  --used_;
  ++moves_;
  if (breaker_.closed() && connection->is_usable()) idle_.push_back(std::move(connection));
  changed_.notify_one();
}

void Connections::fail(const Diagnostic& reason) {
  {
    const base::LockGuard lock(mutex_);
    --used_;
    if (!open_breaker()) return;
  }
  on_change_(false, reason.message);
}

bool Connections::open_breaker() {
  if (!breaker_.closed()) return false;
  breaker_.fail(base::now_ns());
  ++failures_;
  told_down_ = true;
  idle_.clear();
  changed_.notify_all();
  wanted_.notify_all();
  return true;
}

// Connections in use keep the log-in that they have.
void Connections::renew() {
  const base::LockGuard lock(mutex_);
  idle_.clear();
}

bool Connections::is_up() const {
  const base::LockGuard lock(mutex_);
  return breaker_.closed();
}

std::uint64_t Connections::failures() const {
  const base::LockGuard lock(mutex_);
  return failures_;
}

void Connections::tend() {
  constexpr std::chrono::hours kLong{1};
  for (;;) {
    {
      const base::LockGuard lock(mutex_);
      const auto has_work = [this]() QUERN_REQUIRES(mutex_) {
        if (stopping_) return true;
        if (!breaker_.closed()) return base::now_ns() >= breaker_.probe_at_ns();
        return waiting_ > idle_.size() && used_ + idle_.size() < kMost;
      };
      while (!has_work()) {
        const std::chrono::nanoseconds time =
            breaker_.closed() ? std::chrono::nanoseconds(kLong)
                              : std::chrono::nanoseconds(breaker_.probe_at_ns() - base::now_ns());
        // A breaker that opens has the thread look at the time of the probe.
        const bool closed = breaker_.closed();
        wanted_.wait_for(mutex_, time,
                         [&]() QUERN_REQUIRES(mutex_) { return has_work() || breaker_.closed() != closed; });
      }
      if (stopping_) return;
    }
    took(connect_and_ping());
  }
}

Expected<std::unique_ptr<Connection>> Connections::connect_and_ping() {
  Expected<std::unique_ptr<Connection>> connection = connector_.connect(kTimeout);
  if (!connection) return connection;
  if (Expected<void> ping = (*connection)->ping({base::now_ns() + budget_ns_, 0}); !ping)
    return std::move(ping).errors();
  return connection;
}

void Connections::took(Expected<std::unique_ptr<Connection>> connection) {
  bool changed = false;
  const bool good = connection.has_value();
  const std::string reason = good ? std::string() : connection.errors().front().message;
  {
    const base::LockGuard lock(mutex_);
    if (good) {
      changed = !breaker_.closed();
      if (changed) breaker_.close(base::now_ns());
      told_down_ = false;
      idle_.push_back(*std::move(connection));
      ++moves_;
      changed_.notify_one();
    } else {
      changed = !told_down_;
      if (!open_breaker()) breaker_.fail(base::now_ns());
      told_down_ = true;
    }
  }
  if (changed) on_change_(good, reason);
}

}  // namespace quern::store
