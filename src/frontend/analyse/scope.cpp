// SPDX-License-Identifier: Apache-2.0
#include "frontend/analyse/scope.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>

namespace quern::frontend {
namespace {

using Environment = std::vector<std::uint32_t>;  // by local: its current version
using Flow = std::optional<Environment>;         // absent if the code is unreachable

struct Refusal {
  std::string_view what;
  std::string_view hint;
};
constexpr Refusal kRefusals[] = {
    {"a function that takes names from the one around it, as a value",
     "pass those names as arguments; calling it needs no change"},
    {"a list comprehension", "write a loop; an array of constant shape comes from cuda.local.array"},
    {"a generator expression", "write a loop"},
    {"a dict or set", "use arrays, or a record type"},
    {"an f-string", "give print the values one after the other: print(\"x =\", x)"},
    {"a bytes literal", "use an array of uint8"},
    {"an assignment expression ':='", "assign in a statement of its own"},
    {"unpacking with '*'", "name each value"},
    {"unpacking arguments with '**'", "name each argument"},
    {"'yield'", "write results to an array"},
    {"'await'", "kernels have no coroutines"},
    {"'try'", "kernels cannot catch exceptions; test with 'if' before"},
    {"'with'", "kernels have no context managers"},
    {"a class", "use tuples, arrays or record types"},
    {"a decorator inside a function", "leave it out: functions inside a function need none"},
    {"'async'", "kernels have no coroutines"},
    {"'global'", "kernels cannot write module-level names; use an array argument"},
    {"'nonlocal'", "kernels cannot write names of outer functions; use an array argument"},
    {"'del'", "local variables end with the function"},
    {"'import'", "import at the top of the file"},
    {"'match'", "write 'if' and 'elif'"},
};

std::string hint_for(std::string_view what) {
  for (const Refusal& row : kRefusals)
    if (row.what == what) return std::string(row.hint);
  return {};
}

class Builder {
 public:
  Builder(const Function& function, Report& report) : report_(report) {
    scope_.function = &function;
    scope_.loads.assign(function.expr_count, kNoVersion);
    scope_.defines.assign(function.expr_count, kNoVersion);
    scope_.dead.assign(function.stmt_count, false);
    scope_.phis.resize(function.stmt_count);
  }

  Scope run() {
    const Function& function = *scope_.function;
    for (const Parameter& parameter : function.parameters) add_local(parameter.name, parameter.place);
    for (const auto& [name, inner] : function.functions) functions_[index_.find(name)->second] = inner;
    collect_locals(function.body);
    Environment start;
    for (std::uint32_t local = 0; local < scope_.locals.size(); ++local) {
      const bool parameter = local < function.parameters.size();
      start.push_back(add_version(parameter ? Version::Kind::parameter : Version::Kind::undefined, local,
                                  scope_.locals[local].first));
    }
    Flow flow = std::move(start);
    statements(function.body, flow);
    scope_.falls_off = flow.has_value();
    simplify();
    mark_used();
    report_unassigned();
    return std::move(scope_);
  }

 private:
  struct Loop {
    std::vector<Environment> breaks;
    std::vector<Environment> continues;
  };

  // Locals.

  std::uint32_t add_local(std::string_view name, Place place) {
    const auto [found, fresh] = index_.emplace(name, static_cast<std::uint32_t>(scope_.locals.size()));
    if (fresh) scope_.locals.push_back({name, place});
    return found->second;
  }

  void collect_target(const Expr& target, std::vector<std::uint32_t>* out) {
    if (target.kind == ExprKind::name) {
      const std::uint32_t local = add_local(target.name, target.place);
      if (out != nullptr) out->push_back(local);
    } else if (target.kind == ExprKind::tuple || target.kind == ExprKind::list) {
      for (const Expr* item : target.items) collect_target(*item, out);
    }
  }

  void collect_locals(const std::vector<Stmt*>& body, std::vector<std::uint32_t>* out = nullptr) {
    for (const Stmt* statement : body) {
      const bool binds = statement->kind == StmtKind::assign || statement->kind == StmtKind::augmented ||
                         statement->kind == StmtKind::for_ || statement->kind == StmtKind::declare ||
                         statement->kind == StmtKind::function;
      if (binds)
        for (const Expr* target : statement->targets) collect_target(*target, out);
      collect_locals(statement->body, out);
      collect_locals(statement->orelse, out);
    }
  }

