// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/graph/graph_memory.hpp"

#include <algorithm>
#include <map>

#include "base/thread_annotations.hpp"

namespace quern::cpu::device {
namespace {

struct Bytes {
  std::uint64_t reserved = 0;
  std::uint64_t used = 0;
};

/// Every allocation of a graph's.
struct Registry {
  base::Mutex mutex;
  std::map<std::uint32_t, Bytes> highest QUERN_GUARDED_BY(mutex);  ///< by device
  std::vector<std::weak_ptr<engine::Allocation>> allocations QUERN_GUARDED_BY(mutex);
};
Registry& registry() {
  static auto* const instance = new Registry;  // used by any thread until the process ends
  return *instance;
}

std::vector<std::shared_ptr<engine::Allocation>> registered() {
  Registry& all = registry();
  std::vector<std::shared_ptr<engine::Allocation>> found;
  const base::LockGuard lock(all.mutex);
  std::erase_if(all.allocations, [](const auto& each) { return each.expired(); });
  for (const auto& each : all.allocations)
    if (auto allocation = each.lock()) found.push_back(std::move(allocation));
  return found;
}

/// The bytes that the device has now; the highest values follow.
Bytes note_bytes(Driver& driver, std::uint32_t device) {
  Bytes now;
  for (const auto& each : registered()) {
    if (each->device != device) continue;
    now.reserved += each->bytes;
    if (driver.memory().find(each->base) == each) now.used += each->bytes;
  }
  Registry& all = registry();
  const base::LockGuard lock(all.mutex);
  Bytes& highest = all.highest[device];
  highest.reserved = std::max(highest.reserved, now.reserved);
  highest.used = std::max(highest.used, now.used);
  return now;
}

}  // namespace

std::shared_ptr<GraphMemory> make_graph_memory(Driver& driver, const std::shared_ptr<ContextState>& context,
                                               std::uint64_t bytes) {
  auto memory = std::make_shared<GraphMemory>();
  memory->context = context;
  memory->allocation = driver.allocate(*context, engine::AllocationKind::pooled, bytes);
  require(memory->allocation != nullptr, CUDA_ERROR_OUT_OF_MEMORY);
  driver.memory().remove(*memory->allocation);
  Registry& all = registry();
  {
    const base::LockGuard lock(all.mutex);
    all.allocations.push_back(memory->allocation);
  }
  note_bytes(driver, context->device);
  return memory;
}

bool is_graph_memory(CUdeviceptr pointer) {
  const auto all = registered();
  return std::ranges::any_of(
      all, [&](const auto& each) { return reinterpret_cast<CUdeviceptr>(each->base) == pointer; });
}

std::uint64_t graph_memory_attribute(Driver& driver, std::uint32_t device, CUgraphMem_attribute attribute) {
  const Bytes now = note_bytes(driver, device);
  Registry& all = registry();
  const base::LockGuard lock(all.mutex);
  switch (attribute) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
      return now.used;
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
      return all.highest[device].used;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
      return now.reserved;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
      return all.highest[device].reserved;
  }
  fail(CUDA_ERROR_INVALID_VALUE);
}

void reset_graph_memory_high(Driver& driver, std::uint32_t device, CUgraphMem_attribute attribute) {
  const Bytes now = note_bytes(driver, device);
  Registry& all = registry();
  const base::LockGuard lock(all.mutex);
  if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
    all.highest[device].used = now.used;
  else if (attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
    all.highest[device].reserved = now.reserved;
  else
    fail(CUDA_ERROR_INVALID_VALUE);
}

GraphMemoryShown::GraphMemoryShown(Driver& driver) : driver_(driver) {
  for (auto& each : registered())
    if (driver.memory().restore(each)) shown_.push_back(std::move(each));
}

GraphMemoryShown::~GraphMemoryShown() {
  for (const auto& each : shown_) driver_.memory().remove(*each);
}

void GraphMemoryChanges::allocate(const GraphMemory& memory, bool frees_first) {
  require_not_ended(*memory.context);
  if (driver_.memory().restore(memory.allocation)) {
    allocated_.push_back(memory.allocation);
    note_bytes(driver_, memory.context->device);
  } else {
    require(frees_first);
  }
}

std::shared_ptr<engine::Allocation> GraphMemoryChanges::free(CUdeviceptr pointer) {
  auto removed =
      driver_.memory().remove(reinterpret_cast<const void*>(pointer), engine::AllocationKind::pooled);
  require(removed != nullptr);
  freed_.push_back(removed);
  return removed;
}

GraphMemoryChanges::~GraphMemoryChanges() {
  if (kept_) return;
  for (const auto& each : freed_) driver_.memory().restore(each);
  for (const auto& each : allocated_) driver_.memory().remove(*each);
}

}  // namespace quern::cpu::device
