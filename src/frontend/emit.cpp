// SPDX-License-Identifier: Apache-2.0
// Statements.
#include "frontend/emit.hpp"

#include <algorithm>

namespace quern::frontend {
namespace {

bool compound(Tok op) { return op == Tok::plus || op == Tok::minus || op == Tok::times || op == Tok::divide; }

}  // namespace

// Lines.

void Emitter::line(std::string text) {
  lines_.push_back({std::string(static_cast<std::size_t>(indent_) * 2, ' ') + std::move(text), source_line_});
}
void Emitter::open(std::string text) {
  line(std::move(text));
  ++indent_;
}
void Emitter::close(std::string text) {
  --indent_;
  lines_.push_back({std::string(static_cast<std::size_t>(indent_) * 2, ' ') + std::move(text), 0});
}

std::string Emitter::temporary(std::string_view stem) {
  for (;;) {
    const int number = temporaries_[std::string(stem)]++;
    std::string name = number == 0 ? std::string(stem) : fmt::format("{}{}", stem, number + 1);
    if (names_.empty())
      for (const Variable& variable : variables_.all) names_.insert(variable.name);
    if (!names_.contains(name)) return name;
  }
}

// Declarations.

std::string Emitter::header() {
  const Declaration& declaration = *instance_.declaration;
  std::string text;
  if (instance_.kernel) {
    text = "extern \"C\" __global__ ";
    if (!declaration.options.launch_bounds.empty())
      text += fmt::format("__launch_bounds__({}) ", fmt::join(declaration.options.launch_bounds, ", "));
  } else {
    text = declaration.options.force_inline ? "static __device__ __forceinline__ " : "static __device__ ";
  }
  text += fmt::format("{}{} {}(", cpp_type(instance_.result), is_record(instance_.result) ? "&" : "",
                      unit_.function_names.at(&instance_));
  for (std::size_t i = 0; i < instance_.parameters.size(); ++i) {
    const std::uint32_t id = variables_.of_version[i];
    const Type type = instance_.parameters[i];
    if (is_valueless(type)) continue;  // known where it is called
    // A record is the caller's, not a copy; a kernel gets its address.
    const std::string_view by = !is_record(type) ? " " : instance_.kernel ? "* " : "& ";
    text += fmt::format("{}{}{}{}", text.ends_with('(') ? "" : ", ", cpp_type(type), by,
                        id == kNoVariable ? fmt::format("unused{}", i) : variables_.all[id].name);
  }
  return text + ")";
}

std::vector<Line> Emitter::function() {
  source_line_ = unit_.source->line_of(scope_.function->place.begin);
  open(header() + " {");
  for (std::size_t i = 0; i < instance_.parameters.size(); ++i) {
    if (variables_.of_version[i] != kNoVariable) variables_.all[variables_.of_version[i]].declared = true;
    for (const std::uint32_t other : variables_.also[i]) {
      const Variable& parameter = variables_.all[variables_.of_version[i]];
      line(fmt::format(
          "{} = {};", declared(other, true),
          converted(variable(variables_.of_version[i]), parameter.type, variables_.all[other].type).text));
    }
  }
  block(scope_.function->body, 0);
  close();
  return std::move(lines_);
}

bool Emitter::can_declare_here(std::uint32_t id) const {
  const Variable& variable = variables_.all[id];
  return !variable.declared && variable.block == block_ && variable.index == index_;
}

/// Returns the left side of an assignment: the name, with its type where the variable is declared.
std::string Emitter::declared(std::uint32_t id, bool fresh) {
  Variable& variable = variables_.all[id];
  if (!fresh) return variable.name;
  variable.declared = true;
  const std::string type = variable.narrow ? "int" : cpp_type(variable.type);
  if (is_record(variable.type))
    return fmt::format("{}* {}{}", type, variable.written_once() ? "const " : "", variable.name);
  return fmt::format("{}{} {}", variable.written_once() ? "const " : "", type, variable.name);
}

void Emitter::declare(Variable& variable) {
  variable.declared = true;
  const std::string type = variable.narrow ? "int" : cpp_type(variable.type);
  line(fmt::format("{}{} {}{};", type, is_record(variable.type) ? "*" : "", variable.name,
                   variable.maybe_unset ? "{}" : ""));
}

/// Variables that statement `index` of a block mentions first, unless its own assignment declares them.
void Emitter::declare_before(const Stmt& node, std::uint32_t id, int index) {
  const auto found = variables_.at_place.find({id, index});
  if (found == variables_.at_place.end()) return;
  for (const std::uint32_t number : found->second) {
    Variable& variable = variables_.all[number];
    if (variable.declared || variable.storage != nullptr) continue;
    const auto makes = [&](const Expr& target) {
      const std::uint32_t version = scope_.defined(target);
      if (version == kNoVersion) return false;
      const std::vector<std::uint32_t>& also = variables_.also[version];
      return variables_.of_version[version] == number ||
             std::find(also.begin(), also.end(), number) != also.end();
    };
    bool itself = false;
    if (node.kind == StmtKind::assign)
      for (const Expr* target : node.targets) {
        itself = itself || makes(*target);
        for (const Expr* item : target->items)
          if (target->kind == ExprKind::tuple || target->kind == ExprKind::list)
            itself = itself || makes(*item);
      }
    if (!itself) declare(variable);
  }
}

void Emitter::storage_declaration(const Variable& variable) {
  const Storage& storage = *variable.storage;
  std::string extents;
  for (const std::int64_t extent : storage.extents) extents += fmt::format("[{}]", extent);
  const std::string element = cpp_type(storage.element);
  if (storage.space == Space::constant) {
    line(fmt::format("const auto& {} = {};", variable.name, cpp_name(storage.name)));
  } else {
    line(fmt::format("{}{} {}{};", storage.space == Space::shared ? "__shared__ " : "", element,
                     variable.name, extents));
  }
}

// Statements.

void Emitter::block(const std::vector<Stmt*>& body, std::uint32_t id) {
  const std::uint32_t outer = block_;
  const int outer_index = index_;
  block_ = id;
  for (std::size_t i = 0; i < body.size(); ++i) {
    const Stmt& node = *body[i];
    if (instance_.dead[node.id]) continue;
    index_ = static_cast<int>(i);
    source_line_ = unit_.source->line_of(node.place.begin);
    declare_before(node, id, index_);
    statement(node);
  }
  block_ = outer;
  index_ = outer_index;
}

void Emitter::leave_thread() { line(instance_.kernel ? "return;" : "quern::end_thread();"); }

/// A failed assertion or a 'raise' ends the thread; debug builds report the reason.
void Emitter::raise(const Stmt& node) {
  if (!unit_.debug) return leave_thread();
  const bool assertion = node.kind == StmtKind::assert_;
  const Expr* error = assertion ? (node.targets.empty() ? nullptr : node.targets[0]) : node.value;
  std::string text = assertion ? "AssertionError" : "RuntimeError";
  if (error != nullptr && !assertion) {
    const Expr& type = error->kind == ExprKind::call ? *error->items[0] : *error;
    text = std::string(unit_.source->at(type.place));
    error = error->kind == ExprKind::call && error->items.size() > 1 ? error->items[1] : nullptr;
  }
  if (error != nullptr)
    text +=
        ": " + std::string(error->kind == ExprKind::string ? error->name : unit_.source->at(error->place));
  line(fmt::format("quern::debug::raise({}, {});", unit_.source->line_of(node.place.begin), quoted(text)));
}

void Emitter::statement(const Stmt& node) {
  switch (node.kind) {
    case StmtKind::expression:
      return discard(*node.value);
    case StmtKind::assign:
      return assign(node);
    case StmtKind::augmented:
      return augmented(node);
    case StmtKind::if_:
      return if_statement(node, false);
    case StmtKind::while_:
      return while_statement(node);
    case StmtKind::for_:
      return for_statement(node);
    case StmtKind::break_:
      if (!flags_.empty() && !flags_.back().empty()) line(flags_.back() + " = false;");
      line("break;");
      return;
    case StmtKind::continue_:
      line("continue;");
      return;
    case StmtKind::return_:
      if (node.value == nullptr || is_valueless(instance_.type(*node.value))) {
        if (node.value != nullptr) discard(*node.value);
        line("return;");
      } else if (is_array(instance_.result))
        line(fmt::format("return {};", array_value(*node.value).text));
      else if (is_tuple(instance_.result) && instance_.type(*node.value) != instance_.result)
        line(fmt::format("return {}({});", cpp_type(instance_.result), expression(*node.value).text));
      else
        line(fmt::format("return {};", as(*node.value, instance_.result).text));
      return;
    case StmtKind::assert_: {
      const Code test = condition(*node.value);
      open(fmt::format("if (!{}) {{", inside(test, Precedence::unary)));
      raise(node);
      close();
      return;
    }
    case StmtKind::raise:
      return raise(node);
    default:
      return;
  }
}

void Emitter::assign(const Stmt& node) {
  const Expr& value = *node.value;
  if (is_valueless(instance_.type(value))) return discard(value);
  if (node.targets.size() == 1) {
    const Expr& target = *node.targets[0];
    if (target.kind == ExprKind::name) {
      if (is_unused(target)) return discard(value);
      const std::uint32_t id = variables_.of_version[scope_.defined(target)];
      if (id != kNoVariable && variables_.all[id].storage != nullptr) {
        variables_.all[id].declared = true;
        return storage_declaration(variables_.all[id]);
      }
    }
    if (target.kind == ExprKind::tuple || target.kind == ExprKind::list) return assign_tuple(target, value);
    if (target.kind == ExprKind::subscript && is_array(instance_.type(target)))
      return assign_array(target, value);
    const Type type = instance_.type(value);
    Code code = is_array(type) ? array_value(value) : expression(value);
    // The value is computed before the subexpressions of the target.
    if (target.kind != ExprKind::name && effects(target) == Effects::writes &&
        effects(value) != Effects::none)
      code = held(code, type);
    return assign_to(target, code, type);
  }
  const Type type = instance_.type(value);
  Code code = is_array(type) ? array_value(value) : expression(value);
  if (!is_simple(value)) code = held(code, type);
  for (const Expr* target : node.targets) assign_to(*target, code, type);
}

void Emitter::assign_to(const Expr& target, const Code& value, Type type) {
  switch (target.kind) {
    case ExprKind::name:
      return assign_name(target, value, type);
    case ExprKind::tuple:
    case ExprKind::list:
      return unpack(target, value, type);
    default: {
      const Type place = instance_.type(target);
      if (is_array(place)) {
        line(call("quern::fill", {expression(target).text, converted(value, type, place->element).text},
                  Carrier::other)
                 .text +
             ";");
        return;
      }
      const std::size_t mark = held_.size();
      hold_operands(target);
      const Code element = target.kind == ExprKind::subscript ? subscript(target) : attribute(target);
      held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(mark), held_.end());
      line(fmt::format("{} = {};", element.text, converted(value, type, place).text));
    }
  }
}

