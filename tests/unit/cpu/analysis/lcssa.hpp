// SPDX-License-Identifier: Apache-2.0
// Converts IR of tests to the form that `lower` produces: values leave a loop through phis in separate
// blocks.
#pragma once

#include "cpu/ir/ir.hpp"

namespace quern::cpu::test {

/// Slow and simple: finds loops by reachability.
void close_loops(ir::Function& function);

}  // namespace quern::cpu::test
