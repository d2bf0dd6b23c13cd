// SPDX-License-Identifier: Apache-2.0
// CUDA C++ for built-ins that create arrays or access elements of arrays.
#include "frontend/builtins/forms.hpp"
#include "frontend/codegen/builtin_code.hpp"

namespace quern::frontend {
namespace {

/// CUDA C++ lacks some of these operations for long long. A header of quern adds them. Including it costs
/// NVRTC time, so only kernels that need them include it.
std::string_view atomic_function(std::string_view cuda, CppType cpp_type) {
  constexpr std::pair<std::string_view, std::string_view> kAdded[] = {{"atomicAdd", "quern::atomic_add"},
                                                                      {"atomicExch", "quern::atomic_exch"},
                                                                      {"atomicCAS", "quern::atomic_cas"}};
  for (const auto& [of_cuda, of_quern] : kAdded)
    if (cpp_type == CppType::i64 && cuda == of_cuda) return of_quern;
  return cuda;
}

/// Calls the row's function with the address of the element and the arguments from `first_value` on.
Code atomic_on(const BuiltinCode& call, const Code& element, std::size_t first_value) {
  const CppType cpp_type = cpp_type_of(call.type_of(1)->element);
  std::vector<CppText> arguments = {"&" + inside(element, Precedence::primary)};
  for (std::size_t i = first_value; i <= call.count(); ++i) arguments.push_back(call.as(i, cpp_type));
  return frontend::call(atomic_function(call.row.cuda, cpp_type), arguments, cpp_type);
}

/// The address of the element that cuda.ldcg(array, index) and cuda.stcg(array, index, value) access.
CppText address(const BuiltinCode& call) {
  return "&" + inside(call.emitter.arrays().element(call.argument(1), call.argument(2)), Precedence::primary);
}

}  // namespace

Code emit_rules::atomic(const BuiltinCode& call) {
  return atomic_on(call, call.emitter.arrays().element(call.argument(1), call.argument(2)), 3);
}

/// The address of an array's first element.
Code emit_rules::atomic_swap(const BuiltinCode& call) {
  const Code first = call.emitter.arrays().element_of(call.argument(1), {integer_code(0)});
  return atomic_on(call, first, 2);
}

Code emit_rules::load_hint(const BuiltinCode& call) {
  return frontend::call(call.row.cuda, {address(call)}, cpp_type_of(call.type_of(1)->element));
}

Code emit_rules::store_hint(const BuiltinCode& call) {
  const CppText element = address(call);
  return frontend::call(call.row.cuda, {element, call.as(3, cpp_type_of(call.type_of(1)->element))},
                        CppType::other);
}

/// An array that is used without a name gets the same code as one with a name.
Code emit_rules::array(const BuiltinCode& call) {
  const Storage& storage = call.emitter.specialisation().storages.at(call.expr.id);
  if (storage.space == Space::constant) {
    const std::string name = cpp_name(storage.name);
    return frontend::call("quern::view", {name}, CppType::other);
  }
  const CppText element = type_text(storage.element);
  if (storage.space == Space::dynamic_shared)
    return call_of(cpp_text("{}<{}>", device_name("quern::dynamic_shared"), element), {}, CppType::other);
  const std::string name = call.emitter.temporary(storage.space == Space::shared ? "shared" : "local");
  std::string extents;
  for (const std::int64_t extent : storage.extents) extents += fmt::format("[{}]", extent);
  call.emitter.lines().add(
      cpp_text("{}{} {}{};", storage.space == Space::shared ? "__shared__ " : "", element, name, extents));
  return frontend::call("quern::view", {name}, CppType::other);
}

Code emit_rules::random(const BuiltinCode& call) {
  std::vector<CppText> arguments = {call.emitter.arrays().array_value(call.argument(1)).text};
  for (std::size_t i = 2; i <= call.count(); ++i) arguments.push_back(call.code(i).text);
  return frontend::call(typed_function(call.table(), call.row).cuda, arguments, call.cpp_type);
}

}  // namespace quern::frontend
