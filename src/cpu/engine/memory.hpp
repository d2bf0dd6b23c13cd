// SPDX-License-Identifier: Apache-2.0
// All allocations of the device, with their owners.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/thread_annotations.hpp"
#include "cpu/engine/arena.hpp"
#include "cpu/engine/backing.hpp"
#include "cpu/engine/bias.hpp"
#include "cpu/engine/window.hpp"

namespace quern::cpu::engine {

enum class AllocationKind : std::uint8_t {
  device,      ///< cuMemAlloc
  host,        ///< cuMemHostAlloc
  managed,     ///< cuMemAllocManaged: accessed like `host`, freed like `device`
  pooled,      ///< cuMemAllocAsync
  registered,  ///< memory of the host, cuMemHostRegister
  shadow,      ///< the copy of mapped registered memory that kernels access
  module,      ///< a module's variables
  heap,        ///< malloc() in a kernel
  mapped,      ///< cuMemMap
  imported,    ///< memory of another process, cuIpcOpenMemHandle or cuMemPoolImportPointer
};

/// True for memory that belongs to a device, false for memory that the host accesses too.
constexpr bool is_device_memory(AllocationKind kind) noexcept {
  switch (kind) {
    case AllocationKind::device:
    case AllocationKind::pooled:
    case AllocationKind::module:
    case AllocationKind::heap:
    case AllocationKind::mapped:
    case AllocationKind::imported:
      return true;
    case AllocationKind::host:
    case AllocationKind::managed:
    case AllocationKind::registered:
    case AllocationKind::shadow:
      return false;
  }
  return false;
}

/// A flag of pooled memory: it is pinned host memory.
inline constexpr unsigned kPooledOnHost = 1;

class Mapping;

/// An allocation. Its memory lives as long as the last shared_ptr: a queued copy keeps the memory that it
/// accesses alive. Immutable except for `charge`, `access`, `synchronous` and `reuse`.
struct Allocation {
  Allocation(Arena& from, std::byte* start) : base(start), arena(&from) {}
  /// For memory that belongs to the host.
  explicit Allocation(std::byte* start) : base(start), arena(nullptr) {}
  ~Allocation() {
    if (arena != nullptr) arena->release(base, reuse);
  }
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  std::byte* base;
  std::uint64_t bytes = 0;
  AllocationKind kind = AllocationKind::device;
  std::uint32_t device = 0;
  std::uint64_t owner = 0;  ///< id of the context
  std::uint64_t id = 0;     ///< never reused in a process
  unsigned flags = 0;
  std::shared_ptr<Mapping> mapping;    ///< for mapped registered memory; guarded by the mutex of Memory
  std::weak_ptr<Mapping> shadow_of;    ///< for a shadow: the mapping that it belongs to
  std::shared_ptr<const void> charge;  ///< of a pool; set before the address is returned
  /// advice on managed memory, guarded by its keeper (device/managed_ranges.hpp)
  std::shared_ptr<void> advice;
  std::shared_ptr<const void> pages;  ///< for mapped and imported memory: owns the memory
  std::atomic<Access> access{Access::read_write};
  std::atomic<bool> synchronous{false};  ///< CU_POINTER_ATTRIBUTE_SYNC_MEMOPS
  Reuse reuse = Reuse::soon;             ///< for its addresses; set before the last reference is released

 private:
  Arena* arena;
};

/// True for memory of a stream-ordered pool of host memory.
inline bool is_pooled_on_host(const Allocation& allocation) noexcept {
  return allocation.kind == AllocationKind::pooled && allocation.flags == kPooledOnHost;
}

/// The parts of a context's memory that outlive the context.
enum class Remains : std::uint8_t {
  nothing,
  addresses,    ///< the addresses of its device memory are reused as late as possible
  host_memory,  ///< host and managed memory, too, stays allocated until each allocation is removed
};

struct MemoryRequest {
  std::uint64_t bytes = 0;
  AllocationKind kind = AllocationKind::device;
  std::uint32_t device = 0;
  std::uint64_t owner = 0;
  unsigned flags = 0;
};

/// The allocations of all devices. Thread-safe.
class Memory {
 public:
  /// `total_bytes` of memory on each of `device_count` devices, and `host_bytes` of pinned memory.
  Memory(Window& window, std::uint32_t device_count, std::uint64_t total_bytes, std::uint64_t host_bytes);

