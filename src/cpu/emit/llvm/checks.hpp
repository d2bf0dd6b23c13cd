// SPDX-License-Identifier: Apache-2.0
// The checks of addresses (operations/address.cpp) as passes over LLVM IR find them: umin(address - base,
// limit) + base, as a pointer.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace quern::cpu::emit {

using Term = std::pair<llvm::Value*, std::uint64_t>;  ///< value * factor

/// A number modulo 2^64: constant + the sum of the terms.
struct Sum {
  std::vector<Term> terms;  ///< of different values, in their order in the code; no factor is 0
  std::uint64_t constant = 0;
};

/// One check whose result is used for pointers only.
struct Check {
  llvm::IntrinsicInst* inside = nullptr;   ///< the umin
  llvm::Value* base = nullptr;             ///< that is subtracted before it and added behind it
  std::vector<llvm::Instruction*> places;  ///< inside + base
  Sum sum;                                 ///< address - base

  llvm::Value* limit() const { return inside->getArgOperand(1); }
};

/// In bytes. A few hundred more may be added to a checked address in any window (abi/state.hpp).
inline constexpr std::int64_t kMostBehindCheck = 256;

/// Returns a bound of the distance of the term from 0: the term is an extended number of at most 32 bits.
/// kFar if it is another one, or farther away than any gap reaches.
std::uint64_t reach_of(const Term& term);
inline constexpr std::uint64_t kFar = std::uint64_t{1} << 40;

/// The same terms in an order that is the same for equal sums.
std::vector<Term> in_order(std::vector<Term> terms);

/// Returns the sum, of which no more is emitted than terms and the constant; 0 if there are none.
llvm::Value* emit_sum(llvm::IRBuilder<>& b, const std::vector<Term>& terms, std::uint64_t constant);

/// Returns the checks of the function, in reverse postorder, except those whose sums have too many terms.
std::vector<Check> find_checks(llvm::Function& function);

}  // namespace quern::cpu::emit
