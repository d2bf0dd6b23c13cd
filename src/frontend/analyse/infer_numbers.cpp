// SPDX-License-Identifier: Apache-2.0
// Type inference for built-ins on numbers, tuples and iterables.
#include <algorithm>

#include "frontend/analyse/builtin_call.hpp"
#include "frontend/builtins/forms.hpp"

namespace quern::frontend {
namespace {

bool is_real(Type t) { return is_number(t) && !is_complex(t); }

bool all_real(const std::vector<Type>& types) { return std::all_of(types.begin(), types.end(), is_real); }

/// A function of one real number, or of a complex number if cmath has it.
Type real_function(BuiltinCall& call) {
  const Type type = call.types[0];
  if (is_complex(type)) {
    if (!complex_function(call.row).empty()) return type;
    return call.fail(call.args[0]->place, "unsupported", "compute with .real and .imag, or use cmath",
                     "{} of complex numbers is not supported", call.row.shown());
  }
  if (!call.number(0)) return call.refused();
  return type == call.table.float16 && !half_function(call.row).empty() ? type
                                                                        : real_operand(call.table, type);
}

/// float("inf")
Type number_in_text(BuiltinCall& call) {
  const Expr& text = *call.args[0];
  const Value number = call.names.evaluate(call.expr);
  if (number.kind != Value::Kind::real)
    return call.fail(text.place, "types", "", "'{}' is no number", text.name);
  call.specialisation.constants[call.expr.id] = number;
  return call.table.float64;
}

/// A function of two real numbers, or of two integers if `integers_too`.
Type two_reals(BuiltinCall& call, bool integers_too) {
  if (!call.number(0) || !call.number(1)) return call.refused();
  return real_operand2(call.table, call.types[0], call.types[1], integers_too);
}

/// math.prod((a, b, c)): the type if all items are numbers, otherwise null. `integers` is set to true if all
/// are integers.
Type over_tuple(BuiltinCall& call, bool& integers) {
  integers = true;
  for (std::size_t i = 0; i < call.args.size(); ++i) {
    const Type type = call.types[i];
    if (!is_tuple(type) || !all_real(type->items))
      return call.fail(call.args[i]->place, "types", "write a loop over an array",
                       "{} takes a tuple of numbers, not {}", call.row.shown(), text_of(type));
    integers = integers && std::all_of(type->items.begin(), type->items.end(), is_integral);
  }
  if (call.args.size() == 2 && call.types[0]->items.size() != call.types[1]->items.size())
    return call.fail(call.expr.place, "types", "", "{} takes tuples of one length, not of {} and {}",
                     call.row.shown(), call.types[0]->items.size(), call.types[1]->items.size());
  return call.table.float64;
}

bool can_be_printed(Type type) {
  return is_real(type) || type->kind == TypeKind::string || type->kind == TypeKind::dim3 ||
         (is_tuple(type) && all_real(type->items));
}

/// Arguments of int32 and smaller types give int32, as in Numba; unsigned ones give uint64.
Type range_of_types(TypeTable& table, const std::vector<Type>& types, const std::vector<const Expr*>& args) {
  bool all_unsigned = true, narrow = true;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const bool is_unsigned = is_integer(types[i]) && !types[i]->is_signed;
    // A literal fits every type of the other arguments.
    const bool literal = args[i]->kind == ExprKind::integer;
    all_unsigned = all_unsigned && (is_unsigned || (literal && types.size() > 1));
    narrow = narrow && types[i]->bits <= 32 && !(is_unsigned && types[i]->bits == 32);
  }
  bool any_unsigned = false;
  for (const Type type : types) any_unsigned = any_unsigned || (is_integer(type) && !type->is_signed);
  if (all_unsigned && any_unsigned) {
    for (const Type type : types)
      if (type == table.int64) return table.range(table.int64);
    return table.range(table.uint64);
  }
  return table.range(narrow ? table.int32 : table.int64);
}

}  // namespace

