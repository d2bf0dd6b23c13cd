// SPDX-License-Identifier: Apache-2.0
// Computes how values differ between the 32 lanes of a warp, and how control flow diverges. Pure: IR in,
// facts out.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "cpu/abi/specialisation.hpp"
#include "cpu/abi/warp_size.hpp"
#include "cpu/ir/ir.hpp"
#include "quern/expected.hpp"

namespace quern::cpu::analysis {

using LaneOffsets = std::array<std::int64_t, kWarpSize>;

/// coefficient * offsets[lane]; offsets[0] is 0, so that an affine value's base is lane 0's value.
/// `coefficient` is a uniform IR value, ir::kNone for 1. If the value is wider than the coefficient,
/// the coefficient is extended first (`sign_extend` says how); if it is narrower, the coefficient is
/// truncated. Arithmetic wraps at the width of the value; offsets are signed numbers of that
/// width.
struct Term {
  ir::Value coefficient = ir::kNone;
  bool sign_extend = true;
  LaneOffsets offsets{};
  friend bool operator==(const Term&, const Term&) = default;
};

enum class LanePatternKind : std::uint8_t {
  undefined,  ///< lattice bottom: not reached yet
  uniform,    ///< the same in every active lane
  affine,     ///< base + sum of terms: base uniform (a scalar the emitter computes), terms as above; integers
              ///< only
  offset32,  ///< i64: base + ext(index) * scale, base uniform, index a varying i32 value (gathers with 32-bit
             ///< indices)
  varying,
};

/// Lanes that do not exist (a partial last warp) are outside every claim. `constant`, `base_align`, `min` and
/// `max` also hold for the scalar the emitter computes from the operands' scalars, for any set of running
/// lanes (not `min`, `max` for offset32). A scalar() integer result of a pure operation has only scalar()
/// operands, except for sext and zext that make an offset32.
struct LanePattern {
  LanePatternKind kind = LanePatternKind::undefined;
  std::optional<std::uint64_t>
      constant;  ///< uniform (or the base of affine) known at compile time, masked to the width
  std::uint64_t base_align = 1;  ///< largest known power of two dividing the base (or uniform value)
  std::vector<Term> terms;       ///< affine: 1 or 2; the term without coefficient first
  bool exact = false;  ///< affine: base + terms, as signed numbers, holds without wrapping at the width
  ir::Value index = ir::kNone;  ///< offset32
  bool index_signed = true;     ///< offset32: index is sign-extended
  std::int64_t scale = 1;       ///< offset32
  /// Bounds of the value in any lane as a signed number of its width, if known.
  std::int64_t min = INT64_MIN;
  std::int64_t max = INT64_MAX;

  /// The emitter keeps a scalar for it (uniform: the value; affine and offset32: the base).
  bool scalar() const noexcept {
    return kind == LanePatternKind::uniform || kind == LanePatternKind::affine ||
           kind == LanePatternKind::offset32;
  }
};

/// An integer's low bits: it is value + (the kernel's parameter at byte `param`) modulo `modulus`, a power of
/// two; 1: nothing is known.
struct Residue {
  std::uint32_t modulus = 1;
  std::uint32_t value = 0;
  std::uint32_t param = ir::kNone;  ///< none: `value` alone
  friend bool operator==(const Residue&, const Residue&) = default;
};

struct Loop {
  ir::BlockId header = ir::kNone;
  std::uint32_t parent = ir::kNone;  ///< index into Analysis::loops
  std::vector<ir::BlockId> blocks;   ///< contiguous in Analysis::order, header first
  bool divergent = false;            ///< lanes may leave it at different iterations
};

/// The assumption about a widening (sext/zext) of an affine 32-bit value to 64 bits, if ranges do not prove
/// that it did not wrap between the lanes of the warp.
enum class Assumption : std::uint8_t {
  safe,  ///< nothing: the result is varying (or offset32)
  /// It did not wrap: the result stays affine, and the widening is marked in Analysis::assumed; the emitter
  /// tests it. The test of a sext (zext): with the narrow base and coefficients sign- (zero-) extended to 64
  /// bits, base + terms stays within the signed (unsigned) 32-bit numbers in every running lane.
  optimistic,
  /// The lanes of the warp do not run in lockstep: some may be rounds of a loop ahead of others. Only values
  /// that would be the same at any time are uniform or affine. Irreducible control flow is accepted, without
  /// loops.
  apart,
};

struct Analysis {
  std::vector<LanePattern> patterns;  ///< by ir::Value
  std::vector<ir::BlockId>
      order;  ///< every reachable block once: topological without back edges, loops contiguous
  std::vector<std::uint32_t> position;  ///< by BlockId: index in `order`; ir::kNone if unreachable
  std::vector<ir::BlockId> idom;        ///< by BlockId
  std::vector<ir::BlockId> ipostdom;    ///< by BlockId; ir::kNone: the end of the function
  std::vector<Loop> loops;              ///< outer before inner
  std::vector<std::uint32_t> loop_of;   ///< by BlockId: innermost loop or ir::kNone
  std::vector<bool> assumed;  ///< by ir::Value: a widening whose pattern rests on Assumption::optimistic
  std::vector<bool> divergent_branch;  ///< by BlockId: lanes may leave it towards different successors
  /// By BlockId: may run with fewer than all live lanes of the warp. Lanes on their way to the end that do
  /// nothing observable count as ended: no lane must wait for them, and the blocks on that way are always
  /// marked. Other sides of branches that only end are ordered before the code that continues.
  std::vector<bool> divergent_control;
  std::vector<Residue> residues;  ///< by ir::Value (residues.hpp)
  bool irreducible = false;  ///< Assumption::apart only: some cycle has several entries; `loops` is empty
};

/// Analyses one function. Errors (code "ptx-unsupported", with the author's and the PTX's line): irreducible
/// control flow. Requires LCSSA for loops (see lower), so that values leaving a divergent loop pass through
/// phis.
Expected<Analysis> analyse(const ir::Module& module, const ir::Function& function,
                           const Specialisation& specialisation, Assumption assumption);

/// Rejects code that cannot run while the lanes of a warp are kept together: barriers under divergent control
/// other than after early exits, barriers that are not for every thread of the block, and loops that iterate
/// until another thread acts. Same form of errors.
Expected<void> check_lockstep(const ir::Module& module, const ir::Function& function,
                              const Analysis& analysis);

/// True if a function needs the dispatcher (docs/decisions/0004-dispatcher.md): it fails check_lockstep, or
/// has irreducible control flow. Errors: a called function in which a lane would wait for others.
Expected<bool> needs_dispatcher(const ir::Module& module, const ir::Function& function,
                                const Specialisation& specialisation);

/// True if lanes may have to wait for others in a called function: for those of a membermask, at a barrier,
/// or in a loop.
bool waits_in_calls(const ir::Module& module, const Specialisation& specialisation);

/// By loop: lanes may go round in it until other threads do something.
std::vector<bool> find_waiting_loops(const ir::Function& function, const Analysis& analysis);

}  // namespace quern::cpu::analysis
