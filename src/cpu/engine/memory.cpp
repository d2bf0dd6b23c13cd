// SPDX-License-Identifier: Apache-2.0
#include "cpu/engine/memory.hpp"

#include <algorithm>
#include <utility>

namespace quern::cpu::engine {

namespace {
std::unique_ptr<Arena> make_arena(Window& window, Range range, std::uint64_t total_bytes) {
  return std::make_unique<Arena>(range, total_bytes,
                                 window.compact() ? narrow_spacing(range.bytes) : ArenaSpacing{},
                                 [&window](std::uint64_t bytes) { return window.grow(bytes); });
}
}  // namespace

Memory::Memory(Window& window, std::uint32_t device_count, std::uint64_t total_bytes,
               std::uint64_t host_bytes) {
  for (std::uint32_t device = 0; device < device_count; ++device)
    arenas_.push_back(make_arena(window, window.arena(device), total_bytes));
  arenas_.push_back(make_arena(window, window.host(), host_bytes));
  // A launch cannot make it grow: its workers use the window's size from the start of the launch.
  const Range locals = window.compact() ? window.locals() : Range{};
  if (locals.bytes != 0)
    locals_ = std::make_unique<Arena>(locals, locals.bytes, narrow_spacing(locals.bytes));
}

std::shared_ptr<Allocation> Memory::allocate(const MemoryRequest& request) {
  const bool on_host = request.kind == AllocationKind::host || request.kind == AllocationKind::managed ||
                       request.kind == AllocationKind::shadow ||
                       (request.kind == AllocationKind::pooled && request.flags == kPooledOnHost);
  Arena& arena = on_host ? *arenas_.back() : *arenas_[request.device];
  const bool by_kernel = request.kind == AllocationKind::heap;
  std::byte* base = arena.allocate(request.bytes, by_kernel ? MayGrow::no : MayGrow::yes);
  if (base == nullptr) return nullptr;
  auto allocation = std::make_shared<Allocation>(arena, base);
  allocation->bytes = request.bytes;
  allocation->kind = request.kind;
  allocation->device = request.device;
  allocation->owner = request.owner;
  allocation->flags = request.flags;
  const base::LockGuard lock(mutex_);
  allocation->id = next_id_++;
  allocations_.emplace(base, allocation);
  if (request.kind == AllocationKind::heap) heap_used_bytes_[request.owner] += request.bytes;
  return allocation;
}

std::shared_ptr<Allocation> Memory::adopt(std::byte* base, const MemoryRequest& request,
                                          std::shared_ptr<Mapping> mapping) {
  auto allocation = std::make_shared<Allocation>(base);
  allocation->bytes = request.bytes;
  allocation->kind = request.kind;
  allocation->device = request.device;
  allocation->owner = request.owner;
  allocation->flags = request.flags;
  allocation->mapping = std::move(mapping);
  const base::LockGuard lock(mutex_);
  const auto after = allocations_.lower_bound(base);
  if (after != allocations_.end() && after->first < base + request.bytes) return nullptr;
  if (find_locked(base) != nullptr) return nullptr;
  allocation->id = next_id_++;
  allocations_.emplace(base, allocation);
  if (allocation->mapping != nullptr) mapping_count_.fetch_add(1, std::memory_order_relaxed);
  return allocation;
}

std::shared_ptr<Mapping> Memory::mapping_of(const Allocation& allocation) {
  const base::LockGuard lock(mutex_);
  return allocation.mapping;
}

std::shared_ptr<Mapping> Memory::map_registered(const Allocation& allocation,
                                                std::shared_ptr<Mapping> mapping) {
  const base::LockGuard lock(mutex_);
  const auto found = allocations_.find(allocation.base);
  if (found == allocations_.end() || found->second.get() != &allocation) return nullptr;
  if (allocation.mapping == nullptr) {
    found->second->mapping = std::move(mapping);
    mapping_count_.fetch_add(1, std::memory_order_relaxed);
  }
  return allocation.mapping;
}

std::shared_ptr<Reservation> Memory::reserve(std::uint32_t device, std::uint64_t bytes,
                                             std::uint64_t alignment) {
  Arena& arena = *arenas_[device];
  std::byte* const base = arena.reserve(bytes, alignment);
  return base == nullptr ? nullptr : std::make_shared<Reservation>(arena, base, bytes);
}

std::shared_ptr<Backing> Memory::make_backing(std::uint32_t device, bool on_host, std::uint64_t bytes) {
  return Backing::make(on_host ? *arenas_.back() : *arenas_[device], device, bytes);
}

std::shared_ptr<Allocation> Memory::enter(std::byte* base, const MemoryRequest& request,
                                          std::shared_ptr<const void> pages, Access access) {
  auto allocation = std::make_shared<Allocation>(base);
  allocation->bytes = request.bytes;
  allocation->kind = request.kind;
  allocation->device = request.device;
  allocation->owner = request.owner;
  allocation->flags = request.flags;
  allocation->pages = std::move(pages);
  allocation->access.store(access);
  const base::LockGuard lock(mutex_);
  allocation->id = next_id_++;
  allocations_.emplace(base, allocation);
  return allocation;
}

Arena::FilePlace Memory::share(const Allocation& allocation) {
  bias_.forbid();
  return arenas_[allocation.device]->share(allocation.base, allocation.device);
}

std::vector<std::shared_ptr<Mapping>> Memory::mappings(std::uint64_t owner) {
  std::vector<std::shared_ptr<Mapping>> found;
  if (mapping_count_.load(std::memory_order_relaxed) == 0) return found;
  const base::LockGuard lock(mutex_);
  for (const auto& [base, allocation] : allocations_)
    if (allocation->owner == owner && allocation->mapping != nullptr) found.push_back(allocation->mapping);
  return found;
}

std::shared_ptr<Allocation> Memory::find_locked(const void* address) {
  auto after = allocations_.upper_bound(static_cast<const std::byte*>(address));
  if (after == allocations_.begin()) return nullptr;
  const std::shared_ptr<Allocation>& candidate = std::prev(after)->second;
  return Range{candidate->base, candidate->bytes}.contains(address) ? candidate : nullptr;
}

std::shared_ptr<Allocation> Memory::find(const void* address) {
  const base::LockGuard lock(mutex_);
  return find_locked(address);
}

std::shared_ptr<Allocation> Memory::find_range(const void* address, std::uint64_t bytes) {
  std::shared_ptr<Allocation> allocation = find(address);
  if (allocation == nullptr) return nullptr;
  const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - allocation->base);
  return bytes <= allocation->bytes - offset ? allocation : nullptr;
}

