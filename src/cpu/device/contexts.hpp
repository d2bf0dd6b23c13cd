// SPDX-License-Identifier: Apache-2.0
// Contexts: the devices' primary ones and those that clients make.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/thread_annotations.hpp"
#include "cpu/device/handles.hpp"
#include "cpu/device/object_tables.hpp"
#include "cpu/device/objects.hpp"
#include "cpu/engine/memory.hpp"
#include "cpu/engine/scheduler.hpp"

namespace quern::cpu::device {

/// A current context is a thread's own; see context_stack(). Thread-safe.
class Contexts {
 public:
  /// What outlives all contexts.
  struct Services {
    engine::Scheduler* scheduler = nullptr;
    engine::Memory* memory = nullptr;
    ObjectTables* objects = nullptr;
  };
  Contexts(const Services& services, std::uint32_t device_count);

  /// `version`: the API version that cuCtxGetApiVersion tells.
  CUcontext make(std::uint32_t device, unsigned flags, unsigned version = kApiVersion) QUERN_EXCLUDES(mutex_);
  /// Throws Failure(CUDA_ERROR_INVALID_CONTEXT) unless it is the handle of a context that a client made.
  void destroy(CUcontext context) QUERN_EXCLUDES(mutex_);

  /// Counts a further use of a context; detach() destroys one that a client made after the last use, and
  /// releases a primary one. Throw Failure(CUDA_ERROR_INVALID_CONTEXT).
  void attach(CUcontext context) QUERN_EXCLUDES(mutex_);
  void detach(CUcontext context) QUERN_EXCLUDES(mutex_);

  CUcontext retain_primary(std::uint32_t device) QUERN_EXCLUDES(mutex_);
  void release_primary(std::uint32_t device) QUERN_EXCLUDES(mutex_);
  /// It is inactive until it is retained again; those who retained it before still release it.
  void reset_primary(std::uint32_t device) QUERN_EXCLUDES(mutex_);
  /// Its flags and whether it is active.
  std::pair<unsigned, bool> primary_state(std::uint32_t device) QUERN_EXCLUDES(mutex_);

  void set_primary_flags(std::uint32_t device, unsigned flags) QUERN_EXCLUDES(mutex_);

  /// The flags and the API version of a context. Throws Failure(CUDA_ERROR_INVALID_CONTEXT).
  struct Settings {
    unsigned flags = 0;
    unsigned version = 0;
  };
  Settings settings_of(CUcontext context) QUERN_EXCLUDES(mutex_);
  void set_flags(CUcontext context, unsigned flags) QUERN_EXCLUDES(mutex_);
  /// The state of a context, also of one that a fault ended. Throws Failure: no context's handle, or a
  /// destroyed one.
  std::shared_ptr<ContextState> state_of(CUcontext context) QUERN_EXCLUDES(mutex_);
  /// `context`, or for null this thread's current context. Throws Failure(CUDA_ERROR_INVALID_CONTEXT): there
  /// is none.
  static CUcontext or_current(CUcontext context);

  /// Throws Failure(CUDA_ERROR_INVALID_CONTEXT) unless it is a context's handle.
  std::uint32_t device_of(CUcontext context) QUERN_EXCLUDES(mutex_);
  /// The same for a context that may have been destroyed: it can be current, and calls that need it fail.
  std::uint32_t device_even_if_destroyed(CUcontext context) QUERN_EXCLUDES(mutex_);
  /// Throws Failure(CUDA_ERROR_INVALID_CONTEXT) unless it is the handle of a context, or was.
  void require_known(CUcontext context) QUERN_EXCLUDES(mutex_);
  /// The state of this thread's current context, also of one that a fault ended. Throws Failure: no current
  /// context, or a destroyed one.
  std::shared_ptr<ContextState> current_even_failed() QUERN_EXCLUDES(mutex_);
  /// The handle of the context with that state id; null if it no longer exists.
  CUcontext handle_of(std::uint64_t owner) QUERN_EXCLUDES(mutex_);
  /// Waits until nothing runs in that context.
  void synchronize(std::uint64_t owner) QUERN_EXCLUDES(mutex_);
  /// The same by its handle; throws as state_of().
  void synchronize_handle(CUcontext context) QUERN_EXCLUDES(mutex_);
  /// Returns the states of all contexts that exist.
  std::vector<std::shared_ptr<ContextState>> states() QUERN_EXCLUDES(mutex_);
  /// Waits until nothing runs in any context.
  void synchronize_all() QUERN_EXCLUDES(mutex_);

  /// Of contexts of 64-bit addresses, and of those of cuCtxCreate's first version.
  static constexpr unsigned kApiVersion = 3020;
  static constexpr unsigned kOldApiVersion = 3010;

 private:
  std::shared_ptr<Context> find(CUcontext handle) QUERN_REQUIRES(mutex_);
  std::shared_ptr<ContextState> make_state(std::uint32_t device) QUERN_REQUIRES(mutex_);
  /// Waits for running work, then releases everything that belongs to the state. Host memory of a context
  /// that a fault ended is kept if keep_host_memory() requested that.
  void tear_down(const std::shared_ptr<ContextState>& state) QUERN_EXCLUDES(mutex_);

  const Services services_;
  base::Mutex mutex_;
  std::uint64_t next_state_id_ QUERN_GUARDED_BY(mutex_) = 1;
  HandleTable<Context> contexts_ QUERN_GUARDED_BY(mutex_);
  std::map<CUcontext, std::uint32_t> destroyed_ QUERN_GUARDED_BY(mutex_);  ///< devices
  /// By device; the handle stays the same over resets.
  std::vector<CUcontext> primaries_ QUERN_GUARDED_BY(mutex_);
  /// Changes when a state ends: what threads remember of contexts is out of date.
  std::atomic<std::uint64_t> version_{1};
};

/// The contexts made current on this thread, the current one last. A null entry is "no context"
/// (cuCtxSetCurrent(nullptr)). Throws std::bad_alloc.
std::vector<CUcontext>& context_stack();

/// From now on the host memory of a context that a fault ended stays at its address until it is freed, also
/// when the context is reset or released: quern's arrays give out its address.
void keep_host_memory() noexcept;

}  // namespace quern::cpu::device
