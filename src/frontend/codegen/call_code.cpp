// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "frontend/codegen/builtin_code.hpp"

namespace quern::frontend {
std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n')
      result += "\\n";
    else if (static_cast<unsigned char>(c) < 0x20)
      result += fmt::format("\\{:03o}", static_cast<unsigned>(c));
    else
      result += c;
  }
  return result + '"';
}

Code CallCode::call_expression(const Expr& expr) {
  const Type callee = specialisation_.type(*expr.items[0]);
  // The callee may be a call with side effects that returns the function.
  if (expr.items[0]->kind == ExprKind::call && emitter_.effects(*expr.items[0]) == Effects::writes)
    emitter_.lines().add(emitter_.expression(*expr.items[0]).text + ";");
  if (callee->kind == TypeKind::function && !callee->function->external.empty())
    return call_external(expr, *callee->function);
  if (callee->kind == TypeKind::function) return call_function(expr, *specialisation_.callees.at(expr.id));
  if (callee->kind == TypeKind::builtin) return emitter_.call_builtin(expr, *callee->builtin);
  // The callee is a type, so this is a conversion.
  if (is_vector(callee->element)) return make_vector(expr, callee->element);
  const Type to = callee->element, from = specialisation_.type(*expr.items[1]);
  Code code = emitter_.expression(*expr.items[1]);
  const CppType cpp_type = cpp_type_of(to);
  if (from == to && code.cpp_type == cpp_type) return code;
  const bool small = cpp_type == CppType::i64 && fits_int(code.cpp_type);
  if (small) return code;  // same value; conversions to 64 bits are added where they matter
  return convert(code, cpp_type);
}

/// Calls a function of linked CUDA C++. Numba's calling convention passes the address of the result, so a
/// wrapper function does that.
Code CallCode::call_external(const Expr& expr, const Declaration& callee) {
  const SignatureTypes& signature = callee.signatures.front();
  CppText types, parameters;
  std::string passed;
  for (std::size_t i = 0; i < signature.parameters.size(); ++i) {
    const CppText type = type_text(signature.parameters[i]);
    types += (types.empty() ? "" : ", ") + type;
    parameters += cpp_text("{}{} x{}", i == 0 ? "" : ", ", type, i);
    passed += fmt::format(", x{}", i);
  }
  const CppText result = type_text(signature.result);
  const std::string_view comma = types.empty() ? "" : ", ";
  std::string name = callee.external;
  if (callee.c_abi) {
    unit_.linked.try_emplace(name, cpp_text("extern \"C\" __device__ {} {}({});\n", result, name, types));
  } else {
    name = "call_" + callee.external;
    const bool none = signature.result->kind == TypeKind::none;
    unit_.linked.try_emplace(callee.external,
                             cpp_text("extern \"C\" __device__ int {0}({1}*{2}{3});\nstatic __device__ {1} "
                                      "{4}({5}) {{{6} {0}({7}{8});{9} }}\n",
                                      callee.external, result, comma, types, name, parameters,
                                      none ? CppText() : cpp_text(" {} result;", result),
                                      none ? "nullptr" : "&result", passed, none ? "" : " return result;"));
  }
  for (const std::string& file : callee.options.links) unit_.links.insert(file);
  std::vector<CppText> arguments;
  for (std::size_t i = 1; i < expr.items.size(); ++i)
    arguments.push_back(
        convert(emitter_.expression(*expr.items[i]), cpp_type_of(signature.parameters[i - 1])).text);
  return call(name, arguments, cpp_type_of(signature.result));
}

/// float32x4(xy, 0, 1): passes a number for each part.
Code CallCode::make_vector(const Expr& expr, Type to) {
  const CppType cpp_type = cpp_type_of(to->element);
  std::vector<CppText> parts;
  for (std::size_t i = 1; i < expr.items.size(); ++i) {
    const Expr& item = *expr.items[i];
    const Type type = specialisation_.type(item);
    if (!is_vector(type)) {
      parts.push_back(convert(emitter_.expression(item), cpp_type).text);
      continue;
    }
    const Code whole = emitter_.order().once(item);
    for (unsigned k = 0; k < type->ndim; ++k)
      parts.push_back(
          convert({cpp_text("{}.{}", whole.text, "xyzw"[k]), Precedence::primary, cpp_type_of(type->element)},
                  cpp_type)
              .text);
  }
  return braced(type_text(to), parts);
}

Code CallCode::call_function(const Expr& expr, const Specialisation& callee) {
  const Function& function = *callee.scope->function;
  std::vector<CppText> arguments(function.parameters.size());
  std::size_t position = 0;
  for (std::size_t i = 1; i < expr.items.size(); ++i) {
    const Expr* item = expr.items[i];
    std::size_t index = position++;
    if (item->kind == ExprKind::keyword) {
      const auto found = std::find_if(function.parameters.begin(), function.parameters.end(),
                                      [&](const Parameter& p) { return p.name == item->name; });
      index = static_cast<std::size_t>(found - function.parameters.begin());
      item = item->items[0];
      --position;
    }
    const Type to = callee.parameters[index];
    if (is_valueless(to)) {
      emitter_.order().discard(*item);
      continue;
    }
    arguments[index] = is_array(to) ? emitter_.arrays().array_value(*item).text : emitter_.as(*item, to).text;
  }
  const std::vector<std::uint32_t>& captured = scope_.captures(expr);
  const std::size_t own = arguments.size() - captured.size();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (i >= own)
      arguments[i] = captured_value(captured[i - own]);
    else if (arguments[i].empty() && !is_valueless(callee.parameters[i]))
      arguments[i] =
          emitter_
              .constant(unit_.names->default_value(*callee.declaration, *function.parameters[i].fallback),
                        callee.parameters[i])
              .text;
  }
  for (std::size_t i = arguments.size(); i-- > 0;)
    if (is_valueless(callee.parameters[i]))
      arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(i));
  return call(unit_.function_names.at(&callee), arguments, cpp_type_of(callee.result));
}

/// Returns the value that a nested function captures from this one.
CppText CallCode::captured_value(std::uint32_t version) {
  const std::uint32_t id = variables_.of_version[version];
  if (id == kNoVariable) return "0";
  return variables_.all[id].storage != nullptr
             ? call("quern::view", {variables_.all[id].name}, CppType::other).text
             : emitter_.variable(id).text;
}

Code Emitter::call_builtin(const Expr& expr, const Builtin& row) {
  constexpr Code (*kEmit[])(const BuiltinCode&) = {
#define QUERN_RULE(rule, syntax, arguments, keywords, infer, emit, range, fold, effects, debug) \
  &emit_rules::emit,
#include "frontend/builtins/rules.def"
  };
  return kEmit[static_cast<std::size_t>(row.rule)](BuiltinCode(*this, expr, row));
}

/// The code of such a built-in is emitted elsewhere: by the loop over it, or where its name is used without
/// parentheses.
Code emit_rules::nothing(const BuiltinCode&) { return {}; }
Code emit_rules::plain(const BuiltinCode& call) { return call.plain(call.cpp_type); }
Code emit_rules::plain_u32(const BuiltinCode& call) { return call.plain(CppType::u32); }
Code emit_rules::plain_i64(const BuiltinCode& call) { return call.plain(CppType::i64); }

}  // namespace quern::frontend
