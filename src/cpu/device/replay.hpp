// SPDX-License-Identifier: Apache-2.0
// Finds the thread that met an address fault, and the address that it accessed: the processor reports only
// that some lane of an instruction faulted, and by then the address check has replaced the address. So the
// candidate threads are replayed through the kernel's IR, one after the other, from their beginning to the
// instruction. Nothing is written. Values that cannot be recomputed are unknown, and so are all results that
// depend on them: values of other lanes, shared and local memory, results of atomics, memory that the block
// itself writes.
#pragma once

#include <cstdint>
#include <optional>

#include "cpu/compiler/compiler.hpp"
#include "cpu/engine/fault.hpp"
#include "cpu/engine/jobs.hpp"
#include "cpu/engine/memory.hpp"

namespace quern::cpu::device {

/// True if the address that the processor reported was accessed by the kernel itself; if it only lies near
/// the window, a check has replaced the kernel's address.
bool processor_tells(const engine::Fault& fault, const engine::Window& window, std::uint32_t device);

struct Offender {
  std::uint32_t thread = 0;  ///< linear, in the block
  std::uint64_t address = 0;
  ir::Value access = ir::kNone;  ///< the instruction
  // Of the kernel's access; if the instruction is several of these, of the one that ends in the fault.
  std::uint32_t bytes = 0;
  std::uint32_t location = ir::kNone;
};

/// The lowest thread that met `fault` at instruction `access` of the kernel; kNone: at any instruction.
/// Nothing if it is not certain.
std::optional<Offender> find_offender(const ir::Module& module, ir::Value access, const engine::Fault& fault,
                                      const engine::Grid& grid, const engine::Worker& worker,
                                      engine::Memory& memory);

}  // namespace quern::cpu::device
