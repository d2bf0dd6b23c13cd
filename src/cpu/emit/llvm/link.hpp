// SPDX-License-Identifier: Apache-2.0
// An object of LLVM's in memory -> linked code, position-independent (cpu/code/image.hpp).
#pragma once

#include <llvm/Support/MemoryBufferRef.h>

#include <string_view>

#include "cpu/code/image.hpp"
#include "quern/expected.hpp"

namespace quern::cpu::emit {

/// Lays the sections of `object` out and applies its relocations. Functions that the object does not define
/// become helpers. Errors (code "internal"): no function `entry`, or a relocation of a kind that does not
/// occur in emitted code.
Expected<LinkedCode> link_object(llvm::MemoryBufferRef object, std::string_view entry);

}  // namespace quern::cpu::emit
