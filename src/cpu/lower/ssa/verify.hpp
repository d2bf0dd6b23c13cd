// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cpu/ir/ir.hpp"
#include "quern/expected.hpp"

namespace quern::cpu::lower {

/// Checks that the IR is well formed (types, dominance, phis, terminators). For tests and debug builds.
Expected<void> verify(const ir::Module& module);

}  // namespace quern::cpu::lower
