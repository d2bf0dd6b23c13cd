// SPDX-License-Identifier: Apache-2.0
// Type inference over the rules of builtins.def.
#include <algorithm>

#include "frontend/forms.hpp"
#include "frontend/infer.hpp"

namespace quern::frontend {
namespace {

/// At `position` of the call, from 1.
bool keyword_allowed(const Builtin& row, std::string_view name, std::size_t position) {
  switch (row.rule) {
    case Rule::shared_array:
    case Rule::local_array:
      return true;  // make_array looks at them
    case Rule::to_complex:
      return name == (position == 1 ? "real" : "imag");
    case Rule::round:
      return name == "ndigits" && position == 2;
    case Rule::enumerate:
      return name == "start" && position == 2;
    default:
      return false;
  }
}

std::string arguments_text(const Builtin& row) {
  if (row.least == row.most) return row.least == 1 ? "1 argument" : fmt::format("{} arguments", row.least);
  return fmt::format("{} to {} arguments", row.least, row.most);
}

bool is_32_or_64(Type t) { return is_number(t) && (t->bits == 32 || t->bits == 64) && !is_complex(t); }

}  // namespace
Type Inference::call_builtin(const Expr& expr, const Builtin& row) {
  if (row.rule == Rule::typed) return typed_call(expr, row);
  const bool method = row.rule == Rule::grid_sync || (row.rule == Rule::conjugate && row.most == 0);
  if (method && expr.items[0]->kind != ExprKind::attribute)
    return fail(expr.place, "calls", "call it where it is named: x.conjugate()",
                "a method is no function of its own here");
  std::vector<const Expr*> args;
  std::vector<Type> types;
  bool unknown = false;
  Type broken = nullptr;
  for (std::size_t i = 1; i < expr.items.size(); ++i) {
    const Expr& item = *expr.items[i];
    if (item.kind == ExprKind::keyword) {
      const Type type = expression(*item.items[0]);
      unknown = unknown || type == nullptr;
      if (type != nullptr && is_error(type)) broken = type;
      if (!keyword_allowed(row, item.name, i))
        return fail(item.place, "calls",
                    row.rule == Rule::print ? "kernels print with one separator and end the line" : "",
                    "{} takes no argument '{}' by name here", row.shown(), item.name);
      continue;
    }
    args.push_back(&item);
    types.push_back(expression(item));
    unknown = unknown || types.back() == nullptr;
    if (types.back() != nullptr && is_error(types.back())) broken = types.back();
  }
  if (row.rule == Rule::shared_array || row.rule == Rule::local_array) return make_array(expr, row);
  if (row.rule == Rule::dim3 || row.rule == Rule::int_value)
    return fail(expr.place, "calls", fmt::format("write {} without ( )", row.shown()), "{} is no function",
                row.shown());
  const bool unsupported = std::any_of(args.begin(), args.end(), [](const Expr* argument) {
    return argument->kind == ExprKind::unsupported;  // any number of arguments
  });
  if (unsupported) return broken;
  if (args.size() < row.least || args.size() > row.most)
    return fail(expr.place, "calls", std::string(row.doc), "{} takes {}, {} {} given", row.shown(),
                arguments_text(row), args.size(), args.size() == 1 ? "is" : "are");
  if (broken != nullptr) return broken;
  if (unknown) return nullptr;
  return by_rule(expr, row, args, types);
}

Type Inference::by_rule(const Expr& expr, const Builtin& row, const std::vector<const Expr*>& args,
                        const std::vector<Type>& types) {
  const auto number = [&](std::size_t i) {
    return wants(*args[i], types[i], is_number(types[i]) && !is_complex(types[i]),
                 fmt::format("{} takes numbers", row.shown()));
  };
  const auto whole = [&](std::size_t i) {
    return wants(*args[i], types[i], is_integral(types[i]),
                 fmt::format("{} takes whole numbers here", row.shown()));
  };
  const auto refused = [&]() -> Type { return reporting_ ? types_.error : nullptr; };
  switch (row.rule) {
    case Rule::statement:
      return types_.none;
    case Rule::roc_fence:
    case Rule::syncwarp:
    case Rule::nanosleep:
      return args.empty() || whole(0) ? types_.none : refused();
    case Rule::block_vote:
      return whole(0) ? types_.int32 : refused();
    case Rule::grid:
      return grid(expr, row, *args[0]);
    case Rule::roc_place:
      return whole(0) ? types_.int64 : refused();
    case Rule::roc_dims:
    case Rule::clock:
      return types_.int64;
    case Rule::lane_mask:
      return types_.uint32;
    case Rule::const_array:
      return constant_array(expr);
    case Rule::atomic:
    case Rule::atomic_integer:
    case Rule::atomic_unsigned:
    case Rule::atomic_cas:
    case Rule::atomic_swap:
      return atomic(expr, row, args, types);
    case Rule::shuffle:
      if (!whole(0) || !whole(2)) return refused();
      if (!is_32_or_64(types[1]))
        return fail(args[1]->place, "types", "convert it to a type of 32 or 64 bits",
                    "a shuffle moves int32, int64, float32 or float64, not {}", text_of(types[1]));
      return types[1];
    case Rule::warp_vote:
      return whole(0) && whole(1) ? types_.boolean : refused();
    case Rule::ballot:
      return whole(0) && whole(1) ? types_.int32 : refused();
    case Rule::match_any:
    case Rule::match_all:
      if (!whole(0) || !number(1)) return refused();
      if (is_floating(types[1]) && types[1]->bits == 16)
        return fail(args[1]->place, "types", "convert it: float32(x)",
                    "{} compares numbers of 32 or 64 bits, not {}", row.shown(), text_of(types[1]));
      return row.rule == Rule::match_any ? types_.int32 : types_.tuple({types_.int32, types_.boolean});
    case Rule::same_integer:
      return whole(0) ? types[0] : refused();
    case Rule::bit_reverse:
      return whole(0) ? types_.integer(types[0]->bits <= 32 ? 32 : 64, false) : refused();
    case Rule::find_first:
      return whole(0) ? types_.uint32 : refused();
    case Rule::select:
      if (unify(types_, types[1], types[2]) == nullptr || !is_number(types[1]))
        return fail(expr.place, "types", "", "cuda.selp chooses between two numbers of one type");
      return unify(types_, types[1], types[2]);
    case Rule::real1:
      return real_function(*args[0], row, types[0]);
    case Rule::real2: {
      if (!number(0) || !number(1)) return refused();
      if (row.cuda == "pow" && is_whole_exponent(types[0], types[1]))
        return real_operand2(types_, types[0], types_.float32, false);
      return real_operand2(types_, types[0], types[1], row.cuda == "atan2" || row.cuda == "hypot");
    }
    case Rule::logarithm:
    case Rule::real3: {
      if (args.size() == 1) return real_function(*args[0], row, types[0]);
      Type result = types_.float32;
      for (std::size_t i = 0; i < args.size(); ++i) {
        if (!number(i)) return refused();
        if (real_operand(types_, types[i]) == types_.float64) result = types_.float64;
      }
      return result;
    }
    case Rule::over_tuple:
      return over_tuple(expr, row, args, types);
    case Rule::operator1: {
      const Type type =
          is_number(types[0]) ? unary_result(types_, unary_operator(row.cuda), types[0]) : nullptr;
      if (type != nullptr) return type;
      return fail(args[0]->place, "types", "", "{} does not take {}", row.shown(), text_of(types[0]));
    }
    case Rule::operator2:
      return binary_types(expr, binary_operator(row.cuda), types[0], types[1]);
    case Rule::truths:
      for (std::size_t i = 0; i < args.size(); ++i)
        if (!wants(*args[i], types[i], is_number(types[i]), fmt::format("{} takes numbers", row.shown())))
          return refused();
      return types_.boolean;
    case Rule::clip:
      return extremum(expr, types);
    case Rule::conjugate:
      if (args.empty()) return instance_.type(*expr.items[0]->items[0]);  // x.conjugate()
      [[fallthrough]];
    case Rule::part:
      if (!wants(*args[0], types[0], is_number(types[0]), fmt::format("{} takes a number", row.shown())))
        return refused();
      return row.rule == Rule::part && is_complex(types[0]) ? types_.floating(types[0]->bits / 2u) : types[0];
    case Rule::random:
      return random(row, args, types);
    case Rule::this_grid:
      return types_.group;
    case Rule::grid_sync:
      return types_.none;
    case Rule::load_hint:
    case Rule::store_hint:
      return element_hint(row, args, types);
    case Rule::predicate:
      return number(0) ? types_.boolean : refused();
    case Rule::ldexp:
      return number(0) && whole(1) ? real_operand2(types_, types[0], types_.float32, false) : refused();
    case Rule::frexp:
    case Rule::modf: {
      if (!number(0)) return refused();
      const Type real = real_operand(types_, types[0]);
      return types_.tuple({real, row.rule == Rule::frexp ? types_.int32 : real});
    }
    case Rule::sign:
    case Rule::square:
      return number(0) ? types[0] : refused();
    case Rule::absolute:
      if (is_complex(types[0])) return types_.floating(types[0]->bits / 2u);
      if (!number(0)) return refused();
      return types[0] == types_.boolean ? types_.int8 : types[0];
    case Rule::extremum:
      return extremum(expr, types);
    case Rule::round:
      if (!number(0)) return refused();
      if (expr.items.size() == 2) return types_.int64;
      if (args.size() == 2 && !whole(1)) return refused();
      return real_operand(types_, types[0]);
    case Rule::to_int:
      if (!number(0)) return refused();
      instance_.constants[expr.id] =
          instance_.constant(*args[0]).kind == Value::Kind::integer ? instance_.constant(*args[0]) : Value{};
      return is_integer(types[0]) ? types[0] : types_.int64;
    case Rule::to_float:
      if (args[0]->kind == ExprKind::string) return number_in_text(expr, *args[0]);
      if (!number(0)) return refused();
      return is_floating(types[0]) ? types[0] : types_.float64;
    case Rule::to_bool:
      return wants(*args[0], types[0], is_number(types[0]), "bool takes a number") ? types_.boolean
                                                                                   : refused();
    case Rule::to_complex: {
      for (std::size_t i = 0; i < args.size(); ++i)
        if (!wants(
                *args[i], types[i], is_number(types[i]) && (types.size() == 1 || !is_complex(types[i])),
                types.size() == 1 ? "complex takes numbers" : "complex takes a real and an imaginary part"))
          return refused();
      const bool narrow = std::all_of(types.begin(), types.end(),
                                      [&](Type t) { return t == types_.float32 || t == types_.complex64; });
      return narrow ? types_.complex64 : types_.complex128;
    }
    case Rule::power:
      return binary_types(expr, Tok::power, types[0], types[1]);
    case Rule::divmod: {
      const Type type = binary_types(expr, Tok::floor_divide, types[0], types[1]);
      return type == nullptr || is_error(type) ? type : types_.tuple({type, type});
    }
    case Rule::len:
      if (is_array(types[0]) && types[0]->ndim > 0) return types_.int64;
      if (is_tuple(types[0])) {
        instance_.constants[expr.id] = Value::of(static_cast<std::int64_t>(types[0]->items.size()));
        return types_.int64;
      }
      return fail(args[0]->place, "types", "", "{} has no length", text_of(types[0]));
    case Rule::range:
      for (std::size_t i = 0; i < args.size(); ++i)
        if (!whole(i)) return refused();
      if (args.size() == 3) {
        const Value& step = instance_.constant(*args[2]);
        if (step.kind == Value::Kind::integer && step.integer == 0)
          return fail(args[2]->place, "loop", "", "the step of a range is not 0");
      }
      return range(types, args);
    case Rule::enumerate: {
      const Expr* start = enumerate_start(expr);
      if (start != nullptr && !wants(*start, instance_.type(*start), is_integral(instance_.type(*start)),
                                     "enumerate starts at a whole number"))
        return refused();
      return types_.enumerate(types[0]);
    }
    case Rule::zip:
      return types_.zip(types);
    case Rule::print:
      for (std::size_t i = 0; i < args.size(); ++i) {
        const auto shows = [](Type t) { return is_number(t) && !is_complex(t); };
        if (!shows(types[i]) && types[i]->kind != TypeKind::string && types[i]->kind != TypeKind::dim3 &&
            !(is_tuple(types[i]) && std::all_of(types[i]->items.begin(), types[i]->items.end(), shows)))
          return fail(args[i]->place, "types",
                      is_array(types[i])     ? "print its elements"
                      : is_complex(types[i]) ? "print its parts: print(z.real, z.imag)"
                                             : "",
                      "{} cannot be printed", text_of(types[i]));
      }
      return types_.none;
    case Rule::dim3:
    case Rule::int_value:
    case Rule::shared_array:
    case Rule::local_array:
    case Rule::typed:
      break;
  }
  return refused();
}

/// float("inf")
Type Inference::number_in_text(const Expr& expr, const Expr& text) {
  const Value number = program_.names().evaluate(expr);
  if (number.kind != Value::Kind::real) return fail(text.place, "types", "", "'{}' is no number", text.name);
  instance_.constants[expr.id] = number;
  return types_.float64;
}

/// A function of one real number, or of a complex number if cmath has it.
Type Inference::real_function(const Expr& argument, const Builtin& row, Type type) {
  if (is_complex(type)) {
    const std::string_view name = complex_function(row);
    if (!name.empty()) return type;
    return fail(argument.place, "unsupported", "compute with .real and .imag, or use cmath",
                "{} of complex numbers is not supported", row.shown());
  }
  if (!wants(argument, type, is_number(type), fmt::format("{} takes numbers", row.shown())))
    return reporting_ ? types_.error : nullptr;
  return type == types_.float16 && !half_function(row).empty() ? type : real_operand(types_, type);
}

/// math.prod((a, b, c)): of items that are all numbers.
Type Inference::over_tuple(const Expr& expr, const Builtin& row, const std::vector<const Expr*>& args,
                           const std::vector<Type>& types) {
  bool whole = true;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (!is_tuple(types[i]) || !std::all_of(types[i]->items.begin(), types[i]->items.end(),
                                            [](Type item) { return is_number(item) && !is_complex(item); }))
      return fail(args[i]->place, "types", "write a loop over an array",
                  "{} takes a tuple of numbers, not {}", row.shown(), text_of(types[i]));
    whole = whole && std::all_of(types[i]->items.begin(), types[i]->items.end(), is_integral);
  }
  if (args.size() == 2 && types[0]->items.size() != types[1]->items.size())
    return fail(expr.place, "types", "", "{} takes tuples of one length, not of {} and {}", row.shown(),
                types[0]->items.size(), types[1]->items.size());
  const bool counts = row.cuda == "quern::prod" || row.cuda == "quern::sumprod";
  return whole && counts ? types_.int64 : types_.float64;
}

