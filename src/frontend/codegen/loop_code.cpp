// SPDX-License-Identifier: Apache-2.0
// Loops.
#include <algorithm>

#include "frontend/codegen/emit.hpp"

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

/// True if the loop with this body contains its own `break`. A `break` in a nested loop belongs to that loop,
/// but one in the nested loop's `else` does not.
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

std::string LoopCode::loop_flag(const Stmt& node) {
  const bool any_else = std::any_of(node.orelse.begin(), node.orelse.end(),
                                    [](const Stmt* s) { return s->kind != StmtKind::pass; });
  if (!any_else || !breaks(node.body)) return {};
  std::string flag = emitter_.temporary("completed");
  emitter_.lines().add(cpp_text("bool {} = true;", flag));
  return flag;
}

void LoopCode::loop_body(const Stmt& node) { emitter_.block(node.body, variables_.block_of[&node.body]); }

void LoopCode::loop_else(const Stmt& node, const std::string& flag) {
  flags_.pop_back();
  if (node.orelse.empty()) return;
  if (!flag.empty()) emitter_.lines().open(cpp_text("if ({}) {{", flag));
  emitter_.block(node.orelse, variables_.block_of[&node.orelse]);
  if (!flag.empty()) emitter_.lines().close();
}

void LoopCode::while_statement(const Stmt& node) {
  if (specialisation_.known_branch(node) == false) {
    flags_.emplace_back();
    return loop_else(node, {});
  }
  const std::string flag = loop_flag(node);
  flags_.push_back(flag);
  const std::size_t before = emitter_.lines().mark();
  const Code test = emitter_.truths().condition(*node.value);
  if (emitter_.lines().mark() == before) {
    emitter_.lines().open(
        cpp_text("while ({}) {{", node.value->kind == ExprKind::integer ? "true" : test.text));
  } else {
    emitter_.lines().cut(before);
    emitter_.lines().open("while (true) {");
    const Code again = emitter_.truths().condition(*node.value);
    emitter_.lines().add(cpp_text("if (!{}) break;", inside(again, Precedence::unary)));
  }
  loop_body(node);
  emitter_.lines().close();
  loop_else(node, flag);
}

void LoopCode::for_statement(const Stmt& node) {
  const std::string flag = loop_flag(node);
  flags_.push_back(flag);
  const Type iterable = specialisation_.type(*node.value);
  const std::size_t mark = emitter_.order().mark();
  if (node.value->kind == ExprKind::call) emitter_.order().hold_operands(*node.value);
  if (iterable->kind == TypeKind::range)
    for_range(node);
  else
    for_items(node);
  emitter_.order().release(mark);
  loop_body(node);
  emitter_.lines().close();
  loop_else(node, flag);
}

/// Emits for (int i = 0; i < n; ++i), if the variable is used only in the loop and the bound does not change
/// in it.
bool LoopCode::plain_for(const Stmt& node, const Expr& call) {
  const std::uint32_t version = scope_.defined(*node.targets[0]), id = variables_.of_version[version];
  const std::size_t count = call.items.size() - 1;
  const std::optional<Step> by = step_of(node, call);
  if (!by || !owns_variable(node)) return false;
  const std::optional<CppType> counter = counter_type(call, version, *by);
  if (!counter) return false;
  const CppType cpp_type = *counter;
  const Expr& stop = *call.items[count >= 2 ? 2 : 1];
  Code start = count >= 2 ? emitter_.expression(*call.items[1]) : integer_code(0);
  Code end = emitter_.expression(stop);
  if (end.cpp_type == CppType::u32 && cpp_type != CppType::u64)
    end = convert(end, cpp_type == CppType::i32 && emitter_.range(stop).within(0, INT32_MAX) ? CppType::i32
                                                                                             : CppType::i64);
  const std::string name = id == kNoVariable ? emitter_.temporary("count") : variables_.all[id].name;
  if (id != kNoVariable) variables_.all[id].declared = true;
  if (!is_stable(node, stop)) {
    const std::string held = emitter_.temporary("end");
    emitter_.lines().add(cpp_text("const {} {} = {};", cpp_of(end.cpp_type), held, end.text));
    end = {held, Precedence::primary, end.cpp_type};
  }
  if (id != kNoVariable && by->stride != nullptr && cpp_type != CppType::i32)
    variables_.all[id].narrow = false;
  const std::int64_t step = by->length;
  CppText advance = step == 1 ? "++" + name : "--" + name;
  if (step > 1 || step < -1) advance = cpp_text("{} {}= {}", name, step > 0 ? '+' : '-', std::abs(step));
  if (by->stride != nullptr) advance = cpp_text("{} += {}", name, emitter_.expression(*by->stride).text);
  if (count >= 2 && specialisation_.constant(*call.items[1]).kind != Value::Kind::integer &&
      cpp_type == CppType::u64)
    start = convert(start, cpp_type);
  emitter_.lines().open(cpp_text("for ({} {} = {}; {} {} {}; {}) {{", cpp_of(cpp_type), name, start.text,
                                 name, step > 0 ? "<" : ">", inside(end, Precedence::shift), advance));
  return true;
}

