// SPDX-License-Identifier: Apache-2.0
// CUDA C++ for built-ins about the launch and about cooperating threads.
#include "frontend/codegen/builtin_code.hpp"

namespace quern::frontend {
namespace {

std::vector<CppText> mask_and_value(const BuiltinCode& call) {
  return {call.as(1, CppType::u32), call.as(2, cpp_type_of(call.type_of(2)))};
}

}  // namespace

/// The code is emitted inline, because a function in a header of quern would cost a twentieth of NVRTC's
/// time. Along y and z there are less than 2**32 threads.
Code grid_axis(const Builtin& row, std::size_t axis) {
  const char name = "xyz"[axis];
  const std::string_view wide = axis == 0 ? "(long long)" : "";
  const CppType cpp_type = axis == 0 ? CppType::i64 : CppType::u32;
  if (row.rule == Rule::grid_size)
    return {cpp_text("{0}gridDim.{1} * blockDim.{1}", wide, name), Precedence::times, cpp_type};
  return {cpp_text("{0}blockIdx.{1} * blockDim.{1} + threadIdx.{1}", wide, name), Precedence::plus, cpp_type};
}

Code emit_rules::grid(const BuiltinCode& call) {
  const std::int64_t ndim = call.emitter.specialisation().constant(call.argument(1)).integer;
  if (ndim == 1) return grid_axis(call.row, 0);
  std::vector<CppText> axes;
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(ndim); ++axis)
    axes.push_back(grid_axis(call.row, axis).text);
  return braced(type_text(call.type), axes);
}

Code emit_rules::block_vote(const BuiltinCode& call) {
  return frontend::call(call.row.cuda, {call.emitter.truths().condition(call.argument(1)).text},
                        CppType::i32);
}

Code emit_rules::ballot(const BuiltinCode& call) {
  const CppText mask = call.as(1, CppType::u32);
  return convert(frontend::call(call.row.cuda, {mask, call.emitter.truths().condition(call.argument(2)).text},
                                CppType::u32),
                 CppType::i32);
}

Code emit_rules::warp_vote(const BuiltinCode& call) {
  const CppText mask = call.as(1, CppType::u32);
  const Code votes = frontend::call(
      call.row.cuda, {mask, call.emitter.truths().condition(call.argument(2)).text}, CppType::i32);
  return {votes.text + " != 0", Precedence::equality, CppType::boolean};
}

Code emit_rules::shuffle(const BuiltinCode& call) {
  return frontend::call(
      call.row.cuda, {call.as(1, CppType::u32), call.as(2, call.cpp_type), call.code(3).text}, call.cpp_type);
}

Code emit_rules::match_any(const BuiltinCode& call) {
  return convert(frontend::call(call.row.cuda, mask_and_value(call), CppType::u32), CppType::i32);
}
Code emit_rules::match_all(const BuiltinCode& call) {
  return frontend::call(call.row.cuda, mask_and_value(call), CppType::other);
}

/// grid.sync()
Code emit_rules::grid_sync(const BuiltinCode& call) {
  const Code grid = call.emitter.expression(*call.expr.items[0]->items[0]);
  return {inside(grid, Precedence::primary) + ".sync()", Precedence::primary, CppType::other};
}

}  // namespace quern::frontend