  static void remove_repeated(std::vector<std::uint32_t>& locals) {
    std::sort(locals.begin(), locals.end());
    locals.erase(std::unique(locals.begin(), locals.end()), locals.end());
  }

  std::uint32_t add_version(Version::Kind kind, std::uint32_t local, Place place) {
    Version& version = scope_.versions.emplace_back();
    version.kind = kind;
    version.local = local;
    version.place = place;
    return static_cast<std::uint32_t>(scope_.versions.size() - 1);
  }

  // Expressions.

  void refuse(Place place, std::string_view what) {
    report_.error(place, "unsupported", fmt::format("{} is outside the kernel language", what),
                  hint_for(what));
  }

  void skip_names(Place place) {
    const std::string_view text = report_.source().at(place);
    const auto in_name = [](char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0; };
    for (std::size_t begin = 0; begin < text.size();) {
      std::size_t end = begin;
      while (end < text.size() && in_name(text[end])) ++end;
      if (end > begin) scope_.skipped_names.insert(text.substr(begin, end - begin));
      begin = end + 1;
    }
  }

  void read(const Expr* expr, const Environment& now) {
    if (expr == nullptr) return;
    if (expr->kind == ExprKind::unsupported) {
      skip_names(expr->place);
      return refuse(expr->place, expr->name);
    }
    if (expr->kind == ExprKind::lambda) {
      close(*expr->function);
      return pass_on(*expr, *expr->function);
    }
    if (expr->kind == ExprKind::name) {
      if (const auto found = index_.find(expr->name); found != index_.end()) {
        scope_.loads[expr->id] = now[found->second];
        if (const auto inner = functions_.find(found->second); inner != functions_.end())
          pass_on(*expr, *inner->second);
      }
      return;
    }
    if (expr->kind == ExprKind::call) {
      call(*expr, now);
      return;
    }
    for (const Expr* item : expr->items) read(item, now);
  }

  // Nested functions.

  /// A function as a value would lose its captured variables, so it is passed as a name only.
  void pass_on(const Expr& expr, const Function& inner) {
    for (const Parameter& parameter : inner.parameters)
      if (parameter.captured) {
        scope_.refused.insert(expr.id);
        return refuse(expr.place, "a function that takes names from the one around it, as a value");
      }
  }

  void call(const Expr& expr, const Environment& now) {
    const Expr& callee = *expr.items[0];
    const auto local = callee.kind == ExprKind::name ? index_.find(callee.name) : index_.end();
    Function* inner = nullptr;
    if (callee.kind == ExprKind::lambda) {
      inner = callee.function;
      close(*inner);
    } else if (local != index_.end() && functions_.contains(local->second)) {
      inner = functions_.at(local->second);
      scope_.loads[callee.id] = now[local->second];
    }
    if (inner != nullptr) {
      std::vector<std::uint32_t>& versions = scope_.captured[expr.id];
      for (const Parameter& parameter : inner->parameters)
        if (parameter.captured) versions.push_back(now[index_.at(parameter.name)]);
    }
    for (const Expr* item : expr.items)
      if (inner == nullptr || item != &callee) read(item, now);
  }

  /// Adds parameters to a nested function for the variables that it captures from this one.
  void close(Function& inner) {
    for (const Parameter& parameter : inner.parameters)
      if (parameter.captured) return;
    std::vector<std::string_view> names = free_names(inner);
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto local = index_.find(names[i]);
      if (local == index_.end()) continue;
      Parameter parameter;
      parameter.name = names[i];
      parameter.place = inner.place;
      parameter.captured = true;
      inner.parameters.push_back(parameter);
      const auto function = functions_.find(local->second);
      if (function == functions_.end()) continue;
      inner.functions.emplace_back(names[i], function->second);
      for (const Parameter& further : function->second->parameters)
        if (further.captured && std::find(names.begin(), names.end(), further.name) == names.end())
          names.push_back(further.name);
    }
  }

  /// The nested function that a name refers to, or null.
  Function* named_function(const Expr& expr) const {
    if (expr.kind != ExprKind::name) return nullptr;
    const auto local = index_.find(expr.name);
    const auto found = local == index_.end() ? functions_.end() : functions_.find(local->second);
    return found == functions_.end() ? nullptr : found->second;
  }

  void define_function(const Expr& name, Function& inner, Environment& now) {
    const std::uint32_t local = index_.find(name.name)->second;
    if (functions_.contains(local) || assigned_.contains(local) || local < scope_.function->parameters.size())
      several_meanings(name);
    functions_[local] = &inner;
    close(inner);
    bind(name, now);
  }

