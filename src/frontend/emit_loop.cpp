// SPDX-License-Identifier: Apache-2.0
// Loops.
#include <algorithm>

#include "frontend/emit.hpp"

namespace quern::frontend {
namespace {

bool defines(const Scope& scope, const Expr& target, std::uint32_t local) {
  if (scope.defined(target) != kNoVersion && scope.versions[scope.defined(target)].local == local)
    return true;
  return (target.kind == ExprKind::tuple || target.kind == ExprKind::list) &&
         std::any_of(target.items.begin(), target.items.end(),
                     [&](const Expr* item) { return defines(scope, *item, local); });
}

bool defines(const Scope& scope, const std::vector<Stmt*>& body, std::uint32_t local) {
  return std::any_of(body.begin(), body.end(), [&](const Stmt* node) {
    if (node->kind != StmtKind::assert_)
      for (const Expr* target : node->targets)
        if (defines(scope, *target, local)) return true;
    return defines(scope, node->body, local) || defines(scope, node->orelse, local);
  });
}

/// Does the loop that these statements are the body of end by a `break` of its own? A loop inside has its
/// own, but not in its `else`.
bool breaks(const std::vector<Stmt*>& body) {
  return std::any_of(body.begin(), body.end(), [](const Stmt* node) {
    if (node->kind == StmtKind::break_) return true;
    return (node->kind == StmtKind::if_ && breaks(node->body)) || breaks(node->orelse);
  });
}

}  // namespace

bool reads_assigned(const Scope& scope, const Expr& expr, const std::vector<Stmt*>& body,
                    const Expr& target) {
  if (const std::uint32_t version = scope.load(expr); version != kNoVersion) {
    const std::uint32_t local = scope.versions[version].local;
    if (defines(scope, target, local) || defines(scope, body, local)) return true;
  }
  return std::any_of(expr.items.begin(), expr.items.end(), [&](const Expr* item) {
    return item != nullptr && reads_assigned(scope, *item, body, target);
  });
}

bool reads(const Scope& scope, const Expr& expr, std::uint32_t local) {
  if (scope.load(expr) != kNoVersion && scope.versions[scope.load(expr)].local == local) return true;
  return std::any_of(expr.items.begin(), expr.items.end(),
                     [&](const Expr* item) { return item != nullptr && reads(scope, *item, local); });
}

std::string Emitter::loop_flag(const Stmt& node) {
  const bool any_else = std::any_of(node.orelse.begin(), node.orelse.end(),
                                    [](const Stmt* s) { return s->kind != StmtKind::pass; });
  if (!any_else || !breaks(node.body)) return {};
  std::string flag = temporary("completed");
  line(fmt::format("bool {} = true;", flag));
  return flag;
}

void Emitter::loop_body(const Stmt& node) { block(node.body, variables_.block_of[&node.body]); }

void Emitter::loop_else(const Stmt& node, const std::string& flag) {
  flags_.pop_back();
  if (node.orelse.empty()) return;
  if (!flag.empty()) open(fmt::format("if ({}) {{", flag));
  block(node.orelse, variables_.block_of[&node.orelse]);
  if (!flag.empty()) close();
}

void Emitter::while_statement(const Stmt& node) {
  if (instance_.known_branch(node) == false) {
    flags_.emplace_back();
    return loop_else(node, {});
  }
  const std::string flag = loop_flag(node);
  flags_.push_back(flag);
  const std::size_t before = lines_.size();
  const Code test = condition(*node.value);
  if (lines_.size() == before) {
    open(fmt::format("while ({}) {{", node.value->kind == ExprKind::integer ? "true" : test.text));
  } else {
    lines_.resize(before);
    open("while (true) {");
    const Code again = condition(*node.value);
    line(fmt::format("if (!{}) break;", inside(again, Precedence::unary)));
  }
  loop_body(node);
  close();
  loop_else(node, flag);
}

void Emitter::for_statement(const Stmt& node) {
  const std::string flag = loop_flag(node);
  flags_.push_back(flag);
  const Type iterable = instance_.type(*node.value);
  const std::size_t mark = held_.size();
  if (node.value->kind == ExprKind::call) hold_operands(*node.value);
  if (iterable->kind == TypeKind::range)
    for_range(node);
  else
    for_items(node);
  held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(mark), held_.end());
  loop_body(node);
  close();
  loop_else(node, flag);
}

