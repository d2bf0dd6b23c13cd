// SPDX-License-Identifier: Apache-2.0
#include "cpu/engine/output.hpp"

#include <cstdio>
#include <utility>

namespace quern::cpu::engine {

void Output::set_sink(Sink sink, void* user) {
  const base::LockGuard lock(mutex_);
  sink_ = sink;
  user_ = user;
}

void Output::write(std::string text) {
  mutex_.lock();
  pending_.push_back(std::move(text));
  if (delivering_) return mutex_.unlock();  // the thread that delivers takes it along
  delivering_ = true;
  while (!pending_.empty()) {
    const std::vector<std::string> texts = std::exchange(pending_, {});
    const Sink sink = sink_;
    void* const user = user_;
    mutex_.unlock();
    for (const std::string& piece : texts) {
      if (sink != nullptr) {
        sink(user, piece.data(), piece.size());
      } else {
        std::fwrite(piece.data(), 1, piece.size(), stdout);
      }
    }
    mutex_.lock();
  }
  delivering_ = false;
  mutex_.unlock();
  delivered_.notify_all();
}

void Output::flush() {
  bool to_stdout = false;
  {
    const base::LockGuard lock(mutex_);
    delivered_.wait(mutex_, [this]() QUERN_NO_THREAD_SAFETY_ANALYSIS { return !delivering_; });
    to_stdout = sink_ == nullptr;
  }
  if (to_stdout) std::fflush(stdout);
}

void report(std::string_view message) {
  std::string line = "quern CPU device: ";
  line += message;
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace quern::cpu::engine
