// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/operations/near_lanes.hpp"

#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "cpu/analysis/regular.hpp"
#include "cpu/emit/operations/gathered_load.hpp"
#include "cpu/emit/operations/operands.hpp"
#include "cpu/emit/operations/vectors.hpp"

namespace quern::cpu::emit {
namespace {

using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

constexpr std::uint64_t kPage = 4096;

/// The size of the registers that words of `word_bytes` are taken out of; 0: there is no such permutation.
unsigned register_bytes(const Context& context, unsigned word_bytes) {
  switch (context.specialisation().isa) {
    case Isa::avx512:
      return word_bytes == 4 || word_bytes == 8 ? 64 : 0;
    case Isa::avx2:
      return word_bytes == 4 ? 32 : 0;
    case Isa::baseline:
      return 0;
  }
  return 0;
}

/// Lanes whose index a kernel computes from those of the threads by way of floating-point numbers, as
/// coordinates are: they are near each other unless it scales down a lot. Indices of integers are rows more
/// often (gathered_load), and indices that are loaded may be anything.
bool may_lie_near(const Access& access, const LanePointers& pointers, unsigned word_bytes) {
  const Context& c = access.context;
  const std::vector<analysis::LanePattern>& patterns = c.analysis().patterns;
  return c.full() && pointers.scale == word_bytes && access.space != ir::Space::local &&
         access.space != ir::Space::param && access.address != ir::kNone &&
         !ir::is_ordered(access.inst.attr) && chooses_at_run_time(c.function()) &&
         analysis::depends_on_data(c.function(), patterns, access.address) &&
         !analysis::depends_on_loads(c.function(), patterns, access.address);
}

/// The part of the lanes' indices in which they differ: it often stays the same in a loop over rows.
Value* varying_part(Value* index) {
  auto* const sum = llvm::dyn_cast<llvm::BinaryOperator>(index);
  if (sum == nullptr || sum->getOpcode() != llvm::Instruction::Add) return index;
  for (unsigned operand = 0; operand < 2; ++operand)
    if (llvm::isSplatValue(sum->getOperand(operand))) return sum->getOperand(1 - operand);
  return index;
}

/// i1: the window is in one page, so that all of it can be read where its first lane's element can.
Value* is_in_page(Context& context, Value* window, unsigned bytes) {
  llvm::IRBuilder<>& b = context.builder();
  Value* const in_page = b.CreateAnd(b.CreatePtrToInt(window, b.getInt64Ty()), b.getInt64(kPage - 1));
  return b.CreateICmpULE(in_page, b.getInt64(kPage - bytes));
}

/// The lanes' words out of two registers, of which `low` is the first one in memory.
Value* take_out(Context& context, Value* low, Value* high, Value* places) {
  llvm::IRBuilder<>& b = context.builder();
  llvm::Type* const type = places->getType();
  if (context.specialisation().isa == Isa::avx512) {
    const auto which = width_of(type) == 64 ? Intrinsic::x86_avx512_vpermi2var_q_512
                                            : Intrinsic::x86_avx512_vpermi2var_d_512;
    return b.CreateIntrinsic(which, {}, {low, places, high});
  }
  // The permutation looks at the lowest three bits. A blend tests the sign.
  const auto of = [&](Value* part) {
    return b.CreateIntrinsic(Intrinsic::x86_avx2_permd, {}, {part, places});
  };
  Value* const is_high = b.CreateICmpSLT(b.CreateShl(places, bits(type, 28)), bits(type, 0));
  return b.CreateSelect(is_high, of(high), of(low));
}

}  // namespace

std::optional<NearLanes> find_near_lanes(const Access& access, const LanePointers& pointers,
                                         unsigned word_bytes) {
  Context& c = access.context;
  const unsigned in_register = register_bytes(c, word_bytes);
  if (in_register == 0 || !may_lie_near(access, pointers, word_bytes)) return std::nullopt;
  llvm::IRBuilder<>& b = c.builder();
  const unsigned group_lanes = in_register / word_bytes, most = 2 * group_lanes - 1;
  llvm::SmallVector<int, kWarpSize> firsts;
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    firsts.push_back(static_cast<int>(lane - lane % group_lanes));
  Value* const index = pointers.index;
  Value* const varying = varying_part(index);
  Value* const distance = b.CreateSub(varying, b.CreateShuffleVector(varying, firsts));
  NearLanes lanes;
  lanes.word_bytes = word_bytes;
  lanes.near = b.CreateICmpEQ(mask_to_bits(c, b.CreateICmpULE(distance, bits(distance->getType(), most))),
                              b.getInt32(kAllLanes));
  llvm::Type* const words = llvm::FixedVectorType::get(b.getIntNTy(word_bytes * 8), kWarpSize);
  Value* const places = b.CreateZExtOrTrunc(distance, words);
  for (unsigned first = 0; first < kWarpSize; first += group_lanes) {
    Value* const first_index = b.CreateExtractElement(index, std::uint64_t{first});
    llvm::Type* const type = first_index->getType();
    // Indices of 32 bits must not wrap inside of the window.
    if (width_of(type) < 64)
      lanes.near =
          b.CreateAnd(lanes.near, b.CreateICmpSLE(first_index, bits(type, std::uint64_t{INT32_MAX} - most)));
    Value* const offset = b.CreateMul(b.CreateSExt(first_index, b.getInt64Ty()), b.getInt64(word_bytes));
    Value* const window = b.CreateGEP(b.getInt8Ty(), pointers.base, offset);
    lanes.near = b.CreateAnd(lanes.near, is_in_page(c, window, 2 * in_register));
    lanes.windows.push_back(window);
    lanes.places.push_back(slice(c, places, first, group_lanes));
  }
  return lanes;
}

Value* load_near_lanes(const Access& access, const NearLanes& lanes) {
  Context& c = access.context;
  std::vector<Value*> parts;
  for (std::size_t group = 0; group < lanes.windows.size(); ++group) {
    Value* const places = lanes.places[group];
    const auto part = [&](unsigned which) {
      const std::int64_t bytes = std::int64_t{which} * register_bytes(c, lanes.word_bytes);
      return load_one(access, places->getType(), advance(c, lanes.windows[group], bytes));
    };
    parts.push_back(take_out(c, part(0), part(1), places));
  }
  return concat(c, parts);
}

}  // namespace quern::cpu::emit
