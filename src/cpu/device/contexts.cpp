// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/contexts.hpp"

#include <atomic>

#include "base/thread_value.hpp"
#include "cpu/device/failure.hpp"
#include "cpu/device/graph/capture.hpp"
#include "cpu/engine/fault.hpp"

namespace quern::cpu::device {
namespace {

std::atomic<bool> host_memory_is_kept{false};

struct ThreadContexts {
  std::vector<CUcontext> stack;
  // The context that was asked for last: every launch asks for the current one.
  CUcontext known = nullptr;
  std::uint64_t version = 0;  ///< Contexts::version_ at that time
  std::weak_ptr<ContextState> state;
};

}  // namespace

void keep_host_memory() noexcept { host_memory_is_kept.store(true, std::memory_order_relaxed); }

std::vector<CUcontext>& context_stack() { return base::thread_value<ThreadContexts>().stack; }

Contexts::Contexts(const Services& services, std::uint32_t device_count) : services_(services) {
  const base::LockGuard lock(mutex_);
  for (std::uint32_t device = 0; device < device_count; ++device) {
    auto context = std::make_shared<Context>();
    context->device = device;
    context->primary = true;
    context->version = kApiVersion;
    primaries_.push_back(contexts_.insert(std::move(context)));
  }
}

std::shared_ptr<ContextState> Contexts::make_state(std::uint32_t device) {
  engine::install_fault_handlers();
  auto state = std::make_shared<ContextState>();
  state->id = next_state_id_++;
  state->device = device;
  state->domain = services_.scheduler->make_domain();
  return state;
}

std::shared_ptr<Context> Contexts::find(CUcontext handle) {
  std::shared_ptr<Context> context = contexts_.find(handle);
  require(context != nullptr, CUDA_ERROR_INVALID_CONTEXT);
  return context;
}

CUcontext Contexts::make(std::uint32_t device, unsigned flags, unsigned version) {
  auto context = std::make_shared<Context>();
  const base::LockGuard lock(mutex_);
  context->device = device;
  context->flags = flags;
  context->version = version;
  context->state = make_state(device);
  return contexts_.insert(std::move(context));
}

void Contexts::attach(CUcontext handle) {
  const base::LockGuard lock(mutex_);
  const std::shared_ptr<Context> context = find(handle);
  ++(context->primary ? context->retained : context->attached);
}

void Contexts::detach(CUcontext handle) {
  std::shared_ptr<Context> context;
  {
    const base::LockGuard lock(mutex_);
    context = find(handle);
    if (!context->primary && --context->attached > 0) return;
  }
  if (context->primary)
    release_primary(context->device);
  else
    destroy(handle);
}

CUcontext Contexts::retain_primary(std::uint32_t device) {
  const base::LockGuard lock(mutex_);
  const CUcontext handle = primaries_[device];
  const std::shared_ptr<Context> context = contexts_.find(handle);
  ++context->retained;
  if (context->state == nullptr) context->state = make_state(device);
  return handle;
}

void Contexts::release_primary(std::uint32_t device) {
  std::shared_ptr<ContextState> ended;
  {
    const base::LockGuard lock(mutex_);
    const std::shared_ptr<Context> context = contexts_.find(primaries_[device]);
    require(context->retained > 0, CUDA_ERROR_INVALID_CONTEXT);
    if (--context->retained == 0) ended = std::move(context->state);
    ++version_;
  }
  if (ended != nullptr) tear_down(ended);
}

void Contexts::reset_primary(std::uint32_t device) {
  std::shared_ptr<ContextState> ended;
  {
    const base::LockGuard lock(mutex_);
    const std::shared_ptr<Context> context = contexts_.find(primaries_[device]);
    ended = std::move(context->state);
    context->state = nullptr;
    ++version_;
  }
  if (ended != nullptr) tear_down(ended);
}

std::pair<unsigned, bool> Contexts::primary_state(std::uint32_t device) {
  const base::LockGuard lock(mutex_);
  const std::shared_ptr<Context> context = contexts_.find(primaries_[device]);
  return {context->flags, context->state != nullptr};
}

void Contexts::set_primary_flags(std::uint32_t device, unsigned flags) {
  const base::LockGuard lock(mutex_);
  find(primaries_[device])->flags = flags;
}

Contexts::Settings Contexts::settings_of(CUcontext handle) {
  const base::LockGuard lock(mutex_);
  const std::shared_ptr<Context> context = find(handle);
  return {context->flags, context->version};
}

void Contexts::set_flags(CUcontext handle, unsigned flags) {
  const base::LockGuard lock(mutex_);
  find(handle)->flags = flags;
}

std::shared_ptr<ContextState> Contexts::state_of(CUcontext handle) {
  const base::LockGuard lock(mutex_);
  std::shared_ptr<ContextState> state = find(handle)->state;
  require(state != nullptr, CUDA_ERROR_CONTEXT_IS_DESTROYED);
  return state;
}

CUcontext Contexts::or_current(CUcontext context) {
  if (context != nullptr) return context;
  const std::vector<CUcontext>& stack = context_stack();
  require(!stack.empty() && stack.back() != nullptr, CUDA_ERROR_INVALID_CONTEXT);
  return stack.back();
}

void Contexts::destroy(CUcontext handle) {
  std::shared_ptr<Context> context;
  {
    const base::LockGuard lock(mutex_);
    context = contexts_.find(handle);
    require(context != nullptr && !context->primary, CUDA_ERROR_INVALID_CONTEXT);
    destroyed_[handle] = context->device;
    contexts_.remove(handle);
    ++version_;
  }
  tear_down(context->state);
  std::vector<CUcontext>& stack = context_stack();
  if (!stack.empty() && stack.back() == handle) stack.pop_back();
}

void Contexts::tear_down(const std::shared_ptr<ContextState>& state) {
  services_.scheduler->synchronize(*state->domain);
  // A call on another thread may have found the state before it ended: from here on nothing that it submits
  // runs, and nothing that it makes stays.
  services_.scheduler->close(*state->domain);
  services_.scheduler->synchronize(*state->domain);
  services_.objects->end(*state);  // destroyed after the lock of the tables
  forget_context(*state);
  services_.scheduler->wait_for_disposal();
  const bool faulted = state->domain->fault() != engine::FaultKind::none;
  services_.memory->remove_all(state->id, !faulted ? engine::Remains::nothing
                                          : host_memory_is_kept.load(std::memory_order_relaxed)
                                              ? engine::Remains::host_memory
                                              : engine::Remains::addresses);
}

std::uint32_t Contexts::device_of(CUcontext handle) {
  const base::LockGuard lock(mutex_);
  const std::shared_ptr<Context> context = contexts_.find(handle);
  require(context != nullptr, CUDA_ERROR_INVALID_CONTEXT);
  return context->device;
}

std::uint32_t Contexts::device_even_if_destroyed(CUcontext handle) {
  const base::LockGuard lock(mutex_);
  if (const auto gone = destroyed_.find(handle); gone != destroyed_.end()) return gone->second;
  return find(handle)->device;
}

void Contexts::require_known(CUcontext handle) {
  const ThreadContexts& mine = base::thread_value<ThreadContexts>();
  const bool known = mine.known == handle && mine.version == version_.load(std::memory_order_acquire);
  if (!known) device_even_if_destroyed(handle);
}

std::shared_ptr<ContextState> Contexts::current_even_failed() {
  ThreadContexts& mine = base::thread_value<ThreadContexts>();
  require(!mine.stack.empty() && mine.stack.back() != nullptr, CUDA_ERROR_INVALID_CONTEXT);
  const CUcontext handle = mine.stack.back();
  if (mine.known == handle && mine.version == version_.load(std::memory_order_acquire))
    if (std::shared_ptr<ContextState> state = mine.state.lock()) return state;
  const base::LockGuard lock(mutex_);
  const std::shared_ptr<Context> context = contexts_.find(handle);
  require(context != nullptr && context->state != nullptr, CUDA_ERROR_CONTEXT_IS_DESTROYED);
  mine.known = handle;
  mine.version = version_.load(std::memory_order_relaxed);
  mine.state = context->state;
  return context->state;
}

CUcontext Contexts::handle_of(std::uint64_t owner) {
  CUcontext found = nullptr;
  const base::LockGuard lock(mutex_);
  contexts_.for_each([&](CUcontext handle, const std::shared_ptr<Context>& context) {
    if (context->state != nullptr && context->state->id == owner) found = handle;
  });
  return found;
}

void Contexts::synchronize(std::uint64_t owner) {
  std::shared_ptr<ContextState> state;
  {
    const CUcontext handle = handle_of(owner);
    const base::LockGuard lock(mutex_);
    if (const std::shared_ptr<Context> context = contexts_.find(handle)) state = context->state;
  }
  if (state != nullptr) services_.scheduler->synchronize(*state->domain);
}

void Contexts::synchronize_handle(CUcontext handle) {
  services_.scheduler->synchronize(*state_of(handle)->domain);
}

std::vector<std::shared_ptr<ContextState>> Contexts::states() {
  std::vector<std::shared_ptr<ContextState>> states;
  const base::LockGuard lock(mutex_);
  contexts_.for_each([&](CUcontext, const std::shared_ptr<Context>& context) {
    if (context->state != nullptr) states.push_back(context->state);
  });
  return states;
}

void Contexts::synchronize_all() {
  for (const auto& state : states()) services_.scheduler->synchronize(*state->domain);
}

}  // namespace quern::cpu::device
