// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/operations/rounded.hpp"

#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/Support/Casting.h>

#include <cmath>
#include <optional>

#include "cpu/emit/operations/real.hpp"
#include "cpu/emit/operations/vectors.hpp"

namespace quern::cpu::emit {
namespace {

using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

struct Embedded {
  Intrinsic::ID f32;
  Intrinsic::ID f64;
};
/// Indexed by RoundedOp.
constexpr Embedded kEmbedded[] = {
    {Intrinsic::x86_avx512_add_ps_512, Intrinsic::x86_avx512_add_pd_512},
    {Intrinsic::x86_avx512_sub_ps_512, Intrinsic::x86_avx512_sub_pd_512},
    {Intrinsic::x86_avx512_mul_ps_512, Intrinsic::x86_avx512_mul_pd_512},
    {Intrinsic::x86_avx512_div_ps_512, Intrinsic::x86_avx512_div_pd_512},
    {Intrinsic::x86_avx512_sqrt_ps_512, Intrinsic::x86_avx512_sqrt_pd_512},
    {Intrinsic::x86_avx512_vfmadd_ps_512, Intrinsic::x86_avx512_vfmadd_pd_512},
};

/// The rounding field of the instruction, with exceptions suppressed.
unsigned embedded_mode(ir::Rounding rounding) {
  switch (rounding) {
    case ir::Rounding::rm:
      return 9;
    case ir::Rounding::rp:
      return 10;
    case ir::Rounding::rz:
      return 11;
    default:
      return 8;
  }
}

Value* with_embedded_rounding(Operands& o, RoundedOp op, llvm::ArrayRef<Value*> args, ir::Rounding rounding) {
  const bool is_float = args[0]->getType()->getScalarType()->isFloatTy();
  const unsigned chunk = is_float ? 16 : 8;
  const Embedded& row = kEmbedded[static_cast<std::size_t>(op)];
  llvm::SmallVector<Value*, 4> parts;
  for (unsigned first = 0; first < kWarpSize; first += chunk) {
    llvm::SmallVector<Value*, 4> operands;
    for (Value* const arg : args) operands.push_back(slice(o.context, arg, first, chunk));
    operands.push_back(o.b.getInt32(embedded_mode(rounding)));
    parts.push_back(o.b.CreateIntrinsic(is_float ? row.f32 : row.f64, {}, operands));
  }
  return concat(o.context, parts);
}

Value* with_helper(Operands& o, RoundedOp op, llvm::ArrayRef<Value*> args, ir::Rounding rounding) {
  llvm::Type* const type = args[0]->getType();
  const char* const name =
      type->getScalarType()->isFloatTy() ? "quern_cpu_rounded_f32" : "quern_cpu_rounded_f64";
  Value* const out = scratch(o.context, type);
  llvm::SmallVector<Value*, 3> in;
  for (Value* const arg : args) in.push_back(spill(o.context, arg));
  while (in.size() < 3) in.push_back(in.front());
  call_helper(
      o.context, name, o.b.getVoidTy(),
      {o.b.getInt32(static_cast<std::uint32_t>(op)), o.b.getInt32(static_cast<std::uint32_t>(rounding)),
       o.b.getInt32(type->isVectorTy() ? kWarpSize : 1), out, in[0], in[1], in[2]},
      Touches::arguments_only);
  Value* const result = o.b.CreateAlignedLoad(type, out, llvm::Align(64));
  release(o.context, {out});
  for (std::size_t at = 0; at < args.size(); ++at) release(o.context, {in[at]});
  return result;
}

/// The number that all lanes hold, if it is a constant.
std::optional<double> constant_number(Value* value) {
  const auto* constant = llvm::dyn_cast<llvm::Constant>(value);
  if (constant != nullptr && value->getType()->isVectorTy()) constant = constant->getSplatValue();
  const auto* number = llvm::dyn_cast_or_null<llvm::ConstantFP>(constant);
  if (number == nullptr || !number->getType()->isFloatTy()) return std::nullopt;
  return number->getValueAPF().convertToFloat();
}

/// x * y + z of f32 where x is one of 0 .. 1, and y and z are constants of which z has at least four times
/// the magnitude: so expf() finds the power of two. The sum to nearest differs from z by at most a third of
/// it, so that z - sum is exact (Sterbenz, "Floating-Point Computation", 1974). One more fma then has the
/// sign of the sum's error, and that of +0 if there is none.
bool is_near_constant(const Operands& o, RoundedOp op, llvm::ArrayRef<Value*> args) {
  if (op != RoundedOp::fma || o.inst.op != ir::Op::ffma || !o.context.function()[o.inst.args[0]].attr.sat)
    return false;
  const std::optional<double> y = constant_number(args[1]), z = constant_number(args[2]);
  return y && z && std::abs(*y) <= std::abs(*z) / 4 && std::abs(*z) >= 0x1p-125 && std::abs(*z) <= 0x1p126;
}

Value* near_constant(Operands& o, llvm::ArrayRef<Value*> args, ir::Rounding rounding) {
  llvm::IRBuilder<>& b = o.b;
  const bool negative = *constant_number(args[2]) < 0;
  const bool down = rounding == ir::Rounding::rm || (rounding == ir::Rounding::rz && !negative);
  Value* const sum = fused_multiply_add(o.context, args[0], args[1], args[2]);
  Value* const rest = down ? b.CreateFSub(args[2], sum) : b.CreateFSub(sum, args[2]);
  Value* const error = fused_multiply_add(o.context, down ? args[0] : b.CreateFNeg(args[0]), args[1], rest);
  Value* const beyond = b.CreateAShr(as_bits(o, error), 31);  // -1: the sum is beyond the exact one
  Value* const word = as_bits(o, sum);
  return from_bits(o, down == negative ? b.CreateSub(word, beyond) : b.CreateAdd(word, beyond),
                   sum->getType());
}

}  // namespace

Value* rounded_arithmetic(Operands& o, RoundedOp op, llvm::ArrayRef<Value*> args, ir::Rounding rounding) {
  if (has_embedded_rounding(o)) return with_embedded_rounding(o, op, args, rounding);
  return is_near_constant(o, op, args) ? near_constant(o, args, rounding)
                                       : with_helper(o, op, args, rounding);
}

bool has_embedded_rounding(const Operands& o) { return o.isa() == Isa::avx512 && o.is_vector(); }

}  // namespace quern::cpu::emit
