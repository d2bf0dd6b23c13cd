// SPDX-License-Identifier: Apache-2.0
// Side effects of statements at the file's level, other than binding names: arrays changed in place,
// functions called or passed on, attributes of modules set. The analysis works on tokens, so it can handle
// any Python code. In doubt it assumes that the name is changed.
#include <algorithm>

#include "frontend/module/toplevel.hpp"

namespace quern::frontend {
namespace {

constexpr std::size_t kMostBrackets = 200;  // CPython's own limit

bool closes(Tok kind) {
  return kind == Tok::close_round || kind == Tok::close_square || kind == Tok::close_curly;
}
bool is_assignment(Tok kind) {
  return kind == Tok::assign || (kind >= Tok::plus_assign && kind <= Tok::at_assign);
}

struct FunctionEffect {
  std::string_view name;
  ArgumentEffect effect;
};
constexpr FunctionEffect kPythonFunctions[] = {
    {"print", ArgumentEffect::reads},       {"len", ArgumentEffect::reads},
    {"sum", ArgumentEffect::reads},         {"min", ArgumentEffect::reads},
    {"max", ArgumentEffect::reads},         {"abs", ArgumentEffect::reads},
    {"range", ArgumentEffect::reads},       {"str", ArgumentEffect::reads},
    {"repr", ArgumentEffect::reads},        {"float", ArgumentEffect::reads},
    {"int", ArgumentEffect::reads},         {"bool", ArgumentEffect::reads},
    {"complex", ArgumentEffect::reads},     {"isinstance", ArgumentEffect::reads},
    {"type", ArgumentEffect::reads},        {"id", ArgumentEffect::reads},
    {"any", ArgumentEffect::reads},         {"all", ArgumentEffect::reads},
    {"round", ArgumentEffect::reads},       {"hash", ArgumentEffect::reads},
    {"format", ArgumentEffect::reads},      {"divmod", ArgumentEffect::reads},
    {"pow", ArgumentEffect::reads},         {"hasattr", ArgumentEffect::reads},
    {"callable", ArgumentEffect::reads},    {"list", ArgumentEffect::aliases},
    {"tuple", ArgumentEffect::aliases},     {"dict", ArgumentEffect::aliases},
    {"set", ArgumentEffect::aliases},       {"sorted", ArgumentEffect::aliases},
    {"zip", ArgumentEffect::aliases},       {"map", ArgumentEffect::aliases},
    {"enumerate", ArgumentEffect::aliases}, {"filter", ArgumentEffect::aliases},
    {"iter", ArgumentEffect::aliases},      {"reversed", ArgumentEffect::aliases},
    {"getattr", ArgumentEffect::aliases},
};
// Functions of NumPy that are not listed here create a new array from their arguments.
constexpr FunctionEffect kNumpyFunctions[] = {
    {"put", ArgumentEffect::changes},
    {"put_along_axis", ArgumentEffect::changes},
    {"copyto", ArgumentEffect::changes},
    {"place", ArgumentEffect::changes},
    {"putmask", ArgumentEffect::changes},
    {"fill_diagonal", ArgumentEffect::changes},
    {"random.shuffle", ArgumentEffect::changes},
    {"nan_to_num", ArgumentEffect::changes},
    {"asarray", ArgumentEffect::aliases},
    {"asanyarray", ArgumentEffect::aliases},
    {"ascontiguousarray", ArgumentEffect::aliases},
    {"asfortranarray", ArgumentEffect::aliases},
    {"require", ArgumentEffect::aliases},
    {"reshape", ArgumentEffect::aliases},
    {"ravel", ArgumentEffect::aliases},
    {"transpose", ArgumentEffect::aliases},
    {"squeeze", ArgumentEffect::aliases},
    {"expand_dims", ArgumentEffect::aliases},
    {"swapaxes", ArgumentEffect::aliases},
    {"moveaxis", ArgumentEffect::aliases},
    {"rollaxis", ArgumentEffect::aliases},
    {"flip", ArgumentEffect::aliases},
    {"fliplr", ArgumentEffect::aliases},
    {"flipud", ArgumentEffect::aliases},
    {"rot90", ArgumentEffect::aliases},
    {"diagonal", ArgumentEffect::aliases},
    {"diag", ArgumentEffect::aliases},
    {"split", ArgumentEffect::aliases},
    {"array_split", ArgumentEffect::aliases},
    {"hsplit", ArgumentEffect::aliases},
    {"vsplit", ArgumentEffect::aliases},
    {"dsplit", ArgumentEffect::aliases},
    {"frombuffer", ArgumentEffect::aliases},
    {"nditer", ArgumentEffect::changes},
    {"real", ArgumentEffect::aliases},
    {"imag", ArgumentEffect::aliases},
    {"real_if_close", ArgumentEffect::aliases},
    {"matrix_transpose", ArgumentEffect::aliases},
    {"permute_dims", ArgumentEffect::aliases},
    {"vectorize", ArgumentEffect::changes},
    {"apply_along_axis", ArgumentEffect::changes},
    {"apply_over_axes", ArgumentEffect::changes},
    {"frompyfunc", ArgumentEffect::changes},
    {"fromfunction", ArgumentEffect::changes},
    {"piecewise", ArgumentEffect::changes},
    {"fromiter", ArgumentEffect::changes},
    {"setdiff1d", ArgumentEffect::reads},
    {"asmatrix", ArgumentEffect::aliases},
    {"mat", ArgumentEffect::aliases},
    {"unstack", ArgumentEffect::aliases},
    {"astype", ArgumentEffect::aliases},
    {"partition", ArgumentEffect::reads},
};
constexpr FunctionEffect kMethods[] = {
    {"copy", ArgumentEffect::reads},        {"tolist", ArgumentEffect::reads},
    {"sum", ArgumentEffect::reads},         {"mean", ArgumentEffect::reads},
    {"min", ArgumentEffect::reads},         {"max", ArgumentEffect::reads},
    {"any", ArgumentEffect::reads},         {"all", ArgumentEffect::reads},
    {"argmax", ArgumentEffect::reads},      {"argmin", ArgumentEffect::reads},
    {"argsort", ArgumentEffect::reads},     {"std", ArgumentEffect::reads},
    {"var", ArgumentEffect::reads},         {"prod", ArgumentEffect::reads},
    {"cumsum", ArgumentEffect::reads},      {"cumprod", ArgumentEffect::reads},
    {"index", ArgumentEffect::reads},       {"count", ArgumentEffect::reads},
    {"dot", ArgumentEffect::reads},         {"nonzero", ArgumentEffect::reads},
    {"tobytes", ArgumentEffect::reads},     {"flatten", ArgumentEffect::reads},
    {"round", ArgumentEffect::reads},       {"trace", ArgumentEffect::reads},
    {"format", ArgumentEffect::reads},      {"join", ArgumentEffect::reads},
    {"split", ArgumentEffect::reads},       {"strip", ArgumentEffect::reads},
    {"lower", ArgumentEffect::reads},       {"upper", ArgumentEffect::reads},
    {"startswith", ArgumentEffect::reads},  {"endswith", ArgumentEffect::reads},
    {"item", ArgumentEffect::aliases},      {"astype", ArgumentEffect::aliases},
    {"conj", ArgumentEffect::aliases},      {"reshape", ArgumentEffect::aliases},
    {"ravel", ArgumentEffect::aliases},     {"view", ArgumentEffect::aliases},
    {"transpose", ArgumentEffect::aliases}, {"squeeze", ArgumentEffect::aliases},
    {"swapaxes", ArgumentEffect::aliases},  {"get", ArgumentEffect::aliases},
    {"keys", ArgumentEffect::aliases},      {"values", ArgumentEffect::aliases},
    {"items", ArgumentEffect::aliases},
};

template <std::size_t N>
const FunctionEffect* find_row(const FunctionEffect (&rows)[N], std::string_view name) {
  for (const FunctionEffect& row : rows)
    if (row.name == name) return &row;
  return nullptr;
}

constexpr std::string_view kAnyName[] = {"exec", "eval",         "globals", "locals",
                                         "vars", "__builtins__", "__dict__"};

}  // namespace

/// The effect of a function of a module. An unknown function is assumed to change its arguments.
ArgumentEffect effect_of_function(std::string_view path) {
  if (path.empty()) return ArgumentEffect::changes;
  if (const std::size_t dot = path.find('.'); dot != std::string_view::npos) {
    const std::string_view module = path.substr(0, dot);
    if (module == "numba")
      return path.find("mapped") == std::string_view::npos && path.find("pinned") == std::string_view::npos
                 ? ArgumentEffect::reads
                 : ArgumentEffect::changes;
    if (module == "math" || module == "cmath" || module == "time" || module == "warnings" || module == "os")
      return ArgumentEffect::reads;
    if (module != "numpy") return ArgumentEffect::changes;
    if (path.ends_with(".at")) return ArgumentEffect::changes;
    const FunctionEffect* row = find_row(kNumpyFunctions, path.substr(dot + 1));
    if (row != nullptr) return row->effect;
    const bool by_index = path.starts_with("numpy.lib.") || path.starts_with("numpy.broadcast") ||
                          path.starts_with("numpy.atleast") || path.starts_with("numpy.ma.") ||
                          path.starts_with("numpy.random.");
    return by_index ? ArgumentEffect::changes : ArgumentEffect::reads;
  }
  const FunctionEffect* row = find_row(kPythonFunctions, path);
  return row == nullptr ? ArgumentEffect::changes : row->effect;
}

ArgumentEffect effect_of_method(std::string_view name) {
  const FunctionEffect* row = find_row(kMethods, name);
  return row == nullptr ? ArgumentEffect::changes : row->effect;
}

/// The end of a simple statement: a ';' or the line's end.
std::size_t TokenReader::statement_end(std::size_t at, std::size_t end) const {
  for (; at < end; ++at) {
    if ((kind(at) == Tok::newline || kind(at) == Tok::semicolon) && around_[at] == 0) return at;
    if (partner_[at] > at && partner_[at] < end) at = partner_[at];
  }
  return end;
}

/// The last '=' or '+=' of a statement; `at` if there is none.
std::size_t TokenReader::value_begin(std::size_t at, std::size_t end) const {
  std::size_t value = at;
  const std::size_t behind = statement_end(at, end);
  for (std::size_t i = at; i < behind; ++i) {
    if (partner_[i] > i && partner_[i] < behind) i = partner_[i];
    if (kind(i) == Tok::k_lambda) break;
    if (is_assignment(kind(i))) value = i;
  }
  return value;
}

/// True for a name that is neither an attribute nor the keyword of an argument.
bool TokenReader::is_name_itself(std::size_t token) const {
  if (kind(token) != Tok::name || (token > 0 && kind(token - 1) == Tok::dot)) return false;
  if (kind(token + 1) != Tok::assign || around_[token] == 0) return true;
  const std::size_t open = around_[token] - 1;
  return kind(open) != Tok::open_round || (kind(token - 1) != Tok::comma && token - 1 != open);
}

/// Returns "numpy.add" for tokens that are names and dots, if the first name is an import or a name of
/// Python.
std::string TokenReader::path_of(std::size_t first, std::size_t end) const {
  if (first >= end || kind(first) != Tok::name) return {};
  const Binding* binding = timeline_.find(text(first), timeline_.now());
  if (binding != nullptr && binding->kind != Binding::Kind::import) return {};
  std::string path = binding != nullptr ? binding->path : std::string(text(first));
  std::size_t at = first + 1;
  for (; at + 1 < end && kind(at) == Tok::dot && kind(at + 1) == Tok::name; at += 2)
    path += "." + std::string(text(at + 1));
  if (at < end && kind(at) != Tok::open_round) return {};
  return canonical(path);
}

/// The first token of the expression that ends before `open`: a(b)[c].d
std::size_t TokenReader::chain_begin(std::size_t open) const {
  std::size_t at = open;
  for (std::size_t steps = 0; at > 0 && steps < kMostBrackets; ++steps) {
    const Tok before = kind(at - 1);
    if (closes(before) && partner_[at - 1] < at - 1 && partner_[at - 1] > 0)
      at = partner_[at - 1];
    else if (before == Tok::name)
      --at;
    else
      break;
    if (kind(at) == Tok::name && at > 0 && kind(at - 1) == Tok::dot)
      --at;
    else if (kind(at) == Tok::name)
      break;
  }
  return at;
}

/// Returns the use of a value, according to the brackets around it.
TokenReader::Use TokenReader::use_outside(std::size_t token) const {
  std::size_t inner = token;
  for (std::size_t depth = 0; around_[inner] != 0; ++depth) {
    if (depth > kMostBrackets) return Use::changed;
    const std::size_t open = around_[inner] - 1;
    const Tok before = open > 0 ? kind(open - 1) : Tok::newline;
    const bool applied = before == Tok::name || closes(before);
    if (kind(open) == Tok::open_square && applied) return Use::read;  // an index
    if (kind(open) == Tok::open_round && applied) {
      const std::size_t first = chain_begin(open);
      if (kind(inner - 1) == Tok::assign && text(inner - 2) == "out") return Use::changed;
      ArgumentEffect effect = effect_of_function(path_of(first, open));
      const bool method = open >= 2 && kind(open - 2) == Tok::dot && path_of(first, open).empty();
      if (method && effect_of_method(text(open - 1)) != ArgumentEffect::changes)
        effect = ArgumentEffect::reads;
      if (effect == ArgumentEffect::changes) return Use::changed;
      if (effect == ArgumentEffect::reads) return Use::read;
      inner = first;
      continue;
    }
    inner = open;
  }
  return Use::flows;
}

/// Returns the use of the name at the token. `target`: the name is before the '=' of its statement.
TokenReader::Use TokenReader::use_of(std::size_t token, bool target) const {
  std::size_t at = token + 1;
  bool whole = true;
  for (;;) {
    if (kind(at) == Tok::dot && kind(at + 1) == Tok::name) {
      at += 2;
    } else if (kind(at) == Tok::open_square && partner_[at] > at) {
      at = partner_[at] + 1;
    } else if (kind(at) == Tok::open_round && partner_[at] > at) {
      if (whole) return Use::called;
      const bool method = kind(at - 1) == Tok::name && kind(at - 2) == Tok::dot;
      const ArgumentEffect effect = method ? effect_of_method(text(at - 1)) : ArgumentEffect::changes;
      for (std::size_t i = at + 1; i < partner_[at] && effect != ArgumentEffect::changes; ++i)
        if (kind(i) == Tok::name && text(i) == "out") return Use::changed;
      if (effect == ArgumentEffect::changes) return Use::changed;
      if (effect == ArgumentEffect::reads) return Use::read;
      at = partner_[at] + 1;
    } else {
      break;
    }
    whole = false;
  }
  if (target && !whole && use_outside(token) == Use::flows) return Use::changed;
  return use_outside(token);
}

std::vector<Binding*> TopLevel::effects(std::size_t at, std::size_t end, std::size_t value) {
  std::vector<Binding*> flows;
  for (std::size_t i = at; i < end && i + 1 < file_.tokens.size(); ++i) {
    if (kind(i) == Tok::format_string) hidden_text(i, &flows);
    if (!is_name_itself(i)) continue;
    if (kind(i + 1) == Tok::walrus) {
      Binding binding;
      binding.kind = Binding::Kind::host;
      binding.place = place(i);
      bind(text(i), std::move(binding));
      continue;
    }
    const bool target = i < value || value == end;
    const Tok after = kind(i + 1);
    const bool bound = target && after != Tok::dot && after != Tok::open_square && after != Tok::open_round;
    if ((bound && around_[i] == around_[at]) || (i > 0 && kind(i - 1) == Tok::k_as)) continue;
    use_name(i, use_of(i, target), at, &flows);
  }
  return flows;
}

/// `from`: the token of the statement that runs.
void TopLevel::use_name(std::size_t token, Use use, std::size_t from, std::vector<Binding*>* flows) {
  Binding* binding = timeline_.find(text(token), timeline_.now());
  if (binding == nullptr) {
    const bool asked = token > 0 && kind(token - 1) == Tok::k_in;  // 'x' in globals()
    if (!asked && std::find(std::begin(kAnyName), std::end(kAnyName), text(token)) != std::end(kAnyName))
      timeline_.lose_all(line_place(from));
    return;
  }
  switch (binding->kind) {
    case Binding::Kind::import:
      change_attribute(token, *binding, from);
      return;
    case Binding::Kind::function:
    case Binding::Kind::host_class:
      if (use != Use::read) run_function(*binding, from, use != Use::called);
      break;
    case Binding::Kind::deleted:
      return;
    default:
      if (use == Use::changed || use == Use::called) {
        timeline_.change(*binding, line_place(from));
        run_function(*binding, from, false);
      }
      break;
  }
  if (use == Use::flows && flows != nullptr) flows->push_back(binding);
}

/// math.pi = 3.0, del math.pi, setattr(math, 'pi', 3.0); sys.modules gives access to all modules.
void TopLevel::change_attribute(std::size_t token, const Binding& module, std::size_t from) {
  std::string path = module.path;
  std::size_t at = token + 1;
  for (; kind(at) == Tok::dot && kind(at + 1) == Tok::name; at += 2) path += "." + std::string(text(at + 1));
  path = canonical(path);
  if (path.starts_with("sys.modules") || path.ends_with(".__dict__") || path == "importlib.reload")
    timeline_.lose_all(line_place(from));
  bool stores = is_assignment(kind(at)) && at > token + 1 && is_name_itself(token) && around_[token] == 0;
  for (std::size_t i = token; i > 0 && kind(i - 1) != Tok::newline && !stores; --i)
    if (kind(i - 1) == Tok::k_del) stores = at > token + 1;
  // In a list of targets, any of them may be the attribute: math.pi, x = 3, 4
  if (!stores && at > token + 1 && (kind(at) == Tok::comma || closes(kind(at)) || kind(at) == Tok::k_in)) {
    const std::size_t behind = statement_end(at, file_.tokens.size() - 1);
    for (std::size_t i = at; i < behind && !stores; ++i) stores = kind(i) == Tok::assign && around_[i] == 0;
    if (kind(at) == Tok::k_in) stores = true;
  }
  std::string all;
  if (around_[token] != 0) {
    const std::size_t open = around_[token] - 1;
    if (open > 0 && kind(open - 1) == Tok::name &&
        (text(open - 1) == "setattr" || text(open - 1) == "delattr"))
      all = ".*";
  }
  if (!stores && all.empty()) return;
  Binding binding;
  binding.kind = Binding::Kind::host;
  binding.place = line_place(from);
  bind(attribute_key(path) + all, std::move(binding));
}

/// An f-string may contain calls.
void TopLevel::hidden_text(std::size_t token, std::vector<Binding*>* flows) {
  const std::string_view all = text(token);
  static_cast<void>(flows);
  if (all.find('(') == std::string_view::npos && all.find(":=") == std::string_view::npos) return;
  const auto part = [](char c) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  for (std::size_t at = 0; at < all.size();) {
    std::size_t behind = at;
    while (behind < all.size() && part(all[behind])) ++behind;
    if (behind > at)
      if (Binding* binding = timeline_.find(all.substr(at, behind - at), timeline_.now())) {
        timeline_.change(*binding, line_place(token));
        run_function(*binding, token, true);
        if (all.find(":=") != std::string_view::npos)
          timeline_.expose(all.substr(at, behind - at), line_place(token));
      }
    at = std::max(behind, at + 1);
  }
}

/// Applies the effects of calling the function and all functions that it may call.
void TopLevel::run_function(Binding& root, std::size_t from, bool escapes) {
  std::vector<Binding*> open = {&root};
  std::set<const Binding*> seen = {&root};
  while (!open.empty()) {
    Binding* each = open.back();
    open.pop_back();
    if (each->kind == Binding::Kind::uncertain)
      for (const Binding* choice : each->choices)
        if (choice != nullptr && seen.insert(choice).second) open.push_back(const_cast<Binding*>(choice));
    if (each->kind != Binding::Kind::function && each->kind != Binding::Kind::host_class &&
        each->kind != Binding::Kind::assignment)
      continue;
    std::vector<Binding*> further;
    apply(facts_of(*each), from, escapes, further);
    if (budget_ == 0) return;
    for (Binding* next : further)
      if (seen.insert(next).second) open.push_back(next);
  }
}

void TopLevel::apply(const Facts& facts, std::size_t from, bool escapes, std::vector<Binding*>& open) {
  for (const Facts::NameUse& each : facts.uses) {
    if (budget_ == 0) return;
    if (--budget_ == 0) return timeline_.lose_all(line_place(from));
    if (kind(each.token) == Tok::format_string) {
      hidden_text(each.token, nullptr);
      continue;
    }
    Binding* binding = timeline_.find(text(each.token), timeline_.now());
    if (binding == nullptr || binding->kind == Binding::Kind::import) {
      use_name(each.token, each.use, from, nullptr);
      continue;
    }
    if (binding->kind == Binding::Kind::function || binding->kind == Binding::Kind::host_class ||
        binding->kind == Binding::Kind::assignment || binding->kind == Binding::Kind::uncertain)
      open.push_back(binding);
    if (each.use != Use::read) timeline_.change(*binding, line_place(from));
  }
  for (const std::size_t token : facts.sets) {
    if (escapes) timeline_.expose(text(token), line_place(from));
    Binding made;
    made.kind = Binding::Kind::host;
    made.place = place(token);
    made.time = timeline_.now();
    const Binding* before = timeline_.find(text(token), timeline_.now());
    if (before != nullptr && before->kind == Binding::Kind::uncertain && before->because == line_place(from))
      continue;
    const Binding& set = bind(text(token), std::move(made));
    Binding uncertain;
    uncertain.kind = Binding::Kind::uncertain;
    uncertain.place = place(token);
    uncertain.because = line_place(from);
    uncertain.why = "runs a function that may bind it";
    uncertain.choices = {before, &set};
    bind(text(token), std::move(uncertain));
  }
}

const TopLevel::Facts& TopLevel::facts_of(const Binding& binding) {
  const auto [found, fresh] = facts_.try_emplace(binding.token);
  Facts& facts = found->second;
  if (!fresh) return facts;
  const std::size_t at = binding.token, end = file_.end_of_statement(at);
  if (binding.kind == Binding::Kind::assignment) {
    const std::size_t behind = statement_end(at, end);
    for (std::size_t i = value_begin(at, behind); i < behind; ++i)
      if (is_name_itself(i)) facts.uses.push_back({i, Use::read});
    return facts;
  }
  // A kernel cannot bind names of the file, nor change its arrays.
  if (binding.declaration != nullptr)
    for (const std::size_t token : binding.declaration->decorators)
      if (roles_.role_at(token)) return facts;
  read_body(at, end, {}, facts);
  return facts;
}

/// The local names of a function: its parameters, and the names that its statements assign.
void TopLevel::own_names(std::size_t at, std::size_t end, std::set<std::string_view>& own,
                         std::set<std::string_view>& outer, Facts& facts) const {
  std::size_t body = at;
  if (kind(at) == Tok::k_def) {
    const std::size_t open = at + 2;
    if (kind(open) == Tok::open_round)
      for (std::size_t i = open + 1; i < partner_[open]; ++i)
        if (kind(i) == Tok::name && around_[i] == open + 1 &&
            (kind(i - 1) == Tok::comma || i - 1 == open || kind(i - 1) == Tok::times ||
             kind(i - 1) == Tok::power))
          own.insert(text(i));
    body = kind(open) == Tok::open_round ? partner_[open] : open;
  }
  for (std::size_t i = body; i < end; ++i) {
    if (i > at && (kind(i) == Tok::k_def || kind(i) == Tok::k_class)) {
      own.insert(text(i + 1));
      i = std::max(i, file_.end_of_statement(i) - 1);  // nested functions have separate names
      continue;
    }
    const bool declares = kind(i) == Tok::k_global;
    for (std::size_t j = i + 1;
         declares && !(kind(j) == Tok::newline || kind(j) == Tok::semicolon) && j < end; ++j)
      if (kind(j) == Tok::name && outer.insert(text(j)).second) facts.sets.push_back(j);
    if (kind(i) != Tok::name || !is_name_itself(i)) continue;
    const Tok before = kind(i - 1), after = kind(i + 1);
    const bool alone = after != Tok::dot && after != Tok::open_square && after != Tok::open_round;
    bool binds = after == Tok::walrus || before == Tok::k_as || before == Tok::k_import;
    if (alone && around_[i] == 0 && (is_assignment(after) || after == Tok::colon))
      binds = is_assignment(after);
    if (alone && !binds &&
        (after == Tok::comma || closes(after) || before == Tok::comma || after == Tok::k_in)) {
      // a, b = 1, 2; for a, b in x; from x import a, b
      const std::size_t behind = statement_end(i, end);
      std::size_t begin = i;
      while (begin > body && kind(begin - 1) != Tok::newline && kind(begin - 1) != Tok::indent &&
             kind(begin - 1) != Tok::dedent && kind(begin - 1) != Tok::semicolon)
        --begin;
      const std::size_t value = value_begin(begin, behind);
      binds = (value > i && around_[i] == 0) || kind(begin) == Tok::k_from || kind(begin) == Tok::k_import;
      if (kind(begin) == Tok::k_for)
        for (std::size_t j = i; j < behind && kind(j) != Tok::colon && !binds; ++j) {
          binds = kind(j) == Tok::k_in && around_[j] == 0;
          if (kind(j) == Tok::k_in) break;
        }
    }
    if (binds) own.insert(text(i));
  }
  for (const std::string_view name : outer) own.erase(name);
}

void TopLevel::read_body(std::size_t at, std::size_t end, std::set<std::string_view> own, Facts& facts) {
  const bool scope = kind(at) == Tok::k_def;
  std::set<std::string_view> outer;
  if (scope) own_names(at, end, own, outer, facts);
  std::size_t begin = at, value = at;
  for (std::size_t i = at + 1; i < end; ++i) {
    const Tok before = kind(i - 1);
    if (before == Tok::newline || before == Tok::indent || before == Tok::dedent || before == Tok::semicolon)
      begin = i, value = value_begin(i, end);
    if (kind(i) == Tok::k_def || kind(i) == Tok::k_class) {
      const std::size_t behind = file_.end_of_statement(i);
      read_body(i, behind, own, facts);
      i = std::max(i, behind - 1);
      continue;
    }
    if (kind(i) == Tok::format_string && text(i).find('(') != std::string_view::npos)
      facts.uses.push_back({i, Use::changed});
    if (!is_name_itself(i) || own.contains(text(i))) continue;
    Use use = use_of(i, i < value);
    // References through the function's local names are not tracked.
    const bool kept = value > begin || kind(begin) == Tok::k_return || kind(begin) == Tok::k_for ||
                      kind(begin) == Tok::k_with;
    if (use == Use::flows) use = kept ? Use::changed : Use::read;
    facts.uses.push_back({i, use});
  }
}

}  // namespace quern::frontend
