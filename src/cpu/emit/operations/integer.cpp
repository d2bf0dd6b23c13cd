// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic. Every lane, running or not, may contain any value, so no operation here may fault.
#include <llvm/IR/Intrinsics.h>

#include "cpu/emit/operations/operands.hpp"
#include "cpu/emit/operations/vectors.hpp"

namespace quern::cpu::emit {
namespace {

using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

template <llvm::Instruction::BinaryOps op>
Value* binary(Operands& o) {
  return o.b.CreateBinOp(op, o[0], o[1]);
}

template <Intrinsic::ID id>
Value* intrinsic2(Operands& o) {
  return o.b.CreateBinaryIntrinsic(id, o[0], o[1]);
}

/// The high half of a 64-bit unsigned product, from 32-bit halves, since there is no vector instruction for
/// it.
Value* high_half_64(Operands& o, Value* x, Value* y) {
  llvm::IRBuilder<>& b = o.b;
  Value* const low_mask = bits(o.type, 0xffffffffu);
  Value* const x0 = b.CreateAnd(x, low_mask);
  Value* const x1 = b.CreateLShr(x, 32);
  Value* const y0 = b.CreateAnd(y, low_mask);
  Value* const y1 = b.CreateLShr(y, 32);
  Value* const mid = b.CreateAdd(b.CreateMul(x1, y0), b.CreateLShr(b.CreateMul(x0, y0), 32));
  Value* const mid2 = b.CreateAdd(b.CreateMul(x0, y1), b.CreateAnd(mid, low_mask));
  return b.CreateAdd(b.CreateAdd(b.CreateMul(x1, y1), b.CreateLShr(mid, 32)), b.CreateLShr(mid2, 32));
}

template <bool is_signed>
Value* multiply_high(Operands& o) {
  llvm::IRBuilder<>& b = o.b;
  const unsigned width = width_of(o.type);
  if (width == 64 && o.is_vector()) {
    Value* const high = high_half_64(o, o[0], o[1]);
    if (!is_signed) return high;
    // As an unsigned factor, a negative operand counts as itself + 2^64.
    Value* const from_x = b.CreateAnd(b.CreateAShr(o[0], 63), o[1]);
    Value* const from_y = b.CreateAnd(b.CreateAShr(o[1], 63), o[0]);
    return b.CreateSub(b.CreateSub(high, from_x), from_y);
  }
  llvm::Type* const wide = with_element(o.type, b.getIntNTy(width * 2));
  const auto extend = is_signed ? llvm::Instruction::SExt : llvm::Instruction::ZExt;
  Value* const product = b.CreateMul(b.CreateCast(extend, o[0], wide), b.CreateCast(extend, o[1], wide));
  return b.CreateTrunc(b.CreateLShr(product, width), o.type);
}

/// Divides vectors of up to 32 bits by a floating-point division. The quotient is exact: x / y is an integer
/// or at least 1 / y away from the next one, and its rounding error, (x / y) * 2^-p, is smaller if x < 2^p.
Value* quotient_by_float(Operands& o, Value* x, Value* y, bool is_signed) {
  llvm::IRBuilder<>& b = o.b;
  llvm::Type* const real = with_element(o.type, width_of(o.type) <= 16 ? b.getFloatTy() : b.getDoubleTy());
  if (is_signed)
    return b.CreateFPToSI(b.CreateFDiv(b.CreateSIToFP(x, real), b.CreateSIToFP(y, real)), o.type);
  return b.CreateFPToUI(b.CreateFDiv(b.CreateUIToFP(x, real), b.CreateUIToFP(y, real)), o.type);
}

Value* quotient_by_helper(Operands& o, Value* x, Value* y, bool is_signed) {
  Value* const out = scratch(o.context, o.type);
  Value* const in[] = {spill(o.context, x), spill(o.context, y)};
  call_helper(o.context, is_signed ? "quern_cpu_div_s64" : "quern_cpu_div_u64", o.b.getVoidTy(),
              {out, in[0], in[1]}, Touches::arguments_only);
  Value* const result = o.b.CreateAlignedLoad(o.type, out, llvm::Align(64));
  release(o.context, {out, in[0], in[1]});
  return result;
}

/// Returns x / y if y is not 0 and, for INT_MIN, not -1.
Value* safe_quotient(Operands& o, Value* x, Value* y, bool is_signed) {
  // LLVM turns a division by a constant into a multiplication, and a scalar division is one instruction.
  if (!o.is_vector() || llvm::isa<llvm::Constant>(o[1]))
    return is_signed ? o.b.CreateSDiv(x, y) : o.b.CreateUDiv(x, y);
  if (width_of(o.type) == 64) return quotient_by_helper(o, x, y, is_signed);
  return quotient_by_float(o, x, y, is_signed);
}

struct Division {
  Value* by_zero;
  Value* divisor;  ///< neither 0 nor overflowing
  Value* quotient;
};

Division divide(Operands& o, bool is_signed) {
  llvm::IRBuilder<>& b = o.b;
  Value* const one = bits(o.type, 1);
  Value* const by_zero = b.CreateICmpEQ(o[1], bits(o.type, 0));
  Value* divisor = b.CreateSelect(by_zero, one, o[1]);
  if (is_signed) {
    const std::uint64_t minimum = std::uint64_t{1} << (width_of(o.type) - 1);
    Value* const overflow =
        b.CreateAnd(b.CreateICmpEQ(o[0], bits(o.type, minimum)), b.CreateICmpEQ(o[1], bits(o.type, ~0ull)));
    divisor = b.CreateSelect(overflow, one, divisor);  // INT_MIN / -1 wraps to INT_MIN / 1
  }
  return {by_zero, divisor, safe_quotient(o, o[0], divisor, is_signed)};
}

template <bool is_signed>
Value* quotient(Operands& o) {
  const Division d = divide(o, is_signed);
  return o.b.CreateSelect(d.by_zero, bits(o.type, ~0ull), d.quotient);
}

template <bool is_signed>
Value* remainder(Operands& o) {
  const Division d = divide(o, is_signed);
  Value* const rest = o.b.CreateSub(o[0], o.b.CreateMul(d.quotient, d.divisor));
  return o.b.CreateSelect(d.by_zero, bits(o.type, ~0ull), rest);
}

Value* absolute(Operands& o) { return o.b.CreateBinaryIntrinsic(Intrinsic::abs, o[0], o.b.getFalse()); }

struct Sum {
  Value* value;
  Value* carry;  ///< i1
};

Sum sum_with_carry(Operands& o) {
  llvm::IRBuilder<>& b = o.b;
  Value* const first = b.CreateAdd(o[0], o[1]);
  Value* const sum = b.CreateAdd(first, b.CreateZExt(o[2], first->getType()));
  return {sum, b.CreateOr(b.CreateICmpULT(first, o[0]), b.CreateICmpULT(sum, first))};
}

Value* add_carry(Operands& o) { return sum_with_carry(o).value; }
Value* carry_of_add(Operands& o) { return sum_with_carry(o).carry; }

constexpr Row kRows[] = {
    {ir::Op::iadd, binary<llvm::Instruction::Add>},
    {ir::Op::isub, binary<llvm::Instruction::Sub>},
    {ir::Op::imul, binary<llvm::Instruction::Mul>},
    {ir::Op::imulhi_s, multiply_high<true>},
    {ir::Op::imulhi_u, multiply_high<false>},
    {ir::Op::sdiv, quotient<true>},
    {ir::Op::udiv, quotient<false>},
    {ir::Op::srem, remainder<true>},
    {ir::Op::urem, remainder<false>},
    {ir::Op::smin, intrinsic2<Intrinsic::smin>},
    {ir::Op::smax, intrinsic2<Intrinsic::smax>},
    {ir::Op::umin, intrinsic2<Intrinsic::umin>},
    {ir::Op::umax, intrinsic2<Intrinsic::umax>},
    {ir::Op::iadd_sat, intrinsic2<Intrinsic::sadd_sat>},
    {ir::Op::isub_sat, intrinsic2<Intrinsic::ssub_sat>},
    {ir::Op::iabs, absolute},
    {ir::Op::and_, binary<llvm::Instruction::And>},
    {ir::Op::or_, binary<llvm::Instruction::Or>},
    {ir::Op::xor_, binary<llvm::Instruction::Xor>},
    {ir::Op::add_carry, add_carry},
    {ir::Op::carry_of_add, carry_of_add},
};

}  // namespace

std::span<const Row> integer_rows() { return kRows; }

}  // namespace quern::cpu::emit
