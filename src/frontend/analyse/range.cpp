// SPDX-License-Identifier: Apache-2.0
// Finds bounds of integers. An index that cannot be negative need not be wrapped, and values that fit 32 bits
// are computed in 32 bits. The parts:
//
//   range_arithmetic  bounds of types and operators
//   range_rules       bounds of built-ins, attributes and items of tuples
//   version_ranges    bounds of the versions of a function's names, and those under a condition
//   RangeFinder       walks over statements, conditions and expressions until no bound changes
#include <algorithm>

#include "frontend/analyse/program.hpp"
#include "frontend/analyse/range_arithmetic.hpp"
#include "frontend/analyse/range_rules.hpp"
#include "frontend/analyse/version_ranges.hpp"

namespace quern::frontend {
namespace {

constexpr int kWalksBeforeWidening = 3;
constexpr int kMostWalks = 16;

/// True if control never reaches the end of this body.
bool leaves(const std::vector<Stmt*>& body) {
  if (body.empty()) return false;
  const Stmt& last = *body.back();
  switch (last.kind) {
    case StmtKind::return_:
    case StmtKind::raise:
    case StmtKind::break_:
    case StmtKind::continue_:
      return true;
    case StmtKind::if_:
      return leaves(last.body) && leaves(last.orelse);
    default:
      return false;
  }
}

Tok opposite(Tok op) {
  switch (op) {
    case Tok::less:
      return Tok::greater_equal;
    case Tok::less_equal:
      return Tok::greater;
    case Tok::greater:
      return Tok::less_equal;
    case Tok::greater_equal:
      return Tok::less;
    case Tok::equal:
      return Tok::not_equal;
    case Tok::not_equal:
      return Tok::equal;
    default:
      return Tok::end;
  }
}

Tok mirrored(Tok op) {
  switch (op) {
    case Tok::less:
      return Tok::greater;
    case Tok::less_equal:
      return Tok::greater_equal;
    case Tok::greater:
      return Tok::less;
    case Tok::greater_equal:
      return Tok::less_equal;
    default:
      return op;
  }
}

class RangeFinder {
 public:
  explicit RangeFinder(Specialisation& specialisation)
      : specialisation_(specialisation), scope_(*specialisation.scope), versions_(specialisation) {}

  void run() {
    specialisation_.ranges.assign(scope_.function->expr_count, {});
    for (int walk = 0; walk < kMostWalks; ++walk) {
      versions_.begin_walk(walk + 2 >= kMostWalks         ? Growth::to_limits
                           : walk >= kWalksBeforeWidening ? Growth::widened
                                                          : Growth::exact);
      statements(scope_.function->body);
      if (!versions_.changed()) break;
    }
    versions_.finish();
    statements(scope_.function->body);  // visit expressions again, with the final bounds
    specialisation_.version_ranges = versions_.take();
  }

 private:
  // Statements.

  void statements(const std::vector<Stmt*>& body) {
    const std::size_t mark = versions_.mark();
    for (const Stmt* node : body)
      if (!specialisation_.dead[node->id]) statement(*node);
    versions_.restore(mark);
  }

  void statement(const Stmt& node) {
    if (node.value != nullptr && node.kind != StmtKind::raise) expression(*node.value);
    switch (node.kind) {
      case StmtKind::assign:
        for (const Expr* target : node.targets) assign(*target, node.value);
        return;
      case StmtKind::augmented:
        augmented(node);
        return;
      case StmtKind::if_:
        branch(node);
        return;
      case StmtKind::while_:
      case StmtKind::for_:
        loop(node);
        return;
      default:
        return;
    }
  }

  void augmented(const Stmt& node) {
    const Expr& target = *node.targets[0];
    if (target.kind != ExprKind::name) {
      expression(target);
      return;
    }
    const std::uint32_t read = scope_.load(target);
    const Range left = read == kNoVersion ? Range{} : versions_.here(read);
    specialisation_.ranges[target.id] = left;
    versions_.assign(scope_.defined(target), of_operator(node.op, left, range_of(*node.value)));
  }

  void branch(const Stmt& node) {
    if (const std::optional<bool> known = specialisation_.known_branch(node)) {
      statements(*known ? node.body : node.orelse);
      return meet(node);
    }
    const std::size_t mark = versions_.mark();
    assume(*node.value, true);
    statements(node.body);
    versions_.restore(mark);
    assume(*node.value, false);
    statements(node.orelse);
    versions_.restore(mark);
    meet(node);
    // If a branch leaves, its condition is false in the code after the 'if'.
    if (leaves(node.body))
      assume(*node.value, false);
    else if (!node.orelse.empty() && leaves(node.orelse))
      assume(*node.value, true);
  }