/// The step of a range; nothing if its sign is not known or it may overflow.
std::optional<LoopCode::Step> LoopCode::step_of(const Stmt& node, const Expr& call) const {
  if (call.items.size() != 4) return Step{};
  const Expr& expr = *call.items[3];
  const Value& value = specialisation_.constant(expr);
  if (value.kind == Value::Kind::integer && value.integer != INT64_MIN) return Step{value.integer, nullptr};
  constexpr std::int64_t kFar = INT64_MAX / 2;
  if (!emitter_.range(expr).within(1, kFar) || !emitter_.range(*call.items[2]).within(-kFar, kFar) ||
      !emitter_.is_simple(expr) || reads_assigned(scope_, expr, node.body, *node.targets[0]) ||
      specialisation_.type(call)->element != unit_.types->int64)
    return std::nullopt;
  return Step{1, &expr};
}

/// True if only the loop uses its counting variable.
bool LoopCode::owns_variable(const Stmt& node) {
  const std::uint32_t version = scope_.defined(*node.targets[0]), id = variables_.of_version[version];
  if (!variables_.also[version].empty()) return false;
  if (id == kNoVariable) return true;
  const Variable& variable = variables_.all[id];
  return !variable.declared && variable.block == variables_.block_of[&node.body] && variable.index == -1 &&
         variable.versions == 1;
}

/// The C++ type of the counter; nothing if int would overflow at the last step.
std::optional<CppType> LoopCode::counter_type(const Expr& call, std::uint32_t version, const Step& by) const {
  const std::uint32_t id = variables_.of_version[version];
  const std::int64_t step = by.length;
  const Type element = specialisation_.type(call)->element;
  const Range bounds = specialisation_.version_ranges[version];
  const bool narrow = id != kNoVariable
                          ? variables_.all[id].narrow
                          : element == unit_.types->int64 && bounds.within(INT32_MIN, INT32_MAX);
  // The last step exceeds the end by less than the stride.
  const bool stays = by.stride == nullptr ||
                     emitter_.range(*call.items[2]).high + emitter_.range(*by.stride).high <= INT32_MAX;
  const bool in_int = stays && (narrow || (by.stride == nullptr && element == unit_.types->int32));
  if (in_int && !bounds.within(INT32_MIN - std::min<std::int64_t>(step, 0),
                               INT32_MAX - std::max<std::int64_t>(step, 0)))
    return std::nullopt;
  // The same in 64 bits, where the end is a number that is known to be near the limit.
  const Range& end = emitter_.range(*call.items[call.items.size() > 2 ? 2 : 1]);
  const bool leaves = step > 0 ? end.low > INT64_MAX - (step - 1) : end.high < INT64_MIN - (step + 1);
  if (!in_int && leaves) return std::nullopt;
  return in_int ? CppType::i32 : cpp_type_of(element);
}