Type infer_rules::nothing(BuiltinCall& call) { return call.table.none; }
Type infer_rules::int64(BuiltinCall& call) { return call.table.int64; }

Type infer_rules::without_parentheses(BuiltinCall& call) {
  return call.fail(call.expr.place, "calls", fmt::format("write {} without ( )", call.row.shown()),
                   "{} is no function", call.row.shown());
}

Type infer_rules::reals(BuiltinCall& call) {
  if (call.args.size() == 1) return real_function(call);
  Type result = call.table.float32;
  for (std::size_t i = 0; i < call.args.size(); ++i) {
    if (!call.number(i)) return call.refused();
    if (real_operand(call.table, call.types[i]) == call.table.float64) result = call.table.float64;
  }
  return result;
}

Type infer_rules::real2(BuiltinCall& call) { return two_reals(call, false); }
Type infer_rules::real2_or_integers(BuiltinCall& call) { return two_reals(call, true); }

Type infer_rules::real_power(BuiltinCall& call) {
  if (!call.number(0) || !call.number(1)) return call.refused();
  if (is_whole_exponent(call.types[0], call.types[1]))
    return real_operand2(call.table, call.types[0], call.table.float32, false);
  return two_reals(call, false);
}

Type infer_rules::tuple_reals(BuiltinCall& call) {
  bool integers = false;
  return over_tuple(call, integers);
}

Type infer_rules::tuple_counts(BuiltinCall& call) {
  bool integers = false;
  const Type type = over_tuple(call, integers);
  return integers && type == call.table.float64 ? call.table.int64 : type;
}

Type infer_rules::operator1(BuiltinCall& call) {
  const Type of = call.types[0];
  const Type type = is_number(of) ? unary_result(call.table, unary_operator(call.row.cuda), of) : nullptr;
  if (type != nullptr) return type;
  return call.fail(call.args[0]->place, "types", "", "{} does not take {}", call.row.shown(), text_of(of));
}

Type infer_rules::operator2(BuiltinCall& call) { return call.binary(binary_operator(call.row.cuda)); }
Type infer_rules::power(BuiltinCall& call) { return call.binary(Tok::power); }

Type infer_rules::divmod(BuiltinCall& call) {
  const Type type = call.binary(Tok::floor_divide);
  return type == nullptr || is_error(type) ? type : call.table.tuple({type, type});
}

Type infer_rules::truths(BuiltinCall& call) {
  for (std::size_t i = 0; i < call.args.size(); ++i)
    if (!call.wants(i, is_number(call.types[i]), fmt::format("{} takes numbers", call.row.shown())))
      return call.refused();
  return call.table.boolean;
}

Type infer_rules::conjugate(BuiltinCall& call) {
  return call.wants(0, is_number(call.types[0]), fmt::format("{} takes a number", call.row.shown()))
             ? call.types[0]
             : call.refused();
}

/// x.conjugate()
Type infer_rules::conjugate_method(BuiltinCall& call) {
  return call.specialisation.type(*call.expr.items[0]->items[0]);
}

Type infer_rules::part(BuiltinCall& call) {
  const Type type = conjugate(call);
  return type == call.types[0] && is_complex(type) ? call.table.floating(type->bits / 2u) : type;
}

Type infer_rules::predicate(BuiltinCall& call) {
  return call.number(0) ? call.table.boolean : call.refused();
}

Type infer_rules::ldexp(BuiltinCall& call) {
  return call.number(0) && call.whole(1) ? real_operand2(call.table, call.types[0], call.table.float32, false)
                                         : call.refused();
}

Type infer_rules::frexp(BuiltinCall& call) {
  if (!call.number(0)) return call.refused();
  return call.table.tuple({real_operand(call.table, call.types[0]), call.table.int32});
}

Type infer_rules::modf(BuiltinCall& call) {
  if (!call.number(0)) return call.refused();
  const Type real = real_operand(call.table, call.types[0]);
  return call.table.tuple({real, real});
}

Type infer_rules::same_number(BuiltinCall& call) { return call.number(0) ? call.types[0] : call.refused(); }

