// SPDX-License-Identifier: Apache-2.0
// Arithmetic on shapes: the shape of a sum, a product or a masked value from the shapes of its operands.
// Pure; the callers handle undefined operands.
#pragma once

#include <optional>

#include "cpu/analysis/analysis.hpp"
#include "cpu/analysis/range.hpp"

namespace quern::cpu::analysis {

/// An operand: its shape, which value it is (a coefficient is named by it) and how wide.
struct Operand {
  const Shape& shape;
  ir::Value value;
  std::uint32_t bits;
};

Shape varying_shape(std::uint32_t bits);
Shape uniform_shape(std::uint32_t bits);
Shape constant_shape(std::uint32_t bits, std::uint64_t value);
/// Bounds of the type; none for values that are not integers.
Range range_of(const Shape& shape);
void set_range(Shape& shape, const Range& range);

/// Uniform or affine: base + terms says everything.
bool is_linear(const Shape& shape);
/// Affine with one term, without a coefficient.
bool has_constant_pattern(const Shape& shape);
/// True if every lane is base | pattern: a constant pattern is below the divisor of the base.
bool is_pattern_below_alignment(const Shape& shape);
/// The value in each lane, if it is known at compile time.
std::optional<std::array<std::uint64_t, 32>> known_lanes(const Shape& shape, std::uint32_t bits);
/// The shape of these values; varying if they differ and the type is not an integer wider than a bit
/// (`affine` false).
Shape shape_of_lanes(const std::array<std::uint64_t, 32>& lanes, std::uint32_t bits, bool affine);

/// The shape of a value that is either `a` or `b`, the same one in all lanes.
Shape join(const Shape& a, const Shape& b);
bool same_terms(const Shape& a, const Shape& b);

/// Kind, terms and exactness of results; bounds, constants and alignment are the caller's. `wraps`: see
/// RangeResult.
Shape sum(std::uint32_t bits, const Shape& a, const Shape& b, bool subtract, bool wraps);
Shape product(std::uint32_t bits, const Operand& a, const Operand& b, bool wraps);
Shape scaled(std::uint32_t bits, const Shape& a, std::int64_t factor, bool wraps);
/// and, or, xor with a constant, if base and pattern have no bit in common.
Shape masked(ir::Op op, std::uint32_t bits, const Shape& a, std::uint64_t mask);
/// lshr, ashr by a constant, likewise.
Shape shifted_right(std::uint32_t bits, const Shape& a, std::uint32_t by);
/// or, xor: true if no bit is set in both, so that it is a sum.
bool bits_are_disjoint(const Shape& a, const Shape& b);

/// Merges terms, brings patterns into the width, and finds exactness from bounds and alignment. After
/// everything else is set.
void normalise(Shape& shape, std::uint32_t bits);

}  // namespace quern::cpu::analysis