void Emitter::assign_name(const Expr& target, const Code& value, Type type) {
  const std::uint32_t version = scope_.defined(target);
  const std::uint32_t id = variables_.of_version[version];
  Code held = value;
  const auto text_for = [&](std::uint32_t to) {
    const Type wanted = variables_.all[to].type;
    if (is_record(wanted))
      return held.text.starts_with("(*") ? held.text.substr(2, held.text.size() - 3)
                                         : "&" + inside(held, Precedence::primary);
    if (wanted != type && (is_tuple(wanted) || is_array(wanted)))
      return fmt::format("{}({})", cpp_type(wanted), held.text);
    return converted(held, type, wanted).text;
  };
  if (id != kNoVariable) {
    line(fmt::format("{} = {};", declared(id, can_declare_here(id)), text_for(id)));
    held = variable(id);
  }
  for (const std::uint32_t other : variables_.also[version])
    line(fmt::format("{} = {};", declared(other, can_declare_here(other)), text_for(other)));
}

/// A name that nothing reads before it is assigned again.
bool Emitter::is_unused(const Expr& target) const {
  if (target.kind != ExprKind::name) return false;
  const std::uint32_t version = scope_.defined(target);
  return variables_.of_version[version] == kNoVariable && variables_.also[version].empty();
}

