// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/registered_memory.hpp"

#include "cpu/device/failure.hpp"

namespace quern::cpu::device {
namespace {

using engine::Allocation;
using engine::Mapping;

/// The mapping of registered memory, made now if it has none yet.
std::shared_ptr<Mapping> mapping_of(Driver& driver, const Allocation& allocation) {
  if (auto mapping = driver.memory().mapping_of(allocation)) return mapping;
  Contexts& contexts = driver.contexts();
  const auto state = contexts.state_of(contexts.handle_of(allocation.owner));
  const auto made = map(driver, *state, allocation.base, allocation.bytes);
  auto mapping = driver.memory().map_registered(allocation, made);
  if (mapping != made)
    unmap(driver, *made);  // another thread was faster, or the memory is not registered now
  require(mapping != nullptr);
  return mapping;
}

}  // namespace

std::shared_ptr<Mapping> map(Driver& driver, const ContextState& state, std::byte* host, std::size_t bytes) {
  auto shadow = driver.allocate(state, engine::AllocationKind::shadow, bytes);
  require(shadow != nullptr, CUDA_ERROR_OUT_OF_MEMORY);
  auto mapping = std::make_shared<Mapping>(host, shadow);
  shadow->shadow_of = mapping;
  if (mapping->begin()) return mapping;
  unmap(driver, *mapping);
  fail(CUDA_ERROR_INVALID_VALUE, "the host memory is not there any more, as after its file was truncated");
}

void unmap(Driver& driver, const Mapping& mapping) { driver.memory().remove(*mapping.shadow()); }

CUdeviceptr device_address(Driver& driver, const Allocation& allocation, const void* pointer) {
  const auto address = reinterpret_cast<CUdeviceptr>(pointer);  // one address space
  if (allocation.kind != engine::AllocationKind::registered) return address;
  const std::byte* const shadow = mapping_of(driver, allocation)->shadow()->base;
  return reinterpret_cast<CUdeviceptr>(shadow) + (address - reinterpret_cast<CUdeviceptr>(allocation.base));
}

}  // namespace quern::cpu::device
