// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/operations/alignment.hpp"

#include <llvm/IR/Intrinsics.h>

#include <algorithm>

#include "cpu/analysis/residues.hpp"
#include "cpu/emit/operations/operands.hpp"
#include "cpu/emit/operations/vectors.hpp"

namespace quern::cpu::emit {
namespace {

using analysis::LanePattern;
using analysis::LanePatternKind;
using llvm::Value;

/// The alignment that the access requires. Parameters of packed structures may have any alignment.
std::uint32_t demanded(const Access& access) {
  if (access.space == ir::Space::param) return 1;
  const std::uint32_t bytes = access.inst.attr.alignment == 0 ? access.bytes() : access.inst.attr.alignment;
  return std::min(bytes, analysis::kMaxModulus);
}

/// True if the lanes that share a base (Layout::base_lanes) are all misaligned or all aligned.
bool lanes_agree(const LanePattern& pattern, std::uint32_t mask) {
  const auto is_multiple = [&](std::int64_t distance) { return (distance & mask) == 0; };
  if (pattern.kind == LanePatternKind::offset32) return is_multiple(pattern.scale);
  return std::all_of(pattern.terms.begin(), pattern.terms.end(), [&](const analysis::Term& term) {
    return term.coefficient != ir::kNone ||
           std::all_of(term.offsets.begin(), term.offsets.end(), is_multiple);
  });
}

/// The bitwise or of the addresses of all running lanes.
Value* bits_of_lanes(const Access& access) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  Value* addresses = c.vector(access.address);
  llvm::Type* const type = addresses->getType();
  addresses = b.CreateAdd(addresses, bits(type, static_cast<std::uint64_t>(access.displacement)));
  if (!c.full()) addresses = b.CreateSelect(c.mask(), addresses, llvm::Constant::getNullValue(type));
  return b.CreateIntrinsic(llvm::Intrinsic::vector_reduce_or, {type}, {addresses});
}

Value* tested_limit(const Access& access, Value* base, std::uint32_t mask) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  Value* address = nullptr;
  if (base != nullptr && lanes_agree(c.pattern(access.address), mask))
    address = b.CreateAdd(base, bits(base->getType(), static_cast<std::uint64_t>(access.displacement)));
  else
    address = bits_of_lanes(access);
  Value* const low = b.CreateAnd(address, bits(address->getType(), mask));
  return b.CreateSelect(b.CreateICmpEQ(low, bits(low->getType(), 0)), c.window_bytes(), b.getInt64(0));
}

}  // namespace

Value* aligned_limit(const Access& access, Value* base) {
  Context& c = access.context;
  const std::uint32_t mask = demanded(access) - 1;
  const analysis::Residue& known = c.residue(access.address);
  if (mask == 0) return nullptr;
  if (known.modulus <= mask) return tested_limit(access, base, mask);
  const std::uint32_t low = (0u - known.value - static_cast<std::uint32_t>(access.displacement)) & mask;
  if (known.param != ir::kNone) return c.window_limit(known.param, mask, low);
  return low == 0 ? nullptr : c.builder().getInt64(0);
}

Value* aligned_start(const Access& access, Value* start, Value* base) {
  Value* const limit = aligned_limit(access, base);
  if (limit == nullptr) return start;
  llvm::IRBuilder<>& b = access.context.builder();
  Value* const mark = b.CreateIntToPtr(access.context.window_base(), b.getPtrTy());
  return b.CreateSelect(b.CreateICmpEQ(limit, b.getInt64(0)), mark, start);
}

}  // namespace quern::cpu::emit