/// A function with types of its own: libdevice's, cmath's, float16's.
Type Inference::typed_call(const Expr& expr, const Builtin& row) {
  std::vector<Type> types;
  std::vector<const Expr*> args;
  Type broken = nullptr;
  bool unknown = false;
  const auto visit = [&](const Expr& item) {
    const Type type = expression(item);
    unknown = unknown || type == nullptr;
    if (type != nullptr && is_error(type)) broken = type;
    return type;
  };
  std::vector<std::pair<const Expr*, Type>> named;
  for (std::size_t i = 1; i < expr.items.size(); ++i) {
    const Expr& item = *expr.items[i];
    if (item.kind == ExprKind::keyword) {
      named.emplace_back(&item, visit(*item.items[0]));
    } else {
      args.push_back(&item);
      types.push_back(visit(item));
    }
  }
  if (broken != nullptr) return broken;
  if (unknown) return nullptr;
  const std::vector<Form> forms = forms_of(types_, row);
  const bool count_fits = std::any_of(forms.begin(), forms.end(),
                                      [&](const Form& form) { return form.positional() == args.size(); });
  if (!count_fits)
    return fail(expr.place, "calls", std::string(row.doc), "{} takes {} argument{}, {} {} given", row.shown(),
                forms.front().positional(), forms.front().positional() == 1 ? "" : "s", args.size(),
                args.size() == 1 ? "is" : "are");
  const auto form = choose_form(types_, row, types);
  if (!form) {
    std::string given;
    for (const Type type : types) given += (given.empty() ? "" : ", ") + text_of(type);
    return fail(expr.place, "types", "", "{} takes ({}), not ({})", row.shown(),
                parameters_text(forms.back()), given);
  }
  for (const auto& [keyword, type] : named) {
    const auto found = std::find_if(form->parameters.begin(), form->parameters.end(),
                                    [&](const Form::Parameter& each) { return each.name == keyword->name; });
    if (found == form->parameters.end())
      return fail(keyword->place, "calls", "", "{} has no parameter '{}'", row.shown(), keyword->name);
    if (!converts(type, found->type))
      return fail(keyword->place, "types", "", "'{}' is a number, not {}", keyword->name, text_of(type));
  }
  return form->result;
}

