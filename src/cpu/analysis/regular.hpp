// SPDX-License-Identifier: Apache-2.0
// Finds branches at which the lanes of most warps agree although their conditions differ between lanes:
// bounds of the data, and counts of iterations that follow from them.
#pragma once

#include <vector>

#include "cpu/analysis/analysis.hpp"

namespace quern::cpu::analysis {

/// True if `condition` follows by integer operations from thread indices and from values that are the same in
/// the warp, at least one of which is not known at compile time. For example, i < n, and the iterations that
/// an unrolled loop leaves over: ((n - i) / stride) & 3. A condition on data is not regular, and a condition
/// on thread indices alone (tid & 1) is excluded since it may always split a warp. A heuristic: nothing is
/// wrong if it is.
bool is_regular(const ir::Function& function, const std::vector<LanePattern>& patterns, ir::Value condition);

/// True if `condition` follows from more than thread indices and values that are the same in the warp, for
/// example from elements of an array.
bool depends_on_data(const ir::Function& function, const std::vector<LanePattern>& patterns,
                     ir::Value condition);

/// The same, where floating-point operations do not count as data: coordinates that are computed from thread
/// indices do not depend on loads.
bool depends_on_loads(const ir::Function& function, const std::vector<LanePattern>& patterns,
                      ir::Value value);

}  // namespace quern::cpu::analysis
