// SPDX-License-Identifier: Apache-2.0
#include "runtime/in_flight.hpp"

#include <atomic>
#include <utility>

#include "runtime/exit.hpp"

namespace quern::runtime {
namespace {

// What is left alone at process exit stays reachable from here, so that leak checkers see that it is meant.
struct Abandoned {
  std::unique_ptr<std::list<std::shared_ptr<void>>> states =
      std::make_unique<std::list<std::shared_ptr<void>>>();
};
Abandoned& abandoned() {
  static auto* const instance = new Abandoned;
  return *instance;
}

}  // namespace

InFlight::~InFlight() {
  if (!process_is_exiting())
    reap(true);
  else if (count() > 0)
    abandoned().states->push_back(std::shared_ptr<State>(std::move(state_)));
}

void InFlight::reached(void* argument) {
  Node& node = *static_cast<Node*>(argument);
  if (node.work.run) node.work.run();
  State& state = *node.state;
  const base::LockGuard lock(state.mutex);
  state.done.splice(state.done.end(), state.queued, node.self);
}

CUresult InFlight::add(const driver::DriverTable& api, CUstream stream, Work& work) {
  Node* node = nullptr;
  {
    const base::LockGuard lock(state_->mutex);
    node = &state_->queued.emplace_back();
    node->state = state_.get();
    node->self = std::prev(state_->queued.end());
  }
  node->work = std::move(work);
  const CUresult result = api.cuLaunchHostFunc(stream, &InFlight::reached, node);
  if (result == CUDA_SUCCESS) return result;
  work = std::move(node->work);
  const base::LockGuard lock(state_->mutex);
  state_->queued.erase(node->self);
  return result;
}

void InFlight::reap(bool all) noexcept {
  std::list<Node> finished;
  {
    const base::LockGuard lock(state_->mutex);
    finished.swap(state_->done);
    if (all) finished.splice(finished.end(), state_->queued);
  }
}

std::size_t InFlight::count() const noexcept {
  const base::LockGuard lock(state_->mutex);
  return state_->queued.size() + state_->done.size();
}

}  // namespace quern::runtime
