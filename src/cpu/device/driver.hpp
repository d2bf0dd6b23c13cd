// SPDX-License-Identifier: Apache-2.0
// The state behind the cu* functions of one process. The Driver API is a C interface without a "this": one
// Driver, made by cuInit and never destroyed (its threads run until the process ends), is what stands for it.
//
// Lock order (an outer lock is taken first; no other two are ever held together):
//   1. Driver::mutex_            handle tables, contexts
//   2. FunctionObject::mutex_, ModuleObject::mutex, EventObject::mutex, LinkObject::mutex
//   3. Scheduler::mutex_         streams and threads
//   4. Memory::mutex_, then Arena::mutex_
//   5. Output::mutex_
//   6. Explainer::mutex_, then that of the kernels explained last
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/thread_annotations.hpp"
#include "cpu/device/failure.hpp"
#include "cpu/device/handles.hpp"
#include "cpu/device/objects.hpp"
#include "cpu/engine/memory.hpp"
#include "cpu/engine/output.hpp"
#include "cpu/engine/scheduler.hpp"
#include "cpu/engine/window.hpp"

namespace quern::cpu::device {

/// Receives the text of device printf; exists before cuInit.
engine::Output& output();
/// QUERN_CPU_WORKERS, or one a processor that the process may use.
std::uint32_t configured_worker_count();
/// True if kernels are compiled for a compact window: that of the device, or before cuInit the requested one.
bool compiles_compact();

/// Thread-safe.
class Driver {
 public:
  /// cuInit. Repeated calls do nothing.
  static CUresult initialise(unsigned flags) noexcept;
  /// Throws Failure(CUDA_ERROR_NOT_INITIALIZED) before cuInit.
  static Driver& get();
  /// Null before cuInit.
  static const Driver* started() noexcept;
  /// The reason why the last cuInit returned CUDA_ERROR_OUT_OF_MEMORY; empty if it did not.
  static Diagnostics start_errors();
  /// The caller will read start_errors(): they need not be printed to stderr.
  static void expect_reader();

  const engine::Window& window() const noexcept { return *window_; }
  engine::Memory& memory() noexcept { return *memory_; }
  engine::Scheduler& scheduler() noexcept { return *scheduler_; }
  std::uint32_t device_count() const noexcept { return device_count_; }
  /// Throws Failure(CUDA_ERROR_INVALID_DEVICE) unless it is one of ours.
  std::uint32_t device(CUdevice device) const;

  // Contexts. A current context is this thread's; see context_stack.
  CUcontext make_context(std::uint32_t device, unsigned flags) QUERN_EXCLUDES(mutex_);
  CUcontext retain_primary(std::uint32_t device) QUERN_EXCLUDES(mutex_);
  void release_primary(std::uint32_t device) QUERN_EXCLUDES(mutex_);
  void reset_primary(std::uint32_t device) QUERN_EXCLUDES(mutex_);
  /// Its flags and whether it is active.
  std::pair<unsigned, bool> primary_state(std::uint32_t device) QUERN_EXCLUDES(mutex_);
  void destroy_context(CUcontext context) QUERN_EXCLUDES(mutex_);
  /// Throws Failure(CUDA_ERROR_INVALID_CONTEXT) unless it is a context's handle.
  std::uint32_t context_device(CUcontext context) QUERN_EXCLUDES(mutex_);
  /// The state of this thread's current context. Throws Failure: no current context, a destroyed one, or the
  /// fault that ended it.
  std::shared_ptr<ContextState> current();
  /// The same without the check for a fault: for functions that work in a failed context too.
  std::shared_ptr<ContextState> current_even_failed() QUERN_EXCLUDES(mutex_);

  /// Memory that belongs to the context. Null: out of memory. Throws Failure if the context has ended
  /// meanwhile.
  std::shared_ptr<engine::Allocation> allocate(const ContextState& context, engine::AllocationKind kind,
                                               std::uint64_t bytes, unsigned flags = 0);
  /// Frees host memory of a context that a fault ended, whether or not the context is still there.
  void release_kept(const void* base);
  /// Throws Failure if the context has ended: its fault, otherwise CUDA_ERROR_CONTEXT_IS_DESTROYED.
  static void require_not_ended(const ContextState& context);

  /// The handle of the context with that state id; null if it no longer exists.
  CUcontext context_of(std::uint64_t owner) QUERN_EXCLUDES(mutex_);
  /// Waits until nothing runs in that context.
  void synchronize_owner(std::uint64_t owner) QUERN_EXCLUDES(mutex_);

