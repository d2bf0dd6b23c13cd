// SPDX-License-Identifier: Apache-2.0
// Decides how many addresses the device reserves: enough to be fast and easy to debug if the process may have
// them, otherwise step by step fewer. See docs/decisions/0014-address-space.md.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cpu/engine/machine.hpp"
#include "cpu/engine/window.hpp"
#include "quern/expected.hpp"

namespace quern::cpu::device {

/// The least that QUERN_CPU_MEMORY may say.
inline constexpr std::uint64_t kMinMemoryBytes = std::uint64_t{16} << 20;

enum class Addresses : std::uint8_t { automatic, wide, compact };

/// The requested properties of the device.
struct Demand {
  std::uint32_t devices = 1;
  std::uint32_t workers = 1;
  std::uint64_t machine_bytes = 0;  ///< of memory, that the process may use
  std::uint64_t memory_bytes = 0;   ///< a device's
  bool memory_named = false;        ///< by QUERN_CPU_MEMORY: that much or nothing
  Addresses addresses = Addresses::automatic;
};

/// One way to meet it.
struct Step {
  engine::WindowLayout layout;
  std::uint64_t memory_bytes = 0;  ///< a device's
  std::uint64_t host_bytes = 0;    ///< of pinned memory
  std::uint64_t spare_bytes = 0;   ///< addresses that the rest of the process needs beside the window
  std::uint64_t bytes() const noexcept { return engine::reservation_bytes(layout); }
};

/// The ways to meet the demand, the most comfortable first. Never empty.
std::vector<Step> steps_for(const Demand& demand);

struct Reserved {
  std::unique_ptr<engine::Window> window;
  Step step;
};

/// Takes the first step that the system grants and that leaves the process its spare addresses under `limit`.
Expected<Reserved> reserve(const Demand& demand, const engine::AddressLimit& limit);

}  // namespace quern::cpu::device