  void several_meanings(const Expr& name) {
    report_.error(name.place, "unsupported",
                  fmt::format("the name '{}' has more than one meaning, one of them a function", name.name),
                  "use two names");
  }

  void bind(const Expr& name, Environment& now) {
    const std::uint32_t local = index_.find(name.name)->second;
    now[local] = add_version(Version::Kind::definition, local, name.place);
    scope_.defines[name.id] = now[local];
  }

  void define(const Expr& target, Environment& now) {
    switch (target.kind) {
      case ExprKind::name: {
        const std::uint32_t local = index_.find(target.name)->second;
        if (functions_.contains(local)) several_meanings(target);
        assigned_.insert(local);
        return bind(target, now);
      }
      case ExprKind::tuple:
      case ExprKind::list:
        for (const Expr* item : target.items) define(*item, now);
        return;
      case ExprKind::subscript:
      case ExprKind::attribute:
        for (const Expr* item : target.items) read(item, now);
        return;
      case ExprKind::unsupported:
        return refuse(target.place, target.name);
      case ExprKind::broken:
        return;
      default:
        report_.error(target.place, "syntax", "this cannot be assigned to",
                      target.kind == ExprKind::compare
                          ? ""
                          : "the left side of '=' is a name, an element or a tuple of such");
    }
  }

  // Statements.

  void statements(const std::vector<Stmt*>& body, Flow& flow) {
    for (Stmt* statement : body) {
      if (!flow) {
        scope_.dead[statement->id] = true;
        continue;
      }
      this->statement(*statement, flow);
    }
  }

  void statement(const Stmt& node, Flow& flow) {
    Environment& now = *flow;
    switch (node.kind) {
      case StmtKind::function:
        return define_function(*node.targets[0], *node.function, now);
      case StmtKind::assign:
        if (node.value->kind == ExprKind::lambda && node.targets.size() == 1 &&
            node.targets[0]->kind == ExprKind::name) {
          node.value->function->name = node.targets[0]->name;
          return define_function(*node.targets[0], *node.value->function, now);
        }
        if (Function* inner = named_function(*node.value);
            inner != nullptr && node.targets.size() == 1 && node.targets[0]->kind == ExprKind::name) {
          scope_.loads[node.value->id] = now[index_.find(node.value->name)->second];
          return define_function(*node.targets[0], *inner, now);
        }
        read(node.value, now);
        for (const Expr* target : node.targets) define(*target, now);
        return;
      case StmtKind::augmented:
        read(node.value, now);
        read(node.targets[0], now);
        if (node.targets[0]->kind == ExprKind::tuple)
          report_.error(node.targets[0]->place, "syntax", "an augmented assignment has one target",
                        "write one statement for each");
        define(*node.targets[0], now);
        return;
      case StmtKind::expression:
      case StmtKind::assert_:
        read(node.value, now);
        return;  // the message of an assertion is for the host
      case StmtKind::return_:
        read(node.value, now);
        flow.reset();
        return;
      case StmtKind::raise:
        flow.reset();
        return;
      case StmtKind::break_:
      case StmtKind::continue_:
        return leave(node, flow);
      case StmtKind::if_:
        return branch(node, flow);
      case StmtKind::while_:
      case StmtKind::for_:
        return loop(node, flow);
      case StmtKind::unsupported:
        skip_names(node.skipped);
        return refuse(node.place, node.name);
      case StmtKind::pass:
      case StmtKind::declare:
        return;
    }
  }

  void leave(const Stmt& node, Flow& flow) {
    const bool breaks = node.kind == StmtKind::break_;
    if (loops_.empty())
      report_.error(node.place, "syntax", fmt::format("'{}' outside a loop", breaks ? "break" : "continue"),
                    "use 'return' to leave the function");
    else
      (breaks ? loops_.back().breaks : loops_.back().continues).push_back(std::move(*flow));
    flow.reset();
  }

  void branch(const Stmt& node, Flow& flow) {
    read(node.value, *flow);
    Flow otherwise = flow;
    statements(node.body, flow);
    statements(node.orelse, otherwise);
    std::vector<End> ends;
    if (flow) ends.push_back({std::move(*flow), node.id, true});
    if (otherwise) ends.push_back({std::move(*otherwise), node.id, false});
    flow = merge(node, std::move(ends));
  }

  static bool always_true(const Expr& condition) {
    return (condition.kind == ExprKind::boolean || condition.kind == ExprKind::integer) &&
           condition.integer != 0;
  }

