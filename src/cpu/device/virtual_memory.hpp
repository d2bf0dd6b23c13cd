// SPDX-License-Identifier: Apache-2.0
// Virtual memory management: addresses and memory that programs put together themselves (cuMemAddressReserve,
// cuMemCreate, cuMemMap, cuMemSetAccess). See docs/decisions/0037-virtual-memory.md.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/thread_annotations.hpp"
#include "cpu/engine/backing.hpp"
#include "cpu/engine/memory.hpp"

namespace quern::cpu::device {

/// What sizes, addresses and offsets are multiples of.
inline constexpr std::uint64_t kVirtualGranularity = engine::kHugePageBytes;

/// Who may be granted access: a device by its ordinal, or the host.
inline constexpr int kHostLocation = -1;
using AccessTable = std::map<int, CUmemAccess_flags>;

/// All functions throw Failure. Addresses and sizes are checked by them, handles too. Thread-safe.
class VirtualMemory {
 public:
  using Handle = CUmemGenericAllocationHandle;

  explicit VirtualMemory(engine::Memory& memory) : memory_(&memory) {}

  CUdeviceptr reserve(std::uint64_t bytes, std::uint64_t alignment) QUERN_EXCLUDES(mutex_);
  void free(CUdeviceptr address, std::uint64_t bytes) QUERN_EXCLUDES(mutex_);
  /// Where an address is reserved, mapped or not.
  std::optional<engine::Range> reservation_of(CUdeviceptr address) QUERN_EXCLUDES(mutex_);

  Handle create(const CUmemAllocationProp& properties, std::shared_ptr<engine::Backing> backing)
      QUERN_EXCLUDES(mutex_);
  void release(Handle handle) QUERN_EXCLUDES(mutex_);
  /// The handle of what is mapped at that address, to be released once more.
  Handle retain(CUdeviceptr address) QUERN_EXCLUDES(mutex_);
  CUmemAllocationProp properties(Handle handle) QUERN_EXCLUDES(mutex_);
  std::shared_ptr<engine::Backing> backing(Handle handle) QUERN_EXCLUDES(mutex_);

  void map(CUdeviceptr address, std::uint64_t bytes, Handle handle) QUERN_EXCLUDES(mutex_);
  /// Takes out what is mapped there, perhaps nothing. Nothing may run that uses the memory.
  void unmap(CUdeviceptr address, std::uint64_t bytes) QUERN_EXCLUDES(mutex_);

  /// True if a running kernel or copy might lose access to the range by that.
  bool takes_access(CUdeviceptr address, std::uint64_t bytes, const AccessTable& changes)
      QUERN_EXCLUDES(mutex_);
  void set_access(CUdeviceptr address, std::uint64_t bytes, const AccessTable& changes)
      QUERN_EXCLUDES(mutex_);
  CUmemAccess_flags access(CUdeviceptr address, int location) QUERN_EXCLUDES(mutex_);

 private:
  struct Physical {
    std::shared_ptr<engine::Backing> backing;
    CUmemAllocationProp properties{};
    std::uint64_t references = 0;  ///< by cuMemCreate and the like, less cuMemRelease
    std::uint64_t mappings = 0;
  };
  /// One cuMemMap.
  struct Chunk {
    std::shared_ptr<engine::Allocation> allocation;
    Handle handle = 0;
    AccessTable access;
  };
  struct Space {
    std::shared_ptr<engine::Reservation> reservation;
    std::map<CUdeviceptr, Chunk> chunks;
    std::vector<std::weak_ptr<const void>> leaving;  ///< pages unmapped while a job still held them
  };
  using Chunks = std::vector<Chunk*>;

  /// Null: nothing is reserved there.
  Space* find_space(CUdeviceptr address) QUERN_REQUIRES(mutex_);
  Space& space_at(CUdeviceptr address) QUERN_REQUIRES(mutex_);
  /// The chunks in [address, address + bytes), perhaps none; throws Failure if that ends within one.
  Chunks chunks_within(Space& space, CUdeviceptr address, std::uint64_t bytes) QUERN_REQUIRES(mutex_);
  /// The chunks that lie in [address, address + bytes), which they must fill.
  Chunks chunks_in(CUdeviceptr address, std::uint64_t bytes) QUERN_REQUIRES(mutex_);
  Chunk& chunk_at(CUdeviceptr address) QUERN_REQUIRES(mutex_);
  /// Throws Failure unless the handle is referenced.
  Physical& known(Handle handle) QUERN_REQUIRES(mutex_);
  void drop_if_unused(Handle handle) QUERN_REQUIRES(mutex_);

  engine::Memory* const memory_;
  base::Mutex mutex_;
  std::map<CUdeviceptr, Space> spaces_ QUERN_GUARDED_BY(mutex_);  ///< by their first address
  std::map<Handle, Physical> physical_ QUERN_GUARDED_BY(mutex_);
  std::uint64_t next_ QUERN_GUARDED_BY(mutex_) = 1;
};

}  // namespace quern::cpu::device
