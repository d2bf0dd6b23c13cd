// SPDX-License-Identifier: Apache-2.0
#include "cpu/engine/output.hpp"

#include <cstdio>
#include <utility>

#include "base/held_signal.hpp"

namespace quern::cpu::engine {

void Output::set_sink(Sink sink) {
  const base::LockGuard lock(mutex_);
  sink_ = sink;
}

void Output::write(Print print) {
  mutex_.lock();
  pending_.push_back(std::move(print));
  if (delivering_) return mutex_.unlock();  // the thread that delivers output will deliver this text too
  delivering_ = true;
  while (!pending_.empty()) {
    const std::vector<Print> prints = std::exchange(pending_, {});
    const Sink sink = sink_;
    mutex_.unlock();
    bool in_stdout = false;
    for (const Print& each : prints) {
      if (sink != nullptr && sink(each)) continue;
      const base::HeldSignal quiet(SIGXFSZ);
      std::fwrite(each.text.data(), 1, each.text.size(), stdout);
      in_stdout = true;
    }
    mutex_.lock();
    uses_stdout_ |= in_stdout;
  }
  delivering_ = false;
  mutex_.unlock();
  delivered_.notify_all();
}

void Output::flush() {
  bool uses_stdout = false;
  {
    const base::LockGuard lock(mutex_);
    delivered_.wait(mutex_, [this]() QUERN_NO_THREAD_SAFETY_ANALYSIS { return !delivering_; });
    uses_stdout = uses_stdout_;
  }
  if (!uses_stdout) return;
  const base::HeldSignal quiet(SIGXFSZ);
  std::fflush(stdout);
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
