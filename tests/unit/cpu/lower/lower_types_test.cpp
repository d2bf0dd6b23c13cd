// SPDX-License-Identifier: Apache-2.0
// The verifier rejects operations whose types their rows of ops.def do not allow.
#include <doctest/doctest.h>

#include <array>
#include <string>

#include "../ir_builder.hpp"
#include "cpu/lower/lower.hpp"
#include "cpu/lower/ssa/verify.hpp"

using namespace quern;
using cpu::ir::Op;
using cpu::ir::Type;

namespace {

struct Row {
  Op op;
  Type type;
  std::vector<Type> operands;
  bool allowed;
};

/// A kernel in which the operation of `row` reads undefined values.
cpu::ir::Module module_of(const Row& row) {
  cpu::test::IrBuilder b;
  std::vector<cpu::ir::Value> operands;
  for (const Type type : row.operands) operands.push_back(b.op(Op::undef, type, {}));
  b.op(row.op, row.type, operands);
  b.op(Op::ret, Type::none, {});
  cpu::ir::Module module;
  module.functions.push_back(b.finish());
  return module;
}

const Row kRows[] = {
    {Op::shuffle, Type::i32, {Type::i32, Type::i32, Type::i32, Type::i32}, true},
    {Op::shuffle, Type::i64, {Type::i64, Type::i32, Type::i32, Type::i32}, false},
    {Op::shuffle, Type::i32, {Type::i32, Type::i32, Type::i32}, false},
    {Op::vote, Type::i1, {Type::i1, Type::i32}, true},
    {Op::vote, Type::i1, {Type::i32, Type::i32}, false},
    {Op::testp, Type::i1, {Type::f32}, true},
    {Op::testp, Type::i1, {Type::i32}, false},
    {Op::is_space, Type::i1, {Type::i64}, true},
    {Op::is_space, Type::i32, {Type::i64}, false},
    {Op::barrier, Type::none, {Type::i32}, true},
    {Op::barrier, Type::none, {Type::i32, Type::i32}, true},
    {Op::barrier, Type::none, {}, false},
    {Op::barrier, Type::i32, {Type::i32}, false},
    {Op::barrier_reduce, Type::i1, {Type::i1, Type::i32}, true},
    {Op::barrier_reduce, Type::i1, {Type::i32, Type::i32}, false},
    {Op::nanosleep, Type::none, {Type::i64}, false},
    {Op::iadd, Type::i64, {Type::i64, Type::i64}, true},
    {Op::iadd, Type::i64, {Type::i64, Type::i32}, false},
    {Op::iadd, Type::f32, {Type::f32, Type::f32}, false},
    {Op::icmp, Type::i1, {Type::i64, Type::i64}, true},
    {Op::icmp, Type::i1, {Type::i64, Type::i32}, false},
    {Op::trunc, Type::i16, {Type::i32}, true},
    {Op::trunc, Type::i32, {Type::i32}, false},
    {Op::zext, Type::i16, {Type::i32}, false},
    {Op::bitcast, Type::f32, {Type::i32}, true},
    {Op::bitcast, Type::f64, {Type::i32}, false},
    {Op::bfi, Type::i64, {Type::i64, Type::i64, Type::i32, Type::i32}, true},
    {Op::bfi, Type::i64, {Type::i64, Type::i64, Type::i64, Type::i32}, false},
    {Op::approx, Type::f32, {Type::f32, Type::f32}, true},
    {Op::approx, Type::f32, {Type::f32, Type::f64}, false},
    {Op::atomic, Type::i32, {Type::i64, Type::i32, Type::i32}, true},
    {Op::atomic, Type::i32, {Type::i64}, false},
    {Op::atomic, Type::i32, {Type::i64, Type::i64}, false},
};

}  // namespace

TEST_CASE("the verifier takes the types of ops.def and no others") {
  for (const Row& row : kRows) {
    std::string text = std::string(name(row.op)) + " " + std::string(name(row.type)) + ":";
    for (const Type type : row.operands) text += " " + std::string(name(type));
    CAPTURE(text);
    const Expected<void> verified = cpu::lower::verify(module_of(row));
    CHECK(verified.has_value() == row.allowed);
    if (!verified) CHECK(verified.errors()[0].code == "ir-invalid");
  }
}