Type infer_rules::absolute(BuiltinCall& call) {
  if (is_complex(call.types[0])) return call.table.floating(call.types[0]->bits / 2u);
  if (!call.number(0)) return call.refused();
  return call.types[0] == call.table.boolean ? call.table.int8 : call.types[0];
}

Type infer_rules::extremum(BuiltinCall& call) {
  const std::vector<Type>& types = call.types;
  const auto hint = [](Type type) { return is_array(type) || is_tuple(type) ? "write a loop over it" : ""; };
  Type result = nullptr;
  if (types.size() == 1 && is_tuple(types[0]) && !types[0]->items.empty() && all_real(types[0]->items)) {
    for (const Type item : types[0]->items) result = unify(call.table, result, item);
    return result;
  }
  if (types.size() == 1)
    return call.fail(call.args[0]->place, "types", is_array(types[0]) ? "write a loop over it" : "",
                     "{} of one argument takes a tuple of numbers, not {}", call.shown(*call.expr.items[0]),
                     text_of(types[0]));
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (!is_real(types[i]))
      return call.fail(call.args[i]->place, "types", hint(types[i]), "{} takes numbers, not {}",
                       call.shown(*call.expr.items[0]), text_of(types[i]));
    result = unify(call.table, result, types[i]);
  }
  return result;
}

Type infer_rules::round(BuiltinCall& call) {
  if (!call.number(0)) return call.refused();
  if (call.expr.items.size() == 2) return call.table.int64;
  if (call.args.size() == 2 && !call.whole(1)) return call.refused();
  return real_operand(call.table, call.types[0]);
}

Type infer_rules::select(BuiltinCall& call) {
  const Type type = unify(call.table, call.types[1], call.types[2]);
  if (type != nullptr && is_number(call.types[1])) return type;
  return call.fail(call.expr.place, "types", "", "cuda.selp chooses between two numbers of one type");
}

Type infer_rules::to_int(BuiltinCall& call) {
  if (!call.number(0)) return call.refused();
  const Value& value = call.specialisation.constant(*call.args[0]);
  call.specialisation.constants[call.expr.id] = value.kind == Value::Kind::integer ? value : Value{};
  return is_integer(call.types[0]) ? call.types[0] : call.table.int64;
}

Type infer_rules::to_float(BuiltinCall& call) {
  if (call.args[0]->kind == ExprKind::string) return number_in_text(call);
  if (!call.number(0)) return call.refused();
  return is_floating(call.types[0]) ? call.types[0] : call.table.float64;
}

Type infer_rules::to_bool(BuiltinCall& call) {
  return call.wants(0, is_number(call.types[0]), "bool takes a number") ? call.table.boolean : call.refused();
}

Type infer_rules::to_complex(BuiltinCall& call) {
  const std::vector<Type>& types = call.types;
  const bool one = types.size() == 1;
  for (std::size_t i = 0; i < types.size(); ++i)
    if (!call.wants(i, is_number(types[i]) && (one || !is_complex(types[i])),
                    one ? "complex takes numbers" : "complex takes a real and an imaginary part"))
      return call.refused();
  const bool narrow = std::all_of(types.begin(), types.end(), [&](Type t) {
    return t == call.table.float32 || t == call.table.complex64;
  });
  return narrow ? call.table.complex64 : call.table.complex128;
}

Type infer_rules::len(BuiltinCall& call) {
  const Type type = call.types[0];
  if (is_array(type) && type->ndim > 0) return call.table.int64;
  if (!is_tuple(type)) return call.fail(call.args[0]->place, "types", "", "{} has no length", text_of(type));
  call.specialisation.constants[call.expr.id] = Value::of(static_cast<std::int64_t>(type->items.size()));
  return call.table.int64;
}

Type infer_rules::range(BuiltinCall& call) {
  for (std::size_t i = 0; i < call.args.size(); ++i)
    if (!call.whole(i)) return call.refused();
  if (call.args.size() == 3) {
    const Value& step = call.specialisation.constant(*call.args[2]);
    if (step.kind == Value::Kind::integer && step.integer == 0)
      return call.fail(call.args[2]->place, "loop", "", "the step of a range is not 0");
  }
  return range_of_types(call.table, call.types, call.args);
}