/// True if the end of a range may be computed again in each iteration.
bool LoopCode::is_stable(const Stmt& node, const Expr& stop) const {
  const bool cheap =
      emitter_.is_simple(stop) || specialisation_.constant(stop).kind == Value::Kind::integer ||
      (stop.kind == ExprKind::subscript && stop.items[0]->kind == ExprKind::attribute &&
       stop.items[0]->name == "shape") ||
      (stop.kind == ExprKind::call && specialisation_.type(*stop.items[0])->kind == TypeKind::builtin &&
       specialisation_.type(*stop.items[0])->builtin->rule == Rule::len) ||
      (stop.kind == ExprKind::binary && emitter_.is_simple(*stop.items[0]) &&
       emitter_.is_simple(*stop.items[1]));
  return cheap && !reads_assigned(scope_, stop, node.body, *node.targets[0]);
}

void LoopCode::for_range(const Stmt& node) {
  const Expr& call_expr = *node.value;
  if (plain_for(node, call_expr)) return;
  const Expr& target = *node.targets[0];
  const Type element = specialisation_.type(call_expr)->element;
  const CppType cpp_type = cpp_type_of(element);
  const CppText range = range_code(call_expr).text;
  const std::uint32_t version = scope_.defined(target), id = variables_.of_version[version];
  if (id != kNoVariable && variables_.also[version].empty()) {
    Variable& variable = variables_.all[id];
    if (!variable.declared && variable.block == variables_.block_of[&node.body] && variable.index == -1) {
      variable.declared = true;
      emitter_.lines().open(cpp_text("for ({}{} {} : {}) {{", variable.written_once() ? "const " : "",
                                     variable.narrow ? "int" : type_text(variable.type), variable.name,
                                     range));
      return;
    }
  }
  const std::string name = emitter_.temporary("item");
  emitter_.lines().open(cpp_text("for (const {} {} : {}) {{", cpp_of(cpp_type), name, range));
  emitter_.before_block(variables_.block_of[&node.body], [&] {
    emitter_.assignments().assign_name(target, {name, Precedence::primary, cpp_type}, element);
  });
}

// Loops over arrays and tuples, also with nested enumerate and zip, use one index.

Code LoopCode::range_code(const Expr& expr) {
  std::vector<CppText> bounds;
  for (std::size_t i = 1; i < expr.items.size(); ++i)
    bounds.push_back(emitter_.expression(*expr.items[i]).text);
  const CppType cpp_type = cpp_type_of(specialisation_.type(expr)->element);
  return call_of(cpp_text("{}<{}>", device_name("quern::range"), cpp_of(cpp_type)), bounds, CppType::other);
}

/// An array, a tuple or a range. It is evaluated before the loop if that has a cost.
LoopCode::Items LoopCode::plain_items(const Stmt& loop, const Expr& source, const std::string& index) {
  const Type of = specialisation_.type(source);
  Code code;
  if (of->kind == TypeKind::range) {
    code = range_code(source);
  } else {
    code = is_array(of) ? emitter_.arrays().array_value(source) : emitter_.expression(source);
  }
  // The body may rebind the name, but the loop iterates over the original value.
  if (!emitter_.is_simple(source) || reads_assigned(scope_, source, loop.body, *loop.targets[0])) {
    const std::string held = emitter_.temporary("items");
    emitter_.lines().add(cpp_text("const auto {} = {};", held, code.text));
    code = {held, Precedence::primary, code.cpp_type};
  }
  const CppText name = inside(code, Precedence::primary);
  if (of->kind == TypeKind::range)
    return {of->element,
            name + ".size()",
            {cpp_text("{}[{}]", name, index), Precedence::primary, cpp_type_of(of->element)},
            {}};
  if (is_tuple(of)) {
    const Type item = of->items.empty() ? unit_.types->int64 : of->items[0];
    return {item,
            cpp_text("{}LL", of->items.size()),
            call("quern::item_at", {code.text, index}, cpp_type_of(item)),
            {}};
  }
  const CppText length = cpp_text("{}.extents[0]", name);
  if (of->ndim == 1)
    return {of->element,
            length,
            {cpp_text("{}[{}]", name, index), Precedence::primary, cpp_type_of(of->element)},
            {}};
  const Type item =
      unit_.types->array(of->element, of->ndim - 1u, of->layout == 'C' ? 'C' : 'A', of->read_only);
  std::vector<CppText> arguments = {code.text, index};
  for (unsigned axis = 1; axis < of->ndim; ++axis)
    arguments.push_back(device_name("quern::slice_all") + "{}");
  return {
      item,
      length,
      call_of(cpp_text("{}<{}>", device_name("quern::subview"), type_text(item)), arguments, CppType::other),
      {}};
}

