// SPDX-License-Identifier: Apache-2.0
// Computes how values differ between the 32 lanes of a warp, and how control flow diverges. Pure: the input
// is IR, the output are facts.
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

/// The term coefficient * offsets[lane]. offsets[0] is 0, so the base of an affine value is the value of lane
/// 0. `coefficient` is a uniform IR value; ir::kNone means 1. If the value is wider than the coefficient, the
/// coefficient is extended first (by sign if `sign_extend`); if it is narrower, the coefficient is truncated.
/// Arithmetic wraps at the width of the value; offsets are signed numbers of that width.
struct Term {
  ir::Value coefficient = ir::kNone;
  bool sign_extend = true;
  LaneOffsets offsets{};
  friend bool operator==(const Term&, const Term&) = default;
};

enum class LanePatternKind : std::uint8_t {
  undefined,  ///< bottom of the lattice: not reached yet
  uniform,    ///< the same in every active lane
  /// base + sum of terms: base uniform (a scalar that the emitter computes), terms as above; integers only
  affine,
  offset32,  ///< i64: base + ext(index) * scale, base uniform, index a varying i32 value (gathers with 32-bit
             ///< indices)
  varying,
};

/// No fact applies to lanes that do not exist (in a partial last warp). `constant`, `base_align`, `min` and
/// `max` also hold for the scalar that the emitter computes from the operands' scalars, for any set of
/// running lanes (except `min`, `max` for offset32). If the result of a pure integer operation is scalar(),
/// all its operands are, except for sext and zext that create an offset32.
struct LanePattern {
  LanePatternKind kind = LanePatternKind::undefined;
  std::optional<std::uint64_t>
      /// compile-time constant: the uniform value or the base of an affine one, masked to the width
      constant;
  std::uint64_t base_align = 1;  ///< largest known power of two that divides the base (or the uniform value)
  std::vector<Term> terms;       ///< affine: 1 or 2 terms, the one without coefficient first
  bool exact = false;            ///< affine: base + terms, as signed numbers, does not wrap at the width
  ir::Value index = ir::kNone;   ///< offset32
  bool index_signed = true;      ///< offset32: index is sign-extended
  std::int64_t scale = 1;        ///< offset32
  /// Bounds of the value in any lane as a signed number of its width, if known.
  std::int64_t min = INT64_MIN;
  std::int64_t max = INT64_MAX;

  /// True if the emitter keeps a scalar for the value (uniform: the value; affine and offset32: the base).
  bool scalar() const noexcept {
    return kind == LanePatternKind::uniform || kind == LanePatternKind::affine ||
           kind == LanePatternKind::offset32;
  }
};

/// Known low bits of an integer: it equals value + (the kernel's parameter at byte `param`) modulo `modulus`,
/// a power of two. modulus 1: nothing is known.
struct Residue {
  std::uint32_t modulus = 1;
  std::uint32_t value = 0;
  std::uint32_t param = ir::kNone;  ///< ir::kNone: `value` alone
  friend bool operator==(const Residue&, const Residue&) = default;
};

struct Loop {
  ir::BlockId header = ir::kNone;
  std::uint32_t parent = ir::kNone;  ///< index into Analysis::loops
  std::vector<ir::BlockId> blocks;   ///< contiguous in Analysis::order, header first
  bool divergent = false;            ///< lanes may leave it at different iterations
};

/// The assumptions about a widening (sext/zext) of an affine 32-bit value to 64 bits, for ranges that do not
/// prove that the value does not wrap between the lanes of the warp.
enum class Assumption : std::uint8_t {
  safe,  ///< assumes nothing: the result is varying (or offset32)
  /// Assumes that the value does not wrap. The result stays affine, the widening is marked in
  /// Analysis::assumed, and the emitter tests it. The test of a sext (zext): with the narrow base and
  /// coefficients sign- (zero-) extended to 64 bits, base + terms is a signed (unsigned) 32-bit number in
  /// every running lane.
  /// Also assumes of divisions of affine values by a uniform one that all lanes have the same quotient,
  /// dividends that are not negative, and a positive divisor, as signed numbers; and where the
  /// sign of such a number is asked for, that it is not negative. They are marked and tested as well (a
  /// division again where its remainder is computed from the quotient). Also assumes of joins after regular
  /// branches (regular.hpp) that all lanes arrive over one edge at the same time: their affine phis stay
  /// affine and are marked in Analysis::together. Full code may assume that of any phi, since its lanes run
  /// together; control returns from masked code only if the values agree.
  optimistic,
  /// Assumes that the lanes of the warp do not run in lockstep: some may be iterations of a loop ahead of
  /// others. Only values that would be the same at any time are uniform or affine. Irreducible control flow
  /// is accepted; it then has no loops.
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
  std::vector<bool>
      assumed;  ///< by ir::Value: its pattern depends on Assumption::optimistic, which must be tested before
  std::vector<bool> together;  ///< by ir::Value: a phi whose pattern holds only if the lanes arrive together
  std::vector<bool> divergent_branch;  ///< by BlockId: lanes may leave it to different successors
  /// By BlockId: it may run with fewer than all live lanes of the warp. Lanes on their way to the end that do
  /// nothing observable count as ended: no lane has to wait for them, and the blocks on that way are always
  /// marked. Other branch targets that only end come, in the order, before the code that continues.
  std::vector<bool> divergent_control;
  std::vector<Residue> residues;  ///< by ir::Value (residues.hpp)
  std::vector<bool> halves;       ///< by ir::Value (halves.hpp)
  std::vector<bool> below;        ///< by ir::Value (below.hpp)
  bool irreducible = false;  ///< Assumption::apart only: some cycle has several entries, so `loops` is empty
};

/// Analyses one function. Errors (code "ptx-unsupported", with the author's line and the PTX line):
/// irreducible control flow. Requires LCSSA for loops (see lower), so that values that leave a divergent loop
/// pass through phis.
Expected<Analysis> analyse(const ir::Module& module, const ir::Function& function,
                           const Specialisation& specialisation, Assumption assumption);

/// Rejects code that cannot run while the lanes of a warp are kept together: barriers under divergent control
/// other than after early exits, barriers that are not for every thread of the block, and loops that iterate
/// until another thread acts. The errors have the same form.
Expected<void> check_lockstep(const ir::Module& module, const ir::Function& function,
                              const Analysis& analysis);

/// True if a function needs the dispatcher (docs/decisions/0004-dispatcher.md): it fails check_lockstep, or
/// has irreducible control flow. Errors: a called function in which a lane would wait for others.
Expected<bool> needs_dispatcher(const ir::Module& module, const ir::Function& function,
                                const Specialisation& specialisation);

/// True if lanes may have to wait for others in a called function: for the lanes of a membermask, at a
/// barrier, or in a loop.
bool waits_in_calls(const ir::Module& module, const Specialisation& specialisation);

/// By loop: lanes may iterate in it until another thread does something.
std::vector<bool> find_waiting_loops(const ir::Function& function, const Analysis& analysis);

}  // namespace quern::cpu::analysis
