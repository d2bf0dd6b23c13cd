// SPDX-License-Identifier: Apache-2.0
// Type inference over statements.
#include "frontend/analyse/infer.hpp"

#include <algorithm>

namespace quern::frontend {
namespace {

constexpr int kMostWalks = 50;                  // types only become wider, in a few steps each
constexpr std::size_t kDeepestCalls = 200;      // nested calls of functions
constexpr std::size_t kMostInstances = 10'000;  // each call may double the number of instances

}  // namespace

Inference::Inference(Program& program, Specialisation& specialisation)
    : InferenceContext(program, specialisation), known_(specialisation, program.types()) {}

void Inference::run() {
  const Function& function = *scope_.function;
  specialisation_.types.assign(function.expr_count, nullptr);
  specialisation_.dead = scope_.dead;
  specialisation_.constants.assign(function.expr_count, {});
  specialisation_.version_types.assign(scope_.versions.size(), nullptr);
  specialisation_.version_constants.assign(scope_.versions.size(), {});
  specialisation_.version_storage.assign(scope_.versions.size(), nullptr);
  for (std::size_t i = 0; i < function.parameters.size(); ++i) {
    specialisation_.version_types[i] = specialisation_.parameters[i];
    const bool shape =
        i < specialisation_.values.size() && specialisation_.values[i].kind != Value::Kind::unknown;
    specialisation_.version_constants[i] =
        shape ? specialisation_.values[i] : valueless_constant(specialisation_.parameters[i]);
  }
  int walks = 0;
  do {
    changed_ = false;
    pass();
  } while (changed_ && ++walks < kMostWalks);
  reporting_ = true;
  const std::size_t before = report_.errors();
  if (changed_)
    fail(function.place, "types", "give its variables definite types, as in x = float64(0)",
         "the types in '{}' do not settle", function.name);
  pass();
  if (specialisation_.result == nullptr) specialisation_.result = types_.none;
  specialisation_.failed = specialisation_.failed || report_.errors() > before;
}

void Inference::pass() {
  statements(scope_.function->body);
  if (scope_.falls_off && !leaves(scope_.function->body) && specialisation_.result != nullptr &&
      specialisation_.result != types_.none && !is_error(specialisation_.result)) {
    fail(scope_.function->place, "return", "return a value on every path",
         "'{}' returns {} on some paths and nothing on others", scope_.function->name,
         text_of(specialisation_.result));
    note(return_place_, "a value is returned here");
  }
}

void Inference::statements(const std::vector<Stmt*>& body) {
  bool left = false;
  for (const Stmt* node : body) {
    if (left) specialisation_.dead[node->id] = true;
    if (specialisation_.dead[node->id] || report_.full()) continue;
    statement(*node);
    left = node->kind == StmtKind::if_ && specialisation_.known_branch(*node) &&
           leaves({const_cast<Stmt*>(node)});
  }
}

/// True if every path through these statements leaves the function.
bool Inference::leaves(const std::vector<Stmt*>& body) const {
  for (const Stmt* node : body) {
    if (specialisation_.dead[node->id]) continue;
    if (node->kind == StmtKind::return_ || node->kind == StmtKind::raise) return true;
    if (node->kind != StmtKind::if_) continue;
    const std::optional<bool> known = specialisation_.known_branch(*node);
    if (known ? leaves(*known ? node->body : node->orelse) : leaves(node->body) && leaves(node->orelse))
      return true;
  }
  return false;
}

void Inference::statement(const Stmt& node) {
  switch (node.kind) {
    case StmtKind::expression:
      expression(*node.value);
      return;
    case StmtKind::assign: {
      const Type type = expression(*node.value);
      for (const Expr* target : node.targets) assign(*target, type, node.value->place, node.value);
      return;
    }
    case StmtKind::augmented:
      return augmented(node);
    case StmtKind::function:
      set(scope_.defined(*node.targets[0]), types_.function(&program_.declaration_of(*node.function)));
      return;
    case StmtKind::if_: {
      condition(*node.value);
      const std::optional<bool> known = known_.outcome(*node.value);
      if (known) {
        specialisation_.known_branches[node.id] = *known;
        for (const Stmt* other : *known ? node.orelse : node.body) specialisation_.dead[other->id] = true;
      }
      if (known.value_or(true)) statements(node.body);
      if (!known.value_or(false)) statements(node.orelse);
      for (const std::uint32_t phi : scope_.phis[node.id]) meet(phi);
      return;
    }
    case StmtKind::while_:
    case StmtKind::for_:
      return loop(node);
    case StmtKind::return_:
      return returned(node);
    case StmtKind::assert_:
      condition(*node.value);
      return;
    default:
      return;
  }
}

void Inference::loop(const Stmt& node) {
  for (const std::uint32_t phi : scope_.phis[node.id])
    if (scope_.versions[phi].head == kNoVersion)
      meet(phi);  // the other phis are typed when it is known which paths exist
  if (node.kind == StmtKind::while_) {
    condition(*node.value);
    const std::optional<bool> first = known_.at_first_test(*node.value);
    if (first) specialisation_.known_branches[node.id] = *first;
    if (first == false)
      for (const Stmt* inside : node.body) specialisation_.dead[inside->id] = true;
  } else {
    const Type iterable = expression(*node.value);
    const Type item = iterable == nullptr ? nullptr : item_of(iterable, *node.value);
    assign(*node.targets[0], item, node.value->place, nullptr);
  }
  statements(node.body);
  for (const std::uint32_t phi : scope_.phis[node.id]) meet(phi);
  statements(node.orelse);
  for (const std::uint32_t phi : scope_.phis[node.id]) meet(phi);
}

/// The type of the loop variable of a loop over `iterable`.
Type Inference::item_of(Type iterable, const Expr& expr) {
  // An iterator over other iterables (enumerate, zip) is not a value, so it must be written in the line of
  // the 'for'.
  const bool is_call = expr.kind == ExprKind::call && specialisation_.type(*expr.items[0]) != nullptr &&
                       specialisation_.type(*expr.items[0])->kind == TypeKind::builtin;
  const auto fail_unnamed = [&] {
    return fail(expr.place, "unsupported", "write it in the 'for' line", "{} cannot be chosen or passed on",
                text_of(iterable));
  };
  switch (iterable->kind) {
    case TypeKind::error:
      return iterable;
    case TypeKind::range:
      return is_call ? iterable->element : fail_unnamed();
    case TypeKind::array:
      if (iterable->ndim == 1) return iterable->element;
      if (iterable->ndim > 1)
        return types_.array(iterable->element, iterable->ndim - 1u, iterable->layout == 'C' ? 'C' : 'A',
                            iterable->read_only);
      break;
    case TypeKind::tuple:
      if (iterable->items.empty()) return types_.int64;
      if (is_valueless(iterable))
        return fail(expr.place, "loop", "index the tuple with numbers instead",
                    "a loop cannot go over functions and types");
      if (is_uniform(iterable)) return iterable->items[0];
      return fail(expr.place, "loop", "index the tuple with numbers instead",
                  "a loop cannot go over {}, whose items differ in type", text_of(iterable));
    case TypeKind::enumerate: {
      if (!is_call) return fail_unnamed();
      const Type item = item_of(iterable->items[0], *expr.items[1]);
      return item == nullptr || is_error(item) ? item : types_.tuple({types_.int64, item});
    }
    case TypeKind::zip: {
      if (!is_call) return fail_unnamed();
      std::vector<Type> items;
      for (std::size_t i = 0; i < iterable->items.size(); ++i) {
        items.push_back(item_of(iterable->items[i], *expr.items[i + 1]));
        if (items.back() == nullptr || is_error(items.back())) return items.back();
      }
      return types_.tuple(std::move(items));
    }
    default:
      break;
  }
  return fail(
      expr.place, "loop",
      is_integer(iterable) ? "write range(...) around it" : "loops go over range(...), tuples and arrays",
      "a loop cannot go over {}", text_of(iterable));
}

void Inference::set(std::uint32_t version, Type type) {
  if (type == nullptr) return;
  Type& known = specialisation_.version_types[version];
  Type next = unify(types_, known, type);
  if (next == nullptr) next = type;
  if (next != known) changed_ = true;
  known = next;
}

/// The type of a phi is the common type of its operands.
void Inference::meet(std::uint32_t phi) {
  const Version& version = scope_.versions[phi];
  Type type = nullptr;
  std::uint32_t first = kNoVersion;
  for (const Operand& path : version.operands) {
    const std::uint32_t operand = path.version;
    const Type other = specialisation_.version_types[operand];
    if (other == nullptr || operand == phi || !specialisation_.arrives(path)) continue;
    const Type met = unify(types_, type, other);
    if (met == nullptr) {
      const Local& local = scope_.locals[version.local];
      if (is_valueless(other) && is_valueless(type)) {
        fail(scope_.versions[operand].place, "types", "call each on its own path",
             "'{}' is another function or type here than on another path", local.name);
        note(scope_.versions[first].place, "the other one");
      } else {
        fail(scope_.versions[operand].place, "types", "use two names",
             "'{}' is {} here and {} on another path", local.name, text_of(other), text_of(type));
        note(scope_.versions[first].place, fmt::format("it is {} here", text_of(type)));
      }
      set(phi, reporting_ ? types_.error : nullptr);
      return;
    }
    if (type == nullptr) first = operand;
    type = met;
  }
  set(phi, type);
}

void Inference::assign(const Expr& target, Type type, Place from, const Expr* value) {
  switch (target.kind) {
    case ExprKind::name: {
      const std::uint32_t version = scope_.defined(target);
      if (version == kNoVersion) return;
      set(version, type);
      if (value != nullptr) {
        specialisation_.version_constants[version] = specialisation_.constant(*value);
        known_.assign(version, *value);
        if (const auto found = specialisation_.storages.find(value->id);
            found != specialisation_.storages.end())
          specialisation_.version_storage[version] = &found->second;
      }
      if (type != nullptr && type->kind == TypeKind::string)
        fail(from, "types", "strings can only be printed, or name a record's field",
             "a string cannot be held in a variable");
      if (type != nullptr && (type->kind == TypeKind::range || type->kind == TypeKind::zip ||
                              type->kind == TypeKind::enumerate)) {
        fail(from, "types", "write it in the 'for' line", "{} cannot be held in a variable", text_of(type));
        if (reporting_) specialisation_.version_types[version] = types_.error;
      }
      return;
    }
    case ExprKind::tuple:
    case ExprKind::list:
      return assign_items(target, type, from, value);
    case ExprKind::subscript:
    case ExprKind::attribute:
      return assign_element(target, type, from);
    default:
      return;  // the error was reported before
  }
}

void Inference::assign_items(const Expr& target, Type type, Place from, const Expr* value) {
  if (type == nullptr || is_error(type)) {
    for (const Expr* item : target.items) assign(*item, type, from, nullptr);
    return;
  }
  const bool shape_like = type->kind == TypeKind::array && type->ndim == 1;
  if (!is_tuple(type)) {
    fail(target.place, "types", shape_like ? "assign the elements one by one" : "",
         "{} cannot be unpacked into {} names", text_of(type), target.items.size());
    for (const Expr* item : target.items) assign(*item, reporting_ ? types_.error : nullptr, from, nullptr);
    return;
  }
  if (type->items.size() != target.items.size()) {
    fail(target.place, "types", "name as many as there are values",
         "{} values cannot be unpacked into {} names", type->items.size(), target.items.size());
    for (const Expr* item : target.items) assign(*item, reporting_ ? types_.error : nullptr, from, nullptr);
    return;
  }
  const bool display = value != nullptr && (value->kind == ExprKind::tuple || value->kind == ExprKind::list);
  for (std::size_t i = 0; i < target.items.size(); ++i)
    assign(*target.items[i], type->items[i], display ? value->items[i]->place : from,
           display ? value->items[i] : nullptr);
}

/// Handles a[i] = value and record.field = value.
void Inference::assign_element(const Expr& target, Type type, Place from) {
  const Type assigned = expression(target);
  if (assigned == nullptr || type == nullptr || is_error(assigned) || is_error(type)) return;
  const Expr& base = *target.items[0];
  const Type owner = specialisation_.type(base);
  if (owner != nullptr && owner->kind == TypeKind::tuple) {
    fail(target.place, "types", "make a new tuple, or use cuda.local.array",
         "a tuple's items cannot be changed");
    return;
  }
  if (owner != nullptr && is_array(owner) && owner->read_only) {
    fail(target.place, "types", "copy it to shared or local memory first",
         "'{}' is read-only and cannot be written", shown(base));
    return;
  }
  if (target.kind == ExprKind::attribute && owner != nullptr && owner->kind != TypeKind::record) {
    fail(target.place, "types", "", "the attribute '{}' of {} cannot be assigned", target.name,
         text_of(owner));
    return;
  }
  const Type element = is_array(assigned) ? assigned->element : assigned;
  const Type source =
      is_array(assigned) && is_array(type) && type->ndim <= assigned->ndim ? type->element : type;
  if (converts(source, element) && (is_array(assigned) || !is_array(type))) return;
  fail(from, "types", is_complex(source) && !is_complex(element) ? "store its .real or .imag" : "",
       "{} cannot be stored in an element of {}", text_of(type),
       text_of(is_array(assigned) ? assigned : element));
}

void Inference::augmented(const Stmt& node) {
  const Expr& target = *node.targets[0];
  const Type left = expression(target);
  const Type right = expression(*node.value);
  if (left == nullptr || right == nullptr) return;
  const Type type = binary_types(target, node.op, left, right);
  if (target.kind == ExprKind::name) {
    const std::uint32_t version = scope_.defined(target);
    if (version == kNoVersion) return;
    set(version, type);
    const std::uint32_t read = scope_.load(target);
    if (read != kNoVersion)
      specialisation_.version_constants[version] = computed(node.op, specialisation_.version_constants[read],
                                                            specialisation_.constant(*node.value), type);
  } else if (target.kind == ExprKind::subscript || target.kind == ExprKind::attribute) {
    if (type != nullptr) assign_element(target, type, join(target.place, node.value->place));
  }
}

void Inference::returned(const Stmt& node) {
  const Type type = node.value == nullptr ? types_.none : expression(*node.value);
  if (type == nullptr || is_error(type)) return;
  if (specialisation_.kernel) {
    if (type != types_.none)
      fail(node.value->place, "return", "write results to an array; device functions can return values",
           "a kernel cannot return a value");
    return;
  }
  const Type before = specialisation_.result;
  const Type met = before == nullptr ? type : unify(types_, before, type);
  if (met == nullptr) {
    fail(node.place, "return", "return one type on every path", "'{}' returns {} here and {} elsewhere",
         scope_.function->name, text_of(type), text_of(before));
    if (return_place_.end > 0) note(return_place_, fmt::format("{} is returned here", text_of(before)));
    return;
  }
  if (before == nullptr) return_place_ = node.place;
  if (met != before) changed_ = true;
  specialisation_.result = met;
}

/// Checks the condition of an 'if' or a 'while'.
void Inference::condition(const Expr& expr) {
  const Type type = expression(expr);
  if (type == nullptr || is_error(type) || is_number(type) || type == types_.none || is_tuple(type)) return;
  fail(expr.place, "types",
       is_array(type) ? "compare an element, or its length" : "compare it with something",
       "{} is neither true nor false", text_of(type));
}

std::string InferenceContext::shown(const Expr& expr) const {
  std::string text(report_.source().at(expr.place));
  if (text.size() > 40 || text.find('\n') != std::string::npos) return "this";
  return text;
}

void infer(Program& program, Specialisation& specialisation) { Inference(program, specialisation).run(); }

Declaration& Program::declaration_of(Function& function) {
  Declaration*& known = inner_[&function];
  if (known == nullptr) {
    known = &inner_declarations_.emplace_back();
    known->name = function.name;
    known->place = function.place;
    known->role = Role::device;
    known->function = &function;
  }
  return *known;
}

const Scope* Program::scope_of(Declaration& declaration) {
  std::unique_ptr<Scope>& scope = scopes_[&declaration];
  if (scope == nullptr) {
    names_.report_errors(declaration);
    const Function* function = names_.body_of(declaration);
    const std::size_t before = report().diagnostics().size();
    scope = std::make_unique<Scope>(build_scope(*function, report()));
    if (report().diagnostics().size() > before) declaration.refused = true;
  }
  return scope.get();
}

Specialisation* Program::kernel(Declaration& declaration, const std::vector<Type>& parameters) {
  return make(declaration, parameters, {}, nullptr);
}

Specialisation* Program::specialisation(Declaration& declaration, const std::vector<Type>& parameters,
                                        std::vector<Value> values, Place from) {
  const std::string shapes = keep_shapes(declaration, parameters, values);
  const auto [found, fresh] = known_.try_emplace({&declaration, parameters, shapes}, nullptr);
  if (!fresh) {
    if (found->second != nullptr && found->second->inferring) found->second->recursive = true;
    return found->second;
  }
  Specialisation* made = make(declaration, parameters, std::move(values), &found->second);
  if (made != nullptr && made->failed) {
    std::string types;
    for (const Type type : parameters) types += (types.empty() ? "" : ", ") + text_of(type);
    report().note(from, fmt::format("'{}' is called here with ({})", declaration.name, types));
  }
  return made;
}

Specialisation* Program::make(Declaration& declaration, const std::vector<Type>& parameters,
                              std::vector<Value> values, Specialisation** known) {
  const Scope* scope = scope_of(declaration);
  if (declaration.broken || names_.report_moved(declaration)) return nullptr;
  if (depth_ >= kDeepestCalls) {
    report().error(declaration.place, "calls",
                   fmt::format("functions call each other more than {} deep", kDeepestCalls),
                   "a recursive function must call itself with the same argument types");
    return nullptr;
  }
  if (all_.size() >= kMostInstances) {
    report().error(
        declaration.place, "calls",
        fmt::format("the kernel needs more than {} versions of its functions", kMostInstances),
        "each combination of argument types, and of shapes that are made of arguments, is a version");
    return nullptr;
  }
  Specialisation& made = all_.emplace_back();
  const bool kernel = known == nullptr;
  if (!kernel) *known = &made;
  made.declaration = &declaration;
  made.scope = scope;
  made.parameters = parameters;
  made.values = std::move(values);
  made.kernel = kernel;
  for (const SignatureTypes& signature : declaration.signatures)
    if (signature.parameters == parameters && signature.result != nullptr) made.result = signature.result;
  if (kernel) made.result = types().none;
  made.inferring = true;
  ++depth_;
  infer(*this, made);
  --depth_;
  made.inferring = false;
  made.failed = made.failed || declaration.refused;  // types were inferred only to find more errors
  if (!made.failed) {
    find_ranges(made);
    find_effects(made);
  }
  order_.push_back(&made);
  return &made;
}

}  // namespace quern::frontend
