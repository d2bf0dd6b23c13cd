// SPDX-License-Identifier: Apache-2.0
// Functions that emitted code calls by name. Those that access kernel memory are in one text section: a fault
// in that section is a fault of the kernel.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/uninstrumented.hpp"

// The bounds of that section, which the linker defines. They are null in programs without these helpers, such
// as tests of the device alone.
extern "C" {
extern const std::byte __start_quern_helper_text[] __attribute__((weak, visibility("hidden")));  // NOLINT
extern const std::byte __stop_quern_helper_text[] __attribute__((weak, visibility("hidden")));   // NOLINT
}

namespace quern::cpu {

struct Helper {
  std::string_view name;
  void* address = nullptr;
};

struct TextRange {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
};

/// The range of the helpers that access kernel memory: a fault with its pc in this range is a fault of the
/// kernel. Inlined: the signal handler calls nothing.
__attribute__((always_inline)) QUERN_UNINSTRUMENTED inline TextRange helper_text() noexcept {
  return {__start_quern_helper_text, __stop_quern_helper_text};
}

}  // namespace quern::cpu
