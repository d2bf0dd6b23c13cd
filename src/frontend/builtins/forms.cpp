// SPDX-License-Identifier: Apache-2.0
#include "frontend/builtins/forms.hpp"

#include <algorithm>

namespace quern::frontend {
namespace {

struct TypeCode {
  std::string_view code;
  Type TypeTable::* type;
};
constexpr TypeCode kCodes[] = {
    {"b", &TypeTable::boolean},   {"i8", &TypeTable::int8},       {"i16", &TypeTable::int16},
    {"i32", &TypeTable::int32},   {"i64", &TypeTable::int64},     {"u8", &TypeTable::uint8},
    {"u16", &TypeTable::uint16},  {"u32", &TypeTable::uint32},    {"u64", &TypeTable::uint64},
    {"f16", &TypeTable::float16}, {"bf16", &TypeTable::bfloat16}, {"f32", &TypeTable::float32},
    {"f64", &TypeTable::float64}, {"c64", &TypeTable::complex64}, {"c128", &TypeTable::complex128},
    {"none", &TypeTable::none},
};

/// Cuts `text` at every `mark`.
template <class Visit>
void split(std::string_view text, std::string_view mark, Visit visit) {
  while (!text.empty()) {
    const std::size_t at = std::min(text.find(mark), text.size());
    visit(text.substr(0, at));
    text.remove_prefix(std::min(at + mark.size(), text.size()));
  }
}

Type result_of(TypeTable& table, std::string_view code) {
  if (!code.starts_with('(')) return type_of_code(table, code);
  std::vector<Type> items;
  split(code.substr(1, code.size() - 2), ",",
        [&](std::string_view item) { items.push_back(type_of_code(table, item)); });
  return table.tuple(std::move(items));
}

Form read_form(TypeTable& table, std::string_view text) {
  const std::size_t gap = text.find(' '), open = text.rfind('(');
  Form form;
  form.result = result_of(table, text.substr(0, gap));
  form.cuda = text.substr(gap + 1, open - gap - 1);
  if (form.cuda.starts_with('(')) {  // "(int)__brev"
    const std::size_t end = form.cuda.find(')') + 1;
    form.cast = form.cuda.substr(0, end);
    form.cuda.remove_prefix(end);
  }
  split(text.substr(open + 1, text.size() - open - 2), ",", [&](std::string_view parameter) {
    Form::Parameter& made = form.parameters.emplace_back();
    if (const std::size_t colon = parameter.find(':'); colon != std::string_view::npos) {
      made.name = parameter.substr(0, colon);
      const std::size_t equals = parameter.find('=');
      made.fallback = parameter.substr(equals + 1);
      parameter = parameter.substr(colon + 1, equals - colon - 1);
    }
    made.type = type_of_code(table, parameter);
  });
  return form;
}

/// True if the integer type `to` represents every value of the integer type or boolean `from`.
bool holds_integers(Type from, Type to) {
  if (from->kind == TypeKind::boolean) return true;
  if (from->is_signed == to->is_signed) return from->bits <= to->bits;
  return to->is_signed && from->bits < to->bits;
}

/// True if `to` represents every value of `from`, according to Numba's implicit conversions.
bool holds(Type from, Type to) {
  if (from == to) return true;
  if (is_complex(to))
    return is_complex(from)    ? from->bits <= to->bits
           : is_floating(from) ? from->bits * 2u <= to->bits
                               : to->bits == 128;
  if (is_floating(to)) return is_floating(from) ? from->bits <= to->bits && !to->brain : to->bits == 64;
  return is_integral(from) && holds_integers(from, to);
}

bool takes(Type from, Type to) { return is_number(from) && converts(from, to); }

}  // namespace

std::size_t Form::positional() const {
  return static_cast<std::size_t>(std::count_if(parameters.begin(), parameters.end(),
                                                [](const Parameter& each) { return each.name.empty(); }));
}

Type type_of_code(const TypeTable& table, std::string_view code) {
  for (const TypeCode& row : kCodes)
    if (row.code == code) return table.*row.type;
  return nullptr;
}

TypedFunction typed_function(TypeTable& table, const Builtin& row) {
  const std::size_t gap = row.cuda.find(' ');
  return {result_of(table, row.cuda.substr(0, gap)), row.cuda.substr(gap + 1)};
}

std::vector<Form> forms_of(TypeTable& table, const Builtin& row) {
  std::vector<Form> forms;
  split(row.cuda, "; ", [&](std::string_view text) { forms.push_back(read_form(table, text)); });
  return forms;
}

std::optional<Form> choose_form(TypeTable& table, const Builtin& row, const std::vector<Type>& arguments) {
  std::optional<Form> best;
  std::size_t best_lossy = 0;
  for (Form& form : forms_of(table, row)) {
    if (form.positional() != arguments.size()) continue;
    bool fits = true;
    // number of arguments whose type has values that the parameter's type does not have
    std::size_t lossy = 0;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      fits = fits && takes(arguments[i], form.parameters[i].type);
      lossy += holds(arguments[i], form.parameters[i].type) ? 0 : 1;
    }
    if (!fits) continue;
    if (lossy == 0) return std::move(form);
    if (best && best_lossy < lossy) continue;
    best = std::move(form);
    best_lossy = lossy;
  }
  return best;
}

std::string parameters_text(const Form& form) {
  std::string text;
  for (const Form::Parameter& each : form.parameters)
    if (each.name.empty()) text += (text.empty() ? "" : ", ") + text_of(each.type);
  return text;
}

namespace {
bool is_exact_in_single(Type t) {
  return is_integral(t) && (t->bits <= 8 || (t->bits == 16 && t->is_signed));
}
}  // namespace

Type real_operand2(const TypeTable& table, Type a, Type b, bool whole_too) {
  const bool both_whole = is_integral(a) && is_integral(b);
  for (const Type type : {a, b})
    if (!(is_exact_in_single(type) && !(whole_too && both_whole)) &&
        real_operand(table, type) == table.float64)
      return table.float64;
  return table.float32;
}

bool is_whole_exponent(Type base, Type exponent) {
  if (!is_integer(exponent)) return false;
  return exponent->is_signed ? exponent->bits <= 32
                             : exponent->bits == 16 && is_floating(base) && base->bits == 32;
}

}  // namespace quern::frontend
