// SPDX-License-Identifier: Apache-2.0
#include "cpu/cuts/known_lanes.hpp"

#include <bit>

#include "cpu/abi/warp_size.hpp"

namespace quern::cpu::cuts {
namespace {

constexpr std::uint32_t kAllLanes = 0xffffffffu;
/// Conditions that are joined from more parts are not looked at.
constexpr unsigned kMaxDepth = 8;

}  // namespace

std::uint32_t KnownLanes::find(ir::Value condition, bool outcome) {
  const Lanes lanes = lanes_of(condition, outcome, 0);
  return lanes.exact || std::has_single_bit(lanes.within) ? lanes.within : 0;
}

KnownLanes::Lanes KnownLanes::of_threads(const std::vector<std::uint64_t>& bits, bool outcome) {
  Lanes lanes{.within = 0, .exact = true};
  for (std::size_t first = 0; first < bits.size(); first += kWarpSize) {
    std::uint32_t word = 0;
    for (std::size_t lane = 0; lane < kWarpSize && first + lane < bits.size(); ++lane)
      word |= std::uint32_t{((bits[first + lane] & 1) != 0) == outcome} << lane;
    if (word != 0 && lanes.within != 0) lanes.exact &= word == lanes.within;
    lanes.within |= word;
  }
  return lanes;
}

KnownLanes::Lanes KnownLanes::lanes_of(ir::Value condition, bool outcome, unsigned depth) {
  const ir::Inst& inst = function_[condition];
  if (const std::vector<std::uint64_t>* bits = threads_.find(condition); bits != nullptr)
    return of_threads(*bits, outcome);
  if (patterns_[condition].kind == analysis::LanePatternKind::uniform) return {kAllLanes, true};
  const bool joins = inst.op == ir::Op::and_ || inst.op == ir::Op::or_ || inst.op == ir::Op::xor_;
  if (inst.type != ir::Type::i1 || !joins || depth == kMaxDepth) return {kAllLanes, false};
  if (inst.op == ir::Op::xor_) {
    const ir::Inst& other = function_[inst.args[1]];
    if (other.op != ir::Op::constant) return {kAllLanes, false};
    return lanes_of(inst.args[0], outcome != ((other.imm & 1) != 0), depth + 1);
  }
  const Lanes a = lanes_of(inst.args[0], outcome, depth + 1), b = lanes_of(inst.args[1], outcome, depth + 1);
  const bool both = (inst.op == ir::Op::and_) == outcome;
  if (both) return {a.within & b.within, a.exact && b.exact};
  return {a.within | b.within, a.exact && b.exact && a.within == b.within};
}

}  // namespace quern::cpu::cuts
