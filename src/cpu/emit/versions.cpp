// SPDX-License-Identifier: Apache-2.0
// WarpBody: from the full version to the masked one and back. Their shapes may differ (the safe analysis
// knows less), and so may what is kept of a value.
#include <algorithm>

#include "cpu/emit/warp_body.hpp"

namespace quern::cpu::emit {
namespace {

using analysis::Shape;
using analysis::ShapeKind;

/// Both keep the same scalar: lane 0's value, or the same part of an offset32.
bool same_base(const Shape& a, const Shape& b) {
  const bool a_offset = a.kind == ShapeKind::offset32;
  const bool b_offset = b.kind == ShapeKind::offset32;
  if (a_offset != b_offset) return false;
  return !a_offset || (a.index == b.index && a.index_signed == b.index_signed && a.scale == b.scale);
}

}  // namespace

/// What `shape` keeps of a value whose lane 0 holds `lane0`.
llvm::Value* WarpBody::base_of(const Shape& shape, llvm::Value* lane0) {
  if (shape.kind != ShapeKind::offset32) return lane0;
  llvm::Value* index = lane0_of(shape.index);
  index = shape.index_signed ? code_.CreateSExt(index, lane0->getType())
                             : code_.CreateZExt(index, lane0->getType());
  llvm::Constant* scale =
      llvm::ConstantInt::get(lane0->getType(), static_cast<std::uint64_t>(shape.scale), /*IsSigned=*/true);
  return code_.CreateSub(lane0, code_.CreateMul(index, scale));
}

/// Lane 0 of `value` in the version being emitted; all lanes run.
llvm::Value* WarpBody::lane0_of(ir::Value value) {
  const ShapeKind kind = shape(value).kind;
  if (kind == ShapeKind::uniform || kind == ShapeKind::affine) return scalar(value);
  return code_.CreateExtractElement(vector(value), std::uint64_t{0});
}

/// In full code: `value` as masked code keeps it.
llvm::Value* WarpBody::masked_from_full(ir::Value value) {
  const Shape& wanted = shape_in(Version::masked, value);
  if (!wanted.scalar()) return as_kept(value, false);
  if (llvm::Constant* constant = known_constant(Version::masked, value)) return constant;
  if (shape(value).scalar() && same_base(shape(value), wanted)) return scalar(value);
  if (shape(value).kind == ShapeKind::undefined) return as_kept(value, true);
  return base_of(wanted, lane0_of(value));
}

/// In masked code with all lanes running: `value` as full code keeps it. Where full code assumes more of the
/// value than is known here, `holds` becomes the test of it.
llvm::Value* WarpBody::full_from_masked(ir::Value value, std::map<ir::Value, llvm::Value*>& done,
                                        llvm::Value*& holds) {
  if (const auto found = done.find(value); found != done.end()) return found->second;
  const Shape& wanted = shape_in(Version::full, value);
  const Shape& have = shape(value);
  llvm::Value*& result = done[value];
  if (!wanted.scalar()) return result = as_kept(value, false);
  if (have.kind == ShapeKind::undefined) return result = as_kept(value, true);
  if (have.scalar() && have.kind == wanted.kind && have.terms == wanted.terms && same_base(have, wanted))
    return result = scalar(value);

  llvm::Value* base = known_constant(Version::full, value);
  if (base == nullptr) base = base_of(wanted, lane0_of(value));
  done[value] = base;  // `result` may have moved: the next line adds to `done`
  llvm::Value* expected = expand(wanted, inst(value).type, base, [&](ir::Value coefficient) {
    return full_from_masked(coefficient, done, holds);
  });
  llvm::Value* actual = vector(value);
  llvm::Type* words = llvm::VectorType::getInteger(llvm::cast<llvm::VectorType>(actual->getType()));
  llvm::Value* equal =
      code_.CreateICmpEQ(code_.CreateBitCast(actual, words), code_.CreateBitCast(expected, words));
  llvm::Value* all = code_.CreateICmpEQ(masks_.word_of(equal), code_.getInt32(0xffffffffu));
  holds = holds == nullptr ? all : code_.CreateAnd(holds, all);
  return base;
}

/// Goes on in the full version of `block` if all lanes run and its values have the form it needs; else falls
/// through.
void WarpBody::reenter_full(ir::BlockId block) {
  llvm::BasicBlock* convert = make_block("convert");
  llvm::BasicBlock* stay = make_block("stay");
  code_.CreateCondBr(masks_.every(lanes_), convert, stay);
  code_.SetInsertPoint(convert);

  std::map<ir::Value, llvm::Value*> done;
  llvm::Value* holds = nullptr;
  std::vector<ir::Value> values = plan_.live_in[block];
  for (const ir::Value value : function_->blocks[block].insts)
    if (is_phi(value)) values.push_back(value);
  for (const ir::Value value : values) full_from_masked(value, done, holds);
  if (holds != nullptr) {
    llvm::BasicBlock* enter = make_block("reenter");
    code_.CreateCondBr(holds, enter, stay);
    code_.SetInsertPoint(enter);
  }
  for (const ir::Value value : values) write_slot(Version::full, value, done[value]);
  code_.CreateBr(full_[block]);
  code_.SetInsertPoint(stay);
}

}  // namespace quern::cpu::emit