  void loop(const Stmt& node, Flow& flow) {
    if (node.kind == StmtKind::for_) read(node.value, *flow);
    std::vector<std::uint32_t> assigned;
    if (node.kind == StmtKind::for_) collect_target(*node.targets[0], &assigned);
    collect_locals(node.body, &assigned);
    remove_repeated(assigned);
    Environment head = *flow;
    for (const std::uint32_t local : assigned) {
      const std::uint32_t phi = add_version(Version::Kind::phi, local, node.place);
      scope_.versions[phi].operands.push_back({head[local]});
      scope_.phis[node.id].push_back(phi);
      head[local] = phi;
    }
    loops_.emplace_back();
    Flow body = head;
    if (node.kind == StmtKind::while_) {
      read(node.value, *body);
      read_first(*node.value, assigned, head);
    } else {
      define(*node.targets[0], *body);
    }
    statements(node.body, body);
    Loop done = std::move(loops_.back());
    loops_.pop_back();
    if (body) done.continues.push_back(std::move(*body));
    for (const Environment& latch : done.continues)
      for (const std::uint32_t local : assigned)
        if (latch[local] != head[local]) scope_.versions[head[local]].operands.push_back({latch[local]});
    Flow after = std::move(head);
    if (node.kind == StmtKind::while_ && always_true(*node.value))
      after.reset();
    else if (node.kind == StmtKind::while_)
      leave_loop(node, assigned, *after, done.continues);
    if (after) {
      statements(node.orelse, after);
    } else {
      for (const Stmt* statement : node.orelse) scope_.dead[statement->id] = true;
    }
    if (after) done.breaks.push_back(std::move(*after));
    std::vector<End> ends;
    for (Environment& end : done.breaks) ends.push_back({std::move(end)});
    flow = merge(node, std::move(ends));
  }

  /// Stores the versions that names in a loop's condition have at the first test.
  void read_first(const Expr& expr, const std::vector<std::uint32_t>& assigned, const Environment& head) {
    if (expr.kind == ExprKind::name) {
      const auto found = index_.find(expr.name);
      if (found != index_.end() && std::binary_search(assigned.begin(), assigned.end(), found->second))
        scope_.first_loads[expr.id] = before_loop(head[found->second]);
    }
    for (const Expr* item : expr.items)
      if (item != nullptr) read_first(*item, assigned, head);
  }

  /// The version that the phi of a loop's head has before the loop.
  std::uint32_t before_loop(std::uint32_t phi) const { return scope_.versions[phi].operands.front().version; }

  /// After a `while`, facts from before it hold only if the first test failed. Python's compiler emits one
  /// test before the loop and one at its end.
  void leave_loop(const Stmt& node, const std::vector<std::uint32_t>& assigned, Environment& after,
                  const std::vector<Environment>& latches) {
    for (const std::uint32_t local : assigned) {
      const std::uint32_t phi = add_version(Version::Kind::phi, local, node.place);
      scope_.versions[phi].head = after[local];
      scope_.versions[phi].operands.push_back({before_loop(after[local]), node.id, false});
      for (const Environment& latch : latches)
        scope_.versions[phi].operands.push_back({latch[local], node.id, true});
      scope_.phis[node.id].push_back(phi);
      after[local] = phi;
    }
  }

  struct End {
    Environment environment;
    std::uint32_t decided_by = kNoStatement;
    bool outcome = false;
    std::uint32_t operator[](std::uint32_t local) const { return environment[local]; }
  };

  Flow merge(const Stmt& node, std::vector<End> ends) {
    if (ends.empty()) return std::nullopt;
    if (ends.size() == 1) return std::move(ends.front().environment);
    Environment result = ends.front().environment;
    // Only variables that the statement assigns can differ.
    std::vector<std::uint32_t> assigned;
    if (node.kind == StmtKind::for_) collect_target(*node.targets[0], &assigned);
    collect_locals(node.body, &assigned);
    collect_locals(node.orelse, &assigned);
    remove_repeated(assigned);
    for (const std::uint32_t local : assigned) {
      const bool same =
          std::all_of(ends.begin(), ends.end(), [&](const End& end) { return end[local] == result[local]; });
      if (same) continue;
      const std::uint32_t phi = add_version(Version::Kind::phi, local, node.place);
      for (const End& end : ends)
        scope_.versions[phi].operands.push_back({end[local], end.decided_by, end.outcome});
      scope_.phis[node.id].push_back(phi);
      result[local] = phi;
    }
    return result;
  }