  void loop(const Stmt& node) {
    meet(node);
    const std::size_t mark = versions_.mark();
    if (node.kind == StmtKind::while_) {
      expression(*node.value);
      assume(*node.value, true);
    } else {
      loop_variable(*node.targets[0], *node.value);
    }
    statements(node.body);
    versions_.restore(mark);
    meet(node);
    statements(node.orelse);
    meet(node);
  }

  void loop_variable(const Expr& target, const Expr& iterable) {
    const Type type = specialisation_.type(iterable);
    if (type->kind == TypeKind::enumerate && target.kind == ExprKind::tuple && !target.items.empty()) {
      assign_range(*target.items[0], range_of_enumeration(specialisation_, iterable));
      for (std::size_t i = 1; i < target.items.size(); ++i) assign(*target.items[i], nullptr);
    } else if (type->kind == TypeKind::range && iterable.kind == ExprKind::call) {
      assign_range(target, range_of_loop(specialisation_, iterable));
    } else {
      assign(target, nullptr);
    }
  }

  void meet(const Stmt& node) {
    for (const std::uint32_t phi : scope_.phis[node.id]) {
      Range range = kNothing;
      for (const Operand& operand : scope_.versions[phi].operands)
        if (specialisation_.arrives(operand)) range = join(range, versions_.everywhere(operand.version));
      if (!is_nothing(range)) versions_.set(phi, range);
    }
  }

  void assign_range(const Expr& target, const Range& range) {
    if (target.kind == ExprKind::name) versions_.assign(scope_.defined(target), range);
  }

  void assign(const Expr& target, const Expr* value) {
    switch (target.kind) {
      case ExprKind::name: {
        const std::uint32_t version = scope_.defined(target);
        if (version == kNoVersion) return;
        versions_.assign(
            version, value != nullptr ? range_of(*value) : of_type(specialisation_.version_types[version]));
        return;
      }
      case ExprKind::tuple:
      case ExprKind::list:
        for (std::size_t i = 0; i < target.items.size(); ++i) assign_item(*target.items[i], value, i);
        return;
      default:
        expression(target);
    }
  }

  void assign_item(const Expr& target, const Expr* value, std::size_t index) {
    if (value != nullptr && (value->kind == ExprKind::tuple || value->kind == ExprKind::list) &&
        index < value->items.size())
      return assign(target, value->items[index]);
    if (target.kind == ExprKind::name && value != nullptr) {
      const Range range = range_of_item(specialisation_, *value, index);
      if (!(range == Range{})) return assign_range(target, range);
    }
    assign(target, nullptr);
  }

  // Conditions.

  void assume(const Expr& expr, bool truth) {
    if (expr.kind == ExprKind::unary && expr.op == Tok::k_not) return assume(*expr.items[0], !truth);
    if (expr.kind == ExprKind::logical) {
      if ((expr.op == Tok::k_and) == truth)
        for (const Expr* item : specialisation_.operands(expr)) assume(*item, truth);
      return;
    }
    if (expr.kind != ExprKind::compare || (!truth && expr.ops.size() > 1)) return;
    for (std::size_t i = 0; i < expr.ops.size(); ++i) {
      const Tok op = truth ? expr.ops[i] : opposite(expr.ops[i]);
      narrow(*expr.items[i], op, *expr.items[i + 1]);
      narrow(*expr.items[i + 1], mirrored(op), *expr.items[i]);
    }
  }

  void narrow(const Expr& expr, Tok op, const Expr& other) {
    if (expr.kind != ExprKind::name || scope_.load(expr) == kNoVersion) return;
    const Type type = specialisation_.type(expr), other_type = specialisation_.type(other);
    if (!is_integer(type) || !is_integral(other_type)) return;
    // In a comparison as float64, 64-bit integers of different sign may be rounded.
    if (type->bits == 64 && other_type->bits == 64 && type->is_signed != other_type->is_signed) return;
    const std::uint32_t version = scope_.load(expr);
    Range range = versions_.here(version);
    const Range bound = range_of(other);
    if (is_nothing(range) || is_nothing(bound)) return;
    switch (op) {
      case Tok::less:
        if (bound.high != INT64_MIN) range.high = std::min(range.high, bound.high - 1);
        break;
      case Tok::less_equal:
        range.high = std::min(range.high, bound.high);
        break;
      case Tok::greater:
        if (bound.low != INT64_MAX) range.low = std::max(range.low, bound.low + 1);
        break;
      case Tok::greater_equal:
        range.low = std::max(range.low, bound.low);
        break;
      case Tok::equal:
        range.low = std::max(range.low, bound.low);
        range.high = std::min(range.high, bound.high);
        break;
      case Tok::not_equal:
        if (bound.low == bound.high && range.low == bound.low && range.low != INT64_MAX) ++range.low;
        break;
      default:
        return;
    }
    if (is_nothing(range) || range == versions_.here(version)) return;
    range.exact = range.exact && bound.exact;
    versions_.narrow(version, range);
  }

