// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/operations/compare.hpp"

#include "cpu/emit/operations/real.hpp"

namespace quern::cpu::emit {
namespace {

using llvm::CmpInst;
using llvm::Value;

constexpr CmpInst::Predicate kInteger[] = {
    CmpInst::ICMP_EQ,  CmpInst::ICMP_NE,  CmpInst::ICMP_SLT, CmpInst::ICMP_SLE, CmpInst::ICMP_SGT,
    CmpInst::ICMP_SGE, CmpInst::ICMP_ULT, CmpInst::ICMP_ULE, CmpInst::ICMP_UGT, CmpInst::ICMP_UGE,
};
constexpr CmpInst::Predicate kFloating[] = {
    CmpInst::FCMP_OEQ, CmpInst::FCMP_ONE, CmpInst::FCMP_OLT, CmpInst::FCMP_OLE, CmpInst::FCMP_OGT,
    CmpInst::FCMP_OGE, CmpInst::FCMP_UEQ, CmpInst::FCMP_UNE, CmpInst::FCMP_ULT, CmpInst::FCMP_ULE,
    CmpInst::FCMP_UGT, CmpInst::FCMP_UGE, CmpInst::FCMP_ORD, CmpInst::FCMP_UNO,
};

Value* icmp(Operands& o) { return o.b.CreateICmp(predicate_of(o.inst.attr.icmp), o[0], o[1]); }

Value* fcmp(Operands& o) {
  Value* sides[] = {o[0], o[1]};
  for (Value*& side : sides) {
    if (o.inst.attr.ftz) side = flush_subnormals(o, side);
    if (is_narrow(o.type_of_arg(0))) side = widen_to_float(o, side, o.type_of_arg(0));
  }
  return o.b.CreateFCmp(kFloating[static_cast<std::size_t>(o.inst.attr.fcmp)], sides[0], sides[1]);
}

Value* select(Operands& o) { return o.b.CreateSelect(o[0], o[1], o[2]); }

constexpr Row kRows[] = {{ir::Op::icmp, icmp}, {ir::Op::fcmp, fcmp}, {ir::Op::select, select}};

}  // namespace

llvm::CmpInst::Predicate predicate_of(ir::Icmp how) { return kInteger[static_cast<std::size_t>(how)]; }

std::span<const Row> compare_rows() { return kRows; }

}  // namespace quern::cpu::emit
