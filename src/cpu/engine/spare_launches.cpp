// SPDX-License-Identifier: Apache-2.0
#include "cpu/engine/spare_launches.hpp"

#include <utility>

namespace quern::cpu::engine {
namespace {

/// In the same memory.
template <class T>
void make_new(T& object) {
  std::destroy_at(&object);
  std::construct_at(&object);
}

}  // namespace

std::unique_ptr<Command> SpareLaunches::take() {
  {
    const base::LockGuard lock(mutex_);
    if (!spare_.empty()) {
      --count_;
      return spare_.pop();
    }
  }
  auto command = std::make_unique<Command>();
  command->job = std::make_unique<LaunchJob>();
  return command;
}

void SpareLaunches::put(CommandList finished) {
  CommandList kept;
  std::size_t count = 0;
  while (!finished.empty()) {
    std::unique_ptr<Command> command = finished.pop();
    auto* const launch = std::get_if<std::unique_ptr<LaunchJob>>(&command->job);
    if (launch == nullptr || count == kMost) continue;
    std::unique_ptr<LaunchJob> job = std::move(*launch);
    make_new(*job);
    make_new(*command);
    command->job = std::move(job);
    kept.push(std::move(command));
    ++count;
  }
  const base::LockGuard lock(mutex_);
  if (count_ + count > kMost) return;
  spare_.push(std::move(kept));
  count_ += count;
}

}  // namespace quern::cpu::engine
