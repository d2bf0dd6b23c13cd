// SPDX-License-Identifier: Apache-2.0
// Arithmetic on patterns: the pattern of a sum, a product or a masked value from the patterns of its
// operands. Pure; the callers handle undefined operands.
#pragma once

#include <optional>

#include "cpu/abi/warp_size.hpp"
#include "cpu/analysis/analysis.hpp"
#include "cpu/analysis/range.hpp"

namespace quern::cpu::analysis {

/// An operand: its pattern, its value (which terms use as a coefficient) and its width.
struct Operand {
  const LanePattern& pattern;
  ir::Value value;
  std::uint32_t bits;
};

LanePattern varying_pattern(std::uint32_t bits);
LanePattern uniform_pattern(std::uint32_t bits);
LanePattern constant_pattern(std::uint32_t bits, std::uint64_t value);
/// Bounds of the values; none if they are not integers.
Range range_of(const LanePattern& pattern);
void set_range(LanePattern& pattern, const Range& range);

/// Uniform or affine: base + terms gives the value in every lane.
bool is_linear(const LanePattern& pattern);
/// True if the value is affine and has one term, without a coefficient.
bool has_constant_offsets(const LanePattern& pattern);
/// True if every lane is base | offset: the offsets are constant and below the divisor of the base.
bool are_offsets_below_alignment(const LanePattern& pattern);
/// True if the comparison with a uniform bound has the same result in every lane as for the base: the bound
/// is not between the base and the value of any lane. For example, tid.x < 64 in a one-dimensional block.
bool compares_like_base(ir::Icmp how, const LanePattern& index, const LanePattern& bound);
/// The value in each lane, if it is known at compile time.
std::optional<std::array<std::uint64_t, kWarpSize>> known_lanes(const LanePattern& pattern,
                                                                std::uint32_t bits);
/// The pattern of these values. It is varying if they differ and the type is not an integer wider than one
/// bit (`affine` is false).
LanePattern pattern_of_lanes(const std::array<std::uint64_t, kWarpSize>& lanes, std::uint32_t bits,
                             bool affine);

/// The pattern of a value that is either `a` or `b`, the same one in all lanes.
LanePattern join(const LanePattern& a, const LanePattern& b);
bool same_terms(const LanePattern& a, const LanePattern& b);
/// The distance of the last lane's value from the first one's, if that is the scalar and the distance is
/// known and positive.
std::optional<std::int64_t> dividend_span(const LanePattern& pattern);

/// True if the offsets are at most 2^28: their products with numbers of 32 bits, and sums of a few of these,
/// fit 64 bits, and numbers of 32 bits that are so far apart do not wrap to such distances.
bool has_small_offsets(const Term& term);

/// The least and largest distance of a lane's value from the scalar, if they are known and of 32 bits.
struct Distances {
  std::int64_t least = 0;
  std::int64_t most = 0;
};
std::optional<Distances> distances_of(const LanePattern& pattern);

/// The numbers whose signs decide the sign that a comparison or a shift asks for.
std::vector<ir::Value> numbers_of_sign(const ir::Function& function, const ir::Inst& inst);

/// Computes kind, terms and exactness of results; the caller computes bounds, constants and alignment.
/// `wraps`: see RangeResult.
LanePattern sum(std::uint32_t bits, const LanePattern& a, const LanePattern& b, bool subtract, bool wraps);
LanePattern product(std::uint32_t bits, const Operand& a, const Operand& b, bool wraps);
LanePattern scaled(std::uint32_t bits, const LanePattern& a, std::int64_t factor, bool wraps);
/// For and, or, xor with a constant, if base and offsets have no bit in common.
LanePattern masked(ir::Op op, std::uint32_t bits, const LanePattern& a, std::uint64_t mask);
/// For lshr, ashr by a constant, if base and offsets have no bit in common.
LanePattern shifted_right(std::uint32_t bits, const LanePattern& a, std::uint32_t by);
/// For or, xor: true if no bit is set in both operands, so that the result is their sum.
bool bits_are_disjoint(const LanePattern& a, const LanePattern& b);

/// Merges terms, reduces offsets to the width, and determines exactness from bounds and alignment. Call it
/// after everything else is set.
void normalise(LanePattern& pattern, std::uint32_t bits);

}  // namespace quern::cpu::analysis
