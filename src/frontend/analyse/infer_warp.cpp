// SPDX-License-Identifier: Apache-2.0
// Type inference for built-ins about the launch and about cooperating threads.
#include "frontend/analyse/builtin_call.hpp"

namespace quern::frontend {
namespace {

bool is_32_or_64(Type t) { return is_number(t) && (t->bits == 32 || t->bits == 64) && !is_complex(t); }

/// Checks the arguments of match_any_sync and match_all_sync; `error` is the type of a refused call.
bool matches(BuiltinCall& call, Type& error) {
  error = nullptr;
  if (!call.whole(0) || !call.number(1)) {
    error = call.refused();
    return false;
  }
  if (!is_floating(call.types[1]) || call.types[1]->bits != 16) return true;
  error = call.fail(call.args[1]->place, "types", "convert it: float32(x)",
                    "{} compares numbers of 32 or 64 bits, not {}", call.row.shown(), text_of(call.types[1]));
  return false;
}

}  // namespace

Type infer_rules::grid(BuiltinCall& call) {
  const Expr& ndim = *call.args[0];
  const Value& value = call.specialisation.constant(ndim);
  if (value.kind != Value::Kind::integer || value.integer < 1 || value.integer > 3)
    return call.fail(ndim.place, "calls", "write the number: cuda.grid(1)",
                     "{} takes 1, 2 or 3, known when it is compiled", call.row.shown());
  if (value.integer == 1) return call.table.int64;
  return call.table.tuple(std::vector<Type>(static_cast<std::size_t>(value.integer), call.table.int64));
}

Type infer_rules::optional_integer(BuiltinCall& call) {
  return call.args.empty() || call.whole(0) ? call.table.none : call.refused();
}
Type infer_rules::block_vote(BuiltinCall& call) { return call.whole(0) ? call.table.int32 : call.refused(); }
Type infer_rules::roc_position(BuiltinCall& call) {
  return call.whole(0) ? call.table.int64 : call.refused();
}
Type infer_rules::lane_mask(BuiltinCall& call) { return call.table.uint32; }
Type infer_rules::this_grid(BuiltinCall& call) { return call.table.group; }
Type infer_rules::warp_vote(BuiltinCall& call) {
  return call.whole(0) && call.whole(1) ? call.table.boolean : call.refused();
}
Type infer_rules::ballot(BuiltinCall& call) {
  return call.whole(0) && call.whole(1) ? call.table.int32 : call.refused();
}

Type infer_rules::shuffle(BuiltinCall& call) {
  if (!call.whole(0) || !call.whole(2)) return call.refused();
  if (is_32_or_64(call.types[1])) return call.types[1];
  return call.fail(call.args[1]->place, "types", "convert it to a type of 32 or 64 bits",
                   "a shuffle moves int32, int64, float32 or float64, not {}", text_of(call.types[1]));
}

Type infer_rules::match_any(BuiltinCall& call) {
  Type error = nullptr;
  return matches(call, error) ? call.table.int32 : error;
}
Type infer_rules::match_all(BuiltinCall& call) {
  Type error = nullptr;
  return matches(call, error) ? call.table.tuple({call.table.int32, call.table.boolean}) : error;
}

}  // namespace quern::frontend
