// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "cpu/emit/jit.hpp"

namespace quern::cpu::emit {

/// Everything that machine code may call outside itself.
std::span<const ExternalSymbol> external_symbols();

}  // namespace quern::cpu::emit
