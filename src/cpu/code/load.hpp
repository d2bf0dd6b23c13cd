// SPDX-License-Identifier: Apache-2.0
// Maps linked code into memory, so that it can be called.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "cpu/abi/helpers.hpp"
#include "cpu/code/image.hpp"
#include "quern/expected.hpp"

namespace quern::cpu {

/// Loaded code: readable and executable, no longer writable.
struct LoadedImage {
  void* entry = nullptr;
  const std::byte* text_begin = nullptr;
  const std::byte* text_end = nullptr;
  std::shared_ptr<void> memory;  ///< unmaps it
};

/// Maps `code`. It may call only `helpers` outside itself: no symbol of the process is looked up. Errors:
/// code "out-of-memory" if the system refuses a mapping; code "code-image" for a helper that is not in the
/// table.
Expected<LoadedImage> map_code(const LinkedCode& code, std::span<const Helper> helpers);

}  // namespace quern::cpu
