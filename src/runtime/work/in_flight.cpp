// SPDX-License-Identifier: Apache-2.0
#include "runtime/work/in_flight.hpp"

#include <atomic>
#include <utility>

#include "runtime/device/exit.hpp"

namespace quern::runtime {
namespace {

// Objects that are not released at process exit stay reachable from here, so that leak checkers do not report
// them.
struct Abandoned {
  std::unique_ptr<std::list<std::shared_ptr<void>>> states =
      std::make_unique<std::list<std::shared_ptr<void>>>();
};
Abandoned& abandoned() {
  static auto* const instance = new Abandoned;
  return *instance;
}

thread_local bool running_here = false;

}  // namespace

InFlight::~InFlight() {
  const bool any = count() > 0;
  if (!process_is_exiting() && !(any && exit_has_begun()))
    reap(true);
  else if (any)
    abandoned().states->push_back(std::shared_ptr<State>(std::move(state_)));
}

bool InFlight::is_running_here() noexcept { return running_here; }

void InFlight::reached(void* argument) {
  Node& node = *static_cast<Node*>(argument);
  State& state = *node.state;
  {
    const base::LockGuard lock(state.mutex);
    ++state.running;
  }
  running_here = true;
  if (node.work.run) node.work.run();
  running_here = false;
  const base::LockGuard lock(state.mutex);
  state.done.splice(state.done.end(), state.queued, node.self);
  --state.running;
  state.stopped.notify_all();
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
  if (result != CUDA_SUCCESS) work = std::move(node->work);
  const base::LockGuard lock(state_->mutex);
  node->in_use = false;
  if (result != CUDA_SUCCESS) state_->queued.erase(node->self);
  return result;
}

void InFlight::reap(bool all) noexcept {
  all = all && !running_here;
  std::list<Node> finished;
  {
    State& state = *state_;
    const base::LockGuard lock(state.mutex);
    if (all)
      state.stopped.wait(state.mutex, [&]() QUERN_NO_THREAD_SAFETY_ANALYSIS { return state.running == 0; });
    const auto take = [&](std::list<Node>& from) {
      for (auto node = from.begin(); node != from.end();) {
        const auto here = node++;
        if (!here->in_use) finished.splice(finished.end(), from, here);
      }
    };
    take(state.done);
    if (all) take(state.queued);
  }
}

std::size_t InFlight::count() const noexcept {
  const base::LockGuard lock(state_->mutex);
  return state_->queued.size() + state_->done.size();
}

}  // namespace quern::runtime
