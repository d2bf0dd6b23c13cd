// SPDX-License-Identifier: Apache-2.0
// The state behind the cu* functions of one process. The Driver API is a C interface without a "this": one
// Driver, made by cuInit and never destroyed (its threads run until the process ends), is what stands for it.
//
// Lock order (an outer lock is taken first; no other two are ever held together):
//   0. LibraryObject::mutex_
//   1. Contexts::mutex_
//   2. graph_mutex(): graphs, executable graphs, captures
//   3. ObjectTables::mutex_
//   4. FunctionObject::mutex_, ModuleObject::mutex, EventObject::mutex, LinkObject::mutex,
//      ContextState::peers_mutex
//   5. Scheduler::mutex_         streams and threads
//   6. VirtualMemory::mutex_ or OpenedMemory::mutex_, then Memory::mutex_, then Arena::mutex_ or
//   MemPoolObject::mutex_
//   7. Output::mutex_, ManagedRanges::mutex_
//   8. Explainer::mutex_, then that of the kernels explained last
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "cpu/device/contexts.hpp"
#include "cpu/device/exit.hpp"
#include "cpu/device/failure.hpp"
#include "cpu/device/ipc.hpp"
#include "cpu/device/managed_ranges.hpp"
#include "cpu/device/mem_pools.hpp"
#include "cpu/device/object_tables.hpp"
#include "cpu/device/objects.hpp"
#include "cpu/device/virtual_memory.hpp"
#include "cpu/engine/memory.hpp"
#include "cpu/engine/output.hpp"
#include "cpu/engine/scheduler.hpp"
#include "cpu/engine/window.hpp"

struct QuernCpuGeneration;

namespace quern::cpu::device {

/// Receives the text of device printf; exists before cuInit.
engine::Output& output();
/// QUERN_CPU_WORKERS, or one a processor that the process may use.
std::uint32_t configured_worker_count();
/// The compute capability, 89 for 8.9, that QUERN_CPU_COMPUTE_CAPABILITY gives the device; before cuInit the
/// requested one. It says which targets a module may have; instructions that the device lacks are refused one
/// by one.
std::uint32_t compute_capability();
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
  std::uint32_t compute_capability() const noexcept { return compute_capability_; }
  /// CUDA_MODULE_LOADING=EAGER: libraries are loaded into all contexts, before they need them.
  bool loads_eagerly() const noexcept { return loads_eagerly_; }
  /// Throws Failure(CUDA_ERROR_INVALID_DEVICE) unless it is one of ours.
  std::uint32_t device(CUdevice device) const;

  MemPools& mem_pools() noexcept { return *mem_pools_; }
  VirtualMemory& virtual_memory() noexcept { return virtual_memory_; }
  OpenedMemory& opened_memory() noexcept { return opened_memory_; }
  ManagedRanges& managed_ranges() noexcept { return managed_ranges_; }
  Contexts& contexts() noexcept { return *contexts_; }
  /// The state of this thread's current context. Throws Failure: no current context, a destroyed one, or the
  /// fault that ended it.
  std::shared_ptr<ContextState> current();
  /// The same without the check for a fault: for functions that work in a failed context too.
  std::shared_ptr<ContextState> current_even_failed() { return contexts_->current_even_failed(); }

  /// Memory that belongs to the context. Null: out of memory. Throws Failure if the context has ended
  /// meanwhile.
  std::shared_ptr<engine::Allocation> allocate(const ContextState& context, engine::AllocationKind kind,
                                               std::uint64_t bytes, unsigned flags = 0);
  /// Frees host memory of a context that a fault ended, whether or not the context is still there.
  void release_kept(const void* base);

  /// As ObjectTables' functions of these names; add() also says that the host holds an object.
  template <class Object>
  typename HandleTraits<Object>::Handle add(std::shared_ptr<Object> object) {
    const auto handle = objects_.add(std::move(object));
    note_object();
    return handle;
  }
  template <class Handle>
  auto find(Handle handle) {
    return objects_.find(handle);
  }
  template <class Handle>
  auto remove(Handle handle) {
    return objects_.remove(handle);
  }
  ObjectTables& objects() noexcept { return objects_; }
  /// The stream that a call names, with its context: that of a stream that the client made, whatever is
  /// current on the thread. Null, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD are streams of the current
  /// context (cuda.h, cuLaunchKernel and cuMemFreeAsync). Throws Failure: no such stream, no current context
  /// where one is needed, or the fault that ended the stream's context.
  StreamObject stream_of(CUstream stream);
  /// The same without the check for a fault.
  StreamObject stream_of_even_failed(CUstream stream);

 private:
  Driver(std::uint32_t device_count, std::uint32_t compute_capability, std::unique_ptr<engine::Window> window,
         std::unique_ptr<engine::Memory> memory);
  static std::unique_ptr<Driver> make();

  const std::uint32_t device_count_;
  const std::uint32_t compute_capability_;
  const bool loads_eagerly_;
  const std::unique_ptr<engine::Window> window_;
  const std::unique_ptr<engine::Memory> memory_;
  VirtualMemory virtual_memory_;
  OpenedMemory opened_memory_;
  ManagedRanges managed_ranges_;
  std::unique_ptr<engine::Scheduler> scheduler_;  ///< set once, in make()
  ObjectTables objects_;
  std::unique_ptr<Contexts> contexts_;   ///< set once, in make()
  std::unique_ptr<MemPools> mem_pools_;  ///< set once, in make()
};

/// Is told when machine code of a kernel is generated in a context, and when that is done: a
/// QuernCpuGenerateSink. Null: nobody.
using GenerateSink = void (*)(const QuernCpuGeneration* generation);
void set_generate_sink(GenerateSink sink) noexcept;

}  // namespace quern::cpu::device