/// Iterates over all parts in parallel, to the end of the shortest one.
LoopCode::Items LoopCode::zipped(std::vector<Items> parts) {
  Items result;
  std::vector<Type> types;
  for (const Items& part : parts) {
    types.push_back(part.type);
    if (part.length.empty()) continue;
    result.length =
        result.length.empty() ? part.length : call("min", {result.length, part.length}, CppType::i64).text;
  }
  result.type = unit_.types->tuple(std::move(types));
  result.parts = std::move(parts);
  return result;
}

LoopCode::Items LoopCode::items_of(const Stmt& loop, const Expr& source, const std::string& index) {
  const TypeKind kind = specialisation_.type(source)->kind;
  if (kind != TypeKind::enumerate && kind != TypeKind::zip) return plain_items(loop, source, index);
  std::vector<Items> parts;
  if (kind == TypeKind::zip) {
    for (std::size_t i = 1; i < source.items.size(); ++i)
      parts.push_back(items_of(loop, *source.items[i], index));
    return zipped(std::move(parts));
  }
  parts.push_back(items_of(loop, *source.items[1], index));
  Items number{unit_.types->int64, {}, {index, Precedence::primary, CppType::i64}, {}};
  if (const Expr* start = enumerate_start(source)) {
    const bool changes = reads_assigned(scope_, *start, loop.body, *loop.targets[0]);
    const Code first = changes
                           ? emitter_.order().held(emitter_.expression(*start), specialisation_.type(*start))
                           : emitter_.order().once(*start);
    number.code = wrapping(Tok::plus, number.code, first, CppType::i64);
  }
  parts.insert(parts.begin(), std::move(number));
  return zipped(std::move(parts));
}

/// All items as one value: a tuple for enumerate and zip.
Code LoopCode::whole_item(const Items& items) {
  if (items.parts.empty()) return items.code;
  std::vector<CppText> parts;
  for (const Items& part : items.parts) parts.push_back(whole_item(part).text);
  return braced(type_text(items.type), parts);
}

void LoopCode::assign_item(const Expr& target, const Items& items) {
  const bool several = target.kind == ExprKind::tuple || target.kind == ExprKind::list;
  // Assigning to a target that is not a name could change variables that later parts read.
  const bool names = std::all_of(target.items.begin(), target.items.end(), [](const Expr* each) {
    return each->kind == ExprKind::name || each->kind == ExprKind::tuple || each->kind == ExprKind::list;
  });
  if (!several || items.parts.empty() || !names)
    return emitter_.assignments().assign_to(target, whole_item(items), items.type);
  for (std::size_t i = 0; i < target.items.size(); ++i) assign_item(*target.items[i], items.parts[i]);
}

void LoopCode::for_items(const Stmt& node) {
  const std::string index = emitter_.temporary("k");
  const Items items = items_of(node, *node.value, index);
  emitter_.lines().open(cpp_text("for (long long {0} = 0; {0} < {1}; ++{0}) {{", index, items.length));
  emitter_.before_block(variables_.block_of[&node.body], [&] { assign_item(*node.targets[0], items); });
}

}  // namespace quern::frontend
