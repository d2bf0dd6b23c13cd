// SPDX-License-Identifier: Apache-2.0
// An object in memory -> code that can be called.
#pragma once

#include <llvm/Support/MemoryBufferRef.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "cpu/emit/operations/helpers.hpp"
#include "quern/expected.hpp"

namespace quern::cpu::emit {

/// Loaded code: readable and executable, its constants readable only.
struct LoadedCode {
  void* entry = nullptr;
  const std::byte* text_begin = nullptr;
  const std::byte* text_end = nullptr;
  std::shared_ptr<void> memory;  ///< unmaps it
};

/// `symbols` is all that the code may call outside itself: no process symbol is ever looked up.
/// Loads `object` and finds function `entry` in it. Errors (code "internal" or "out-of-memory"): unresolved
/// symbols, no memory.
Expected<LoadedCode> load_object(llvm::MemoryBufferRef object, std::string_view entry,
                                 std::span<const Helper> symbols);

}  // namespace quern::cpu::emit
