// SPDX-License-Identifier: Apache-2.0
// WarpBody: loads that walk through memory in a loop with barriers. What stands between two of its rounds is
// too much for the processor to look past, so the code itself asks for what it will read.
#include <algorithm>

#include <llvm/IR/Module.h>

#include "cpu/emit/warp_body.hpp"

namespace quern::cpu::emit {
namespace {

/// A round takes about half as long as memory does to answer.
constexpr std::uint64_t kRoundsAhead = 2;
constexpr std::int64_t kLineBytes = 64;
/// Lanes that touch more lines than that are a gather: asking costs as much as loading.
constexpr std::size_t kMaxLines = 4;

/// One lane for each cache line that the lanes touch, where the lines of different coefficients are apart.
std::vector<unsigned> lane_of_each_line(const analysis::Shape& address) {
  const auto apart = [&](unsigned a, unsigned b) {
    return std::ranges::any_of(address.terms, [&](const analysis::Term& term) {
      const std::int64_t distance = term.pattern[a] - term.pattern[b];
      return term.coefficient == ir::kNone ? std::abs(distance) >= kLineBytes : distance != 0;
    });
  };
  std::vector<unsigned> lanes;
  for (unsigned lane = 0; lane < kLanes; ++lane)
    if (std::ranges::all_of(lanes, [&](unsigned other) { return apart(lane, other); })) lanes.push_back(lane);
  return lanes;
}

}  // namespace

/// Of an address that is a loop's variable, in a loop with barriers: what each round adds to it. Else
/// ir::kNone.
ir::Value WarpBody::stride_of(ir::Value address) const {
  const ir::Inst& phi = inst(address);
  const analysis::Analysis& facts = plan_.full;
  const std::uint32_t index = phi.op == ir::Op::phi ? facts.loop_of[phi.block] : ir::kNone;
  if (index == ir::kNone || facts.loops[index].header != phi.block) return ir::kNone;
  const std::vector<ir::BlockId>& blocks = facts.loops[index].blocks;
  const auto inside = [&](ir::BlockId id) { return std::ranges::find(blocks, id) != blocks.end(); };
  if (std::ranges::none_of(blocks, [&](ir::BlockId id) { return plan_.barrier[id] != ir::kNone; }))
    return ir::kNone;
  for (const ir::Value next : phi.args) {
    const ir::Inst& step = inst(next);
    if (!inside(step.block) || step.op != ir::Op::iadd) continue;
    for (const std::size_t i : {0u, 1u})
      if (step.args[i] == address && !inside(inst(step.args[1 - i]).block)) return step.args[1 - i];
  }
  return ir::kNone;
}

void WarpBody::prefetch(ir::Value load) {
  const ir::Value address = inst(load).args[0];
  const analysis::Shape& where = shape(address);
  if (inst(load).attr.space != ir::Space::global || where.kind != analysis::ShapeKind::affine) return;
  const ir::Value stride = stride_of(address);
  const bool known = stride != ir::kNone && shape(stride).kind == analysis::ShapeKind::uniform &&
                     (known_constant(version_, stride) != nullptr || has_slot(version_, stride));
  const std::vector<unsigned> lanes = lane_of_each_line(where);
  if (!known || lanes.size() > kMaxLines) return;
  llvm::Value* ahead = code_.CreateMul(scalar(stride), code_.getInt64(kRoundsAhead));
  ahead = code_.CreateAdd(code_.CreateAdd(scalar(address), ahead), code_.getInt64(inst(load).imm));
  for (const unsigned lane : lanes) {
    llvm::Value* at = ahead;
    for (const analysis::Term& term : where.terms) {
      llvm::Value* part = code_.getInt64(static_cast<std::uint64_t>(term.pattern[lane]));
      if (term.coefficient != ir::kNone) {
        llvm::Value* factor = scalar(term.coefficient);
        factor = term.sign_extend ? code_.CreateSExtOrTrunc(factor, code_.getInt64Ty())
                                  : code_.CreateZExtOrTrunc(factor, code_.getInt64Ty());
        part = code_.CreateMul(factor, part);
      }
      at = code_.CreateAdd(at, part);
    }
    // A hint: it reads nothing and never faults, whatever the address.
    code_.CreateIntrinsic(llvm::Intrinsic::prefetch, {code_.getPtrTy()},
                          {code_.CreateIntToPtr(at, code_.getPtrTy()), code_.getInt32(0), code_.getInt32(3),
                           code_.getInt32(1)});
  }
}

}  // namespace quern::cpu::emit