  // Handles. find_* throw Failure(CUDA_ERROR_INVALID_HANDLE) for unknown ones.
  CUmodule add(std::shared_ptr<ModuleObject> module) QUERN_EXCLUDES(mutex_);
  CUfunction add(std::shared_ptr<FunctionObject> function) QUERN_EXCLUDES(mutex_);
  CUstream add(std::shared_ptr<StreamObject> stream) QUERN_EXCLUDES(mutex_);
  CUevent add(std::shared_ptr<EventObject> event) QUERN_EXCLUDES(mutex_);
  CUlinkState add(std::shared_ptr<LinkObject> link) QUERN_EXCLUDES(mutex_);
  std::shared_ptr<ModuleObject> find(CUmodule module) QUERN_EXCLUDES(mutex_);
  std::shared_ptr<FunctionObject> find(CUfunction function) QUERN_EXCLUDES(mutex_);
  std::shared_ptr<EventObject> find(CUevent event) QUERN_EXCLUDES(mutex_);
  std::shared_ptr<LinkObject> find(CUlinkState link) QUERN_EXCLUDES(mutex_);
  /// Accepts the special handles too (null, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD), as streams of `context`;
  /// rejects a stream of another context.
  std::shared_ptr<engine::Stream> find_stream(CUstream stream, const std::shared_ptr<ContextState>& context)
      QUERN_EXCLUDES(mutex_);
  std::shared_ptr<ModuleObject> remove(CUmodule module) QUERN_EXCLUDES(mutex_);
  std::shared_ptr<StreamObject> remove(CUstream stream) QUERN_EXCLUDES(mutex_);
  std::shared_ptr<EventObject> remove(CUevent event) QUERN_EXCLUDES(mutex_);
  std::shared_ptr<LinkObject> remove(CUlinkState link) QUERN_EXCLUDES(mutex_);

 private:
  Driver(std::uint32_t device_count, std::unique_ptr<engine::Window> window,
         std::unique_ptr<engine::Memory> memory);
  static std::unique_ptr<Driver> make();

  std::shared_ptr<ContextState> make_state(std::uint32_t device) QUERN_REQUIRES(mutex_);
  std::shared_ptr<engine::Stream> thread_stream(const std::shared_ptr<ContextState>& context);
  /// Waits for running work, then releases everything that belongs to the state. Host memory of a context
  /// that a fault ended is kept if keep_host_memory() requested that.
  void tear_down(const std::shared_ptr<ContextState>& state) QUERN_EXCLUDES(mutex_);

  const std::uint32_t device_count_;
  const std::unique_ptr<engine::Window> window_;
  const std::unique_ptr<engine::Memory> memory_;
  std::unique_ptr<engine::Scheduler> scheduler_;  ///< set once, in make()

  base::Mutex mutex_;
  std::uint64_t next_state_id_ QUERN_GUARDED_BY(mutex_) = 1;
  HandleTable<CUcontext, Context, HandleKind::context> contexts_ QUERN_GUARDED_BY(mutex_);
  HandleTable<CUmodule, ModuleObject, HandleKind::module> modules_ QUERN_GUARDED_BY(mutex_);
  HandleTable<CUfunction, FunctionObject, HandleKind::function> functions_ QUERN_GUARDED_BY(mutex_);
  HandleTable<CUstream, StreamObject, HandleKind::stream> streams_ QUERN_GUARDED_BY(mutex_);
  HandleTable<CUevent, EventObject, HandleKind::event> events_ QUERN_GUARDED_BY(mutex_);
  HandleTable<CUlinkState, LinkObject, HandleKind::link> links_ QUERN_GUARDED_BY(mutex_);
  std::vector<CUcontext> primaries_
      QUERN_GUARDED_BY(mutex_);  ///< by device; the handle stays the same over resets
};

/// The contexts made current on this thread, the current one last. A null entry is "no context"
/// (cuCtxSetCurrent(nullptr)).
std::vector<CUcontext>& context_stack() noexcept;

/// From now on the host memory of a context that a fault ended stays at its address until it is freed, also
/// when the context is reset or released: quern's arrays give out its address.
void keep_host_memory() noexcept;
bool keeps_host_memory() noexcept;

/// Is told when machine code of a kernel is generated in a context, and when that is done: a
/// QuernCpuGenerateSink. Null: nobody.
using GenerateSink = void (*)(void* context, const char* kernel, std::int32_t finished);
void set_generate_sink(GenerateSink sink) noexcept;

/// The CUresult of a fault.
CUresult result_of(engine::FaultKind fault) noexcept;
/// Throws Failure with the fault that has ended the context, if one has.
void check_fault(const ContextState& context);

}  // namespace quern::cpu::device
