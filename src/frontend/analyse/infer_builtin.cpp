// SPDX-License-Identifier: Apache-2.0
// Type inference for calls of built-ins. Arguments are checked as rules.def specifies, then the rule computes
// the type.
#include <algorithm>

#include "frontend/analyse/builtin_call.hpp"

namespace quern::frontend {
namespace {

/// True if the keyword may be at `position` of the call (from 1).
bool keyword_allowed(Keywords keywords, std::string_view name, std::size_t position) {
  switch (keywords) {
    case Keywords::none:
      return false;
    case Keywords::any:
      return true;
    case Keywords::complex_parts:
      return name == (position == 1 ? "real" : "imag");
    case Keywords::digits:
      return name == "ndigits" && position == 2;
    case Keywords::start:
      return name == "start" && position == 2;
  }
  return false;
}

std::string arguments_text(const Builtin& row) {
  if (row.least == row.most) return row.least == 1 ? "1 argument" : fmt::format("{} arguments", row.least);
  return fmt::format("{} to {} arguments", row.least, row.most);
}

Type infer_by_rule(BuiltinCall& call) {
  constexpr Type (*kInfer[])(BuiltinCall&) = {
#define QUERN_RULE(rule, syntax, arguments, keywords, infer, emit, range, fold, effects, debug) \
  &infer_rules::infer,
#include "frontend/builtins/rules.def"
  };
  return kInfer[static_cast<std::size_t>(call.row.rule)](call);
}

Type wrong_count(BuiltinCall& call) {
  const std::size_t count = call.args.size();
  return call.fail(call.expr.place, "calls", std::string(call.row.doc), "{} takes {}, {} {} given",
                   call.row.shown(), arguments_text(call.row), count, count == 1 ? "is" : "are");
}

bool is_unsupported(const Expr* argument) { return argument->kind == ExprKind::unsupported; }

}  // namespace

BuiltinCall::Seen BuiltinCall::see_arguments() {
  Seen seen;
  const auto see = [&](const Expr& item) {
    const Type type = expression(item);
    seen.unknown = seen.unknown || type == nullptr;
    if (type != nullptr && is_error(type)) seen.error = type;
    return type;
  };
  for (std::size_t i = 1; i < expr.items.size(); ++i) {
    const Expr& item = *expr.items[i];
    if (item.kind == ExprKind::keyword) {
      see(*item.items[0]);
      if (keyword_allowed(row.facts().keywords, item.name, i)) continue;
      refused_keyword_ = true;
      seen.error = fail(item.place, "calls",
                        row.rule == Rule::print ? "kernels print with one separator and end the line" : "",
                        "{} takes no argument '{}' by name here", row.shown(), item.name);
      return seen;
    }
    args.push_back(&item);
    types.push_back(see(item));
  }
  return seen;
}

Type Inference::call_builtin(const Expr& expr, const Builtin& row) {
  BuiltinCall call(*this, expr, row);
  const RuleFacts& facts = row.facts();
  if (facts.arguments == Arguments::own) return infer_by_rule(call);
  if (facts.syntax == Syntax::method && expr.items[0]->kind != ExprKind::attribute)
    return fail(expr.place, "calls", "call it where it is named: x.conjugate()",
                "a method is no function of its own here");
  const BuiltinCall::Seen seen = call.see_arguments();
  if (call.refused_keyword()) return seen.error;
  if (facts.arguments == Arguments::seen) return infer_by_rule(call);
  // A call with *args has any number of arguments.
  if (std::any_of(call.args.begin(), call.args.end(), is_unsupported)) return seen.error;
  if (call.args.size() < row.least || call.args.size() > row.most) return wrong_count(call);
  if (seen.error != nullptr) return seen.error;
  return seen.unknown ? nullptr : infer_by_rule(call);
}

}  // namespace quern::frontend