  // Expressions.

  const Range& range_of(const Expr& expr) const { return specialisation_.ranges[expr.id]; }

  void expression(const Expr& expr) {
    if (expr.kind == ExprKind::conditional) {
      conditional(expr);
      return;
    }
    if (expr.kind == ExprKind::logical) {
      // Later operands are evaluated only if the earlier ones allow it, so those conditions hold for them.
      const std::size_t mark = versions_.mark();
      for (const Expr* item : specialisation_.operands(expr)) {
        expression(*item);
        assume(*item, expr.op == Tok::k_and);
      }
      versions_.restore(mark);
    } else {
      for (const Expr* item : expr.items)
        if (item != nullptr) expression(*item);
    }
    const Type type = specialisation_.type(expr);
    if (type == nullptr || !is_integral(type)) return;
    specialisation_.ranges[expr.id] = clipped(compute(expr), type);
  }

  void conditional(const Expr& expr) {
    if (const std::optional<bool> known = specialisation_.known_choice(expr)) {
      const Expr& taken = *expr.items[*known ? 1 : 2];
      expression(taken);
      specialisation_.ranges[expr.id] = range_of(taken);
      return;
    }
    expression(*expr.items[0]);
    const std::size_t mark = versions_.mark();
    assume(*expr.items[0], true);
    expression(*expr.items[1]);
    versions_.restore(mark);
    assume(*expr.items[0], false);
    expression(*expr.items[2]);
    versions_.restore(mark);
    specialisation_.ranges[expr.id] =
        clipped(join(range_of(*expr.items[1]), range_of(*expr.items[2])), specialisation_.type(expr));
  }

  Range compute(const Expr& expr) {
    const Value& constant = specialisation_.constant(expr);
    if (constant.kind == Value::Kind::integer || constant.kind == Value::Kind::boolean)
      return {constant.integer, constant.integer, true};
    const Type type = specialisation_.type(expr);
    switch (expr.kind) {
      case ExprKind::name:
        return scope_.load(expr) == kNoVersion ? of_type(type) : versions_.here(scope_.load(expr));
      case ExprKind::binary: {
        const Range &a = range_of(*expr.items[0]), &b = range_of(*expr.items[1]);
        if (!is_integral(specialisation_.type(*expr.items[0])) ||
            !is_integral(specialisation_.type(*expr.items[1])))
          return of_type(type);
        if (is_nothing(a) || is_nothing(b)) return kNothing;
        return of_operator(expr.op, a, b);
      }
      case ExprKind::unary:
        if (is_nothing(range_of(*expr.items[0]))) return kNothing;
        if (const Type own = specialisation_.type(*expr.items[0]); is_integer(own) && expr.op != Tok::plus) {
          // Converts to the operand's own type: values that do not fit wrap and are then widened.
          if (!own->is_signed) return of_type(own);
          if (own->bits < 64 && expr.op == Tok::minus && range_of(*expr.items[0]).low <= of_type(own).low)
            return of_type(own);
        }
        if (expr.op == Tok::minus) return of_operator(Tok::minus, {0, 0, true}, range_of(*expr.items[0]));
        if (expr.op == Tok::plus) return range_of(*expr.items[0]);
        if (expr.op == Tok::invert && type->is_signed)
          return of_operator(Tok::minus, {-1, -1, true}, range_of(*expr.items[0]));
        return of_type(type);
      case ExprKind::attribute:
        return range_of_attribute(specialisation_, expr);
      case ExprKind::subscript:
        if (is_tuple(specialisation_.type(*expr.items[0]))) {
          const Value& index = specialisation_.constant(*expr.items[1]);
          const Range range = range_of_item(specialisation_, *expr.items[0],
                                            index.kind == Value::Kind::integer && index.integer > 0 ? 1 : 0);
          if (!(range == Range{})) return range;
        }
        return of_type(type);
      case ExprKind::call:
        return range_of_call(specialisation_, expr);
      default:
        return of_type(type);
    }
  }

  Specialisation& specialisation_;
  const Scope& scope_;
  VersionRanges versions_;
};

}  // namespace

void find_ranges(Specialisation& specialisation) { RangeFinder(specialisation).run(); }

}  // namespace quern::frontend
