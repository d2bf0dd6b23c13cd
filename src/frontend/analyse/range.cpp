// SPDX-License-Identifier: Apache-2.0
// Bounds of integers: an index that cannot be negative need not wrap, and values that fit 32 bits are
// computed in 32 bits.
#include <algorithm>

#include "frontend/analyse/program.hpp"
#include "frontend/analyse/range_arithmetic.hpp"

namespace quern::frontend {
namespace {

constexpr std::int64_t kMostExtent = std::int64_t{1} << 47;
constexpr std::int64_t kMostThreads = 1024;
constexpr std::int64_t kMostBlocksX = (std::int64_t{1} << 31) - 1;
constexpr std::int64_t kMostBlocksYZ = 65535;
constexpr int kWalksBeforeWidening = 3;
constexpr int kMostWalks = 16;
constexpr std::int64_t kWord = std::int64_t{1} << 30;  // tried for a growing bound before it is given up

class RangeFinder {
 public:
  explicit RangeFinder(Specialisation& specialisation)
      : specialisation_(specialisation), scope_(*specialisation.scope) {}

  void run() {
    specialisation_.ranges.assign(scope_.function->expr_count, {});
    now_.assign(scope_.versions.size(), kNothing);
    known_ = now_;
    for (std::uint32_t i = 0; i < scope_.versions.size(); ++i)
      if (scope_.versions[i].kind == Version::Kind::parameter)
        known_[i] = now_[i] = of_type(specialisation_.version_types[i]);
    for (int walk = 0; walk < kMostWalks; ++walk) {
      changed_ = false;
      widen_ = walk >= kWalksBeforeWidening;
      give_up_ = walk + 2 >= kMostWalks;
      statements(scope_.function->body);
      now_ = known_;
      if (!changed_) break;
    }
    for (std::uint32_t i = 0; i < known_.size(); ++i)
      if (is_nothing(known_[i]) && scope_.versions[i].kind != Version::Kind::undefined)
        known_[i] = of_type(specialisation_.version_types[i]);
    now_ = known_;
    statements(scope_.function->body);  // expressions under the final bounds
    specialisation_.version_ranges = std::move(known_);
  }

 private:
  struct Saved {
    std::uint32_t version;
    Range range;
  };

  // Statements.

  void statements(const std::vector<Stmt*>& body) {
    const std::size_t mark = saved_.size();
    for (const Stmt* node : body)
      if (!specialisation_.dead[node->id]) statement(*node);
    restore(mark);
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
    const Range left = read == kNoVersion ? Range{} : now_[read];
    specialisation_.ranges[target.id] = left;
    set(scope_.defined(target),
        clip(of_operator(node.op, left, range_of(*node.value)), scope_.defined(target)));
  }

  void branch(const Stmt& node) {
    if (const std::optional<bool> known = specialisation_.known_branch(node)) {
      statements(*known ? node.body : node.orelse);
      return meet(node);
    }
    const std::size_t mark = saved_.size();
    assume(*node.value, true);
    statements(node.body);
    restore(mark);
    assume(*node.value, false);
    statements(node.orelse);
    restore(mark);
    meet(node);
    // If a branch leaves, its condition is false in the code after the 'if'.
    if (leaves(node.body))
      assume(*node.value, false);
    else if (!node.orelse.empty() && leaves(node.orelse))
      assume(*node.value, true);
  }

  void loop(const Stmt& node) {
    meet(node);
    const std::size_t mark = saved_.size();
    if (node.kind == StmtKind::while_) {
      expression(*node.value);
      assume(*node.value, true);
    } else {
      loop_variable(*node.targets[0], *node.value);
    }
    statements(node.body);
    restore(mark);
    meet(node);
    statements(node.orelse);
    meet(node);
  }