Type infer_rules::enumerate(BuiltinCall& call) {
  const Expr* start = enumerate_start(call.expr);
  const Type type = start != nullptr ? call.specialisation.type(*start) : nullptr;
  if (start != nullptr && !call.wants(*start, type, is_integral(type), "enumerate starts at a whole number"))
    return call.refused();
  return call.table.enumerate(call.types[0]);
}

Type infer_rules::zip(BuiltinCall& call) { return call.table.zip(call.types); }

Type infer_rules::print(BuiltinCall& call) {
  for (std::size_t i = 0; i < call.args.size(); ++i) {
    const Type type = call.types[i];
    if (!can_be_printed(type))
      return call.fail(call.args[i]->place, "types",
                       is_array(type)     ? "print its elements"
                       : is_complex(type) ? "print its parts: print(z.real, z.imag)"
                                          : "",
                       "{} cannot be printed", text_of(type));
  }
  return call.table.none;
}

Type infer_rules::same_integer(BuiltinCall& call) { return call.whole(0) ? call.types[0] : call.refused(); }
Type infer_rules::find_first(BuiltinCall& call) { return call.whole(0) ? call.table.uint32 : call.refused(); }
Type infer_rules::bitwise_count(BuiltinCall& call) {
  return call.whole(0) ? call.table.uint8 : call.refused();
}
Type infer_rules::bit_reverse(BuiltinCall& call) {
  return call.whole(0) ? call.table.integer(call.types[0]->bits <= 32 ? 32 : 64, false) : call.refused();
}

/// A function with explicit types: those of libdevice, cmath, float16.
Type infer_rules::typed(BuiltinCall& call) {
  std::vector<Type>& types = call.types;
  std::vector<std::pair<const Expr*, Type>> named;
  Type broken = nullptr;
  bool unknown = false;
  for (std::size_t i = 1; i < call.expr.items.size(); ++i) {
    const Expr& item = *call.expr.items[i];
    const bool keyword = item.kind == ExprKind::keyword;
    const Type type = call.expression(keyword ? *item.items[0] : item);
    unknown = unknown || type == nullptr;
    if (type != nullptr && is_error(type)) broken = type;
    if (keyword)
      named.emplace_back(&item, type);
    else
      types.push_back(type);
  }
  if (broken != nullptr) return broken;
  if (unknown) return nullptr;
  const std::vector<Form> forms = forms_of(call.table, call.row);
  const bool count_fits = std::any_of(forms.begin(), forms.end(),
                                      [&](const Form& form) { return form.positional() == types.size(); });
  if (!count_fits)
    return call.fail(call.expr.place, "calls", std::string(call.row.doc),
                     "{} takes {} argument{}, {} {} given", call.row.shown(), forms.front().positional(),
                     forms.front().positional() == 1 ? "" : "s", types.size(),
                     types.size() == 1 ? "is" : "are");
  const auto form = choose_form(call.table, call.row, types);
  if (!form) {
    std::string given;
    for (const Type type : types) given += (given.empty() ? "" : ", ") + text_of(type);
    return call.fail(call.expr.place, "types", "", "{} takes ({}), not ({})", call.row.shown(),
                     parameters_text(forms.back()), given);
  }
  for (const auto& [keyword, type] : named) {
    const auto found = std::find_if(form->parameters.begin(), form->parameters.end(),
                                    [&](const Form::Parameter& each) { return each.name == keyword->name; });
    if (found == form->parameters.end())
      return call.fail(keyword->place, "calls", "", "{} has no parameter '{}'", call.row.shown(),
                       keyword->name);
    if (!converts(type, found->type))
      return call.fail(keyword->place, "types", "", "'{}' is a number, not {}", keyword->name, text_of(type));
  }
  return form->result;
}

}  // namespace quern::frontend
