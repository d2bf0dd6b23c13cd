// SPDX-License-Identifier: Apache-2.0
// Finds bounds of built-ins, attributes and items of tuples from the bounds of their operands.
#pragma once

#include "frontend/analyse/program.hpp"

namespace quern::frontend {

/// The column `range` of rules.def. `expr` is the call, or the attribute of a built-in without parentheses.
namespace range_rules {
#define QUERN_RULE(rule, syntax, arguments, keywords, infer, emit, range, fold, effects, debug) \
  Range range(const Specialisation& specialisation, const Expr& expr);
#include "frontend/builtins/rules.def"
}  // namespace range_rules

Range range_of_call(const Specialisation& specialisation, const Expr& call);
Range range_of_attribute(const Specialisation& specialisation, const Expr& attribute);
/// The range of an item of a tuple: a shape, or a position in the grid. Unbounded for other tuples.
Range range_of_item(const Specialisation& specialisation, const Expr& tuple, std::size_t index);
/// The range of the variable of a loop over range(...).
Range range_of_loop(const Specialisation& specialisation, const Expr& call);
/// The range of the index in a loop over enumerate(...).
Range range_of_enumeration(const Specialisation& specialisation, const Expr& iterable);

}  // namespace quern::frontend
