// SPDX-License-Identifier: Apache-2.0
// Compares an analysis with the values that the lanes of a warp compute one by one.
#pragma once

#include <map>
#include <string>

#include "lane_interpreter.hpp"

namespace quern::cpu::test {

/// Counts the verified claims by kind: a test can require that there was something to check.
struct Witnessed {
  std::map<std::string, std::uint64_t> counts;
};

/// Runs warp `warp` of the block. The first claim that does not hold, in words; empty if all do, or if a lane
/// did not end, or if an assumed widening wrapped.
std::string contradiction(const ir::Function& function, const analysis::Analysis& analysis,
                          const Launch& launch, std::uint32_t warp, Witnessed& witnessed);

}  // namespace quern::cpu::test