/// for (int i = 0; i < n; ++i), if the variable is used only in the loop and the bound does not change in it.
bool Emitter::plain_for(const Stmt& node, const Expr& call) {
  const Expr& target = *node.targets[0];
  const std::uint32_t version = scope_.defined(target), id = variables_.of_version[version];
  const std::size_t count = call.items.size() - 1;
  const auto changes = [&](const Expr& bound) { return reads_assigned(scope_, bound, node.body, target); };
  std::int64_t step = 1;
  const Expr* stride = nullptr;  // a step that is not known, but positive
  if (count == 3) {
    const Value& value = instance_.constant(*call.items[3]);
    step = value.integer;
    if (value.kind != Value::Kind::integer || step == INT64_MIN) {
      stride = call.items[3];
      constexpr std::int64_t kFar = INT64_MAX / 2;
      const Range &by = range(*stride), &end = range(*call.items[2]);
      if (!by.within(1, kFar) || !end.within(-kFar, kFar) || !is_simple(*stride) || changes(*stride))
        return false;
      if (instance_.type(call)->element != unit_.types->int64) return false;
      step = 1;
    }
  }
  if (!variables_.also[version].empty()) return false;
  if (id != kNoVariable) {
    const Variable& variable = variables_.all[id];
    const bool own =
        !variable.declared && variable.block == variables_.block_of[&node.body] && variable.index == -1;
    if (!own || variable.versions != 1) return false;
  }
  const Type element = instance_.type(call)->element;
  const Range bounds = instance_.version_ranges[version];
  const bool narrow = id != kNoVariable
                          ? variables_.all[id].narrow
                          : element == unit_.types->int64 && bounds.within(INT32_MIN, INT32_MAX);
  // The last step goes beyond the end by less than the stride.
  const bool stays = stride == nullptr || range(*call.items[2]).high + range(*stride).high <= INT32_MAX;
  const bool in_int = stays && (narrow || (stride == nullptr && element == unit_.types->int32));
  if (in_int && (step > 1 || step < -1) &&
      !bounds.within(INT32_MIN - std::min<std::int64_t>(step, 0),
                     INT32_MAX - std::max<std::int64_t>(step, 0)))
    return false;
  const Carrier carrier = in_int ? Carrier::i32 : carrier_of(element);
  const Expr& stop = *call.items[count >= 2 ? 2 : 1];
  Code start = count >= 2 ? expression(*call.items[1]) : Code{"0", Precedence::primary, Carrier::i32};
  Code end = expression(stop);
  if (end.carrier == Carrier::u32 && carrier != Carrier::u64)
    end = convert(end,
                  carrier == Carrier::i32 && range(stop).within(0, INT32_MAX) ? Carrier::i32 : Carrier::i64);
  bool stable = is_simple(stop) || instance_.constant(stop).kind == Value::Kind::integer ||
                (stop.kind == ExprKind::subscript && stop.items[0]->kind == ExprKind::attribute &&
                 stop.items[0]->name == "shape") ||
                (stop.kind == ExprKind::call && instance_.type(*stop.items[0])->kind == TypeKind::builtin &&
                 instance_.type(*stop.items[0])->builtin->rule == Rule::len) ||
                (stop.kind == ExprKind::binary && is_simple(*stop.items[0]) && is_simple(*stop.items[1]));
  stable = stable && !changes(stop);
  const std::string name = id == kNoVariable ? temporary("count") : variables_.all[id].name;
  if (id != kNoVariable) variables_.all[id].declared = true;
  if (!stable) {
    const std::string held = temporary("end");
    line(fmt::format("const {} {} = {};", cpp_of(end.carrier), held, end.text));
    end = {held, Precedence::primary, end.carrier};
  }
  if (id != kNoVariable && stride != nullptr && !in_int) variables_.all[id].narrow = false;
  std::string advance = step == 1 ? "++" + name : "--" + name;
  if (step > 1 || step < -1) advance = fmt::format("{} {}= {}", name, step > 0 ? '+' : '-', std::abs(step));
  if (stride != nullptr) advance = fmt::format("{} += {}", name, expression(*stride).text);
  if (count >= 2 && instance_.constant(*call.items[1]).kind != Value::Kind::integer &&
      carrier == Carrier::u64)
    start = convert(start, carrier);
  open(fmt::format("for ({} {} = {}; {} {} {}; {}) {{", cpp_of(carrier), name, start.text, name,
                   step > 0 ? "<" : ">", inside(end, Precedence::shift), advance));
  return true;
}

void Emitter::for_range(const Stmt& node) {
  const Expr& call_expr = *node.value;
  if (plain_for(node, call_expr)) return;
  const Expr& target = *node.targets[0];
  const Type element = instance_.type(call_expr)->element;
  const Carrier carrier = carrier_of(element);
  const std::string range = range_code(call_expr).text;
  const std::uint32_t version = scope_.defined(target), id = variables_.of_version[version];
  if (id != kNoVariable && variables_.also[version].empty()) {
    Variable& variable = variables_.all[id];
    if (!variable.declared && variable.block == variables_.block_of[&node.body] && variable.index == -1) {
      variable.declared = true;
      open(fmt::format("for ({}{} {} : {}) {{", variable.written_once() ? "const " : "",
                       variable.narrow ? "int" : cpp_type(variable.type), variable.name, range));
      return;
    }
  }
  const std::string name = temporary("item");
  open(fmt::format("for (const {} {} : {}) {{", cpp_of(carrier), name, range));
  const std::uint32_t outer = block_;
  const int outer_index = index_;
  block_ = variables_.block_of[&node.body];
  index_ = -1;
  assign_name(target, {name, Precedence::primary, carrier}, element);
  block_ = outer;
  index_ = outer_index;
}

}  // namespace quern::frontend
