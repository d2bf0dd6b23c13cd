// SPDX-License-Identifier: Apache-2.0
// Bounds of integers: from their type, at joins of the control flow, and through operators.
#pragma once

#include "frontend/analyse/program.hpp"

namespace quern::frontend {

using Wide = __int128;

inline constexpr Range kNothing{1, 0, true};  ///< empty: no value is known yet

inline bool is_nothing(const Range& range) { return range.low > range.high; }

/// All values of the type; unbounded for types that are not integers.
Range of_type(Type type);

/// The range after a conversion to the type; values that do not fit wrap.
Range clipped(const Range& range, Type type);

/// From `low` to `high`; not exact if they do not fit 64 bits.
Range bounded(Wide low, Wide high, bool exact);

/// The union of both ranges.
Range join(const Range& a, const Range& b);

/// `a op b`; not exact if the result may wrap.
Range of_operator(Tok op, const Range& a, const Range& b);

}  // namespace quern::frontend
