// SPDX-License-Identifier: Apache-2.0
// Decisions about a function that precede LLVM IR: where it is cut, which versions its blocks get, which
// values leave their blocks. The passes of passes.hpp fill it in. No LLVM.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/abi/specialisation.hpp"
#include "cpu/abi/warp_size.hpp"
#include "cpu/analysis/analysis.hpp"
#include "cpu/cuts/bounds.hpp"
#include "cpu/cuts/gang_plan.hpp"
#include "cpu/ir/ir.hpp"

namespace quern::cpu::cuts {

/// Every block is emitted in up to two versions. Full: all 32 lanes of the warp run; no masks; branches are
/// branches; patterns of the optimistic analysis. Masked: some lanes run; blocks run in Analysis::order, each
/// skipped if no lane waits at it; patterns of the safe analysis.
enum class Version : std::uint8_t { full, masked };

struct Plan {
  const ir::Module* module = nullptr;
  const ir::Function* function = nullptr;
  analysis::Analysis uncut;   ///< optimistic, before the cuts that it decides; empty after them
  analysis::Analysis full;    ///< optimistic; meaningless where !has_full
  analysis::Analysis masked;  ///< safe
  bool has_full = false;
  bool has_barriers = false;
  std::vector<std::vector<ir::Value>>
      tested;                      ///< by BlockId: widenings to test at its end (full version); it ends in br
  std::vector<ir::Value> barrier;  ///< by BlockId: the barrier before its br, or ir::kNone
  std::vector<bool> ends;  ///< by BlockId: lanes that reach it have no further effect before ret or exit
  std::vector<bool> masked_needed;  ///< by BlockId: has a masked version
  std::vector<bool>
      reenter;  ///< by BlockId: its masked version continues in the full one if all lanes are there
  std::vector<bool> crosses;  ///< by Value: kept in a slot, because it is a phi or read outside its block
  std::vector<std::vector<ir::Value>>
      live_in;  ///< by BlockId: values defined before it and read in or after it

  std::vector<BoundedBranch> bounded;  ///< by BlockId: how it ends; for full code

  GangPlan gang;
  std::vector<bool> parts;  ///< by BlockId: only a terminator, at which the warps of a gang may diverge

  /// Lanes may wait for each other: the masked version is run by the dispatcher, and full code knows no
  /// barriers.
  bool dispatched = false;
  std::vector<ir::Value> waits;   ///< by BlockId: its first instruction, if lanes wait at it; else ir::kNone
  std::vector<bool> full_needed;  ///< by BlockId: has a full version, where has_full
  std::vector<bool> spins;  ///< by BlockId: lanes that go back to it from a later block let others run first

  const analysis::Analysis& facts(Version version) const { return version == Version::full ? full : masked; }
};

/// Functions beyond this many instructions get only masked code: two versions of them would take too long to
/// compile.
inline constexpr std::size_t kMaxTwoVersionInsts = 3000;

/// The plan with masked code only: for the last, partial warp of a block.
Plan masked_only(const Plan& plan);

}  // namespace quern::cpu::cuts
