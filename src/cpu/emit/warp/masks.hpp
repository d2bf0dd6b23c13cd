// SPDX-License-Identifier: Apache-2.0
// The representation of a set of lanes between blocks. With mask registers (AVX-512) it is <32 x i1>.
// Otherwise it is <32 x i32> with 0 or -1, compared again at each use: measured, this is 1.6 to 2 times
// faster than i1 vectors across blocks.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "cpu/abi/specialisation.hpp"

namespace quern::cpu::emit {

/// `lanes` is a mask in that stored form, `bits` a <32 x i1>. Emits instructions with the given builder.
class Masks {
 public:
  Masks(llvm::IRBuilder<>& builder, Isa isa);

  llvm::Type* type() const { return type_; }
  llvm::Type* bits_type() const { return bits_type_; }  ///< <32 x i1>
  llvm::Constant* none() const;
  llvm::Constant* all() const;

  llvm::Value* lanes_of(llvm::Value* bits);
  llvm::Value* bits_of(llvm::Value* lanes);
  llvm::Value* has(llvm::Value* lanes, unsigned lane);  ///< i1
  llvm::Value* any(llvm::Value* lanes);                 ///< i1
  llvm::Value* every(llvm::Value* lanes);               ///< i1: all 32
  llvm::Value* either(llvm::Value* a, llvm::Value* b);
  llvm::Value* both(llvm::Value* a, llvm::Value* b);
  llvm::Value* without(llvm::Value* a, llvm::Value* b);  ///< a and not b

  /// <32 x i1> <-> i32, bit l = lane l.
  llvm::Value* word_of(llvm::Value* bits);
  llvm::Value* bits_of_word(llvm::Value* word);

 private:
  llvm::IRBuilder<>& builder_;
  bool registers_;
  llvm::Type* bits_type_;
  llvm::Type* type_;
};

}  // namespace quern::cpu::emit
