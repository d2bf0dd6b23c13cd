// SPDX-License-Identifier: Apache-2.0
// Finds file-level names whose value after the import is not certain. A kernel that uses such a name is
// rejected; the error shows the lines that make it uncertain.
#include "frontend/module/doubt.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

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

/// Adds notes about the innermost definitions between which a line decides, and about that line.
void Doubts::note_choices(Doubt& doubt, const Binding& binding) const {
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

/// Handles a later `from x import *`, which may have rebound the name. If the module's names are known, the
/// import rebinds it or not for certain.
std::optional<Doubt> Doubts::star_over(std::string_view name, const Binding* binding) const {
  for (auto star = file_.stars.rbegin(); star != file_.stars.rend(); ++star) {
    if (star->time > file_.now || (binding != nullptr && star->time <= binding->time)) continue;
    if (!may_export(star->module, name, binding == nullptr,
                    binding != nullptr && binding->kind == Kind::import))
      continue;
    Doubt doubt;
    doubt.why = fmt::format("line {} may bind it again", file_.line_of(star->place));
    doubt.notes.emplace_back(star->place, "this line binds names that are not known here");
    if (binding != nullptr) doubt.notes.emplace_back(binding->place, fmt::format("'{}' is bound here", name));
    doubt.hint = "import the names that are needed one by one: from module import a, b";
    return doubt;
  }
  return std::nullopt;
}

std::optional<Doubt> Doubts::about(std::string_view name, const Binding* binding, const Value* value) const {
  Doubt doubt;
  const auto blame = [&](const Change& change, std::string_view does) {
    doubt.why = fmt::format("line {} {}", file_.line_of(change.place), does);
    doubt.notes.emplace_back(change.place, fmt::format("this line {}", does));
    if (binding != nullptr) doubt.notes.emplace_back(binding->place, fmt::format("'{}' is bound here", name));
    if (binding != nullptr && is_of_functions(*binding))
      doubt.hint = kFunctionHint;
    else
      advise_binding(name, doubt);
  };
  if (binding != nullptr && binding->kind == Kind::uncertain) {
    doubt.why =
        fmt::format("line {} {}, and that is not known here", file_.line_of(binding->because), binding->why);
    note_choices(doubt, *binding);
    if (is_of_functions(*binding))
      doubt.hint = kFunctionHint;
    else
      advise_binding(name, doubt);
    return doubt;
  }
  const Time since = binding == nullptr ? 0 : binding->time;
  if (const Change* lost = file_.timeline.lost(since, file_.now)) {
    blame(*lost, "may change any name of the file");
    doubt.hint = "bind names by assignments and imports, so that what they mean can be read";
    return doubt;
  }
  if (const Change* exposed = file_.timeline.exposed(name, file_.now)) {
    blame(*exposed, "hands on a function that binds it");
    return doubt;
  }
  if (std::optional<Doubt> star = star_over(name, binding)) return star;
  if (binding == nullptr || value == nullptr || !value->is_mutable()) return std::nullopt;
  if (const Change* changed = file_.timeline.changed(*binding, since, file_.now)) {
    blame(*changed, "may change it");
    return doubt;
  }
  return std::nullopt;
}

Value Doubts::with_doubt(Doubt doubt) {
  Value value = Value::computed();
  value.doubt = &doubts_.emplace_back(std::move(doubt));
  seen_ = value.doubt;
  return value;
}

const Value& Doubts::doubted(std::string_view name, Doubt doubt) {
  const auto key = std::pair(std::string(name), file_.now);
  const auto found = doubted_.find(key);
  const Value& value = found != doubted_.end() ? found->second : doubted_[key] = with_doubt(std::move(doubt));
  seen_ = value.doubt;
  return value;
}

std::optional<Doubt> Doubts::changed_attribute(const std::string& path) const {
  const Binding* found = file_.timeline.find(attribute_key(path), file_.now);
  for (std::size_t dot = path.rfind('.'); found == nullptr && dot != std::string::npos && dot > 0;
       dot = path.rfind('.', dot - 1))
    found = file_.timeline.find(attribute_key(path.substr(0, dot)) + ".*", file_.now);
  if (found == nullptr) return std::nullopt;
  Doubt doubt;
  doubt.why = fmt::format("line {} changes '{}'", file_.line_of(found->place), path);
  doubt.notes.emplace_back(found->place, "this line changes an attribute of a module");
  doubt.hint = "give the number a name of its own";
  return doubt;
}

void Doubts::report(const Doubt& doubt, std::string_view name, Place place) const {
  file_.report.error(place, "uncertain", fmt::format("it is not certain what '{}' is: {}", name, doubt.why),
                     doubt.hint);
  for (const auto& [where, what] : doubt.notes) file_.report.note(where, what);
}

}  // namespace quern::frontend
