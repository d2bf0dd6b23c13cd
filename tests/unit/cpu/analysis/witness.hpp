// SPDX-License-Identifier: Apache-2.0
// Compares an analysis with the values that the lanes of a warp compute separately.
#pragma once

#include <map>
#include <string>

#include "lane_interpreter.hpp"

namespace quern::cpu::test {

/// Counts the verified facts by kind, so that a test can require that some were checked.
struct Witnessed {
  std::map<std::string, std::uint64_t> counts;
};

/// Runs warp `warp` of the block. Returns the first fact that does not hold, in words. Empty if all hold, if
/// a lane did not end, if an assumed widening wrapped, or if lanes are apart at a phi that assumes them
/// together.
std::string contradiction(const ir::Function& function, const analysis::Analysis& analysis,
                          const Launch& launch, std::uint32_t warp, Witnessed& witnessed);

}  // namespace quern::cpu::test
