// SPDX-License-Identifier: Apache-2.0
// Brings IR of tests into the form that `lower` promises: values leave a loop through phis in blocks of their
// own.
#pragma once

#include "cpu/ir/ir.hpp"

namespace quern::cpu::test {

/// Slow and simple: finds loops by reachability.
void close_loops(ir::Function& function);

}  // namespace quern::cpu::test
