// SPDX-License-Identifier: Apache-2.0
// Type inference over calls: functions of the file, types as functions, and the rules of builtins.def.
#include <algorithm>

#include "frontend/infer.hpp"

namespace quern::frontend {
namespace {

constexpr std::int64_t kMostSharedBytes = 227 * 1024;
constexpr std::int64_t kMostConstantBytes = 64 * 1024;

bool keyword_allowed(const Builtin& row) {
  return row.rule == Rule::shared_array || row.rule == Rule::local_array || row.rule == Rule::to_complex ||
         row.rule == Rule::round || row.rule == Rule::enumerate;
}

std::string arguments_text(const Builtin& row) {
  if (row.least == row.most) return row.least == 1 ? "1 argument" : fmt::format("{} arguments", row.least);
  return fmt::format("{} to {} arguments", row.least, row.most);
}

bool is_32_or_64(Type t) { return is_number(t) && (t->bits == 32 || t->bits == 64) && !is_complex(t); }

}  // namespace

Type Inference::call(const Expr& expr) {
  const Type callee = expression(*expr.items[0]);
  const auto visit_all = [&] {
    for (std::size_t i = 1; i < expr.items.size(); ++i) expression(*expr.items[i]);
  };
  if (callee == nullptr || is_error(callee)) {
    visit_all();
    return callee;
  }
  switch (callee->kind) {
    case TypeKind::function:
      return call_function(expr, const_cast<Declaration&>(*callee->function));
    case TypeKind::dtype:
      return call_dtype(expr, callee->element);
    case TypeKind::builtin:
      return call_builtin(expr, *callee->builtin);
    default:
      break;
  }
  visit_all();
  const Value& known = instance_.constant(*expr.items[0]);
  const bool register_ = known.kind == Value::Kind::builtin;
  std::string hint = callee->kind == TypeKind::array ? "index with [ ]" : "";
  if (register_) hint = fmt::format("write {} without ( )", known.builtin->shown());
  return fail(expr.items[0]->place, "types", std::move(hint), "{} is {} and cannot be called",
              shown(*expr.items[0]), text_of(callee));
}

/// Argument types in the order of the parameters; defaults fill what is not given.
bool Inference::bind_arguments(const Expr& expr, Declaration& callee, std::vector<Type>& types) {
  const Function* function = program_.names().body_of(callee);
  const std::size_t count = function->parameters.size();
  std::vector<Type> given(count, nullptr);
  std::vector<bool> seen(count, false);
  bool unknown = false;
  std::size_t position = 0;
  for (std::size_t i = 1; i < expr.items.size(); ++i) {
    const Expr& item = *expr.items[i];
    const Type type = expression(item);
    std::size_t index = position;
    if (item.kind == ExprKind::keyword) {
      const auto found = std::find_if(function->parameters.begin(), function->parameters.end(),
                                      [&](const Parameter& p) { return p.name == item.name; });
      index = static_cast<std::size_t>(found - function->parameters.begin());
      if (index == count) {
        fail(item.place, "calls", "", "'{}' has no parameter '{}'", callee.name, item.name);
        note(callee.place, fmt::format("'{}' is defined here", callee.name));
        return false;
      }
    } else {
      ++position;
    }
    if (index >= count) continue;
    if (seen[index]) {
      fail(item.place, "calls", "give each argument once", "parameter '{}' is given twice",
           function->parameters[index].name);
      return false;
    }
    seen[index] = true;
    given[index] = type;
    unknown = unknown || type == nullptr || is_error(type);
  }
  if (position > count) {
    fail(expr.place, "calls", "", "'{}' takes {} argument{}, {} are given", callee.name, count,
         count == 1 ? "" : "s", position);
    note(callee.place, fmt::format("'{}' is defined here", callee.name));
    return false;
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (seen[i]) continue;
    const Parameter& parameter = function->parameters[i];
    if (parameter.fallback == nullptr) {
      fail(expr.place, "calls", "", "no value is given for parameter '{}' of '{}'", parameter.name,
           callee.name);
      note(callee.place, fmt::format("'{}' is defined here", callee.name));
      return false;
    }
    const Value value = program_.names().evaluate(*parameter.fallback);
    given[i] = value.kind == Value::Kind::real      ? types_.float64
               : value.kind == Value::Kind::boolean ? types_.boolean
               : value.kind == Value::Kind::integer ? types_.int64
                                                    : types_.error;
    if (is_error(given[i])) {
      fail(parameter.fallback->place, "calls", "give a number", "this default value is no constant");
      return false;
    }
  }
  types = std::move(given);
  return !unknown;
}

Type Inference::call_function(const Expr& expr, Declaration& callee) {
  if (callee.role != Role::device) {
    for (std::size_t i = 1; i < expr.items.size(); ++i) expression(*expr.items[i]);
    const bool kernel = callee.role == Role::kernel;
    const Type type = fail(expr.items[0]->place, "calls",
                           kernel ? "a function that kernels call is decorated with @cuda.jit(device=True)"
                                  : "decorate it with @cuda.jit(device=True)",
                           "'{}' is {}, which a kernel cannot call", callee.name,
                           kernel ? "a kernel" : "a function of the host program");
    note(callee.place, fmt::format("'{}' is defined here", callee.name));
    return type;
  }
  std::vector<Type> types;
  if (!bind_arguments(expr, callee, types)) return reporting_ ? types_.error : nullptr;
  for (std::size_t i = 0; i < types.size(); ++i)
    if (types[i]->kind == TypeKind::none || types[i]->kind == TypeKind::string ||
        types[i]->kind == TypeKind::function || types[i]->kind == TypeKind::builtin ||
        types[i]->kind == TypeKind::dtype || types[i]->kind == TypeKind::slice)
      return fail(expr.place, "unsupported", "", "{} cannot be passed to a function", text_of(types[i]));
  for (const SignatureTypes& signature : callee.signatures) {
    if (signature.parameters.size() != types.size()) continue;
    bool fits = true;
    for (std::size_t i = 0; i < types.size(); ++i) fits = fits && converts(types[i], signature.parameters[i]);
    if (fits) {
      types = signature.parameters;
      break;
    }
  }
  Instance* instance = program_.instance(callee, types, expr.place);
  if (instance == nullptr) return reporting_ ? types_.error : nullptr;
  instance_.callees[expr.id] = instance;
  if (instance->failed) {
    const Type type = reporting_ ? types_.error : nullptr;
    return type;
  }
  return instance->result;
}

/// float32(x), int64(x): a conversion.
Type Inference::call_dtype(const Expr& expr, Type to) {
  if (expr.items.size() != 2 || expr.items[1]->kind == ExprKind::keyword) {
    for (std::size_t i = 1; i < expr.items.size(); ++i) expression(*expr.items[i]);
    return fail(expr.place, "calls", "", "{} converts one value, {} are given", text_of(to),
                expr.items.size() - 1);
  }
  const Type from = expression(*expr.items[1]);
  if (from == nullptr || is_error(from)) return from;
  if (!is_number(to) || !is_number(from) || (is_complex(from) && !is_complex(to)))
    return fail(expr.place, "types", is_complex(from) ? "take its .real or .imag" : "",
                "{} cannot be converted to {}", text_of(from), text_of(to));
  Value constant = instance_.constant(*expr.items[1]);
  if (constant.kind == Value::Kind::integer && is_integer(to) && to->bits == 64)
    instance_.constants[expr.id] = constant;
  if (constant.kind == Value::Kind::integer && is_integer(to) && constant.integer >= 0 &&
      constant.integer < 128)
    instance_.constants[expr.id] = constant;
  return to;
}

Type Inference::call_builtin(const Expr& expr, const Builtin& row) {
  std::vector<const Expr*> args;
  std::vector<Type> types;
  bool unknown = false;
  Type broken = nullptr;
  for (std::size_t i = 1; i < expr.items.size(); ++i) {
    const Expr& item = *expr.items[i];
    if (item.kind == ExprKind::keyword) {
      expression(*item.items[0]);
      if (!keyword_allowed(row))
        return fail(item.place, "calls",
                    row.rule == Rule::print ? "kernels print with one separator and end the line" : "",
                    "{} takes no argument by name", row.shown());
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
      return whole(0) && number(1) ? types_.int32 : refused();
    case Rule::match_all:
      return whole(0) && number(1) ? types_.tuple({types_.int32, types_.boolean}) : refused();
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
    case Rule::real1: {
      if (is_complex(types[0]))
        return fail(args[0]->place, "unsupported", "compute with .real and .imag",
                    "{} of complex numbers is not supported", row.shown());
      return number(0) ? real_operand(types_, types[0]) : refused();
    }
    case Rule::real2:
    case Rule::real3: {
      Type result = types_.float32;
      for (std::size_t i = 0; i < args.size(); ++i) {
        if (!number(i)) return refused();
        if (real_operand(types_, types[i]) == types_.float64) result = types_.float64;
      }
      return result;
    }
    case Rule::libdevice32:
    case Rule::libdevice64:
      for (std::size_t i = 0; i < args.size(); ++i)
        if (!number(i)) return refused();
      return row.rule == Rule::libdevice32 ? types_.float32 : types_.float64;
    case Rule::predicate:
      return number(0) ? types_.boolean : refused();
    case Rule::ldexp:
      return number(0) && whole(1) ? real_operand(types_, types[0]) : refused();
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
      if (!number(0)) return refused();
      return is_floating(types[0]) ? types[0] : types_.float64;
    case Rule::to_bool:
      return wants(*args[0], types[0], is_number(types[0]), "bool takes a number") ? types_.boolean
                                                                                   : refused();
    case Rule::to_complex: {
      for (std::size_t i = 0; i < args.size(); ++i)
        if (!wants(*args[i], types[i], is_number(types[i]), "complex takes numbers")) return refused();
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
    case Rule::enumerate:
      return types_.enumerate(types[0]);
    case Rule::zip:
      return types_.zip(types);
    case Rule::print:
      for (std::size_t i = 0; i < args.size(); ++i)
        if (!is_number(types[i]) && types[i]->kind != TypeKind::string && types[i]->kind != TypeKind::dim3 &&
            !(is_tuple(types[i]) && std::all_of(types[i]->items.begin(), types[i]->items.end(), is_number)))
          return fail(args[i]->place, "types", is_array(types[i]) ? "print its elements" : "",
                      "{} cannot be printed", text_of(types[i]));
      return types_.none;
    case Rule::dim3:
    case Rule::int_value:
    case Rule::shared_array:
    case Rule::local_array:
      break;
  }
  return refused();
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
    // A literal fits whatever the others are.
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
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (!is_number(types[i]) || is_complex(types[i]))
      return fail(expr.items[i + 1]->place, "types",
                  is_array(types[i]) || is_tuple(types[i]) ? "write a loop over it" : "",
                  "{} takes numbers, not {}", shown(*expr.items[0]), text_of(types[i]));
    result = unify(types_, result, types[i]);
  }
  return result;
}

bool Inference::shape_of(const Expr& expr, std::vector<std::int64_t>& extents) {
  const Value& value = instance_.constant(expr);
  std::vector<const Value*> parts = {&value};
  if (value.kind == Value::Kind::tuple) {
    parts.clear();
    for (const Value& item : value.items) parts.push_back(&item);
  }
  const bool display = expr.kind == ExprKind::tuple;
  if (value.kind == Value::Kind::unknown && display) {
    for (const Expr* item : expr.items)
      if (instance_.constant(*item).kind != Value::Kind::integer) {
        fail(item->place, "shape", "use literals, module-level integers, and arithmetic with them",
             "the shape must be known when the kernel is compiled, and '{}' is not", shown(*item));
        return false;
      }
  }
  for (const Value* part : parts) {
    if (part->kind != Value::Kind::integer) {
      fail(expr.place, "shape",
           is_floating(instance_.type(expr) != nullptr ? instance_.type(expr) : types_.int64)
               ? "a shape is made of whole numbers; divide with //"
               : "use literals, module-level integers, and arithmetic with them",
           "the shape must be known when the kernel is compiled, and '{}' is not", shown(expr));
      return false;
    }
    extents.push_back(part->integer);
  }
  return true;
}

/// cuda.shared.array(shape, dtype), cuda.local.array(shape, dtype)
Type Inference::make_array(const Expr& expr, const Builtin& row) {
  const Expr* shape = nullptr;
  const Expr* dtype = nullptr;
  std::size_t position = 0;
  for (std::size_t i = 1; i < expr.items.size(); ++i) {
    const Expr& item = *expr.items[i];
    const bool named = item.kind == ExprKind::keyword;
    if (named && item.name == "shape")
      shape = item.items[0];
    else if (named && (item.name == "dtype" || item.name == "type"))
      dtype = item.items[0];
    else if (named) {
      if (item.name != "alignment")
        return fail(item.place, "calls", "it takes shape and dtype", "{} has no parameter '{}'", row.shown(),
                    item.name);
    } else {
      (position == 0 ? shape : dtype) = &item;
      ++position;
    }
  }
  if (shape == nullptr || dtype == nullptr)
    return fail(expr.place, "calls", fmt::format("write {}((16, 16), float32)", row.shown()),
                "{} takes a shape and a type", row.shown());
  Storage storage;
  storage.space = row.rule == Rule::local_array ? Space::local : Space::shared;
  const Type type = instance_.type(*dtype);
  if (type == nullptr || instance_.type(*shape) == nullptr) return nullptr;
  if (is_error(type) || is_error(instance_.type(*shape))) return types_.error;
  if (type->kind != TypeKind::dtype || (!is_number(type->element) && type->element->kind != TypeKind::record))
    return fail(dtype->place, "types", "name a type: float32, int64, ...",
                "the array's type is {}, which is no element type", text_of(type));
  storage.element = type->element;
  if (!shape_of(*shape, storage.extents)) return reporting_ ? types_.error : nullptr;
  const bool dynamic =
      storage.space == Space::shared && storage.extents.size() == 1 && storage.extents[0] == 0;
  if (dynamic) storage.space = Space::dynamic_shared;
  std::int64_t bytes = size_of(storage.element);
  for (const std::int64_t extent : storage.extents) {
    if (extent <= 0 && !dynamic)
      return fail(
          shape->place, "shape",
          storage.space == Space::local ? "" : "a shape of 0, in one dimension, is sized by the launch",
          "an extent of the shape is {}", extent);
    if (!dynamic && bytes > (std::int64_t{1} << 40) / extent)
      return fail(shape->place, "shape", "", "the array is larger than any memory");
    if (!dynamic) bytes *= extent;
  }
  if (storage.space == Space::shared && bytes > kMostSharedBytes)
    return fail(shape->place, "shape", "use a smaller array, or device memory",
                "the array takes {} bytes, and a block has at most {} of shared memory", bytes,
                kMostSharedBytes);
  const auto ndim = static_cast<unsigned>(storage.extents.size());
  const Type array = types_.array(storage.element, ndim, 'C');
  instance_.storages.insert_or_assign(expr.id, std::move(storage));
  return array;
}

/// cuda.const.array_like(X)
Type Inference::constant_array(const Expr& expr) {
  const Expr& source = *expr.items[1];
  const Value& value = instance_.constant(source);
  if (value.kind != Value::Kind::array || source.kind != ExprKind::name)
    return fail(source.place, "constant",
                "define it at the file's level: TABLE = np.array([...], dtype=np.float32)",
                "cuda.const.array_like takes a module-level array, and '{}' is none", shown(source));
  std::int64_t bytes = size_of(value.type);
  for (const std::int64_t extent : value.shape) bytes *= extent;
  if (bytes > kMostConstantBytes)
    return fail(source.place, "constant", "pass it to the kernel as an argument",
                "'{}' takes {} bytes, and constant memory holds {}", shown(source), bytes,
                kMostConstantBytes);
  const Value& lasting = program_.names().global(source.name);
  instance_.storages.insert_or_assign(
      expr.id, Storage{Space::constant, value.type, value.shape, &lasting, source.name});
  return types_.array(value.type, static_cast<unsigned>(value.shape.size()), 'C', true);
}

Type Inference::atomic(const Expr& expr, const Builtin& row, const std::vector<const Expr*>& args,
                       const std::vector<Type>& types) {
  const Type array = types[0];
  if (!is_array(array))
    return fail(args[0]->place, "types", "write cuda.atomic.add(array, index, value)",
                "{} works on an element of an array, not on {}", row.shown(), text_of(array));
  if (array->read_only)
    return fail(args[0]->place, "types", "", "'{}' is constant and cannot be written", shown(*args[0]));
  const Type element = array->element;
  const bool swap = row.rule == Rule::atomic_swap;
  if (!swap) {
    const Type index = types[1];
    const std::size_t count = is_tuple(index) ? index->items.size() : 1;
    const bool integral = is_tuple(index) ? std::all_of(index->items.begin(), index->items.end(), is_integral)
                                          : is_integral(index);
    if (!integral || (count != array->ndim && array->ndim > 0))
      return fail(args[1]->place, "types",
                  array->ndim > 1 ? "give a tuple with a number for each dimension" : "",
                  "{} does not index an array of {} dimension{}", text_of(index), array->ndim,
                  array->ndim == 1 ? "" : "s");
  }
  const bool integer_only = row.rule != Rule::atomic;
  const bool good = is_number(element) && !is_complex(element) &&
                    (element->bits == 32 || element->bits == 64) && (!integer_only || is_integer(element)) &&
                    (row.rule != Rule::atomic_unsigned || !element->is_signed);
  if (!good)
    return fail(args[0]->place, "types",
                row.rule == Rule::atomic_unsigned ? "use an array of uint32 or uint64"
                : integer_only                    ? "use an array of int32, uint32, int64 or uint64"
                                                  : "use elements of 32 or 64 bits",
                "{} does not work on elements of {}", row.shown(), text_of(element));
  for (std::size_t i = swap ? 1 : 2; i < args.size(); ++i)
    if (!converts(types[i], element))
      return fail(args[i]->place, "types", "", "{} cannot be stored in an element of {}", text_of(types[i]),
                  text_of(element));
  static_cast<void>(expr);
  return element;
}

}  // namespace quern::frontend
