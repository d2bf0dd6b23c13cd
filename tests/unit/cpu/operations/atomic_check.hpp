// SPDX-License-Identifier: Apache-2.0
// Compares an atomic with the same operations performed one lane after another.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "harness.hpp"

namespace quern::cpu::emit::testing {

inline constexpr std::size_t kBytes = 4096;
inline constexpr std::uint32_t kMasks[] = {0xffffffffu, 0x00000001u, 0x80000000u, 0x5a5a1234u};

struct Memory {
  alignas(64) std::array<std::uint8_t, kBytes> bytes{};
  Surroundings around() {
    Surroundings made;
    made.launch.window_base = reinterpret_cast<std::byte*>(bytes.data());
    made.launch.window_bytes = kBytes;
    made.worker.shared_base = made.launch.window_base;
    return made;
  }
};

std::uint64_t read(const Memory& memory, std::size_t at, ir::Type type);

struct Setting {
  ir::AtomicOp op;
  ir::Type type;
  ir::Space space;
  bool one_address;
  bool unused;
  bool one_operand = false;
  ir::Scope scope = ir::Scope::gpu;
  bool alone = false;
  bool meet = false;  ///< all lanes access one address, which is known only at run time
  /// not empty: each lane accesses the element after that of the lane before it, from one of these bytes on
  std::vector<std::size_t> consecutive_from{};
  unsigned gathered_rounds = 0;  ///< not 0: the worker gathers the operations of so many rounds
  bool same_places = false;      ///< of gathered operations: all blocks update the same elements
};

void check(const Setting& setting);

}  // namespace quern::cpu::emit::testing
