// SPDX-License-Identifier: Apache-2.0
// Helpers that emitted code calls. Those that access memory for a kernel lie together in one text section: a
// fault in that section is a fault of the kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace quern::cpu::emit {

struct Helper {
  std::string_view name;
  void* address = nullptr;
};

/// Every function that emitted code may call by name, including the scheduler's (engine/abi.hpp) and those
/// that LLVM itself may call.
std::span<const Helper> helpers();

struct TextRange {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
};
/// The helpers that access kernel memory: a fault with its pc in here is the kernel's.
TextRange helper_text();

// The numbers that emitted code passes.
enum class RoundedOp : std::uint32_t { add, sub, mul, div, sqrt, fma };

/// Operand types of atomic operations that the machine does not have: b16 for compare and swap, b64 for
/// arrivals at a barrier object, the others for additions and extremes.
enum class AtomicType : std::uint32_t { b16, b64, f16, bf16 };

}  // namespace quern::cpu::emit
