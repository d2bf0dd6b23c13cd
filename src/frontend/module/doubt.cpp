// SPDX-License-Identifier: Apache-2.0
// Finds file-level names whose value after the import is not certain. A kernel that uses such a name is
// rejected with an error that points at the lines that cause the doubt.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "frontend/module/names.hpp"
#include "frontend/module/toplevel.hpp"

namespace quern::frontend {
namespace {

using Kind = Binding::Kind;

void advise_binding(std::string_view name, Doubt& doubt) {
  doubt.hint = fmt::format("make it certain in the file, or give {} a value with Module::bind", name);
  doubt.may_be_bound = true;
}

bool is_of_functions(const Binding& binding) {
  if (binding.kind == Kind::function || binding.kind == Kind::import) return true;
  return binding.kind == Kind::uncertain &&
         std::any_of(binding.choices.begin(), binding.choices.end(),
                     [](const Binding* each) { return each != nullptr && is_of_functions(*each); });
}

}  // namespace

/// The innermost definitions among which a line decides, and that line.
void Names::note_choices(Doubt& doubt, const Binding& binding) const {
  doubt.notes.emplace_back(binding.because, fmt::format("this line {}", binding.why));
  std::vector<const Binding*> open = {&binding}, seen;
  while (!open.empty() && seen.size() < Report::kMostNotes) {
    const Binding* each = open.back();
    open.pop_back();
    if (each == nullptr || std::find(seen.begin(), seen.end(), each) != seen.end()) continue;
    seen.push_back(each);
    if (each->kind == Kind::uncertain)
      open.insert(open.end(), each->choices.rbegin(), each->choices.rend());
    else
      doubt.notes.emplace_back(each->place, each->kind == Kind::deleted ? "it may be deleted here"
                                                                        : "it may be what this line says");
  }
}

/// A later `from x import *` may have rebound the name. For modules with known names the import itself
/// decides.
std::optional<Doubt> Names::star_over(std::string_view name, const Binding* binding) {
  for (auto star = stars_.rbegin(); star != stars_.rend(); ++star) {
    if (star->time > now_ || (binding != nullptr && star->time <= binding->time)) continue;
    if (!may_export(star->module, name, binding == nullptr,
                    binding != nullptr && binding->kind == Kind::import))
      continue;
    Doubt doubt;
    doubt.why = fmt::format("line {} may bind it again", line_of(star->place));
    doubt.notes.emplace_back(star->place, "this line binds names that are not known here");
    if (binding != nullptr) doubt.notes.emplace_back(binding->place, fmt::format("'{}' is bound here", name));
    doubt.hint = "import the names that are needed one by one: from module import a, b";
    return doubt;
  }
  return std::nullopt;
}

/// `value`: the value that its own line gives to the name; null if no line binds it.
std::optional<Doubt> Names::doubt_about(std::string_view name, const Binding* binding, const Value* value) {
  Doubt doubt;
  const auto blame = [&](const Change& change, std::string_view does) {
    doubt.why = fmt::format("line {} {}", line_of(change.place), does);
    doubt.notes.emplace_back(change.place, fmt::format("this line {}", does));
    if (binding != nullptr) doubt.notes.emplace_back(binding->place, fmt::format("'{}' is bound here", name));
    if (binding != nullptr && is_of_functions(*binding))
      doubt.hint = kFunctionHint;
    else
      advise_binding(name, doubt);
  };
  if (binding != nullptr && binding->kind == Kind::uncertain) {
    doubt.why =
        fmt::format("line {} {}, and that is not known here", line_of(binding->because), binding->why);
    note_choices(doubt, *binding);
    if (is_of_functions(*binding))
      doubt.hint = kFunctionHint;
    else
      advise_binding(name, doubt);
    return doubt;
  }
  const Time since = binding == nullptr ? 0 : binding->time;
  if (const Change* lost = timeline_.lost(since, now_)) {
    blame(*lost, "may change any name of the file");
    doubt.hint = "bind names by assignments and imports, so that what they mean can be read";
    return doubt;
  }
  if (const Change* exposed = timeline_.exposed(name, now_)) {
    blame(*exposed, "hands on a function that binds it");
    return doubt;
  }
  if (std::optional<Doubt> star = star_over(name, binding)) return star;
  if (binding == nullptr || value == nullptr || !value->is_mutable()) return std::nullopt;
  if (const Change* changed = timeline_.changed(*binding, since, now_)) {
    blame(*changed, "may change it");
    return doubt;
  }
  return std::nullopt;
}

Value Names::with_doubt(Doubt doubt) {
  Value value = Value::computed();
  value.doubt = &doubts_.emplace_back(std::move(doubt));
  doubt_seen_ = value.doubt;
  return value;
}

const Value& Names::doubted(std::string_view name, Doubt doubt) {
  const auto key = std::pair(std::string(name), now_);
  const auto found = doubted_.find(key);
  const Value& value = found != doubted_.end() ? found->second : doubted_[key] = with_doubt(std::move(doubt));
  doubt_seen_ = value.doubt;
  return value;
}

const Value& Names::own_value(std::string_view name, Binding& binding) {
  if (!binding.known) {
    const std::size_t errors = report_.errors();
    binding.value = value_of(binding, name);
    binding.known = !binding.evaluating && !(quiet_ && report_.errors() > errors);
  }
  return binding.value;
}

const Value& Names::probably(std::string_view name) {
  Binding* binding = meant(name);
  if (binding != nullptr && binding->kind == Kind::uncertain)
    for (const Binding* choice : binding->choices)
      if (choice != nullptr && choice->kind == Kind::import)
        return own_value(name, const_cast<Binding&>(*choice));
  return binding == nullptr ? python_name(name) : own_value(name, *binding);
}

const Value& Names::certain(std::string_view name, Binding& binding) {
  own_value(name, binding);
  if (binding.value.doubt != nullptr) doubt_seen_ = binding.value.doubt;
  if (std::optional<Doubt> doubt = doubt_about(name, &binding, &binding.value))
    return doubted(name, *std::move(doubt));
  return binding.value;
}

/// Of Python itself: len, range.
const Value& Names::python_name(std::string_view name) {
  if (std::optional<Doubt> doubt = doubt_about(name, nullptr, nullptr))
    return doubted(name, *std::move(doubt));
  if (std::optional<Doubt> doubt = changed_attribute(fmt::format("builtins.{}", name)))
    return doubted(name, *std::move(doubt));
  if (const auto found = python_names_.find(name); found != python_names_.end()) return found->second;
  Value value;
  if (const Builtin* row = find_builtin(fmt::format("builtins.{}", name))) {
    value.kind = Value::Kind::builtin;
    value.builtin = row;
  } else if (name == "__name__") {
    value = Value::host("the name of the module", HostKind::module_name);
  }
  return python_names_.emplace(std::string(name), std::move(value)).first->second;
}

/// math.pi = 3.0
std::optional<Doubt> Names::changed_attribute(const std::string& path) const {
  const Binding* found = timeline_.find(attribute_key(path), now_);
  for (std::size_t dot = path.rfind('.'); found == nullptr && dot != std::string::npos && dot > 0;
       dot = path.rfind('.', dot - 1))
    found = timeline_.find(attribute_key(path.substr(0, dot)) + ".*", now_);
  if (found == nullptr) return std::nullopt;
  Doubt doubt;
  doubt.why = fmt::format("line {} changes '{}'", line_of(found->place), path);
  doubt.notes.emplace_back(found->place, "this line changes an attribute of a module");
  doubt.hint = "give the number a name of its own";
  return doubt;
}

void Names::report_doubt(const Doubt& doubt, std::string_view name, Place place) {
  report_.error(place, "uncertain", fmt::format("it is not certain what '{}' is: {}", name, doubt.why),
                doubt.hint);
  for (const auto& [where, what] : doubt.notes) report_.note(where, what);
}

bool Names::report_doubt(std::string_view name, Place place) {
  const Value& value = global(name);
  if (value.doubt == nullptr) return false;
  report_doubt(*value.doubt, name, place);
  return true;
}

bool Names::report_moved(const Declaration& declaration) {
  if (declaration.role != Role::device || declaration.signatures.empty() || !declaration.external.empty() ||
      declaration.time >= now_)
    return false;
  const std::size_t end = end_of_statement(declaration.token);
  for (std::size_t at = declaration.token + 2; at < end; ++at) {
    if (tokens_[at].kind != Tok::name || tokens_[at - 1].kind == Tok::dot || text(at) == declaration.name)
      continue;
    const Binding* then = timeline_.find(text(at), declaration.time);
    const Binding* now = timeline_.find(text(at), now_);
    if (then == now || now == nullptr) continue;
    Doubt doubt;
    doubt.why = fmt::format("line {} binds it behind '{}', which its signature compiles before",
                            line_of(now->place), declaration.name);
    doubt.notes.emplace_back(now->place, "this line binds it");
    doubt.notes.emplace_back(declaration.place, fmt::format("'{}' is compiled here", declaration.name));
    doubt.hint = "bind it once, or leave the signature out";
    report_doubt(doubt, text(at), tokens_[at].place);
    return true;
  }
  return false;
}

Place Names::bound_later(std::string_view name) const {
  const Binding* binding = timeline_.find(name, kImported);
  return binding != nullptr && meant(name) == nullptr && binding->kind != Kind::deleted ? binding->place
                                                                                        : Place{};
}

bool Names::is_member(std::string_view name) const {
  const Binding* binding = meant(name);
  return binding != nullptr && binding->kind == Kind::import && binding->member;
}

std::vector<Declaration*> Names::kernels() {
  std::vector<Declaration*> found;
  for (Declaration& declaration : declarations_)
    if (declaration.role == Role::kernel && find(declaration.name) == &declaration)
      found.push_back(&declaration);
  return found;
}

std::vector<HiddenKernel> Names::hidden_kernels() {
  std::vector<HiddenKernel> found;
  std::set<std::size_t> known;
  for (const Declaration& each : declarations_) known.insert(each.token);
  std::vector<bool> functions;  // of the blocks around: are they a function's?
  Tok opener = Tok::end;        // the first word of the line
  bool begins = true, decorated = false;
  for (std::size_t at = 0; at + 1 < tokens_.size(); ++at) {
    const Tok kind = tokens_[at].kind;
    if (kind == Tok::indent) functions.push_back(opener == Tok::k_def);
    if (kind == Tok::dedent && !functions.empty()) functions.pop_back();
    if (begins && kind == Tok::at) {
      const Time now = std::exchange(now_, kImported);
      decorated = decorated || role_at(at + 1) == Role::kernel;
      now_ = now;
    } else if (begins && kind == Tok::k_def) {
      const bool inside = std::find(functions.begin(), functions.end(), true) != functions.end();
      if (decorated && !known.contains(at) && tokens_[at + 1].kind == Tok::name)
        found.push_back({text(at + 1), tokens_[at + 1].place, inside});
      decorated = false;
    }
    if (begins && kind != Tok::indent && kind != Tok::dedent) opener = kind;
    begins = kind == Tok::newline || kind == Tok::indent || kind == Tok::dedent;
  }
  return found;
}

}  // namespace quern::frontend