  /// Null if there is not enough memory.
  std::shared_ptr<Allocation> allocate(const MemoryRequest& request) QUERN_EXCLUDES(mutex_);
  /// Registers memory of the host; null if some of it is registered already.
  std::shared_ptr<Allocation> adopt(std::byte* base, const MemoryRequest& request,
                                    std::shared_ptr<Mapping> mapping) QUERN_EXCLUDES(mutex_);
  /// The mapping of registered memory; null if it has none.
  std::shared_ptr<Mapping> mapping_of(const Allocation& allocation) QUERN_EXCLUDES(mutex_);
  /// Gives registered memory the mapping, if it has none. Returns the one that it has; null if it is not
  /// registered any more.
  std::shared_ptr<Mapping> map_registered(const Allocation& allocation, std::shared_ptr<Mapping> mapping)
      QUERN_EXCLUDES(mutex_);
  /// Reserves addresses for mappings, at a multiple of `alignment`; null if there are none.
  std::shared_ptr<Reservation> reserve(std::uint32_t device, std::uint64_t bytes, std::uint64_t alignment);
  /// Creates memory without an address; null if there is not enough. `on_host`: it counts as pinned host
  /// memory.
  std::shared_ptr<Backing> make_backing(std::uint32_t device, bool on_host, std::uint64_t bytes);
  /// Adds the allocation for `pages`, which start at `base`.
  std::shared_ptr<Allocation> enter(std::byte* base, const MemoryRequest& request,
                                    std::shared_ptr<const void> pages, Access access) QUERN_EXCLUDES(mutex_);
  /// Calls Arena::share() for an allocation in a device's arena.
  Arena::FilePlace share(const Allocation& allocation);

  /// The mappings that kernels of `owner` can access.
  std::vector<std::shared_ptr<Mapping>> mappings(std::uint64_t owner) QUERN_EXCLUDES(mutex_);
  /// The allocation that contains `address`, or null.
  std::shared_ptr<Allocation> find(const void* address) QUERN_EXCLUDES(mutex_);
  /// The allocation that contains all of [address, address + bytes), or null.
  std::shared_ptr<Allocation> find_range(const void* address, std::uint64_t bytes) QUERN_EXCLUDES(mutex_);
  /// The allocations that contain all of [address, address + bytes) without a gap: one, or several adjacent
  /// mapped ones. Empty if there are none, or one of them does not permit the access.
  std::vector<std::shared_ptr<Allocation>> find_all(const void* address, std::uint64_t bytes, Access needed)
      QUERN_EXCLUDES(mutex_);
  /// Removes the allocation of that kind that starts at `base`; null if there is none.
  std::shared_ptr<Allocation> remove(const void* base, AllocationKind kind) QUERN_EXCLUDES(mutex_);
  /// The same for memory that malloc() returned to a kernel of `owner`; null also for memory of a kernel of
  /// another context.
  std::shared_ptr<Allocation> remove_from_heap(const void* base, std::uint64_t owner) QUERN_EXCLUDES(mutex_);
  /// Adds a removed allocation again, at its address. Returns false if the address is in use.
  bool restore(const std::shared_ptr<Allocation>& allocation) QUERN_EXCLUDES(mutex_);
  /// Removes exactly that allocation. Returns false if it was removed already.
  bool remove(const Allocation& allocation) QUERN_EXCLUDES(mutex_);
  /// Removes all allocations of `owner`, except those that `remains` names.
  std::vector<std::shared_ptr<Allocation>> remove_all(std::uint64_t owner, Remains remains = Remains::nothing)
      QUERN_EXCLUDES(mutex_);
  /// The bytes that kernels of `owner` have allocated by malloc().
  std::uint64_t heap_used_bytes(std::uint64_t owner) QUERN_EXCLUDES(mutex_);

  /// The arena for the local memory of the workers in a compact window; null if each worker has separate
  /// addresses.
  Arena* locals() noexcept { return locals_.get(); }

  /// The regions of the memory that only one worker updates.
  Bias& bias() noexcept { return bias_; }

  std::uint64_t total_bytes(std::uint32_t device) const noexcept { return arenas_[device]->total_bytes(); }
  std::uint64_t free_bytes(std::uint32_t device) { return arenas_[device]->free_bytes(); }

 private:
  using Table = std::map<const std::byte*, std::shared_ptr<Allocation>>;
  std::shared_ptr<Allocation> take_out(Table::iterator entry) QUERN_REQUIRES(mutex_);
  std::shared_ptr<Allocation> find_locked(const void* address) QUERN_REQUIRES(mutex_);

  std::vector<std::unique_ptr<Arena>> arenas_;  ///< by device; the last one is pinned host memory
  std::unique_ptr<Arena> locals_;
  Bias bias_;
  base::Mutex mutex_;
  Table allocations_ QUERN_GUARDED_BY(mutex_);
  std::map<std::uint64_t, std::uint64_t> heap_used_bytes_ QUERN_GUARDED_BY(mutex_);  ///< by owner
  std::uint64_t next_id_ QUERN_GUARDED_BY(mutex_) = 1;
  std::atomic<std::uint32_t> mapping_count_ = 0;  ///< lets launches skip the lock if there are none
};

}  // namespace quern::cpu::engine