  // Remove phis that are equal to one version.

  std::uint32_t resolve(std::uint32_t version) {
    while (alias_[version] != version) version = alias_[version] = alias_[alias_[version]];
    return version;
  }

  void simplify() {
    alias_.resize(scope_.versions.size());
    for (std::uint32_t i = 0; i < alias_.size(); ++i) alias_[i] = i;
    for (bool again = true; again;) {
      again = false;
      for (std::uint32_t i = 0; i < alias_.size(); ++i) {
        if (scope_.versions[i].kind != Version::Kind::phi || alias_[i] != i) continue;
        std::uint32_t only = kNoVersion;
        bool several = false;
        for (const Operand& operand : scope_.versions[i].operands) {
          const std::uint32_t version = resolve(operand.version);
          if (version == i || version == only) continue;
          several = only != kNoVersion;
          if (several) break;
          only = version;
        }
        if (several || only == kNoVersion) continue;
        alias_[i] = only;
        again = true;
      }
    }
    for (Version& version : scope_.versions) {
      for (Operand& operand : version.operands) operand.version = resolve(operand.version);
      if (version.head != kNoVersion) version.head = resolve(version.head);
      std::sort(version.operands.begin(), version.operands.end());
      version.operands.erase(std::unique(version.operands.begin(), version.operands.end()),
                             version.operands.end());
    }
    for (std::uint32_t& load : scope_.loads)
      if (load != kNoVersion) load = resolve(load);
    for (auto& [name, version] : scope_.first_loads) version = resolve(version);
    for (auto& [call, versions] : scope_.captured)
      for (std::uint32_t& version : versions) version = resolve(version);
    for (auto& list : scope_.phis) std::erase_if(list, [&](std::uint32_t phi) { return alias_[phi] != phi; });
  }

  void mark_used() {
    std::vector<std::uint32_t> open;
    for (const std::uint32_t load : scope_.loads)
      if (load != kNoVersion) open.push_back(load);
    for (const auto& [call, versions] : scope_.captured)
      open.insert(open.end(), versions.begin(), versions.end());
    while (!open.empty()) {
      Version& version = scope_.versions[open.back()];
      open.pop_back();
      if (version.used) continue;
      version.used = true;
      for (const Operand& operand : version.operands) open.push_back(operand.version);
    }
    for (auto& list : scope_.phis)
      std::erase_if(list, [&](std::uint32_t phi) { return !scope_.versions[phi].used; });
  }

  void report_unassigned() { report_in(scope_.function->body); }

  void report_in(const std::vector<Stmt*>& body) {
    for (const Stmt* statement : body) {
      if (scope_.dead[statement->id]) continue;
      report_in(statement->value);
      for (const Expr* target : statement->targets)
        if (statement->kind != StmtKind::assert_) report_in(target);
      report_in(statement->body);
      report_in(statement->orelse);
    }
  }

  void report_in(const Expr* expr) {
    if (expr == nullptr) return;
    for (const Expr* item : expr->items) report_in(item);
    for (const std::uint32_t version : scope_.captures(*expr))
      if (scope_.versions[version].kind == Version::Kind::undefined)
        report_.error(
            expr->place, "unassigned",
            fmt::format(
                "the function called here takes '{}' from the one around it, and it is not assigned yet",
                scope_.locals[scope_.versions[version].local].name),
            "assign it before the call");
    if (expr->kind != ExprKind::name || scope_.loads[expr->id] == kNoVersion) return;
    const Version& version = scope_.versions[scope_.loads[expr->id]];
    if (version.kind != Version::Kind::undefined) return;
    report_.error(
        expr->place, "unassigned", fmt::format("'{}' is read before it is assigned", expr->name),
        "a name that is assigned anywhere in a function is local to it; assign it before this line");
    if (!(scope_.locals[version.local].first == expr->place))
      report_.note(scope_.locals[version.local].first, "it is assigned here");
  }

  Report& report_;
  Scope scope_;
  std::map<std::string_view, std::uint32_t> index_;
  std::map<std::uint32_t, Function*> functions_;  // by local: nested functions
  std::set<std::uint32_t> assigned_;              // locals that are also bound to other values
  std::vector<Loop> loops_;
  std::vector<std::uint32_t> alias_;
};

}  // namespace

Scope build_scope(const Function& function, Report& report) { return Builder(function, report).run(); }

}  // namespace quern::frontend
