// SPDX-License-Identifier: Apache-2.0
// Runs one lane of a function alone, and records its values. Shares no code with the analysis; memory and
// other lanes are hash functions.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "cpu/abi/specialisation.hpp"
#include "cpu/analysis/analysis.hpp"
#include "cpu/ir/ir.hpp"

namespace quern::cpu::test {

struct Launch {
  Specialisation specialisation;
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block_index{0, 0, 0};
  std::map<std::uint64_t, std::uint64_t> params;  ///< by offset
  std::uint64_t seed = 0;
};

/// When a block ran, in the time of the warp: for each loop that contains the block, the position of the
/// loop's header and the iteration; then the block's own position. Lanes that run a block at the same time
/// run it together.
using Time = std::vector<std::uint32_t>;

struct BlockRun {
  Time time;
  ir::BlockId block = 0;
  ir::BlockId next = ir::kNone;
  std::vector<std::uint64_t> values;  ///< by index in Block::insts
};

struct LaneTrace {
  std::vector<BlockRun> runs;
  bool ended = false;  ///< it ended within the limit of steps
};

std::uint64_t mix(std::uint64_t a, std::uint64_t b);
std::uint64_t masked(std::uint64_t value, std::uint32_t bits);
std::int64_t as_signed(std::uint64_t value, std::uint32_t bits);

/// The result of a pure operation: the number for integers, a hash for other types.
std::uint64_t compute(const ir::Function& function, const ir::Inst& inst,
                      const std::vector<std::uint64_t>& args);

LaneTrace run_lane(const ir::Function& function, const analysis::Analysis& analysis, const Launch& launch,
                   std::uint32_t thread);

}  // namespace quern::cpu::test