/// xoroshiro128p_next(states, index) and similar functions.
Type Inference::random(const Builtin& row, const std::vector<const Expr*>& args,
                       const std::vector<Type>& types) {
  const Type states = types[0];
  const bool fits = is_array(states) && states->ndim == 1 && states->element->kind == TypeKind::record &&
                    states->element->fields.size() == 2 && states->element->size_bytes == 16 &&
                    states->element->fields[0].name == "s0" && states->element->fields[1].name == "s1";
  if (!fits)
    return fail(args[0]->place, "types", "make them with create_xoroshiro128p_states(n, seed)",
                "{} takes an array of generator states, not {}", row.shown(), text_of(states));
  for (std::size_t i = 1; i < args.size(); ++i)
    if (!wants(*args[i], types[i], is_integral(types[i]),
               fmt::format("{} takes whole numbers here", row.shown())))
      return reporting_ ? types_.error : nullptr;
  return type_of_code(types_, row.cuda.substr(0, row.cuda.find(' ')));
}

Type Inference::grid(const Expr&, const Builtin& row, const Expr& ndim) {
  const Value& value = instance_.constant(ndim);
  if (value.kind != Value::Kind::integer || value.integer < 1 || value.integer > 3)
    return fail(ndim.place, "calls", "write the number: cuda.grid(1)",
                "{} takes 1, 2 or 3, known when it is compiled", row.shown());
  if (value.integer == 1) return types_.int64;
  return types_.tuple(std::vector<Type>(static_cast<std::size_t>(value.integer), types_.int64));
}

