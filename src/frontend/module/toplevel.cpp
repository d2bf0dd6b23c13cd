// SPDX-License-Identifier: Apache-2.0
#include "frontend/module/toplevel.hpp"

#include <algorithm>
#include <utility>

#include "frontend/module/decide.hpp"
#include "frontend/syntax/parser.hpp"

namespace quern::frontend {
namespace {

constexpr std::size_t kMostSteps = std::size_t{1} << 22;  // while following the names that functions use

bool ends_line(Tok kind) { return kind == Tok::newline || kind == Tok::end || kind == Tok::dedent; }
bool opens(Tok kind) {
  return kind == Tok::open_round || kind == Tok::open_square || kind == Tok::open_curly;
}
bool closes(Tok kind) {
  return kind == Tok::close_round || kind == Tok::close_square || kind == Tok::close_curly;
}

Binding made(Binding::Kind kind, Place place, std::size_t token = 0) {
  Binding binding;
  binding.kind = kind;
  binding.place = place;
  binding.token = token;
  return binding;
}

/// The names that `from module import *` binds and that kernels can use.
std::vector<std::string_view> all_in(const TypeTable& types, std::string_view module) {
  std::vector<std::string_view> names = names_in(module);
  if (module == "numba" || module == "numba.types" || module == "numpy")
    for (const std::string_view type : types.scalar_names()) names.push_back(type);
  if (module == "numba.cuda.random") names.insert(names.end(), {"xoroshiro128p_dtype", "xoroshiro128p_type"});
  return names;
}

}  // namespace

TokenReader::TokenReader(ModuleFile& file) : file_(file), timeline_(file.timeline) {
  const std::size_t count = file_.tokens.size();
  partner_.assign(count, 0);
  around_.assign(count, 0);
  std::vector<std::size_t> open;
  for (std::size_t at = 0; at < count; ++at) {
    if (closes(kind(at)) && !open.empty()) {
      partner_[at] = open.back();
      partner_[open.back()] = at;
      open.pop_back();
    }
    around_[at] = open.empty() ? 0 : open.back() + 1;
    if (opens(kind(at))) open.push_back(at);
  }
  for (const std::size_t at : open) partner_[at] = count - 1;
}

TopLevel::TopLevel(ModuleFile& file, Evaluator& evaluator, Bindings& bindings, Decorators& decorators)
    : TokenReader(file), roles_(decorators), decision_(file, evaluator, bindings), budget_(kMostSteps) {}

void TopLevel::run() {
  suite(0, file_.tokens.size() - 1);
  file_.now = kImported;
}

Place TokenReader::line_place(std::size_t token) const {
  std::size_t end = token;
  while (!ends_line(kind(end)) && kind(end) != Tok::colon) ++end;
  return end == token ? place(token) : join(place(token), place(end - 1));
}

Binding& TopLevel::bind(std::string_view name, Binding binding) {
  if (binding.time == 0) binding.time = timeline_.now();
  return timeline_.bind(name, std::move(binding));
}

/// Runs statements one after another, up to a `raise`.
void TopLevel::suite(std::size_t at, std::size_t end) {
  while (at < end && kind(at) != Tok::end) {
    if (ended_ || failed_) return;
    at = std::max(statement(at, end), at + 1);
  }
}

/// Finds the header's ':' and its statements, which are on the same line or in an indented block.
std::optional<TopLevel::Suite> TopLevel::suite_at(std::size_t at) const {
  Suite found;
  found.header = at;
  std::size_t lambdas = 0;
  for (std::size_t i = at; !ends_line(kind(i)); ++i) {
    if (opens(kind(i)) && partner_[i] > i) i = partner_[i];
    if (kind(i) == Tok::k_lambda) ++lambdas;
    if (kind(i) != Tok::colon) continue;
    if (lambdas > 0) {
      --lambdas;
      continue;
    }
    found.colon = i;
    found.begin = i + 1;
    found.next = file_.end_of_statement(at);
    found.end = found.next;
    if (kind(i + 1) == Tok::newline && kind(i + 2) == Tok::indent)
      found.begin = i + 3, found.end = found.next - 1;
    return found;
  }
  return std::nullopt;
}

std::size_t TopLevel::statement(std::size_t at, std::size_t end) {
  file_.now = timeline_.now();
  const std::size_t next = file_.end_of_statement(at);
  if (kind(at) == Tok::at) {
    decorators_.push_back(at + 1);
    effects(at + 1, next, at);
    return next;
  }
  if (kind(at) == Tok::k_async && at + 1 < end) ++at;
  if (kind(at) == Tok::k_def) return function(at, next);
  const bool soft = kind(at) == Tok::name && text(at) == "match" && kind(at + 1) != Tok::assign;
  const std::optional<Suite> header = suite_at(at);
  std::size_t behind = next;
  if (header && kind(at) == Tok::k_class)
    behind = host_class(*header);
  else if (header && kind(at) == Tok::k_if)
    behind = if_chain(*header);
  else if (header && kind(at) == Tok::k_try)
    behind = try_statement(*header);
  else if (header && (kind(at) == Tok::k_for || kind(at) == Tok::k_while))
    behind = loop(*header);
  else if (header && kind(at) == Tok::k_with)
    behind = with(*header);
  else if (header && soft && kind(header->colon + 1) == Tok::newline)
    behind = match(*header);
  else
    line(at, next);
  decorators_.clear();
  return behind;
}

std::size_t TopLevel::if_chain(const Suite& first) {
  std::vector<Block> ways;
  Place because;
  bool open = true;  // true: control may reach the code that follows
  std::size_t next = first.header;
  for (std::optional<Suite> at = first; at;) {
    const bool last = kind(at->header) == Tok::k_else;
    std::optional<bool> known = open ? std::optional<bool>(true) : false;
    if (open && !last) {
      const bool pure_before = !because.end;
      known = decide(at->header + 1, at->colon);
      if (!pure_before && !deciding_) known.reset();
      effects(at->header + 1, at->colon, at->header);
      file_.now = timeline_.now();
    }
    if (!known && because.end == 0) because = line_place(at->header);
    if (known.value_or(true)) ways.emplace_back([this, each = *at] { suite(each.begin, each.end); });
    if (known == true) open = false;
    next = at->next;
    if (last || (kind(next) != Tok::k_elif && kind(next) != Tok::k_else)) break;
    at = suite_at(next);
  }
  if (open) ways.emplace_back([] {});
  branches(ways, because, "decides what it is");
  return next;
}

/// Runs each path from here, and joins their results.
void TopLevel::branches(const std::vector<Block>& ways, Place because, const char* why) {
  if (ways.size() == 1) return ways.front()();
  const std::size_t mark = timeline_.mark();
  const Time start = timeline_.now();
  std::vector<Outcome> outcomes;
  for (const Block& way : ways) {
    for (const std::string_view name : timeline_.touched_since(mark))
      timeline_.restore(name, timeline_.find(name, start));
    way();
    if (!ended_ && !failed_) outcomes.push_back({timeline_.now()});
    ended_ = failed_ = false;
  }
  ended_ = outcomes.empty();
  merge(mark, outcomes, because, why);
}

void TopLevel::merge(std::size_t mark, const std::vector<Outcome>& outcomes, Place because, const char* why) {
  for (const std::string_view name : timeline_.touched_since(mark)) {
    std::vector<const Binding*> choices;
    Binding* only = nullptr;
    for (const Outcome& outcome : outcomes) {
      only = timeline_.find(name, outcome.end);
      if (std::find(choices.begin(), choices.end(), only) == choices.end()) choices.push_back(only);
    }
    if (choices.size() <= 1) {
      timeline_.restore(name, only);
      continue;
    }
    Binding binding =
        made(Binding::Kind::uncertain, choices[0] != nullptr ? choices[0]->place : choices[1]->place);
    binding.because = because;
    binding.why = why;
    binding.choices = std::move(choices);
    bind(name, std::move(binding));
  }
}

/// Marks the bindings since the mark as uncertain: the assignments may not have happened.
void TopLevel::doubt_since(std::size_t mark, Time before, Place because, const char* why) {
  merge(mark, {{before}, {timeline_.now()}}, because, why);
}

/// Handles a line that may raise: in the enclosing handlers, it may not have completed.
void TopLevel::risk(std::size_t token) {
  if (!risk_) risk_ = Change{timeline_.now(), line_place(token)};
}

std::size_t TopLevel::try_statement(const Suite& first) {
  const std::optional<Change> around = std::exchange(risk_, std::nullopt);
  const std::size_t mark = timeline_.mark();
  ++guarded_;
  suite(first.begin, first.end);
  --guarded_;
  std::optional<Change> risk = std::exchange(risk_, around);
  const bool failed = std::exchange(failed_, false), raised = std::exchange(ended_, false);
  if (raised && !risk) risk = Change{timeline_.now(), line_place(first.header)};
  std::optional<Suite> completed, always;
  std::vector<Suite> handlers;
  std::size_t next = first.next;
  while (kind(next) == Tok::k_except || kind(next) == Tok::k_else || kind(next) == Tok::k_finally) {
    const std::optional<Suite> part = suite_at(next);
    if (!part) break;
    if (kind(next) == Tok::k_except) handlers.push_back(*part);
    if (kind(next) == Tok::k_else) completed = part;
    if (kind(next) == Tok::k_finally) always = part;
    next = part->next;
  }
  if (handlers.empty() && risk && !risk_) risk_ = risk;
  const Time end = timeline_.now();
  const auto handle = [&](const Suite& handler) {
    if (risk)  // if a line raised, the code after it did not run
      for (const std::string_view name : timeline_.touched_since(mark))
        if (Binding* before = timeline_.find(name, risk->time);
            before != timeline_.find(name, end) && !failed) {
          Binding binding = made(Binding::Kind::uncertain, risk->place);
          binding.because = risk->place;
          binding.why = "may raise";
          binding.choices = {before, timeline_.find(name, end)};
          bind(name, std::move(binding));
        }
    for (std::size_t i = handler.header; i + 1 < handler.colon; ++i)
      if (kind(i) == Tok::k_as) bind(text(i + 1), made(Binding::Kind::host, place(i + 1)));
    suite(handler.begin, handler.end);
  };
  std::vector<Block> ways;
  if (!failed && !raised)
    ways.emplace_back([&] {
      if (completed) suite(completed->begin, completed->end);
    });
  if (risk || failed)
    for (const Suite& handler : handlers) ways.emplace_back([&] { handle(handler); });
  // Names bound in the body are compared with the results of the handlers, so all paths start at its end.
  if (!ways.empty())
    branches(ways, risk ? risk->place : line_place(first.header), "may raise, which decides what it is");
  if (always) suite(always->begin, always->end);
  return next;
}

std::size_t TopLevel::loop(const Suite& header) {
  std::size_t in = header.header;
  const bool counted = kind(header.header) == Tok::k_for;
  while (counted && in < header.colon && kind(in) != Tok::k_in) ++in;
  const std::optional<bool> runs = deciding_ ? (counted ? decision_.any_of(in + 1, header.colon)
                                                        : decision_.truth_of(header.header + 1, header.colon))
                                             : std::nullopt;
  const std::vector<Binding*> items = effects(in + 1, header.colon, in);
  std::size_t next = header.next;
  std::optional<Suite> otherwise;
  if (kind(next) == Tok::k_else && (otherwise = suite_at(next))) next = otherwise->next;
  if (runs == false) {
    if (otherwise) suite(otherwise->begin, otherwise->end);
    return next;
  }
  risk(header.header);
  const std::size_t mark = timeline_.mark();
  const Time before = timeline_.now();
  const bool deciding = std::exchange(deciding_, false);
  // The second walk uses facts that the first one found in later lines.
  for (int walk = deciding ? 0 : 1; walk < 2; ++walk) {
    if (counted) bind_targets(header.header + 1, in, items);
    suite(header.begin, header.end);
    if (otherwise) suite(otherwise->begin, otherwise->end);
    ended_ = failed_ = false;
  }
  deciding_ = deciding;
  doubt_since(mark, before, line_place(header.header), "decides how often it is bound");
  return next;
}

std::size_t TopLevel::with(const Suite& header) {
  const std::vector<Binding*> shared = effects(header.header + 1, header.colon, header.header);
  const std::size_t mark = timeline_.mark();
  for (Binding* each : shared) timeline_.change(*each, line_place(header.header));
  const std::optional<Change> around = std::exchange(risk_, std::nullopt);
  for (std::size_t i = header.header; i < header.colon; ++i)
    if (kind(i) == Tok::k_as) bind_targets(i + 1, header.colon, shared);
  const Time before = timeline_.now();
  ++guarded_;
  suite(header.begin, header.end);
  --guarded_;
  const std::optional<Change> risk = std::exchange(risk_, around);
  const bool ended = std::exchange(ended_, false);
  if (risk || ended) {
    // With contextlib.suppress and similar managers, the import continues after the block.
    const Time since = risk ? risk->time : before;
    const std::size_t first = header.header + 1;
    const std::string path = path_of(first, chain_begin(header.colon));
    const bool passes_on = path == "open" || path.starts_with("numpy.") || path.starts_with("numba.") ||
                           path.starts_with("warnings.");
    if (!passes_on) merge(mark, {{since}, {timeline_.now()}}, line_place(first), "may pass over what raises");
    if (!risk_) risk_ = risk;
  }
  return header.next;
}

std::size_t TopLevel::match(const Suite& header) {
  effects(header.header + 1, header.colon, header.header);
  risk(header.header);
  const std::size_t mark = timeline_.mark();
  const Time before = timeline_.now();
  const bool deciding = std::exchange(deciding_, false);
  for (std::size_t at = header.begin; at < header.end;) {
    const std::optional<Suite> each = suite_at(at);
    if (!each) break;
    for (std::size_t i = each->header + 1; i < each->colon; ++i)
      if (kind(i) == Tok::name && kind(i - 1) != Tok::dot && kind(i + 1) != Tok::dot &&
          kind(i + 1) != Tok::assign)
        bind(text(i), made(Binding::Kind::host, place(i)));
    suite(each->begin, each->end);
    ended_ = failed_ = false;
    at = each->next;
  }
  deciding_ = deciding;
  doubt_since(mark, before, line_place(header.header), "decides what it is");
  return header.next;
}

std::size_t TopLevel::function(std::size_t at, std::size_t next) {
  std::vector<std::size_t> decorators = std::exchange(decorators_, {});
  if (kind(at + 1) != Tok::name) return next;
  if (kind(at + 2) == Tok::open_round) default_values(at + 2);
  Declaration*& declared = declared_[at];
  const bool anew = declared == nullptr;
  if (anew) declared = &file_.declarations.emplace_back();
  declared->time = timeline_.now();
  if (anew) {
    declared->name = text(at + 1);
    declared->place = place(at + 1);
    declared->token = at;
    declared->decorators = decorators;
  }
  file_.now = timeline_.now();
  bool compiled = false, foreign = false;
  for (const std::size_t token : decorators) (roles_.role_at(token) ? compiled : foreign) = true;
  if (foreign) risk(at);
  Binding binding = made(Binding::Kind::function, declared->place, at);
  binding.declaration = declared;
  Binding& bound = bind(declared->name, std::move(binding));
  // A foreign decorator may keep the function and call it at any time.
  if (foreign && !compiled) run_function(bound, at, true);
  if (foreign && compiled)
    for (const std::size_t token : decorators)
      if (!roles_.role_at(token)) declared->replaced = line_place(token);
  return next;
}

/// def f(x, y=TABLE): finds the tokens after each '=' and ':' of the header itself.
void TopLevel::default_values(std::size_t open) {
  for (std::size_t i = open + 1; i < partner_[open]; ++i) {
    if (around_[i] != open + 1 || (kind(i) != Tok::assign && kind(i) != Tok::colon)) continue;
    std::size_t end = i + 1;
    while (end < partner_[open] && (around_[end] != open + 1 || kind(end) != Tok::comma)) ++end;
    effects(i + 1, end, i);
    i = end;
  }
}

std::size_t TopLevel::host_class(const Suite& header) {
  effects(header.header + 2, header.colon, header.header);
  risk(header.header);
  const std::vector<std::size_t> decorators = std::exchange(decorators_, {});
  if (kind(header.header + 1) != Tok::name) return header.next;
  // The lines of a class run in a separate namespace.
  for (std::size_t at = header.begin; at < header.end; at = std::max(file_.end_of_statement(at), at + 1))
    if (kind(at) != Tok::k_def) effects(at, statement_end(at, header.end), value_begin(at, header.end));
  Binding& bound =
      bind(text(header.header + 1), made(Binding::Kind::host_class, place(header.header + 1), header.header));
  if (!decorators.empty()) run_function(bound, header.header, true);
  return header.next;
}

/// Runs simple statements, separated by ';'.
void TopLevel::line(std::size_t at, std::size_t end) {
  while (at < end && !ended_ && !failed_) {
    const std::size_t behind = statement_end(at, end);
    if (behind > at) simple(at, behind);
    at = behind + 1;
  }
}

void TopLevel::simple(std::size_t at, std::size_t end) {
  file_.now = timeline_.now();
  switch (kind(at)) {
    case Tok::k_import:
      return import(at, end);
    case Tok::k_from:
      return from(at, end);
    case Tok::k_del:
      return remove(at, end);
    case Tok::k_raise:
      effects(at + 1, end, at);
      risk(at);
      ended_ = true;
      return;
    case Tok::k_pass:
    case Tok::k_global:
    case Tok::k_break:
    case Tok::k_continue:
    case Tok::newline:
    case Tok::indent:
    case Tok::dedent:
      return;
    default:
      break;
  }
  if (value_begin(at, end) > at) return assignment(at, end);
  const bool lone = end == at + 1 && kind(at) == Tok::name;
  if (lone && file_.meant(text(at)) == nullptr && !is_python_name(text(at)) && file_.stars.empty() &&
      guarded_ > 0) {
    risk(at);
    failed_ = true;
    return;
  }
  const std::string path = path_of(at, std::min(end, at + 4));
  if (!(lone || (end == at + 1 && kind(at) == Tok::string)) && guarded_ > 0) risk(at);
  effects(at, end, at);
  if (path == "sys.exit" || path == "exit" || path == "quit" || path == "os._exit") ended_ = true;
}

/// `a = b = value`, `a += value`, `a: int = value`
void TopLevel::assignment(std::size_t at, std::size_t end) {
  const std::size_t value = value_begin(at, end);
  const Time before = timeline_.now();
  const bool augmented = kind(value) != Tok::assign;
  if (guarded_ > 0 && (augmented || !decision_.is_value(value + 1, end))) risk(at);
  const std::vector<Binding*> shared = effects(at, end, value);
  const auto add = [&](std::size_t token, Binding::Kind sort) {
    Binding binding = made(sort, place(token), at);
    binding.time = before;
    Binding* old = timeline_.find(text(token), timeline_.now());
    Binding& bound = bind(text(token), std::move(binding));
    for (Binding* each : shared) timeline_.share(bound, *each);
    if (sort != Binding::Kind::augmented || old == nullptr) return;
    timeline_.change(*old, line_place(at));
    timeline_.share(bound, *old);
  };
  for (std::size_t i = at; i < value; ++i) {
    if (kind(i) == Tok::colon && around_[i] == around_[at]) break;  // an annotation
    if (kind(i) == Tok::open_square && i > at && (kind(i - 1) == Tok::name || closes(kind(i - 1)))) {
      i = std::max(i, partner_[i]);  // T[i] = 5
      continue;
    }
    if (!is_name_itself(i)) continue;
    if (kind(i + 1) == Tok::dot || kind(i + 1) == Tok::open_square || kind(i + 1) == Tok::open_round)
      continue;
    add(i, augmented ? Binding::Kind::augmented : Binding::Kind::assignment);
  }
}

/// Binds the targets of `for` and `with`.
void TopLevel::bind_targets(std::size_t at, std::size_t end, const std::vector<Binding*>& shared) {
  for (std::size_t i = at; i < end; ++i) {
    if (!is_name_itself(i) || kind(i + 1) == Tok::dot || kind(i + 1) == Tok::open_square) continue;
    Binding& bound = bind(text(i), made(Binding::Kind::host, place(i)));
    for (Binding* each : shared) timeline_.share(bound, *each);
  }
}

/// import a.b, c as d
void TopLevel::import(std::size_t at, std::size_t end) {
  while (++at < end) {
    Binding binding = made(Binding::Kind::import, place(at));
    const std::string path = file_.dotted(at);
    if (path.empty()) return;
    if (!is_known_module(path)) risk(at - 1);
    binding.path = path;
    std::string name = path.substr(0, path.find('.'));
    if (kind(at) == Tok::k_as && kind(at + 1) == Tok::name) {
      name = text(at + 1);
      at += 2;
    } else {
      binding.path = name;
    }
    bind(name, std::move(binding));
    if (kind(at) != Tok::comma) return;
  }
}

/// from a.b import c, d as e
void TopLevel::from(std::size_t at, std::size_t end) {
  const std::size_t first = at++;
  const std::string module = file_.dotted(at);
  if (kind(at) != Tok::k_import) return;
  for (++at; at < end; ++at) {
    if (kind(at) == Tok::times) star(first, module);
    if (kind(at) != Tok::name) continue;
    Binding binding = made(Binding::Kind::import, place(at));
    binding.path = module + "." + std::string(text(at));
    binding.member = true;
    if (guarded_ > 0 && !decision_.imports(binding.path)) risk(first);
    std::string_view name = text(at);
    if (kind(at + 1) == Tok::k_as && kind(at + 2) == Tok::name) {
      name = text(at + 2);
      at += 2;
    }
    bind(name, std::move(binding));
  }
}

/// from a import *
void TopLevel::star(std::size_t at, const std::string& module) {
  if (!is_known_module(module)) risk(at);
  const Time before = timeline_.now();
  std::vector<std::string_view> names = all_in(file_.types, canonical(module));
  for (const std::string_view name : names) {
    // If the name has a value already, the import replaces it for certain only if all names of the module are
    // known.
    const Binding* old = timeline_.find(name, before);
    const bool taken =
        (old != nullptr && old->kind != Binding::Kind::import) || (old == nullptr && is_python_name(name));
    if (taken && may_export(module, name, old == nullptr, false)) continue;
    Binding binding = made(Binding::Kind::import, place(at));
    binding.path = module + "." + std::string(name);
    bind(name, std::move(binding));
  }
  file_.stars.push_back({before, line_place(at), canonical(module)});
}

/// del a, b[0]
void TopLevel::remove(std::size_t at, std::size_t end) {
  effects(at + 1, end, end);
  for (std::size_t i = at + 1; i < end; ++i)
    if (is_name_itself(i) && (i + 1 == end || kind(i + 1) == Tok::comma || closes(kind(i + 1))) &&
        (around_[i] == 0 || kind(around_[i] - 1) != Tok::open_square))
      bind(text(i), made(Binding::Kind::deleted, place(i)));
}

std::optional<bool> TopLevel::decide(std::size_t at, std::size_t end) {
  return deciding_ ? decision_.truth_of(at, end) : std::nullopt;
}

}  // namespace quern::frontend
