// SPDX-License-Identifier: Apache-2.0
#include "serve/precompiled_queue.hpp"

#include "remote/messages.hpp"
#include "session/request_compiler.hpp"

namespace quern::serve {
namespace {

/// Faster compiles are not worth the memory.
constexpr double kWorthwhile_s = 0.2;
constexpr const char* kTable[] = {
#define QUERN_PRECOMPILED(name) name,
#include "serve/precompiled.def"
};

}  // namespace

void PrecompiledQueue::begin_anew() {
  const base::LockGuard lock(mutex_);
  seen_.clear();
  waiting_.clear();
  for (const char* name : kTable) {
    abi::KernelRequest request;
    request.source.text = std::string("#include <") + name + ">\n";
    if (std::optional<abi::KernelRequest> lines = session::precompilable(request)) add(*std::move(lines));
  }
}

void PrecompiledQueue::note_compile(const abi::KernelRequest& request, double seconds) {
  if (seconds < kWorthwhile_s) return;
  std::optional<abi::KernelRequest> lines = session::precompilable(request);
  const base::LockGuard lock(mutex_);
  if (lines) add(*std::move(lines));
}

void PrecompiledQueue::add(abi::KernelRequest lines) {
  lines.target.sm.reset();  // machine code is of another run
  lines.target.driver_version = 0;
  const Expected<std::string> text = remote::write_compile_message({lines, {}});
  if (text && seen_.size() < kMost && seen_.insert(*text).second) waiting_.push_back(std::move(lines));
}

std::optional<abi::KernelRequest> PrecompiledQueue::take() {
  const base::LockGuard lock(mutex_);
  if (waiting_.empty()) return std::nullopt;
  abi::KernelRequest lines = std::move(waiting_.front());
  waiting_.pop_front();
  return lines;
}

}  // namespace quern::serve
