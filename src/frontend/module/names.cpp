// SPDX-License-Identifier: Apache-2.0
#include "frontend/module/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "frontend/module/toplevel.hpp"

namespace quern::frontend {

Names::Names(const SourceText& source, TypeTable& types, Report& report,
             std::span<const abi::Constant> constants)
    : file_(source, types, report),
      doubts_(file_),
      bindings_(file_, doubts_, evaluator_),
      evaluator_(file_, bindings_, type_reader_, decorators_),
      type_reader_(file_, doubts_, evaluator_),
      decorators_(file_, doubts_, bindings_, evaluator_, type_reader_) {
  TopLevel(file_, evaluator_, bindings_, decorators_).run();
  bind_constants(file_, bindings_, constants);
  for (Declaration& declaration : file_.declarations) decorators_.read(declaration);
  for (const auto& [name, history] : file_.timeline.names())
    for (const Timeline::Entry& entry : history)
      if (entry.binding != nullptr) decorators_.read_application(name, *entry.binding);
}

Declaration* Names::find(std::string_view name) {
  const Binding* binding = file_.meant(name);
  if (binding != nullptr && binding->kind == Binding::Kind::uncertain)
    for (const Binding* choice : binding->choices)
      if (choice != nullptr && choice->declaration != nullptr) return choice->declaration;
  return binding == nullptr ? nullptr : binding->declaration;
}

Function* Names::body_of(Declaration& declaration) {
  if (declaration.function == nullptr) {
    const std::size_t before = file_.report.diagnostics().size();
    declaration.function = file_.parser().parse_function(declaration.token);
    if (file_.report.diagnostics().size() > before) declaration.broken = true;
  }
  return declaration.function;
}

void Names::compile_as_of(const Declaration& kernel) {
  file_.now = kernel.signatures.empty() ? kImported : kernel.time;
}

Value Names::default_value(const Declaration& declaration, const Expr& expr) {
  if (declaration.time == 0) return evaluate(expr);  // a function inside another one
  const Time before = std::exchange(file_.now, std::min(declaration.time, file_.now));
  Value value = evaluate(expr);
  file_.now = before;
  return value;
}

Place Names::place_of(std::string_view name) const {
  const Binding* binding = file_.meant(name);
  return binding == nullptr ? Place{} : binding->place;
}

std::vector<std::string_view> Names::all_names() const {
  std::vector<std::string_view> names = names_in("builtins");
  for (const auto& [name, history] : file_.timeline.names()) names.push_back(name);
  return names;
}

bool Names::report_moved(const Declaration& declaration) {
  if (declaration.role != Role::device || declaration.signatures.empty() || !declaration.external.empty() ||
      declaration.time >= file_.now)
    return false;
  const std::size_t end = file_.end_of_statement(declaration.token);
  for (std::size_t at = declaration.token + 2; at < end; ++at) {
    if (file_.tokens[at].kind != Tok::name || file_.tokens[at - 1].kind == Tok::dot ||
        file_.text(at) == declaration.name)
      continue;
    const Binding* then = file_.timeline.find(file_.text(at), declaration.time);
    const Binding* now = file_.timeline.find(file_.text(at), file_.now);
    if (then == now || now == nullptr) continue;
    Doubt doubt;
    doubt.why = fmt::format("line {} binds it behind '{}', which its signature compiles before",
                            file_.line_of(now->place), declaration.name);
    doubt.notes.emplace_back(now->place, "this line binds it");
    doubt.notes.emplace_back(declaration.place, fmt::format("'{}' is compiled here", declaration.name));
    doubt.hint = "bind it once, or leave the signature out";
    report_doubt(doubt, file_.text(at), file_.tokens[at].place);
    return true;
  }
  return false;
}

Place Names::bound_later(std::string_view name) const {
  const Binding* binding = file_.timeline.find(name, kImported);
  return binding != nullptr && file_.meant(name) == nullptr && binding->kind != Binding::Kind::deleted
             ? binding->place
             : Place{};
}

bool Names::is_member(std::string_view name) const {
  const Binding* binding = file_.meant(name);
  return binding != nullptr && binding->kind == Binding::Kind::import && binding->member;
}

std::vector<Declaration*> Names::kernels() {
  std::vector<Declaration*> found;
  for (Declaration& declaration : file_.declarations)
    if (declaration.role == Role::kernel && find(declaration.name) == &declaration)
      found.push_back(&declaration);
  return found;
}

std::vector<HiddenKernel> Names::hidden_kernels() {
  std::vector<HiddenKernel> found;
  std::set<std::size_t> known;
  for (const Declaration& each : file_.declarations) known.insert(each.token);
  std::vector<bool> functions;  // for each enclosing block: it is a function's body
  Tok opener = Tok::end;        // the first word of the line
  bool begins = true, decorated = false;
  for (std::size_t at = 0; at + 1 < file_.tokens.size(); ++at) {
    const Tok kind = file_.tokens[at].kind;
    if (kind == Tok::indent) functions.push_back(opener == Tok::k_def);
    if (kind == Tok::dedent && !functions.empty()) functions.pop_back();
    if (begins && kind == Tok::at) {
      const Time now = std::exchange(file_.now, kImported);
      decorated = decorated || decorators_.role_at(at + 1) == Role::kernel;
      file_.now = now;
    } else if (begins && kind == Tok::k_def) {
      const bool inside = std::find(functions.begin(), functions.end(), true) != functions.end();
      if (decorated && !known.contains(at) && file_.tokens[at + 1].kind == Tok::name)
        found.push_back({file_.text(at + 1), file_.tokens[at + 1].place, inside});
      decorated = false;
    }
    if (begins && kind != Tok::indent && kind != Tok::dedent) opener = kind;
    begins = kind == Tok::newline || kind == Tok::indent || kind == Tok::dedent;
  }
  return found;
}

void Names::report_errors(Declaration& declaration) {
  file_.report.take_over(declaration.errors);
  declaration.errors.clear();
}

}  // namespace quern::frontend
