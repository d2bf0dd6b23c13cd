// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "frontend/analyse/range_arithmetic.hpp"
#include "frontend/codegen/emit.hpp"

namespace quern::frontend {
namespace {

bool compound(Tok op) { return op == Tok::plus || op == Tok::minus || op == Tok::times || op == Tok::divide; }

}  // namespace

void AssignCode::assign(const Stmt& node) {
  const Expr& value = *node.value;
  if (is_valueless(specialisation_.type(value))) return emitter_.order().discard(value);
  if (node.targets.size() == 1) {
    const Expr& target = *node.targets[0];
    if (target.kind == ExprKind::name) {
      if (is_unused(target)) return emitter_.order().discard(value);
      const std::uint32_t id = variables_.of_version[scope_.defined(target)];
      if (id != kNoVariable && variables_.all[id].storage != nullptr) {
        variables_.all[id].declared = true;
        return emitter_.storage_declaration(variables_.all[id]);
      }
    }
    if (target.kind == ExprKind::tuple || target.kind == ExprKind::list) return assign_tuple(target, value);
    if (target.kind == ExprKind::subscript && is_array(specialisation_.type(target)))
      return assign_array(target, value);
    const Type type = specialisation_.type(value);
    Code code = is_array(type) ? emitter_.arrays().array_value(value) : emitter_.expression(value);
    // Python computes the value before the subexpressions of the target.
    if (target.kind != ExprKind::name && emitter_.effects(target) == Effects::writes &&
        emitter_.effects(value) != Effects::none)
      code = emitter_.order().held(code, type);
    return assign_to(target, code, type);
  }
  const Type type = specialisation_.type(value);
  Code code = is_array(type) ? emitter_.arrays().array_value(value) : emitter_.expression(value);
  if (!emitter_.is_simple(value)) code = emitter_.order().held(code, type);
  for (const Expr* target : node.targets) assign_to(*target, code, type);
}

void AssignCode::assign_to(const Expr& target, const Code& value, Type type) {
  switch (target.kind) {
    case ExprKind::name:
      return assign_name(target, value, type);
    case ExprKind::tuple:
    case ExprKind::list:
      return unpack(target, value, type);
    default: {
      const Type assigned = specialisation_.type(target);
      if (is_array(assigned)) {
        emitter_.lines().add(
            call("quern::fill",
                 {emitter_.expression(target).text, emitter_.converted(value, type, assigned->element).text},
                 CppType::other)
                .text +
            ";");
        return;
      }
      const std::size_t mark = emitter_.order().mark();
      emitter_.order().hold_operands(target);
      const Code element = target.kind == ExprKind::subscript ? emitter_.arrays().subscript(target)
                                                              : emitter_.attribute(target);
      emitter_.order().release(mark);
      emitter_.lines().add(
          cpp_text("{} = {};", element.text, emitter_.converted(value, type, assigned).text));
    }
  }
}

void AssignCode::assign_name(const Expr& target, const Code& value, Type type) {
  const std::uint32_t version = scope_.defined(target);
  const std::uint32_t id = variables_.of_version[version];
  Code held = value;
  const auto text_for = [&](std::uint32_t to) -> CppText {
    const Type wanted = variables_.all[to].type;
    if (is_record(wanted)) return address_of(held);
    if (wanted != type && (is_tuple(wanted) || is_array(wanted)))
      return cpp_text("{}({})", type_text(wanted), held.text);
    return emitter_.converted(held, type, wanted).text;
  };
  if (id != kNoVariable) {
    emitter_.lines().add(
        cpp_text("{} = {};", emitter_.declared(id, emitter_.can_declare_here(id)), text_for(id)));
    held = emitter_.variable(id);
  }
  for (const std::uint32_t other : variables_.also[version])
    emitter_.lines().add(
        cpp_text("{} = {};", emitter_.declared(other, emitter_.can_declare_here(other)), text_for(other)));
}

/// True for a name that nothing reads before it is assigned again.
bool AssignCode::is_unused(const Expr& target) const {
  if (target.kind != ExprKind::name) return false;
  const std::uint32_t version = scope_.defined(target);
  return variables_.of_version[version] == kNoVariable && variables_.also[version].empty();
}

/// True if the items can be assigned in order: no value reads a variable that an earlier target has changed.
bool AssignCode::in_order(const Expr& target, const Expr& value) const {
  const std::size_t count = target.items.size();
  for (std::size_t i = 0; i < count; ++i) {
    const bool element = target.items[i]->kind != ExprKind::name;
    for (std::size_t k = i + 1; k < count; ++k) {
      const std::uint32_t version = element ? kNoVersion : scope_.defined(*target.items[i]);
      if (element ? !emitter_.is_simple(*value.items[k])
                  : version != kNoVersion && reads(scope_, *value.items[k], scope_.versions[version].local))
        return false;
    }
  }
  return true;
}

/// a, b = x, y
void AssignCode::assign_items(const Expr& target, const Expr& value) {
  const Type type = specialisation_.type(value);
  const std::size_t count = target.items.size();
  const bool safe = in_order(target, value);
  std::vector<Code> codes;
  for (std::size_t i = 0; i < count; ++i) {
    const Expr& item = *value.items[i];
    if (safe && is_unused(*target.items[i])) {
      emitter_.order().discard(item);
      continue;
    }
    Code code = is_array(specialisation_.type(item)) ? emitter_.arrays().array_value(item)
                                                     : emitter_.expression(item);
    if (!safe) {
      codes.push_back(emitter_.order().held(code, specialisation_.type(item)));
    } else {
      assign_to(*target.items[i], code, specialisation_.type(item));
    }
  }
  if (!safe)
    for (std::size_t i = 0; i < count; ++i) assign_to(*target.items[i], codes[i], type->items[i]);
}

/// q, r = divmod(a, b) as two operators. Returns false if that is not possible.
bool AssignCode::assign_divmod(const Expr& target, const Expr& value) {
  const Expr &a = *value.items[1], &b = *value.items[2];
  if (unit_.debug || !emitter_.is_simple(a) || !emitter_.is_simple(b)) return false;
  const Expr& first = *target.items[0];
  if (first.kind != ExprKind::name || reads(scope_, value, scope_.versions[scope_.defined(first)].local))
    return false;
  const Type type = specialisation_.type(value);
  const Tok ops[] = {Tok::floor_divide, Tok::mod};
  for (std::size_t i = 0; i < target.items.size(); ++i)
    assign_to(*target.items[i],
              emitter_.operators().operate(ops[i], emitter_.expression(a), specialisation_.type(a),
                                           emitter_.expression(b), specialisation_.type(b), type->items[i],
                                           Range{}, emitter_.range(a), emitter_.range(b)),
              type->items[i]);
  return true;
}

void AssignCode::assign_tuple(const Expr& target, const Expr& value) {
  const Type type = specialisation_.type(value);
  const std::size_t count = target.items.size();
  if (value.kind == ExprKind::tuple || value.kind == ExprKind::list) return assign_items(target, value);
  const Type callee = value.kind == ExprKind::call ? specialisation_.type(*value.items[0]) : nullptr;
  const Builtin* row = callee != nullptr && callee->kind == TypeKind::builtin ? callee->builtin : nullptr;
  if (row != nullptr && is_grid(row->rule)) {
    for (std::size_t i = 0; i < count; ++i) assign_to(*target.items[i], grid_axis(*row, i), type->items[i]);
    return;
  }
  if (row != nullptr && row->rule == Rule::divmod && assign_divmod(target, value)) return;
  if (value.kind == ExprKind::attribute && value.name == "shape" && !emitter_.order().is_kept(value)) {
    for (std::size_t i = 0; i < count; ++i)
      assign_to(*target.items[i], emitter_.arrays().extent(*value.items[0], i), type->items[i]);
    return;
  }
  unpack(target, emitter_.expression(value), type);
}

/// Assigns each item of a tuple, which is evaluated once.
void AssignCode::unpack(const Expr& target, const Code& value, Type type) {
  const std::string name = emitter_.temporary("values");
  emitter_.lines().add(cpp_text("const auto {} = {};", name, value.text));
  for (std::size_t i = 0; i < target.items.size(); ++i) {
    const Code part =
        emitter_.arrays().item(Code{name, Precedence::primary, CppType::other}, i, type->items[i]);
    assign_to(*target.items[i], part, type->items[i]);
  }
}

/// a[1:n] = value assigns to every element of the view.
void AssignCode::assign_array(const Expr& target, const Expr& value) {
  const Type assigned = specialisation_.type(target), type = specialisation_.type(value);
  const CppText view = emitter_.expression(target).text;
  const auto is_half = [](Type t) { return is_floating(t) && t->bits == 16; };
  if (is_array(type))
    emitter_.lines().add(
        call(is_half(assigned->element) && is_half(type->element) && assigned->element != type->element
                 ? "quern::copy<float>"
                 : "quern::copy",
             {view, emitter_.arrays().array_value(value).text}, CppType::other)
            .text +
        ";");
  else
    emitter_.lines().add(
        call("quern::fill", {view, emitter_.as(value, assigned->element).text}, CppType::other).text + ";");
}

/// True if C++ converts in the same way in `assigned op= operand`.
bool AssignCode::same_in_cpp(const Stmt& node, const Code& assigned, const Code& operand, Type result) const {
  const Type left = specialisation_.type(*node.targets[0]), right = specialisation_.type(*node.value);
  if (left->kind == TypeKind::boolean) return false;
  const CppType cpp_type = cpp_type_of(result);
  const auto is_half = [](const Code& code) {
    return code.cpp_type == CppType::f16 || code.cpp_type == CppType::bf16;
  };
  const bool half = is_half(assigned) || is_half(operand);
  const bool integral = is_integral(left) && is_integral(right);
  const bool bits = node.op == Tok::bit_and || node.op == Tok::bit_or || node.op == Tok::bit_xor;
  if (!compound(node.op) && !(bits && integral)) return false;
  if (integral) return node.op != Tok::divide;
  if (half || promoted(assigned.cpp_type, operand.cpp_type) != cpp_type) return false;
  if (is_complex(result)) return left == result && node.op != Tok::divide;
  return node.op != Tok::divide || is_floating(left);
}

/// a[i] op= value: the address of the element is computed once, and the element is read before the value is
/// computed.
void AssignCode::hold_place(const Expr& target, const Expr& value) {
  std::vector<const Expr*> parts = {target.items[0]};
  if (target.kind == ExprKind::subscript) {
    const Expr& index = *target.items[1];
    if (index.kind == ExprKind::tuple)
      parts.insert(parts.end(), index.items.begin(), index.items.end());
    else
      parts.push_back(&index);
  }
  for (const Expr* part : parts) {
    const bool plain =
        emitter_.effects(*part) == Effects::none ||
        (emitter_.effects(*part) == Effects::reads && emitter_.effects(value) != Effects::writes);
    const bool repeated = emitter_.effects(*part) != Effects::none;
    if (!plain || repeated) emitter_.order().hold(*part);
  }
}

void AssignCode::augmented(const Stmt& node) {
  const Expr &target = *node.targets[0], &value = *node.value;
  const bool is_name = target.kind == ExprKind::name;
  const Type left = specialisation_.type(target), right = specialisation_.type(value);
  const auto operation_found = operation(*unit_.types, node.op, left, right);
  if (!operation_found) return;  // an error was reported for tuples
  const Type result = operation_found->result;
  std::uint32_t id = kNoVariable;
  if (is_name) {
    const std::uint32_t version = scope_.defined(target), read = scope_.load(target);
    id = variables_.of_version[version];
    if (is_unused(target)) {
      if (!unit_.debug || !specialisation_.may_divide_by_zero(node.op, value))
        return emitter_.order().discard(value);
      return emitter_.lines().add(
          cpp_text("(void)({});",
                   emitter_.operators().checked_divisor(node.op, emitter_.expression(value), value).text));
    }
    if (id != variables_.of_version[read] || !variables_.also[version].empty()) id = kNoVariable;
  }
  const std::size_t mark = emitter_.order().mark();
  if (!is_name) hold_place(target, value);
  const Code assigned = is_name ? emitter_.variable(variables_.of_version[scope_.load(target)])
                        : target.kind == ExprKind::subscript ? emitter_.arrays().subscript(target)
                                                             : emitter_.attribute(target);
  // The value may change the element, so the element is read first.
  const bool read_first = !is_name && emitter_.effects(value) == Effects::writes;
  const Code before = read_first ? emitter_.order().held(assigned, left) : assigned;
  Code operand = emitter_.operators().checked_divisor(node.op, emitter_.expression(value), value);
  if (is_complex(result)) operand = convert(operand, cpp_type_of(result));
  emitter_.order().release(mark);
  const Range left_range = is_name ? specialisation_.ranges[target.id] : of_type(left);
  if (!read_first && (!is_name || id != kNoVariable) && same_in_cpp(node, assigned, operand, result)) {
    const CppType in = promoted(assigned.cpp_type, operand.cpp_type);
    if (is_integral(left) && OperatorCode::may_wrap(node.op, left_range, emitter_.range(value), in)) {
      const bool wide = assigned.cpp_type == CppType::i64 || assigned.cpp_type == CppType::u64;
      const Code wrapped = wrapping(node.op, assigned, operand, wide ? CppType::i64 : CppType::i32);
      return emitter_.lines().add(
          cpp_text("{} = {};", assigned.text, convert(wrapped, assigned.cpp_type).text));
    }
    emitter_.lines().add(cpp_text("{} {}= {};", assigned.text, text_of(node.op), operand.text));
    return;
  }
  const Range all = is_name ? specialisation_.version_ranges[scope_.defined(target)] : Range{};
  const Code computed = emitter_.operators().operate(node.op, before, left, operand, right, result, all,
                                                     left_range, emitter_.range(value));
  if (is_name) return assign_name(target, computed, result);
  emitter_.lines().add(cpp_text("{} = {};", assigned.text, emitter_.converted(computed, result, left).text));
}

}  // namespace quern::frontend
