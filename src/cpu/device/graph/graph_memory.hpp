// SPDX-License-Identifier: Apache-2.0
// Memory that nodes of graphs allocate. Its addresses are fixed when the node is made. It is in the table of
// allocations from the launch that allocates it until a free node or the client frees it.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "cpu/device/driver.hpp"
#include "cpu/engine/memory.hpp"

namespace quern::cpu::device {

/// Keeps the addresses, and the memory behind them. Immutable.
struct GraphMemory {
  std::shared_ptr<ContextState> context;
  std::shared_ptr<engine::Allocation> allocation;
};

/// Throws Failure.
std::shared_ptr<GraphMemory> make_graph_memory(Driver& driver, const std::shared_ptr<ContextState>& context,
                                               std::uint64_t bytes);
/// True if a node of some graph allocates that address.
bool is_graph_memory(CUdeviceptr pointer);
/// Bytes that are reserved for graphs of the device, those of them that are allocated, and the highest values
/// of both. Throws Failure for another attribute.
std::uint64_t graph_memory_attribute(Driver& driver, std::uint32_t device, CUgraphMem_attribute attribute);
/// Sets the highest value to the present one. Throws Failure for an attribute that is no highest value.
void reset_graph_memory_high(Driver& driver, std::uint32_t device, CUgraphMem_attribute attribute);

/// A scope in which all graph memory is in the table: parameters of nodes are checked before the memory they
/// name is allocated. Under graph_mutex().
class GraphMemoryShown {
 public:
  explicit GraphMemoryShown(Driver& driver);
  ~GraphMemoryShown();
  GraphMemoryShown(const GraphMemoryShown&) = delete;
  GraphMemoryShown& operator=(const GraphMemoryShown&) = delete;

 private:
  Driver& driver_;
  std::vector<std::shared_ptr<engine::Allocation>> shown_;
};

/// What a launch has allocated and freed so far. Undone unless it is kept. Under graph_mutex().
class GraphMemoryChanges {
 public:
  explicit GraphMemoryChanges(Driver& driver) : driver_(driver) {}
  ~GraphMemoryChanges();
  GraphMemoryChanges(const GraphMemoryChanges&) = delete;
  GraphMemoryChanges& operator=(const GraphMemoryChanges&) = delete;

  /// Throws Failure if it is allocated, unless the graph frees it before each launch.
  void allocate(const GraphMemory& memory, bool frees_first);
  /// Throws Failure if it is not allocated.
  std::shared_ptr<engine::Allocation> free(CUdeviceptr pointer);
  void keep() noexcept { kept_ = true; }

 private:
  Driver& driver_;
  bool kept_ = false;
  std::vector<std::shared_ptr<engine::Allocation>> allocated_;
  std::vector<std::shared_ptr<engine::Allocation>> freed_;
};

}  // namespace quern::cpu::device