  static bool leaves(const std::vector<Stmt*>& body) {
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

  void loop_variable(const Expr& target, const Expr& iterable) {
    const Type type = specialisation_.type(iterable);
    if (type->kind == TypeKind::enumerate && target.kind == ExprKind::tuple && !target.items.empty()) {
      const Expr* start = iterable.kind == ExprKind::call ? enumerate_start(iterable) : nullptr;
      const Range from = start == nullptr ? Range{0, 0, true} : range_of(*start);
      if (!is_nothing(from))
        assign_range(*target.items[0], bounded(from.low, Wide{from.high} + kMostExtent, from.exact));
      for (std::size_t i = 1; i < target.items.size(); ++i) assign(*target.items[i], nullptr);
    } else if (type->kind == TypeKind::range && iterable.kind == ExprKind::call) {
      assign_range(target, of_range(iterable));
    } else {
      assign(target, nullptr);
    }
  }

  Range of_range(const Expr& call) {
    const std::size_t count = call.items.size() - 1;
    const Range start = count >= 2 ? range_of(*call.items[1]) : Range{0, 0, true};
    const Range stop = range_of(*call.items[count >= 2 ? 2 : 1]);
    const Range step = count >= 3 ? range_of(*call.items[3]) : Range{1, 1, true};
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

  void meet(const Stmt& node) {
    for (const std::uint32_t phi : scope_.phis[node.id]) {
      Range range = kNothing;
      for (const Operand& operand : scope_.versions[phi].operands)
        if (specialisation_.arrives(operand)) range = join(range, known_[operand.version]);
      if (!is_nothing(range)) set(phi, range);
    }
  }

  void set(std::uint32_t version, Range range) {
    if (version == kNoVersion || is_nothing(range)) return;
    const Type type = specialisation_.version_types[version];
    if (type == nullptr || !(is_integer(type) || type->kind == TypeKind::boolean)) return;
    Range next = join(known_[version], range);
    if (!(next == known_[version])) {
      changed_ = true;
      const Range limits = of_type(type);
      if (widen_ && !is_nothing(known_[version])) {
        if (next.low < known_[version].low)
          next.low = next.low >= 0 ? 0 : next.low >= -kWord && limits.low < -kWord ? -kWord : limits.low;
        if (next.high > known_[version].high && next.high <= kWord && limits.high > kWord)
          next.high = kWord;
        else if (next.high > known_[version].high)
          next.high = limits.high, next.exact = next.exact && type->bits < 64;
      }
      if (give_up_) next = limits;
    }
    known_[version] = now_[version] = next;
  }

  Range clip(const Range& range, std::uint32_t version) const {
    return version == kNoVersion ? range : clip(range, specialisation_.version_types[version]);
  }

  // A value that does not fit its type has wrapped.
  static Range clip(const Range& range, Type type) {
    if (is_nothing(range)) return range;
    const Range limits = of_type(type);
    if (type != nullptr && is_integer(type) && type->bits == 64) {
      if (type->is_signed || range.low >= 0) return range;
      return limits;
    }
    return range.low >= limits.low && range.high <= limits.high && range.exact ? range : limits;
  }

  void assign_range(const Expr& target, const Range& range) {
    if (target.kind == ExprKind::name) set(scope_.defined(target), clip(range, scope_.defined(target)));
  }

  void assign(const Expr& target, const Expr* value) {
    switch (target.kind) {
      case ExprKind::name: {
        const std::uint32_t version = scope_.defined(target);
        if (version == kNoVersion) return;
        set(version, value != nullptr ? clip(range_of(*value), version)
                                      : of_type(specialisation_.version_types[version]));
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
      const Range range = of_item(*value, index);
      if (!(range == Range{})) return assign_range(target, range);
    }
    assign(target, nullptr);
  }

  /// The range of a tuple's item: shapes and places in the grid.
  Range of_item(const Expr& tuple, std::size_t index) {
    if (tuple.kind == ExprKind::attribute && tuple.name == "shape" &&
        is_array(specialisation_.type(*tuple.items[0])))
      return {0, kMostExtent, true};
    const Type callee = tuple.kind == ExprKind::call ? specialisation_.type(*tuple.items[0]) : nullptr;
    if (callee == nullptr || callee->kind != TypeKind::builtin) return {};
    const Rule rule = callee->builtin->rule;
    if (!is_grid(rule)) return {};
    return {rule == Rule::grid_size ? 1 : 0, (index == 0 ? kMostBlocksX : kMostBlocksYZ) * kMostThreads,
            true};
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

  static Tok opposite(Tok op) {
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
  static Tok mirrored(Tok op) {
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

  void narrow(const Expr& expr, Tok op, const Expr& other) {
    if (expr.kind != ExprKind::name || scope_.load(expr) == kNoVersion) return;
    const Type type = specialisation_.type(expr), other_type = specialisation_.type(other);
    if (!is_integer(type) || !is_integral(other_type)) return;
    // Compared as float64, 64-bit integers of different sign may round.
    if (type->bits == 64 && other_type->bits == 64 && type->is_signed != other_type->is_signed) return;
    const std::uint32_t version = scope_.load(expr);
    Range range = now_[version];
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
    if (is_nothing(range) || range == now_[version]) return;
    range.exact = range.exact && bound.exact;
    saved_.push_back({version, now_[version]});
    now_[version] = range;
  }

  void restore(std::size_t mark) {
    for (; saved_.size() > mark; saved_.pop_back()) now_[saved_.back().version] = saved_.back().range;
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
      const std::size_t mark = saved_.size();
      for (const Expr* item : specialisation_.operands(expr)) {
        expression(*item);
        assume(*item, expr.op == Tok::k_and);
      }
      restore(mark);
    } else {
      for (const Expr* item : expr.items)
        if (item != nullptr) expression(*item);
    }
    const Type type = specialisation_.type(expr);
    if (type == nullptr || !is_integral(type)) return;
    specialisation_.ranges[expr.id] = clip(compute(expr), type);
  }

  void conditional(const Expr& expr) {
    if (const std::optional<bool> known = specialisation_.known_choice(expr)) {
      const Expr& taken = *expr.items[*known ? 1 : 2];
      expression(taken);
      specialisation_.ranges[expr.id] = range_of(taken);
      return;
    }
    expression(*expr.items[0]);
    const std::size_t mark = saved_.size();
    assume(*expr.items[0], true);
    expression(*expr.items[1]);
    restore(mark);
    assume(*expr.items[0], false);
    expression(*expr.items[2]);
    restore(mark);
    specialisation_.ranges[expr.id] =
        clip(join(range_of(*expr.items[1]), range_of(*expr.items[2])), specialisation_.type(expr));
  }

  Range compute(const Expr& expr) {
    const Value& constant = specialisation_.constant(expr);
    if (constant.kind == Value::Kind::integer || constant.kind == Value::Kind::boolean)
      return {constant.integer, constant.integer, true};
    const Type type = specialisation_.type(expr);
    switch (expr.kind) {
      case ExprKind::name:
        return scope_.load(expr) == kNoVersion ? of_type(type) : now_[scope_.load(expr)];
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
          // Converts to the operand's own type: values that do not fit wrap, and are then widened.
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
        return of_attribute(expr);
      case ExprKind::subscript:
        if (is_tuple(specialisation_.type(*expr.items[0]))) {
          const Value& index = specialisation_.constant(*expr.items[1]);
          const Range range =
              of_item(*expr.items[0], index.kind == Value::Kind::integer && index.integer > 0 ? 1 : 0);
          if (!(range == Range{})) return range;
        }
        return of_type(type);
      case ExprKind::call:
        return of_call(expr);
      default:
        return of_type(type);
    }
  }

  Range of_attribute(const Expr& expr) {
    const Type base = specialisation_.type(*expr.items[0]);
    if (is_array(base) && (expr.name == "size" || expr.name == "nbytes")) return {0, kMostExtent, true};
    if (base->kind == TypeKind::dim3) return by_rule(*base->builtin, expr);
    const Value& constant = specialisation_.constant(expr);
    if (constant.kind == Value::Kind::builtin && constant.builtin->facts().stands == Stands::integer)
      return by_rule(*constant.builtin, expr);
    return of_type(specialisation_.type(expr));
  }

  Range of_call(const Expr& expr) {
    const Type callee = specialisation_.type(*expr.items[0]);
    if (callee->kind == TypeKind::dtype && is_integral(specialisation_.type(*expr.items[1])))
      return argument(expr, 1);
    return callee->kind == TypeKind::builtin ? by_rule(*callee->builtin, expr) : rule_by_type(expr);
  }

  // The column `range` of rules.def. `expr` is the call, or the attribute of a built-in without parentheses.

  Range by_rule(const Builtin& row, const Expr& expr) {
    constexpr Range (RangeFinder::* kRanges[])(const Expr&) = {
#define QUERN_RULE(rule, stands, arguments, keywords, infer, emit, range, fold, effects, fails) \
  &RangeFinder::rule_##range,
#include "frontend/builtins/rules.def"
    };
    return (this->*kRanges[static_cast<std::size_t>(row.rule)])(expr);
  }

  const Range& argument(const Expr& call, std::size_t i) { return range_of(*call.items[i]); }
  static std::int64_t most_blocks(const Expr& axis) {
    return axis.name == "x" ? kMostBlocksX : kMostBlocksYZ;
  }

  Range rule_by_type(const Expr& expr) { return of_type(specialisation_.type(expr)); }
  Range rule_thread_idx(const Expr&) { return {0, kMostThreads - 1, true}; }
  Range rule_block_dim(const Expr&) { return {1, kMostThreads, true}; }
  Range rule_block_idx(const Expr& axis) { return {0, most_blocks(axis) - 1, true}; }
  Range rule_grid_dim(const Expr& axis) { return {1, most_blocks(axis), true}; }
  Range rule_warp_size(const Expr&) { return {32, 32, true}; }
  Range rule_lane(const Expr&) { return {0, 31, true}; }
  Range rule_grid(const Expr&) { return {0, kMostBlocksX * kMostThreads, true}; }
  Range rule_grid_size(const Expr&) { return {1, kMostBlocksX * kMostThreads, true}; }
  Range rule_place(const Expr&) { return {0, kMostBlocksX * kMostThreads, true}; }
  Range rule_extent(const Expr&) { return {0, kMostExtent, true}; }
  Range rule_bit_count(const Expr&) { return {0, 64, true}; }
  Range rule_count(const Expr&) { return {0, INT32_MAX, true}; }
  Range rule_word(const Expr&) { return {INT32_MIN, INT32_MAX, true}; }

  Range rule_converted(const Expr& call) {
    return is_integral(specialisation_.type(*call.items[1])) ? argument(call, 1) : rule_by_type(call);
  }

  template <class Choose>
  Range extremum(const Expr& call, const Choose& choose) {
    Range range = argument(call, 1);
    for (std::size_t i = 2; i < call.items.size(); ++i) {
      const Range& other = argument(call, i);
      if (is_nothing(range) || is_nothing(other)) return kNothing;
      range = {choose(range.low, other.low), choose(range.high, other.high), range.exact && other.exact};
    }
    return range;
  }
  Range rule_least(const Expr& call) {
    return extremum(call, [](std::int64_t a, std::int64_t b) { return std::min(a, b); });
  }
  Range rule_greatest(const Expr& call) {
    return extremum(call, [](std::int64_t a, std::int64_t b) { return std::max(a, b); });
  }

  Range rule_magnitude(const Expr& call) {
    const Type type = specialisation_.type(call);
    const Range& of = argument(call, 1);
    if (is_nothing(of)) return kNothing;
    if (is_integer(type) && of.low <= of_type(type).low)
      return of_type(type);  // the least number has no opposite and stays what it is
    return of.low >= 0 ? of : bounded(0, std::max(-Wide{of.low}, Wide{of.high}), of.exact);
  }

  Specialisation& specialisation_;
  const Scope& scope_;
  std::vector<Range> known_;  // by version, wherever it is read
  std::vector<Range> now_;    // the same under the conditions around this place
  std::vector<Saved> saved_;
  bool changed_ = false;
  bool widen_ = false;
  bool give_up_ = false;
};

}  // namespace

void find_ranges(Specialisation& specialisation) { RangeFinder(specialisation).run(); }

}  // namespace quern::frontend