void Emitter::assign_tuple(const Expr& target, const Expr& value) {
  const Type type = instance_.type(value);
  const std::size_t count = target.items.size();
  if (value.kind == ExprKind::tuple || value.kind == ExprKind::list) {
    // The assignments are emitted in order, unless a value reads a variable that an earlier target has
    // changed.
    bool safe = true;
    for (std::size_t i = 0; i < count; ++i) {
      const bool element = target.items[i]->kind != ExprKind::name;
      for (std::size_t k = i + 1; k < count; ++k) {
        const std::uint32_t version = element ? kNoVersion : scope_.defined(*target.items[i]);
        if (element ? !is_simple(*value.items[k])
                    : version != kNoVersion && reads(scope_, *value.items[k], scope_.versions[version].local))
          safe = false;
      }
    }
    std::vector<Code> codes;
    for (std::size_t i = 0; i < count; ++i) {
      const Expr& item = *value.items[i];
      if (safe && is_unused(*target.items[i])) {
        discard(item);
        continue;
      }
      Code code = is_array(instance_.type(item)) ? array_value(item) : expression(item);
      if (!safe) {
        codes.push_back(held(code, instance_.type(item)));
      } else {
        assign_to(*target.items[i], code, instance_.type(item));
      }
    }
    if (!safe)
      for (std::size_t i = 0; i < count; ++i) assign_to(*target.items[i], codes[i], type->items[i]);
    return;
  }
  const Type callee = value.kind == ExprKind::call ? instance_.type(*value.items[0]) : nullptr;
  const Builtin* row = callee != nullptr && callee->kind == TypeKind::builtin ? callee->builtin : nullptr;
  if (row != nullptr && row->rule == Rule::grid) {
    for (std::size_t i = 0; i < count; ++i) assign_to(*target.items[i], grid_axis(*row, i), type->items[i]);
    return;
  }
  if (row != nullptr && row->rule == Rule::divmod && !unit_.debug && is_simple(*value.items[1]) &&
      is_simple(*value.items[2])) {
    const Expr &a = *value.items[1], &b = *value.items[2];
    const bool safe = target.items[0]->kind == ExprKind::name &&
                      !reads(scope_, value, scope_.versions[scope_.defined(*target.items[0])].local);
    if (safe) {
      const Tok ops[] = {Tok::floor_divide, Tok::mod};
      for (std::size_t i = 0; i < count; ++i)
        assign_to(*target.items[i],
                  operate(ops[i], expression(a), instance_.type(a), expression(b), instance_.type(b),
                          type->items[i], Range{}, range(a), range(b)),
                  type->items[i]);
      return;
    }
  }
  if (value.kind == ExprKind::attribute && value.name == "shape" && !is_kept(value)) {
    for (std::size_t i = 0; i < count; ++i)
      assign_to(*target.items[i], extent(*value.items[0], i), type->items[i]);
    return;
  }
  unpack(target, expression(value), type);
}

