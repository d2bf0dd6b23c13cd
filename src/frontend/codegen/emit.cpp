// SPDX-License-Identifier: Apache-2.0
// Statements.
#include "frontend/codegen/emit.hpp"

#include <algorithm>
#include <utility>

namespace quern::frontend {

std::string Emitter::temporary(std::string_view stem) {
  for (;;) {
    const int number = temporary_counts_[std::string(stem)]++;
    std::string name = number == 0 ? std::string(stem) : fmt::format("{}{}", stem, number + 1);
    if (names_.empty())
      for (const Variable& variable : variables_.all) names_.insert(variable.name);
    if (!names_.contains(name)) return name;
  }
}

// Declarations.

CppText Emitter::header() {
  const Declaration& declaration = *specialisation_.declaration;
  CppText text;
  if (specialisation_.kernel) {
    text = "extern \"C\" __global__ ";
    if (!declaration.options.launch_bounds.empty())
      text += fmt::format("__launch_bounds__({}) ", fmt::join(declaration.options.launch_bounds, ", "));
  } else {
    text = declaration.options.force_inline ? "static __device__ __forceinline__ " : "static __device__ ";
  }
  std::vector<CppText> parameters;
  for (std::size_t i = 0; i < specialisation_.parameters.size(); ++i) {
    const std::uint32_t id = variables_.of_version[i];
    const Type type = specialisation_.parameters[i];
    if (is_valueless(type)) continue;  // its value is known in the callee
    // A record is passed by reference and not copied. A kernel gets its address.
    const std::string_view by = !is_record(type) ? " " : specialisation_.kernel ? "* " : "& ";
    parameters.push_back(cpp_text("{}{}{}", type_text(type), by,
                                  id == kNoVariable ? fmt::format("unused{}", i) : variables_.all[id].name));
  }
  return text + cpp_text("{}{} {}({})", type_text(specialisation_.result),
                         is_record(specialisation_.result) ? "&" : "",
                         unit_.function_names.at(&specialisation_), join(parameters, ", "));
}

std::vector<Line> Emitter::function() {
  lines_.set_source(unit_.source->line_of(scope_.function->place.begin));
  lines_.open(header() + " {");
  for (std::size_t i = 0; i < specialisation_.parameters.size(); ++i) {
    if (variables_.of_version[i] != kNoVariable) variables_.all[variables_.of_version[i]].declared = true;
    for (const std::uint32_t other : variables_.also[i]) {
      const Variable& parameter = variables_.all[variables_.of_version[i]];
      lines_.add(cpp_text(
          "{} = {};", declared(other, true),
          converted(variable(variables_.of_version[i]), parameter.type, variables_.all[other].type).text));
    }
  }
  block(scope_.function->body, 0);
  lines_.close();
  return lines_.take();
}

bool Emitter::can_declare_here(std::uint32_t id) const {
  const Variable& variable = variables_.all[id];
  return !variable.declared && variable.block == block_ && variable.index == index_;
}

/// Returns the left side of an assignment: the name, with its type if the variable is declared here.
CppText Emitter::declared(std::uint32_t id, bool fresh) {
  Variable& variable = variables_.all[id];
  if (!fresh) return variable.name;
  variable.declared = true;
  const CppText type = variable.narrow ? "int" : type_text(variable.type);
  if (is_record(variable.type))
    return cpp_text("{}* {}{}", type, variable.written_once() ? "const " : "", variable.name);
  return cpp_text("{}{} {}", variable.written_once() ? "const " : "", type, variable.name);
}

void Emitter::declare(Variable& variable) {
  variable.declared = true;
  const CppText type = variable.narrow ? "int" : type_text(variable.type);
  lines_.add(cpp_text("{}{} {}{};", type, is_record(variable.type) ? "*" : "", variable.name,
                      variable.maybe_unset ? "{}" : ""));
}

/// Declares variables whose first use is in statement `index` of a block, unless its assignment declares
/// them.
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
  const CppText element = type_text(storage.element);
  if (storage.space == Space::constant) {
    lines_.add(cpp_text("const auto& {} = {};", variable.name, cpp_name(storage.name)));
  } else {
    lines_.add(cpp_text("{}{} {}{};", storage.space == Space::shared ? "__shared__ " : "", element,
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
    if (specialisation_.dead[node.id]) continue;
    index_ = static_cast<int>(i);
    lines_.set_source(unit_.source->line_of(node.place.begin));
    declare_before(node, id, index_);
    statement(node);
  }
  block_ = outer;
  index_ = outer_index;
}

void Emitter::before_block(std::uint32_t id, const std::function<void()>& write) {
  const std::uint32_t outer = std::exchange(block_, id);
  const int outer_index = std::exchange(index_, -1);
  write();
  block_ = outer;
  index_ = outer_index;
}

void Emitter::leave_thread() {
  lines_.add(specialisation_.kernel ? "return;" : device_name("quern::end_thread") + "();");
}

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
  lines_.add(cpp_text("{}({}, {});", device_name("quern::debug::raise"),
                      unit_.source->line_of(node.place.begin), quoted(text)));
}

void Emitter::statement(const Stmt& node) {
  switch (node.kind) {
    case StmtKind::expression:
      return order_.discard(*node.value);
    case StmtKind::assign:
      return assignments_.assign(node);
    case StmtKind::augmented:
      return assignments_.augmented(node);
    case StmtKind::if_:
      return if_statement(node, false);
    case StmtKind::while_:
      return loops_.while_statement(node);
    case StmtKind::for_:
      return loops_.for_statement(node);
    case StmtKind::break_:
      if (!loops_.flag().empty()) lines_.add(loops_.flag() + " = false;");
      lines_.add("break;");
      return;
    case StmtKind::continue_:
      lines_.add("continue;");
      return;
    case StmtKind::return_:
      if (node.value == nullptr || is_valueless(specialisation_.type(*node.value))) {
        if (node.value != nullptr) order_.discard(*node.value);
        lines_.add("return;");
      } else if (is_array(specialisation_.result))
        lines_.add(cpp_text("return {};", arrays_.array_value(*node.value).text));
      else if (is_tuple(specialisation_.result) &&
               specialisation_.type(*node.value) != specialisation_.result)
        lines_.add(
            cpp_text("return {}({});", type_text(specialisation_.result), expression(*node.value).text));
      else
        lines_.add(cpp_text("return {};", as(*node.value, specialisation_.result).text));
      return;
    case StmtKind::assert_: {
      const Code test = truths_.condition(*node.value);
      lines_.open(cpp_text("if (!{}) {{", inside(test, Precedence::unary)));
      raise(node);
      lines_.close();
      return;
    }
    case StmtKind::raise:
      return raise(node);
    default:
      return;
  }
}

void Emitter::if_statement(const Stmt& node, bool chained) {
  if (const std::optional<bool> known = specialisation_.known_branch(node)) {
    const std::vector<Stmt*>& taken = *known ? node.body : node.orelse;
    if (chained) lines_.reopen("} else {");
    if (!chained && !taken.empty()) lines_.open("{");
    if (!taken.empty()) block(taken, variables_.block_of[&taken]);
    if (chained || !taken.empty()) lines_.close();
    return;
  }
  const std::size_t before = lines_.mark();
  Code test = truths_.condition(*node.value);
  if (chained && lines_.mark() != before) {
    // The condition needs additional lines, so it becomes an `if` inside the `else`.
    lines_.cut(before);
    lines_.reopen("} else {");
    if_statement(node, false);
    lines_.close();
    return;
  }
  if (chained)
    lines_.reopen_at_source(cpp_text("}} else if ({}) {{", test.text));
  else
    lines_.open(cpp_text("if ({}) {{", test.text));
  block(node.body, node.body.empty() ? 0 : variables_.block_of[&node.body]);
  const bool any_else = std::any_of(node.orelse.begin(), node.orelse.end(), [&](const Stmt* s) {
    return !specialisation_.dead[s->id] && s->kind != StmtKind::pass;
  });
  if (!any_else) return lines_.close();
  const Stmt& first = *node.orelse.front();
  const std::uint32_t inner = variables_.block_of[&node.orelse];
  const bool needs_declarations = variables_.at_place.contains({inner, 0});
  if (node.orelse.size() == 1 && first.kind == StmtKind::if_ && !needs_declarations) {
    lines_.set_source(unit_.source->line_of(first.place.begin));
    if_statement(first, true);
    return;
  }
  lines_.reopen("} else {");
  block(node.orelse, inner);
  lines_.close();
}

}  // namespace quern::frontend
