// SPDX-License-Identifier: Apache-2.0
#include "cpu/engine/output.hpp"

#include <poll.h>
#include <sched.h>
#include <stdio_ext.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <thread>
#include <utility>

#include "base/held_signal.hpp"

namespace quern::cpu::engine {
namespace {

/// A thread that waits looks so often whether its launch is stopped.
constexpr std::chrono::milliseconds kStopInterval{5};

bool is_stopped(const Output::Stopped& stopped) { return stopped && stopped(); }

// --- the process's stdout. The functions return false if the launch is stopped and they would have to wait

/// A thread of the host may hold the lock while it waits for stdout itself.
bool lock_stream(std::FILE* file, const Output::Stopped& stopped) {
  constexpr int kYields = 64;
  constexpr std::chrono::microseconds kNap{50};
  for (int tries = 0; ::ftrylockfile(file) != 0; ++tries) {
    if (is_stopped(stopped)) return false;
    if (tries < kYields)
      ::sched_yield();
    else
      std::this_thread::sleep_for(kNap);
  }
  return true;
}

/// Waits until the file takes PIPE_BUF bytes at once (pipe(7); regular files always do). An error is left to
/// the following write.
bool await_writable(std::FILE* file, const Output::Stopped& stopped) {
  pollfd target{.fd = ::fileno(file), .events = POLLOUT, .revents = 0};
  if (target.fd < 0) return true;  // as with fmemopen()
  for (;;) {
    const int ready = ::poll(&target, 1, static_cast<int>(kStopInterval.count()));
    if (ready > 0 || (ready < 0 && errno != EINTR)) return true;
    if (is_stopped(stopped)) return false;
  }
}

bool may_block(std::FILE* file) {
  struct stat status{};
  const int descriptor = ::fileno(file);
  return descriptor >= 0 && !(::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode));
}

/// True if there is room for so many bytes in the buffer. A larger buffer of the host's is not filled beyond
/// what the file takes at once.
bool fits(std::FILE* file, std::size_t bytes) {
  const std::size_t all = ::__fpending(file) + bytes;
  return all < ::__fbufsize(file) && (all <= PIPE_BUF || !may_block(file));
}

/// The lock must be held. If the host has put more than PIPE_BUF bytes into a larger buffer, this may wait
/// for a pipe even if the launch is stopped.
bool flush_buffer(std::FILE* file, const Output::Stopped& stopped) {
  if (::__fpending(file) == 0) return true;
  if (!await_writable(file, stopped)) return false;
  const base::HeldSignal quiet(SIGXFSZ);
  ::fflush_unlocked(file);
  return true;
}

/// The same. `written` is the part of the text that is in the stream already.
bool put(std::FILE* file, std::string_view text, std::size_t& written, const Output::Stopped& stopped) {
  while (written < text.size()) {
    const std::string_view piece = text.substr(written, PIPE_BUF);
    if (!fits(file, piece.size()) && !flush_buffer(file, stopped)) return false;
    if (fits(file, piece.size()) && ::__flbf(file) == 0) {
      ::fwrite_unlocked(piece.data(), 1, piece.size(), file);  // no system call
    } else {
      if (!await_writable(file, stopped)) return false;
      const base::HeldSignal quiet(SIGXFSZ);
      ::fwrite_unlocked(piece.data(), 1, piece.size(), file);
    }
    written += piece.size();
  }
  return true;
}

bool write_to_stdout(std::string_view text, std::size_t& written, const Output::Stopped& stopped) {
  std::FILE* const file = stdout;
  if (!lock_stream(file, stopped)) return false;
  const bool all = put(file, text, written, stopped);
  ::funlockfile(file);
  return all;
}

void flush_stdout(const Output::Stopped& stopped) {
  std::FILE* const file = stdout;
  if (!lock_stream(file, stopped)) return;
  flush_buffer(file, stopped);
  ::funlockfile(file);
}

}  // namespace

void Output::set_sink(Sink sink) {
  const base::LockGuard lock(mutex_);
  sink_ = sink;
}

std::size_t Output::pending_bytes() {
  const base::LockGuard lock(mutex_);
  return pending_bytes_;
}

void Output::write(Print print, const Stopped& stopped) {
  std::list<Pending> text;
  text.push_back({.print = std::move(print)});
  const base::LockGuard lock(mutex_);
  if (!await_room(stopped)) return;
  const std::uint64_t number = text.front().number = ++last_number_;
  pending_bytes_ += text.front().bytes();
  pending_.splice(pending_.end(), text);
  if (!delivering_) deliver(number, stopped);  // otherwise the thread that delivers will deliver this, too
}

void Output::flush(const void* launch, const Stopped& stopped) {
  bool uses_stdout = false;
  {
    const base::LockGuard lock(mutex_);
    const std::uint64_t last = last_number_;
    while (!is_delivered(last)) {
      if (!delivering_)
        deliver(last, stopped);
      else
        wait([&]() QUERN_NO_THREAD_SAFETY_ANALYSIS { return !delivering_ || is_delivered(last); });
      if (!is_stopped(stopped)) continue;
      drop(launch);
      break;
    }
    // The thread that delivered may have left the rest to this one.
    if (!pending_.empty() && !delivering_ && !is_stopped(stopped)) deliver(last, stopped);
    uses_stdout = uses_stdout_;
  }
  if (uses_stdout) flush_stdout(stopped);
}

void Output::deliver(std::uint64_t last, const Stopped& stopped) {
  delivering_ = true;
  do {
    Pending& text = pending_.front();
    const Sink sink = sink_;
    mutex_.unlock();
    const bool is_accepted = sink != nullptr && sink(text.print);
    const bool is_over = is_accepted || write_to_stdout(text.print.text, text.written, stopped);
    mutex_.lock();
    uses_stdout_ |= !is_accepted;
    if (!is_over) break;
    const bool had_room = has_room();
    pending_bytes_ -= text.bytes();
    pending_.pop_front();
    if (is_stopped(stopped) || (waiting_ > 0 && has_room() && is_delivered(last))) break;
    if (!had_room && has_room()) changed_.notify_all();
  } while (!pending_.empty());
  delivering_ = false;
  if (waiting_ > 0) changed_.notify_all();
}

bool Output::await_room(const Stopped& stopped) {
  while (pending_bytes_ >= kMostPendingBytes) {
    if (!delivering_)
      deliver(0, stopped);
    else
      wait([this]() QUERN_NO_THREAD_SAFETY_ANALYSIS { return !delivering_ || has_room(); });
    if (pending_bytes_ >= kMostPendingBytes && is_stopped(stopped)) return false;
  }
  return true;
}

template <class Ready>
void Output::wait(Ready ready) {
  ++waiting_;
  changed_.wait_for(mutex_, kStopInterval, ready);
  --waiting_;
}

void Output::drop(const void* launch) {
  auto text = pending_.begin();
  if (delivering_) ++text;
  while (text != pending_.end()) {
    if (text->print.launch != launch) {
      ++text;
      continue;
    }
    pending_bytes_ -= text->bytes();
    text = pending_.erase(text);
  }
}

void report(LogLevel level, std::string_view message, std::vector<LogField> fields, std::string_view prefix) {
  fields.insert(fields.begin(), {"device", std::string(kDeviceName)});
  base::log({level, std::string(message), std::move(fields)}, prefix);
}

void report(std::string_view message) { report(LogLevel::warning, message); }

void report_variable(const char* variable, std::string_view message) {
  report(LogLevel::warning, message, {{"variable", variable}});
}

}  // namespace quern::cpu::engine
