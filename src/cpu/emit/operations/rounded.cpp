// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/operations/rounded.hpp"

#include <llvm/IR/IntrinsicsX86.h>

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

}  // namespace

Value* rounded_arithmetic(Operands& o, RoundedOp op, llvm::ArrayRef<Value*> args, ir::Rounding rounding) {
  return has_embedded_rounding(o) ? with_embedded_rounding(o, op, args, rounding)
                                  : with_helper(o, op, args, rounding);
}

bool has_embedded_rounding(const Operands& o) { return o.isa() == Isa::avx512 && o.is_vector(); }

}  // namespace quern::cpu::emit
