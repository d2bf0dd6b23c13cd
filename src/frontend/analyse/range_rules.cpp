// SPDX-License-Identifier: Apache-2.0
#include "frontend/analyse/range_rules.hpp"

#include <algorithm>

#include "frontend/analyse/range_arithmetic.hpp"

namespace quern::frontend {
namespace {

constexpr std::int64_t kMostExtent = std::int64_t{1} << 47;
constexpr std::int64_t kMostThreads = 1024;
constexpr std::int64_t kMostBlocksX = (std::int64_t{1} << 31) - 1;
constexpr std::int64_t kMostBlocksYZ = 65535;

const Range& range_of(const Specialisation& specialisation, const Expr& expr) {
  return specialisation.ranges[expr.id];
}
const Range& argument(const Specialisation& specialisation, const Expr& call, std::size_t i) {
  return range_of(specialisation, *call.items[i]);
}
std::int64_t most_blocks(const Expr& axis) { return axis.name == "x" ? kMostBlocksX : kMostBlocksYZ; }

template <class Choose>
Range extremum(const Specialisation& specialisation, const Expr& call, const Choose& choose) {
  Range range = argument(specialisation, call, 1);
  for (std::size_t i = 2; i < call.items.size(); ++i) {
    const Range& other = argument(specialisation, call, i);
    if (is_nothing(range) || is_nothing(other)) return kNothing;
    range = {choose(range.low, other.low), choose(range.high, other.high), range.exact && other.exact};
  }
  return range;
}

Range by_rule(const Specialisation& specialisation, const Builtin& row, const Expr& expr) {
  constexpr Range (*kRanges[])(const Specialisation&, const Expr&) = {
#define QUERN_RULE(rule, syntax, arguments, keywords, infer, emit, range, fold, effects, debug) \
  range_rules::range,
#include "frontend/builtins/rules.def"
  };
  return kRanges[static_cast<std::size_t>(row.rule)](specialisation, expr);
}

}  // namespace

Range range_rules::by_type(const Specialisation& specialisation, const Expr& expr) {
  return of_type(specialisation.type(expr));
}
Range range_rules::thread_idx(const Specialisation&, const Expr&) { return {0, kMostThreads - 1, true}; }
Range range_rules::block_dim(const Specialisation&, const Expr&) { return {1, kMostThreads, true}; }
Range range_rules::block_idx(const Specialisation&, const Expr& axis) {
  return {0, most_blocks(axis) - 1, true};
}
Range range_rules::grid_dim(const Specialisation&, const Expr& axis) { return {1, most_blocks(axis), true}; }
Range range_rules::warp_size(const Specialisation&, const Expr&) { return {32, 32, true}; }
Range range_rules::lane(const Specialisation&, const Expr&) { return {0, 31, true}; }
Range range_rules::grid(const Specialisation&, const Expr&) { return {0, kMostBlocksX * kMostThreads, true}; }
Range range_rules::grid_size(const Specialisation&, const Expr&) {
  return {1, kMostBlocksX * kMostThreads, true};
}
Range range_rules::position(const Specialisation&, const Expr&) {
  return {0, kMostBlocksX * kMostThreads, true};
}
Range range_rules::extent(const Specialisation&, const Expr&) { return {0, kMostExtent, true}; }
Range range_rules::bit_count(const Specialisation&, const Expr&) { return {0, 64, true}; }
Range range_rules::count(const Specialisation&, const Expr&) { return {0, INT32_MAX, true}; }
Range range_rules::word(const Specialisation&, const Expr&) { return {INT32_MIN, INT32_MAX, true}; }

Range range_rules::converted(const Specialisation& specialisation, const Expr& call) {
  return is_integral(specialisation.type(*call.items[1])) ? argument(specialisation, call, 1)
                                                          : by_type(specialisation, call);
}

Range range_rules::least(const Specialisation& specialisation, const Expr& call) {
  return extremum(specialisation, call, [](std::int64_t a, std::int64_t b) { return std::min(a, b); });
}
Range range_rules::greatest(const Specialisation& specialisation, const Expr& call) {
  return extremum(specialisation, call, [](std::int64_t a, std::int64_t b) { return std::max(a, b); });
}

Range range_rules::magnitude(const Specialisation& specialisation, const Expr& call) {
  const Type type = specialisation.type(call);
  const Range& of = argument(specialisation, call, 1);
  if (is_nothing(of)) return kNothing;
  if (is_integer(type) && of.low <= of_type(type).low)
    return of_type(type);  // the negation of the least number is that number
  return of.low >= 0 ? of : bounded(0, std::max(-Wide{of.low}, Wide{of.high}), of.exact);
}

Range range_of_attribute(const Specialisation& specialisation, const Expr& expr) {
  const Type base = specialisation.type(*expr.items[0]);
  if (is_array(base) && (expr.name == "size" || expr.name == "nbytes")) return {0, kMostExtent, true};
  if (base->kind == TypeKind::dim3) return by_rule(specialisation, *base->builtin, expr);
  const Value& constant = specialisation.constant(expr);
  if (constant.kind == Value::Kind::builtin && constant.builtin->facts().syntax == Syntax::integer)
    return by_rule(specialisation, *constant.builtin, expr);
  return of_type(specialisation.type(expr));
}

Range range_of_call(const Specialisation& specialisation, const Expr& expr) {
  const Type callee = specialisation.type(*expr.items[0]);
  if (callee->kind == TypeKind::dtype && is_integral(specialisation.type(*expr.items[1])))
    return argument(specialisation, expr, 1);
  return callee->kind == TypeKind::builtin ? by_rule(specialisation, *callee->builtin, expr)
                                           : range_rules::by_type(specialisation, expr);
}

Range range_of_item(const Specialisation& specialisation, const Expr& tuple, std::size_t index) {
  if (tuple.kind == ExprKind::attribute && tuple.name == "shape" &&
      is_array(specialisation.type(*tuple.items[0])))
    return {0, kMostExtent, true};
  const Type callee = tuple.kind == ExprKind::call ? specialisation.type(*tuple.items[0]) : nullptr;
  if (callee == nullptr || callee->kind != TypeKind::builtin) return {};
  const Rule rule = callee->builtin->rule;
  if (!is_grid(rule)) return {};
  return {rule == Rule::grid_size ? 1 : 0, (index == 0 ? kMostBlocksX : kMostBlocksYZ) * kMostThreads, true};
}

Range range_of_loop(const Specialisation& specialisation, const Expr& call) {
  const std::size_t count = call.items.size() - 1;
  const Range start = count >= 2 ? range_of(specialisation, *call.items[1]) : Range{0, 0, true};
  const Range stop = range_of(specialisation, *call.items[count >= 2 ? 2 : 1]);
  const Range step = count >= 3 ? range_of(specialisation, *call.items[3]) : Range{1, 1, true};
  if (is_nothing(start) || is_nothing(stop) || is_nothing(step)) return kNothing;
  const bool exact = start.exact && stop.exact;
  const auto less = [](std::int64_t v) { return v == INT64_MIN ? v : v - 1; };
  const auto more = [](std::int64_t v) { return v == INT64_MAX ? v : v + 1; };
  Range range;
  if (step.exact && step.low > 0)
    range = {start.low, std::max(start.low, less(stop.high)), exact};
  else if (step.exact && step.high < 0)
    range = {std::min(start.high, more(stop.low)), start.high, exact};
  else
    range = {std::min(start.low, more(stop.low)), std::max(start.high, less(stop.high)), exact};
  return range;
}

Range range_of_enumeration(const Specialisation& specialisation, const Expr& iterable) {
  const Expr* start = iterable.kind == ExprKind::call ? enumerate_start(iterable) : nullptr;
  const Range from = start == nullptr ? Range{0, 0, true} : range_of(specialisation, *start);
  return is_nothing(from) ? kNothing : bounded(from.low, Wide{from.high} + kMostExtent, from.exact);
}

}  // namespace quern::frontend
