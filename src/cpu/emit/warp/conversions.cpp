// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/warp/conversions.hpp"

#include <algorithm>

namespace quern::cpu::emit {
namespace {

using analysis::LanePattern;
using analysis::LanePatternKind;

/// True if both patterns have the same scalar: lane 0's value, or the same part of an offset32.
bool same_base(const LanePattern& a, const LanePattern& b) {
  const bool a_offset = a.kind == LanePatternKind::offset32;
  const bool b_offset = b.kind == LanePatternKind::offset32;
  if (a_offset != b_offset) return false;
  return !a_offset || (a.index == b.index && a.index_signed == b.index_signed && a.scale == b.scale);
}

}  // namespace

/// The scalar that `pattern` stores for a value whose lane 0 is `lane0`.
llvm::Value* Conversions::base_of(const LanePattern& pattern, llvm::Value* lane0) {
  if (pattern.kind != LanePatternKind::offset32) return lane0;
  llvm::Value* index = lane0_of(pattern.index);
  index = pattern.index_signed ? code_.CreateSExt(index, lane0->getType())
                               : code_.CreateZExt(index, lane0->getType());
  llvm::Constant* scale =
      llvm::ConstantInt::get(lane0->getType(), static_cast<std::uint64_t>(pattern.scale), /*IsSigned=*/true);
  return code_.CreateSub(lane0, code_.CreateMul(index, scale));
}

/// Lane 0 of `value` in the version being emitted, in which all lanes run.
llvm::Value* Conversions::lane0_of(ir::Value value) {
  const LanePatternKind kind = pattern(value).kind;
  if (kind == LanePatternKind::uniform || kind == LanePatternKind::affine) return values_.scalar(value);
  return code_.CreateExtractElement(values_.vector(value), std::uint64_t{0});
}

llvm::Value* Conversions::masked_from_full(ir::Value value) {
  const LanePattern& wanted = pattern_in(Version::masked, value);
  if (!wanted.scalar()) return values_.as_kept(value, false);
  if (llvm::Constant* constant = slots_.known_constant(Version::masked, value)) return constant;
  if (pattern(value).scalar() && same_base(pattern(value), wanted)) return values_.scalar(value);
  if (pattern(value).kind == LanePatternKind::undefined) return values_.as_kept(value, true);
  return base_of(wanted, lane0_of(value));
}

Conversions::MaskedValues Conversions::masked_values_on(ir::BlockId block,
                                                        const std::vector<unsigned>& edges) {
  const std::vector<ir::BlockId>& succs = function_->blocks[block].succs;
  MaskedValues made;
  const auto carry = [&](ir::Value value) {
    for (const auto& [carried, what] : made)
      if (carried == value) return;
    if (slots_.has(Version::masked, value)) made.emplace_back(value, masked_from_full(value));
  };
  for (const unsigned edge : edges) std::ranges::for_each(plan_.live_in[succs[edge]], carry);
  for (const unsigned edge : edges)
    for (const auto& [phi, operand] : edges_.phi_operands(block, edge))
      if (slots_.has(Version::masked, phi))
        made.emplace_back(phi, kept_scalar(Version::masked, phi) ? masked_from_full(operand)
                                                                 : values_.as_kept(operand, false));
  return made;
}

/// In masked code with all lanes running: returns `value` in the representation of full code. If full code
/// assumes more about the value than is known here, adds tests of that to `holds`.
llvm::Value* Conversions::full_from_masked(ir::Value value, std::map<ir::Value, llvm::Value*>& done,
                                           llvm::Value*& holds) {
  if (const auto found = done.find(value); found != done.end()) return found->second;
  const LanePattern& wanted = pattern_in(Version::full, value);
  const LanePattern& have = pattern(value);
  llvm::Value*& result = done[value];
  if (have.kind == LanePatternKind::undefined) return result = values_.as_kept(value, wanted.scalar());
  if (ir::bit_size(inst(value).type) > 1 && (wanted.min > have.min || wanted.max < have.max))
    require(is_within(value, wanted.min, wanted.max), holds);
  if (!wanted.scalar()) return result = values_.as_kept(value, false);
  const bool known = wanted.constant && have.constant != wanted.constant;  // in full code only
  if (have.scalar() && have.kind == wanted.kind && have.terms == wanted.terms && same_base(have, wanted) &&
      !known) {
    result = values_.scalar(value);
    require_base(value, result, holds);
    return result;
  }

  llvm::Value* base = slots_.known_constant(Version::full, value);
  if (base == nullptr) base = base_of(wanted, lane0_of(value));
  result = base;
  require_base(value, base, holds);
  llvm::Value* expected = values_.expand(wanted, inst(value).type, base, [&](ir::Value coefficient) {
    return full_from_masked(coefficient, done, holds);
  });
  llvm::Value* actual = values_.vector(value);
  llvm::Type* words = llvm::VectorType::getInteger(llvm::cast<llvm::VectorType>(actual->getType()));
  require(code_.CreateICmpEQ(code_.CreateBitCast(actual, words), code_.CreateBitCast(expected, words)),
          holds);
  return base;
}

/// Requires the alignment of the scalar that full code assumes, and numbers that are small enough not to wrap
/// between the lanes.
void Conversions::require_base(ir::Value value, llvm::Value* base, llvm::Value*& holds) {
  const LanePattern& wanted = pattern_in(Version::full, value);
  const LanePattern& have = pattern(value);
  if (!base->getType()->isIntegerTy() || wanted.constant) return;
  const auto number = [&](std::uint64_t n) { return llvm::ConstantInt::get(base->getType(), n); };
  const std::uint64_t known = have.scalar() ? have.base_align : 1;
  if (wanted.base_align > known)
    require(code_.CreateICmpEQ(code_.CreateAnd(base, number(wanted.base_align - 1)), number(0)), holds);
  const unsigned bits = ir::bit_size(inst(value).type);
  const bool is_proven = have.kind == LanePatternKind::affine && have.exact;
  if (wanted.kind != LanePatternKind::affine || !wanted.exact || is_proven || bits != 32) return;
  constexpr std::uint64_t kSmall = std::uint64_t{1} << 29;
  require(code_.CreateICmpULT(code_.CreateAdd(base, number(kSmall)), number(2 * kSmall)), holds);
}

/// Adds to `holds` that the condition is true, in all lanes if it is a vector.
void Conversions::require(llvm::Value* condition, llvm::Value*& holds) {
  if (condition->getType()->isVectorTy())
    condition = code_.CreateICmpEQ(masks_.word_of(condition), code_.getInt32(0xffffffffu));
  holds = holds == nullptr ? condition : code_.CreateAnd(holds, condition);
}

/// i1, or a vector of it: the integer is one of min .. max.
llvm::Value* Conversions::is_within(ir::Value value, std::int64_t min, std::int64_t max) {
  llvm::Value* const number =
      pattern(value).kind == LanePatternKind::uniform ? values_.scalar(value) : values_.vector(value);
  const auto bound = [&](std::int64_t n) {
    return llvm::ConstantInt::get(number->getType(), static_cast<std::uint64_t>(n), /*IsSigned=*/true);
  };
  return code_.CreateAnd(code_.CreateICmpSGE(number, bound(min)), code_.CreateICmpSLE(number, bound(max)));
}

void Conversions::reenter_full(ir::BlockId block) {
  llvm::BasicBlock* convert = make_block("convert");
  llvm::BasicBlock* stay = make_block("stay");
  code_.CreateCondBr(masks_.every(body_.running.lanes), convert, stay);
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
  for (const ir::Value value : values) slots_.write(Version::full, value, done[value]);
  code_.CreateBr(body_.full_blocks[block]);
  code_.SetInsertPoint(stay);
}

}  // namespace quern::cpu::emit
