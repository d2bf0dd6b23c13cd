// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/virtual_memory.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "cpu/device/failure.hpp"

namespace quern::cpu::device {
namespace {

/// Handles are never used again, and are distinguished from other values by their last bits.
constexpr std::uint64_t kHandleTag = 0x3f;
constexpr unsigned kHandleTagBits = 6;

engine::Access access_of(CUmemAccess_flags flags) {
  switch (flags) {
    case CU_MEM_ACCESS_FLAGS_PROT_NONE:
      return engine::Access::none;
    case CU_MEM_ACCESS_FLAGS_PROT_READ:
      return engine::Access::read;
    case CU_MEM_ACCESS_FLAGS_PROT_READWRITE:
      return engine::Access::read_write;
    default:
      fail(CUDA_ERROR_INVALID_VALUE);
  }
}

/// Pages have one protection for the process: that of the location that may do most.
engine::Access widest(const AccessTable& table) {
  engine::Access most = engine::Access::none;
  for (const auto& [location, flags] : table) most = std::max(most, access_of(flags));
  return most;
}

AccessTable changed(AccessTable table, const AccessTable& changes) {
  for (const auto& [location, flags] : changes) table[location] = flags;
  return table;
}

CUdeviceptr address_of(const engine::Allocation& allocation) {
  return reinterpret_cast<CUdeviceptr>(allocation.base);
}

bool is_aligned(std::uint64_t value) { return value % kVirtualGranularity == 0; }

}  // namespace

CUdeviceptr VirtualMemory::reserve(std::uint64_t bytes, std::uint64_t alignment) {
  Space space;
  space.reservation = memory_->reserve(0, bytes, std::max(alignment, kVirtualGranularity));
  require(space.reservation != nullptr, CUDA_ERROR_OUT_OF_MEMORY);
  const auto address = reinterpret_cast<CUdeviceptr>(space.reservation->base());
  const base::LockGuard lock(mutex_);
  spaces_.emplace(address, std::move(space));
  return address;
}

void VirtualMemory::free(CUdeviceptr address, std::uint64_t bytes) {
  const base::LockGuard lock(mutex_);
  const auto found = spaces_.find(address);
  require(found != spaces_.end() && found->second.reservation->bytes() == bytes &&
          found->second.chunks.empty());
  spaces_.erase(found);
}

std::optional<engine::Range> VirtualMemory::reservation_of(CUdeviceptr address) {
  const base::LockGuard lock(mutex_);
  const auto after = spaces_.upper_bound(address);
  if (after == spaces_.begin()) return std::nullopt;
  const engine::Reservation& reservation = *std::prev(after)->second.reservation;
  const engine::Range range{reservation.base(), reservation.bytes()};
  if (!range.contains(reinterpret_cast<const void*>(address))) return std::nullopt;
  return range;
}

VirtualMemory::Space* VirtualMemory::find_space(CUdeviceptr address) {
  const auto after = spaces_.upper_bound(address);
  if (after == spaces_.begin()) return nullptr;
  const auto found = std::prev(after);
  return address - found->first < found->second.reservation->bytes() ? &found->second : nullptr;
}

VirtualMemory::Space& VirtualMemory::space_at(CUdeviceptr address) {
  Space* const found = find_space(address);
  require(found != nullptr);
  return *found;
}

VirtualMemory::Handle VirtualMemory::create(const CUmemAllocationProp& properties,
                                            std::shared_ptr<engine::Backing> backing) {
  const base::LockGuard lock(mutex_);
  const Handle handle = (next_++ << kHandleTagBits) | kHandleTag;
  physical_.emplace(handle, Physical{std::move(backing), properties, 1, 0});
  return handle;
}

VirtualMemory::Physical& VirtualMemory::known(Handle handle) {
  const auto found = physical_.find(handle);
  require(found != physical_.end() && found->second.references > 0);
  return found->second;
}

void VirtualMemory::drop_if_unused(Handle handle) {
  const auto found = physical_.find(handle);
  if (found->second.references == 0 && found->second.mappings == 0) physical_.erase(found);
}

void VirtualMemory::release(Handle handle) {
  const base::LockGuard lock(mutex_);
  --known(handle).references;
  drop_if_unused(handle);
}

VirtualMemory::Chunk& VirtualMemory::chunk_at(CUdeviceptr address) {
  Space& space = space_at(address);
  const auto after = space.chunks.upper_bound(address);
  require(after != space.chunks.begin());
  Chunk& chunk = std::prev(after)->second;
  require(address - address_of(*chunk.allocation) < chunk.allocation->bytes);
  return chunk;
}

VirtualMemory::Handle VirtualMemory::retain(CUdeviceptr address) {
  const base::LockGuard lock(mutex_);
  const Handle handle = chunk_at(address).handle;
  ++physical_.at(handle).references;
  return handle;
}

CUmemAllocationProp VirtualMemory::properties(Handle handle) {
  const base::LockGuard lock(mutex_);
  return known(handle).properties;
}

std::shared_ptr<engine::Backing> VirtualMemory::backing(Handle handle) {
  const base::LockGuard lock(mutex_);
  return known(handle).backing;
}

void VirtualMemory::map(CUdeviceptr address, std::uint64_t bytes, Handle handle) {
  const base::LockGuard lock(mutex_);
  Physical& physical = known(handle);
  require(bytes > 0);
  require(bytes == physical.backing->bytes(), CUDA_ERROR_NOT_SUPPORTED);  // as a whole, or not at all
  Space* const found = find_space(address);
  require(is_aligned(address) && found != nullptr);
  Space& space = *found;
  const std::uint64_t at = address - reinterpret_cast<CUdeviceptr>(space.reservation->base());
  require(bytes <= space.reservation->bytes() - at);
  const auto after = space.chunks.lower_bound(address);
  require(after == space.chunks.end() || after->first - address >= bytes);
  if (after != space.chunks.begin()) {
    const engine::Allocation& before = *std::prev(after)->second.allocation;
    require(address - address_of(before) >= before.bytes);
  }
  std::erase_if(space.leaving, [](const auto& pages) { return pages.expired(); });
  if (!space.leaving.empty())
    fail(CUDA_ERROR_INVALID_VALUE, "work that was queued since still uses pages that were unmapped");
  auto pages =
      engine::MappedPages::make(space.reservation, at, bytes, physical.backing, 0, engine::Access::none);
  require(pages != nullptr, CUDA_ERROR_OUT_OF_MEMORY);
  const CUmemAllocationProp& properties = physical.properties;
  engine::MemoryRequest request;
  request.bytes = bytes;
  request.kind = engine::AllocationKind::mapped;
  request.device = properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE
                       ? static_cast<std::uint32_t>(properties.location.id)
                       : 0;
  request.flags = static_cast<unsigned>(properties.requestedHandleTypes);
  Chunk chunk{
      memory_->enter(reinterpret_cast<std::byte*>(address), request, std::move(pages), engine::Access::none),
      handle,
      {}};
  space.chunks.emplace(address, std::move(chunk));
  ++physical.mappings;
}

VirtualMemory::Chunks VirtualMemory::chunks_in(CUdeviceptr address, std::uint64_t bytes) {
  Space& space = space_at(address);
  Chunks found;
  std::uint64_t covered = 0;
  for (auto at = space.chunks.find(address); covered < bytes; ++at) {
    require(at != space.chunks.end() && at->first == address + covered);
    covered += at->second.allocation->bytes;
    found.push_back(&at->second);
  }
  require(!found.empty() && covered == bytes);
  return found;
}

VirtualMemory::Chunks VirtualMemory::chunks_within(Space& space, CUdeviceptr address, std::uint64_t bytes) {
  Chunks found;
  for (auto& [start, chunk] : space.chunks) {
    const std::uint64_t length = chunk.allocation->bytes;
    const bool meets = start < address ? address - start < length : start - address < bytes;
    if (!meets) continue;
    require(start >= address && length <= bytes - (start - address));
    found.push_back(&chunk);
  }
  return found;
}

void VirtualMemory::unmap(CUdeviceptr address, std::uint64_t bytes) {
  const base::LockGuard lock(mutex_);
  Space& space = space_at(address);
  for (Chunk* const chunk : chunks_within(space, address, bytes)) {
    const Handle handle = chunk->handle;
    const CUdeviceptr start = address_of(*chunk->allocation);
    memory_->remove(*chunk->allocation);
    space.leaving.push_back(chunk->allocation->pages);
    space.chunks.erase(start);
    --physical_.at(handle).mappings;
    drop_if_unused(handle);
  }
}

bool VirtualMemory::takes_access(CUdeviceptr address, std::uint64_t bytes, const AccessTable& changes) {
  const base::LockGuard lock(mutex_);
  const Chunks chunks = chunks_in(address, bytes);
  return std::any_of(chunks.begin(), chunks.end(), [&](const Chunk* chunk) {
    return widest(changed(chunk->access, changes)) < widest(chunk->access);
  });
}

void VirtualMemory::set_access(CUdeviceptr address, std::uint64_t bytes, const AccessTable& changes) {
  const base::LockGuard lock(mutex_);
  const Chunks chunks = chunks_in(address, bytes);
  for (const Chunk* const chunk : chunks) {
    const bool on_host = physical_.at(chunk->handle).properties.location.type != CU_MEM_LOCATION_TYPE_DEVICE;
    require(on_host || !changes.contains(kHostLocation));
  }
  for (Chunk* const chunk : chunks) {
    AccessTable table = changed(chunk->access, changes);
    const engine::Access access = widest(table);
    // The host's own copies look at `access`: it never promises more than the pages permit.
    if (access < chunk->allocation->access.load()) chunk->allocation->access.store(access);
    require(engine::protect(chunk->allocation->base, chunk->allocation->bytes, access),
            CUDA_ERROR_OUT_OF_MEMORY);
    chunk->allocation->access.store(access);
    chunk->access = std::move(table);
  }
}

CUmemAccess_flags VirtualMemory::access(CUdeviceptr address, int location) {
  const base::LockGuard lock(mutex_);
  const AccessTable& table = chunk_at(address).access;
  const auto found = table.find(location);
  return found == table.end() ? CU_MEM_ACCESS_FLAGS_PROT_NONE : found->second;
}

}  // namespace quern::cpu::device