std::vector<std::shared_ptr<Allocation>> Memory::find_all(const void* address, std::uint64_t bytes,
                                                          Access needed) {
  std::vector<std::shared_ptr<Allocation>> found;
  const auto* at = static_cast<const std::byte*>(address);
  const base::LockGuard lock(mutex_);
  for (;;) {
    std::shared_ptr<Allocation> here = find_locked(at);
    if (here == nullptr || here->access.load() < needed) return {};
    if (!found.empty() && here->kind != AllocationKind::mapped) return {};
    const std::uint64_t left = here->bytes - static_cast<std::uint64_t>(at - here->base);
    const bool last = bytes <= left;
    at = here->base + here->bytes;
    const bool may_go_on = here->kind == AllocationKind::mapped;
    found.push_back(std::move(here));
    if (last) return found;
    if (!may_go_on) return {};
    bytes -= left;
  }
}

std::shared_ptr<Allocation> Memory::take_out(Table::iterator entry) {
  std::shared_ptr<Allocation> allocation = std::move(entry->second);
  allocations_.erase(entry);
  if (allocation->kind == AllocationKind::heap) heap_used_bytes_[allocation->owner] -= allocation->bytes;
  if (allocation->mapping != nullptr) mapping_count_.fetch_sub(1, std::memory_order_relaxed);
  return allocation;
}

std::shared_ptr<Allocation> Memory::remove(const void* base, AllocationKind kind) {
  const base::LockGuard lock(mutex_);
  const auto found = allocations_.find(static_cast<const std::byte*>(base));
  if (found == allocations_.end() || found->second->kind != kind) return nullptr;
  return take_out(found);
}

std::shared_ptr<Allocation> Memory::remove_from_heap(const void* base, std::uint64_t owner) {
  const base::LockGuard lock(mutex_);
  const auto found = allocations_.find(static_cast<const std::byte*>(base));
  if (found == allocations_.end()) return nullptr;
  const Allocation& allocation = *found->second;
  if (allocation.kind != AllocationKind::heap || allocation.owner != owner) return nullptr;
  return take_out(found);
}

bool Memory::remove(const Allocation& allocation) {
  std::shared_ptr<Allocation> removed;  // released after the lock is released
  const base::LockGuard lock(mutex_);
  const auto found = allocations_.find(allocation.base);
  if (found == allocations_.end() || found->second.get() != &allocation) return false;
  removed = take_out(found);
  return true;
}

bool Memory::restore(const std::shared_ptr<Allocation>& allocation) {
  const base::LockGuard lock(mutex_);
  return allocations_.emplace(allocation->base, allocation).second;
}

std::vector<std::shared_ptr<Allocation>> Memory::remove_all(std::uint64_t owner, Remains remains) {
  std::vector<std::shared_ptr<Allocation>> removed;
  const base::LockGuard lock(mutex_);
  for (auto entry = allocations_.begin(); entry != allocations_.end();) {
    const auto here = entry++;
    const Allocation& each = *here->second;
    const bool on_host = each.kind == AllocationKind::host || each.kind == AllocationKind::managed;
    if (each.owner != owner || (remains == Remains::host_memory && on_host)) continue;
    if (remains != Remains::nothing) here->second->reuse = Reuse::late;
    removed.push_back(take_out(here));
  }
  heap_used_bytes_.erase(owner);
  return removed;
}

std::uint64_t Memory::heap_used_bytes(std::uint64_t owner) {
  const base::LockGuard lock(mutex_);
  const auto found = heap_used_bytes_.find(owner);
  return found == heap_used_bytes_.end() ? 0 : found->second;
}

}  // namespace quern::cpu::engine
