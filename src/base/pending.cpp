// SPDX-License-Identifier: Apache-2.0
#include "quern/pending.hpp"

#include "base/background.hpp"
#include "quern/error.hpp"

namespace quern {
namespace {

base::Task& live(const std::shared_ptr<base::Task>& task) {
  if (task == nullptr)
    throw Error(ErrorCode::usage, "the handle was moved from; use the one that it was moved to");
  return *task;
}

}  // namespace

Pending& Pending::operator=(Pending&& other) noexcept {
  if (this == &other) return *this;
  if (task_ != nullptr) task_->cancel();
  task_ = std::move(other.task_);
  return *this;
}
Pending::~Pending() {
  if (task_ != nullptr) task_->cancel();
}

bool Pending::ready() const { return live(task_).done(); }
void Pending::wait() const { live(task_).wait(); }
bool Pending::wait_for(std::chrono::nanoseconds time) const { return live(task_).wait_for(time); }
void Pending::cancel() const { live(task_).cancel(); }
void Pending::rethrow() const { live(task_).rethrow(); }

}  // namespace quern