/// int32 and smaller give int32, as in Numba; unsigned ones uint64.
Type Inference::range(const std::vector<Type>& types, const std::vector<const Expr*>& args) {
  bool all_unsigned = true, narrow = true;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const bool is_unsigned = is_integer(types[i]) && !types[i]->is_signed;
    // A literal fits any type of the others.
    const bool literal = args[i]->kind == ExprKind::integer;
    all_unsigned = all_unsigned && (is_unsigned || (literal && types.size() > 1));
    narrow = narrow && types[i]->bits <= 32 && !(is_unsigned && types[i]->bits == 32);
  }
  bool any_unsigned = false;
  for (const Type type : types) any_unsigned = any_unsigned || (is_integer(type) && !type->is_signed);
  if (all_unsigned && any_unsigned) {
    for (const Type type : types)
      if (type == types_.int64) return types_.range(types_.int64);
    return types_.range(types_.uint64);
  }
  return types_.range(narrow ? types_.int32 : types_.int64);
}

Type Inference::extremum(const Expr& expr, const std::vector<Type>& types) {
  Type result = nullptr;
  const bool of_tuple = types.size() == 1 && is_tuple(types[0]) && !types[0]->items.empty() &&
                        std::all_of(types[0]->items.begin(), types[0]->items.end(),
                                    [](Type item) { return is_number(item) && !is_complex(item); });
  if (of_tuple) {
    for (const Type item : types[0]->items) result = unify(types_, result, item);
    return result;
  }
  if (types.size() == 1)
    return fail(expr.items[1]->place, "types", is_array(types[0]) ? "write a loop over it" : "",
                "{} of one argument takes a tuple of numbers, not {}", shown(*expr.items[0]),
                text_of(types[0]));
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (!is_number(types[i]) || is_complex(types[i]))
      return fail(expr.items[i + 1]->place, "types",
                  is_array(types[i]) || is_tuple(types[i]) ? "write a loop over it" : "",
                  "{} takes numbers, not {}", shown(*expr.items[0]), text_of(types[i]));
    result = unify(types_, result, types[i]);
  }
  return result;
}

}  // namespace quern::frontend
