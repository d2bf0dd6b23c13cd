// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/warp/masks.hpp"

#include "cpu/emit/operations/context.hpp"

namespace quern::cpu::emit {

Masks::Masks(llvm::IRBuilder<>& builder, Isa isa)
    : builder_(builder),
      registers_(isa == Isa::avx512),
      bits_type_(llvm::FixedVectorType::get(builder.getInt1Ty(), kWarpSize)),
      type_(registers_ ? bits_type_ : llvm::FixedVectorType::get(builder.getInt32Ty(), kWarpSize)) {}

llvm::Constant* Masks::none() const { return llvm::Constant::getNullValue(type_); }
llvm::Constant* Masks::all() const { return llvm::Constant::getAllOnesValue(type_); }

llvm::Value* Masks::lanes_of(llvm::Value* bits) {
  return registers_ ? bits : builder_.CreateSExt(bits, type_);
}

// Test the sign bit, as blends and masked moves do.
llvm::Value* Masks::bits_of(llvm::Value* lanes) {
  return registers_ ? lanes : builder_.CreateICmpSLT(lanes, llvm::Constant::getNullValue(type_));
}

llvm::Value* Masks::has(llvm::Value* lanes, unsigned lane) {
  llvm::Value* one = builder_.CreateExtractElement(lanes, std::uint64_t{lane});
  return registers_ ? one : builder_.CreateICmpSLT(one, builder_.getInt32(0));
}

llvm::Value* Masks::any(llvm::Value* lanes) {
  llvm::Value* word = registers_ ? word_of(lanes) : builder_.CreateOrReduce(lanes);
  return builder_.CreateICmpNE(word, builder_.getInt32(0));
}

llvm::Value* Masks::every(llvm::Value* lanes) {
  llvm::Value* word = registers_ ? word_of(lanes) : builder_.CreateAndReduce(lanes);
  return builder_.CreateICmpEQ(word, builder_.getInt32(0xffffffffu));
}

llvm::Value* Masks::either(llvm::Value* a, llvm::Value* b) { return builder_.CreateOr(a, b); }
llvm::Value* Masks::both(llvm::Value* a, llvm::Value* b) { return builder_.CreateAnd(a, b); }
llvm::Value* Masks::without(llvm::Value* a, llvm::Value* b) {
  return builder_.CreateAnd(a, builder_.CreateNot(b));
}

llvm::Value* Masks::word_of(llvm::Value* bits) { return builder_.CreateBitCast(bits, builder_.getInt32Ty()); }
llvm::Value* Masks::bits_of_word(llvm::Value* word) { return builder_.CreateBitCast(word, bits_type_); }

}  // namespace quern::cpu::emit
