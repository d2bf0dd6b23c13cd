// SPDX-License-Identifier: Apache-2.0
// Links an object of LLVM in memory to position-independent code (cpu/code/image.hpp).
#pragma once

#include <llvm/Support/MemoryBufferRef.h>

#include <string_view>

#include "cpu/code/image.hpp"
#include "quern/expected.hpp"

namespace quern::cpu::emit {

/// Lays out the sections of `object` and applies its relocations. Functions that the object does not define
/// become helpers. Errors (code "internal"): no function `entry`, or a kind of relocation that emitted code
/// does not use.
Expected<LinkedCode> link_object(llvm::MemoryBufferRef object, std::string_view entry);

}  // namespace quern::cpu::emit