/// Each item of a tuple that is computed once.
void Emitter::unpack(const Expr& target, const Code& value, Type type) {
  const std::string name = temporary("values");
  line(fmt::format("const auto {} = {};", name, value.text));
  for (std::size_t i = 0; i < target.items.size(); ++i) {
    const Code part = item(Code{name, Precedence::primary, Carrier::other}, i, type->items[i]);
    assign_to(*target.items[i], part, type->items[i]);
  }
}

/// a[1:n] = value: of every element of the view.
void Emitter::assign_array(const Expr& target, const Expr& value) {
  const Type place = instance_.type(target), type = instance_.type(value);
  const std::string view = expression(target).text;
  const auto is_half = [](Type t) { return is_floating(t) && t->bits == 16; };
  if (is_array(type))
    line(call(is_half(place->element) && is_half(type->element) && place->element != type->element
                  ? "quern::copy<float>"
                  : "quern::copy",
              {view, array_value(value).text}, Carrier::other)
             .text +
         ";");
  else
    line(call("quern::fill", {view, as(value, place->element).text}, Carrier::other).text + ";");
}

/// Can C++ say it as `place op= operand`, with the same conversions?
bool Emitter::same_in_cpp(const Stmt& node, const Code& place, const Code& operand, Type result) const {
  const Type left = instance_.type(*node.targets[0]), right = instance_.type(*node.value);
  if (left->kind == TypeKind::boolean) return false;
  const Carrier carrier = carrier_of(result);
  const auto is_half = [](const Code& code) {
    return code.carrier == Carrier::f16 || code.carrier == Carrier::bf16;
  };
  const bool half = is_half(place) || is_half(operand);
  const bool integral = is_integral(left) && is_integral(right);
  const bool bits = node.op == Tok::bit_and || node.op == Tok::bit_or || node.op == Tok::bit_xor;
  if (!compound(node.op) && !(bits && integral)) return false;
  if (integral) return node.op != Tok::divide;
  if (half || promoted(place.carrier, operand.carrier) != carrier) return false;
  if (is_complex(result)) return left == result && node.op != Tok::divide;
  return node.op != Tok::divide || is_floating(left);
}

