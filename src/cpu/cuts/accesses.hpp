// SPDX-License-Identifier: Apache-2.0
// Properties of accesses that several passes ask for.
#pragma once

#include "cpu/ir/ir.hpp"

namespace quern::cpu::cuts {

/// True if the access may be one of global memory.
inline bool may_be_global(const ir::Inst& access) {
  return access.attr.space == ir::Space::global || access.attr.space == ir::Space::generic;
}

/// True if no other access is ordered by this one.
inline bool is_unordered(const ir::Inst& access) {
  return access.attr.semantics == ir::Semantics::weak || access.attr.semantics == ir::Semantics::relaxed;
}

}  // namespace quern::cpu::cuts