/// a[i] op= value: the element's place is computed once, and read before the value.
void Emitter::hold_place(const Expr& target, const Expr& value) {
  std::vector<const Expr*> parts = {target.items[0]};
  if (target.kind == ExprKind::subscript) {
    const Expr& index = *target.items[1];
    if (index.kind == ExprKind::tuple)
      parts.insert(parts.end(), index.items.begin(), index.items.end());
    else
      parts.push_back(&index);
  }
  for (const Expr* part : parts) {
    const bool plain = effects(*part) == Effects::none ||
                       (effects(*part) == Effects::reads && effects(value) != Effects::writes);
    const bool repeated = effects(*part) != Effects::none;
    if (!plain || repeated) hold(*part);
  }
}

void Emitter::augmented(const Stmt& node) {
  const Expr &target = *node.targets[0], &value = *node.value;
  const bool is_name = target.kind == ExprKind::name;
  const Type left = instance_.type(target), right = instance_.type(value);
  const auto operation_found = operation(*unit_.types, node.op, left, right);
  if (!operation_found) return;  // tuples cannot come here: they are refused
  const Type result = operation_found->result;
  std::uint32_t id = kNoVariable;
  if (is_name) {
    const std::uint32_t version = scope_.defined(target), read = scope_.load(target);
    id = variables_.of_version[version];
    if (is_unused(target)) {
      if (!unit_.debug || !instance_.may_divide_by_zero(node.op, value)) return discard(value);
      return line(fmt::format("(void)({});", checked_divisor(node.op, expression(value), value).text));
    }
    if (id != variables_.of_version[read] || !variables_.also[version].empty()) id = kNoVariable;
  }
  const std::size_t mark = held_.size();
  if (!is_name) hold_place(target, value);
  const Code place = is_name ? variable(variables_.of_version[scope_.load(target)])
                     : target.kind == ExprKind::subscript ? subscript(target)
                                                          : attribute(target);
  Code before = place;
  if (!is_name && effects(value) == Effects::writes) before = held(place, left);
  Code operand = checked_divisor(node.op, expression(value), value);
  if (is_complex(result)) operand = convert(operand, carrier_of(result));
  held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(mark), held_.end());
  if (before.text == place.text && (!is_name || id != kNoVariable) &&
      same_in_cpp(node, place, operand, result)) {
    line(fmt::format("{} {}= {};", place.text, text_of(node.op), operand.text));
    return;
  }
  const Range all = is_name ? instance_.version_ranges[scope_.defined(target)] : Range{};
  const Range left_range = is_name ? instance_.ranges[target.id] : Range{};
  const Code computed = operate(node.op, before, left, operand, right, result, all, left_range, range(value));
  if (is_name) return assign_name(target, computed, result);
  line(fmt::format("{} = {};", place.text, converted(computed, result, left).text));
}

void Emitter::if_statement(const Stmt& node, bool chained) {
  if (const std::optional<bool> known = instance_.known_branch(node)) {
    const std::vector<Stmt*>& taken = *known ? node.body : node.orelse;
    if (chained) lines_.back().text += " {", ++indent_;
    if (!chained && !taken.empty()) open("{");
    if (!taken.empty()) block(taken, variables_.block_of[&taken]);
    if (chained || !taken.empty()) close();
    return;
  }
  const std::size_t before = lines_.size();
  Code test = condition(*node.value);
  if (chained && lines_.size() != before) {
    // The condition needs lines of its own: an `else` with an `if` inside.
    lines_.resize(before);
    lines_.back().text += " {";
    ++indent_;
    if_statement(node, false);
    close();
    return;
  }
  if (chained)
    lines_.back().text += fmt::format(" if ({}) {{", test.text), lines_.back().source = source_line_;
  else
    line(fmt::format("if ({}) {{", test.text));
  ++indent_;
  block(node.body, node.body.empty() ? 0 : variables_.block_of[&node.body]);
  const bool any_else = std::any_of(node.orelse.begin(), node.orelse.end(), [&](const Stmt* s) {
    return !instance_.dead[s->id] && s->kind != StmtKind::pass;
  });
  if (!any_else) return close();
  const Stmt& first = *node.orelse.front();
  const std::uint32_t inner = variables_.block_of[&node.orelse];
  const bool needs_declarations = variables_.at_place.contains({inner, 0});
  if (node.orelse.size() == 1 && first.kind == StmtKind::if_ && !needs_declarations) {
    source_line_ = unit_.source->line_of(first.place.begin);
    close("} else");
    if_statement(first, true);
    return;
  }
  close("} else {");
  ++indent_;
  block(node.orelse, inner);
  close();
}

}  // namespace quern::frontend
