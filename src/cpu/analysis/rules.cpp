// SPDX-License-Identifier: Apache-2.0
#include "cpu/analysis/rules.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "cpu/abi/warp_size.hpp"
#include "cpu/analysis/lanes.hpp"
#include "cpu/ir/divisions.hpp"
#include "cpu/ir/fold.hpp"

namespace quern::cpu::analysis {
namespace {

using ir::sign_extend;
using ir::truncate;

constexpr std::int64_t kGridLimit =
    INT32_MAX;  // bound of gridDim.d, and with Specialisation::small_grid of gridDim.d * blockDim.d
constexpr std::int64_t kSharedLimit = std::int64_t{1} << 24;  // larger than any block's shared memory

bool is_integer(ir::Type type) { return !ir::is_float(type) && type != ir::Type::none; }

LanePattern with_range(LanePattern pattern, std::int64_t min, std::int64_t max) {
  set_range(pattern, {min, max});
  return pattern;
}

/// True if products of 32-bit coefficients and such offsets, and their sum, fit 64 bits.
bool is_testable(const LanePattern& pattern) {
  return std::ranges::all_of(pattern.terms, [](const Term& term) {
    return term.coefficient == ir::kNone || has_small_offsets(term);
  });
}

}  // namespace

Rules::Rules(const ir::Module& module, const ir::Function& function, const Specialisation& specialisation,
             Assumption assumption, const std::vector<LanePattern>& patterns)
    : module_(module),
      function_(function),
      specialisation_(specialisation),
      assumption_(assumption),
      patterns_(patterns) {
  for (unsigned d = 0; d < 3; ++d) thread_index_[d] = thread_index_pattern(specialisation, d);
  if (assumption == Assumption::optimistic) find_assumable();
}

std::uint32_t Rules::bits_of(ir::Value value) const { return ir::bit_size(function_[value].type); }

Operand Rules::operand(ir::Value value) const { return {patterns_[value], value, bits_of(value)}; }

std::uint32_t Rules::operand_bits(const ir::Inst& inst) const {
  if (inst.args.empty()) return ir::bit_size(inst.type);
  return bits_of(inst.op == ir::Op::select ? inst.args[1] : inst.args[0]);
}

bool Rules::all_operands(const ir::Inst& inst, bool (*is)(const LanePattern&)) const {
  return std::all_of(inst.args.begin(), inst.args.end(), [&](ir::Value arg) { return is(patterns_[arg]); });
}

Rules::Result Rules::evaluate(ir::Value value) const {
  const ir::Inst& inst = function_[value];
  const std::uint32_t bits = ir::bit_size(inst.type);
  const auto is_undefined = [](const LanePattern& pattern) {
    return pattern.kind == LanePatternKind::undefined;
  };
  for (const ir::Value arg : inst.args)
    if (is_undefined(patterns_[arg])) return {};
  const auto uniform_if = [&](bool condition) {
    return Result{condition ? uniform_pattern(bits) : varying_pattern(bits)};
  };
  const auto scalar_operand = [&](std::size_t which) { return patterns_[inst.args[which]].scalar(); };
  const auto uniform_operand = [&](std::size_t which) {
    return patterns_[inst.args[which]].kind == LanePatternKind::uniform;
  };
  if (inst.type == ir::Type::none && inst.op != ir::Op::call) return {uniform_pattern(0)};
  if (ir::has_trait(inst.op, 'v')) return {varying_pattern(bits)};
  switch (inst.op) {
    case ir::Op::constant:
      return {constant_pattern(bits, inst.imm)};
    case ir::Op::undef:
      return {constant_pattern(bits, 0)};
    case ir::Op::local_address:  // the callee's part begins where the caller's part ends
      return {function_.kernel ? constant_pattern(bits, inst.imm) : uniform_pattern(bits)};
    case ir::Op::param:
      return {uniform_pattern(bits)};
    case ir::Op::special:
      return {special(inst)};
    case ir::Op::symbol:
      return {symbol(inst)};
    case ir::Op::to_generic:
    case ir::Op::from_generic:
      return {convert_space(inst)};
    case ir::Op::is_space:
      return uniform_if(uniform_operand(0));
    case ir::Op::extract:
      return uniform_if(scalar_operand(0));
    case ir::Op::load:
      return {load(inst)};
    case ir::Op::vote:
    case ir::Op::reduce:
    case ir::Op::match_all:
      return uniform_if(uniform_operand(1));
    case ir::Op::activemask:
    case ir::Op::barrier_reduce:
      return uniform_if(true);
    case ir::Op::arg:
      return uniform_if(false);
    default:
      return ir::has_trait(inst.op, 'p') ? pure(value) : uniform_if(false);
  }
}

LanePattern Rules::special(const ir::Inst& inst) const {
  const std::uint32_t bits = ir::bit_size(inst.type);
  const auto which = static_cast<ir::Special>(inst.imm);
  const auto dimension = [&](ir::Special first) {
    return static_cast<unsigned>(inst.imm) - static_cast<unsigned>(first);
  };
  const auto blocks_below = [&](unsigned d) {
    return specialisation_.small_grid ? kGridLimit / std::max(specialisation_.block[d], 1u) : kGridLimit;
  };
  switch (which) {
    case ir::Special::tid_x:
    case ir::Special::tid_y:
    case ir::Special::tid_z:
      return thread_index_[dimension(ir::Special::tid_x)];
    case ir::Special::ntid_x:
    case ir::Special::ntid_y:
    case ir::Special::ntid_z:
      return constant_pattern(bits, specialisation_.block[dimension(ir::Special::ntid_x)]);
    case ir::Special::ctaid_x:
    case ir::Special::ctaid_y:
    case ir::Special::ctaid_z:
      return with_range(uniform_pattern(bits), 0, blocks_below(dimension(ir::Special::ctaid_x)) - 1);
    case ir::Special::nctaid_x:
    case ir::Special::nctaid_y:
    case ir::Special::nctaid_z:
      return with_range(uniform_pattern(bits), 1, blocks_below(dimension(ir::Special::nctaid_x)));
    case ir::Special::laneid:
      return lane_index_pattern();
    case ir::Special::warpid:
      if (specialisation_.warps() == 1) return constant_pattern(bits, 0);
      return with_range(uniform_pattern(bits), 0, static_cast<std::int64_t>(specialisation_.warps()) - 1);
    case ir::Special::nwarpid:
      return constant_pattern(bits, specialisation_.warps());
    case ir::Special::lanemask_eq:
    case ir::Special::lanemask_le:
    case ir::Special::lanemask_lt:
    case ir::Special::lanemask_ge:
    case ir::Special::lanemask_gt:
      return varying_pattern(bits);
    default:
      return uniform_pattern(bits);  // also clocks: they are read once for the warp
  }
}

LanePattern Rules::symbol(const ir::Inst& inst) const {
  LanePattern pattern = uniform_pattern(64);
  if (inst.imm >= module_.symbols.size()) return pattern;
  const ir::Symbol& symbol = module_.symbols[inst.imm];
  if (symbol.space == ir::Space::shared) set_range(pattern, {0, kSharedLimit});
  return pattern;
}

/// All lanes that load from one address at the same time get the same value. Local memory is different for
/// each lane, and so may be the parameters of a called function.
LanePattern Rules::load(const ir::Inst& inst) const {
  const std::uint32_t bits = ir::bit_size(inst.type);
  const bool own =
      inst.attr.space == ir::Space::local || (inst.attr.space == ir::Space::param && !function_.kernel);
  const bool uniform =
      !own && !ir::is_ordered(inst.attr) && patterns_[inst.args[0]].kind == LanePatternKind::uniform;
  return uniform ? uniform_pattern(bits) : varying_pattern(bits);
}

/// The conversion adds or subtracts the start of the space, which is the same for all lanes except for local
/// memory.
LanePattern Rules::convert_space(const ir::Inst& inst) const {
  const LanePattern& address = patterns_[inst.args[0]];
  if (!address.scalar() || inst.attr.space == ir::Space::local) return varying_pattern(64);
  LanePattern result = address;
  result.constant.reset();
  result.base_align = 1;
  result.exact = result.kind == LanePatternKind::uniform;
  set_range(result, full_range(64));
  return result;
}

Rules::Result Rules::pure(ir::Value value) const {
  const ir::Inst& inst = function_[value];
  const std::uint32_t bits = ir::bit_size(inst.type);
  std::vector<Range> ranges;
  for (const ir::Value arg : inst.args) ranges.push_back(range_of(patterns_[arg]));
  const RangeResult bounds = quern::cpu::analysis::range_of(inst, operand_bits(inst), ranges);
  Result result{varying_pattern(bits)};
  LanePattern& pattern = result.pattern;
  if (std::optional<LanePattern> known = decided(inst)) return {*std::move(known)};
  if (std::optional<Result> sign = natural_sign(inst)) return *std::move(sign);
  if (inst.op == ir::Op::sext || inst.op == ir::Op::zext) {
    result = widen(inst);
  } else if (all_operands(inst,
                          [](const LanePattern& arg) { return arg.kind == LanePatternKind::uniform; })) {
    pattern = uniform_pattern(bits);
  } else if (all_operands(inst, [](const LanePattern& arg) { return arg.scalar(); })) {
    if (inst.op != ir::Op::icmp)  // bounds are more precise: they exclude lanes that do not exist
      if (std::optional<LanePattern> lanes = folded_lanes(inst)) return {*std::move(lanes)};
    pattern = linear(inst, bounds.wraps);
    if (pattern.kind == LanePatternKind::varying) {
      if (std::optional<Result> quotient = divide_together(inst)) return *std::move(quotient);
      if (std::optional<LanePattern> index = within_edges(value))
        return {with_range(*std::move(index), bounds.range.min, bounds.range.max), true};
      if (std::optional<LanePattern> answer = at_edge(value)) return {*std::move(answer), true};
    }
    if (std::optional<Result> rest = rest_of_division(inst)) return *std::move(rest);
  }
  if (is_integer(inst.type)) set_range(pattern, bounds.range);
  const bool linear_operands = all_operands(inst, is_linear);
  if (inst.op == ir::Op::icmp && linear_operands) {
    const int answer = decide(inst.attr.icmp, ranges[0], ranges[1]);
    if (answer >= 0) return {constant_pattern(bits, static_cast<std::uint64_t>(answer))};
  }
  if (is_integer(inst.type) && linear_operands && bounds.range.single())
    return {constant_pattern(bits, static_cast<std::uint64_t>(bounds.range.min))};
  if (pattern.scalar()) set_base_facts(inst, pattern);
  normalise(pattern, bits);
  result.assumed &= pattern.kind == LanePatternKind::affine;
  return result;
}

/// Rule for operands that are scalar() and not all uniform.
LanePattern Rules::linear(const ir::Inst& inst, bool wraps) const {
  const std::uint32_t bits = ir::bit_size(inst.type);
  const auto arg = [&](std::size_t which) -> const LanePattern& { return patterns_[inst.args[which]]; };
  switch (inst.op) {
    case ir::Op::iadd:
      return sum(bits, arg(0), arg(1), false, wraps);
    case ir::Op::isub:
      return sum(bits, arg(0), arg(1), true, wraps);
    case ir::Op::imul:
      return product(bits, operand(inst.args[0]), operand(inst.args[1]), wraps);
    case ir::Op::shl:
      if (!arg(1).constant || arg(1).kind != LanePatternKind::uniform) return varying_pattern(bits);
      if (*arg(1).constant >= bits) return constant_pattern(bits, 0);
      return scaled(bits, arg(0), sign_extend(std::uint64_t{1} << *arg(1).constant, bits), wraps);
    case ir::Op::and_:
    case ir::Op::or_:
    case ir::Op::xor_:
      return bitwise(inst);
    case ir::Op::lshr:
    case ir::Op::ashr:
      if (!arg(1).constant || arg(1).kind != LanePatternKind::uniform || *arg(1).constant >= bits)
        return varying_pattern(bits);
      return shifted_right(bits, arg(0), static_cast<std::uint32_t>(*arg(1).constant));
    case ir::Op::udiv:
    case ir::Op::urem:
    case ir::Op::sdiv:
    case ir::Op::srem:
      return power_of_two(inst);
    case ir::Op::smin:
    case ir::Op::smax:
    case ir::Op::umin:
    case ir::Op::umax:
      return extreme(inst);
    case ir::Op::icmp:
      return compare(inst);
    case ir::Op::select:
      return arg(0).kind == LanePatternKind::uniform ? join(arg(1), arg(2)) : varying_pattern(bits);
    case ir::Op::trunc:
      return narrow(inst, wraps);
    default:
      return varying_pattern(bits);
  }
}

/// Equal differences between the lanes of the operands cancel out.
LanePattern Rules::compare(const ir::Inst& inst) const {
  const LanePattern& a = patterns_[inst.args[0]];
  const LanePattern& b = patterns_[inst.args[1]];
  if (a.kind == LanePatternKind::offset32 && b.kind == LanePatternKind::offset32) {
    const bool same = join(a, b).kind == LanePatternKind::offset32;
    return same && ir::is_equality(inst.attr.icmp) ? uniform_pattern(1) : varying_pattern(1);
  }
  if (compares_like_base(inst.attr.icmp, a, b) || compares_like_base(ir::swapped(inst.attr.icmp), b, a))
    return uniform_pattern(1);
  if (!same_terms(a, b)) return varying_pattern(1);
  const bool natural = a.min >= 0 && b.min >= 0;
  const bool ordered = a.exact && b.exact && (natural || ir::is_signed(inst.attr.icmp));
  return ordered || ir::is_equality(inst.attr.icmp) ? uniform_pattern(1) : varying_pattern(1);
}

LanePattern Rules::extreme(const ir::Inst& inst) const {
  const LanePattern& a = patterns_[inst.args[0]];
  const LanePattern& b = patterns_[inst.args[1]];
  const bool unsigned_order = inst.op == ir::Op::umin || inst.op == ir::Op::umax;
  const bool minimum = inst.op == ir::Op::smin || inst.op == ir::Op::umin;
  const bool comparable = is_linear(a) && is_linear(b) && (!unsigned_order || (a.min >= 0 && b.min >= 0));
  if (comparable && a.max <= b.min) return minimum ? a : b;
  if (comparable && b.max <= a.min) return minimum ? b : a;
  return varying_pattern(ir::bit_size(inst.type));
}

LanePattern Rules::bitwise(const ir::Inst& inst) const {
  const std::uint32_t bits = ir::bit_size(inst.type);
  const LanePattern& a = patterns_[inst.args[0]];
  const LanePattern& b = patterns_[inst.args[1]];
  if (bits == 1) return varying_pattern(bits);
  for (const auto& [pattern, mask] : {std::pair<const LanePattern&, const LanePattern&>(a, b), {b, a}}) {
    if (mask.kind != LanePatternKind::uniform || !mask.constant) continue;
    LanePattern result = masked(inst.op, bits, pattern, *mask.constant);
    if (result.kind == LanePatternKind::affine) return result;
    if (inst.op == ir::Op::xor_ && sign_extend(*mask.constant, bits) == -1)  // -1 - number
      return sum(bits, mask, pattern, true, false);
  }
  if (inst.op != ir::Op::and_ && bits_are_disjoint(a, b)) return sum(bits, a, b, false, false);
  return varying_pattern(bits);
}

/// For non-negative values, division by a power of two is a shift, and the remainder is a mask.
LanePattern Rules::power_of_two(const ir::Inst& inst) const {
  const std::uint32_t bits = ir::bit_size(inst.type);
  const LanePattern& a = patterns_[inst.args[0]];
  const LanePattern& b = patterns_[inst.args[1]];
  const bool division = inst.op == ir::Op::udiv || inst.op == ir::Op::sdiv;
  const bool needs_natural = inst.op == ir::Op::sdiv || inst.op == ir::Op::srem;
  const bool power = b.kind == LanePatternKind::uniform && b.constant && std::has_single_bit(*b.constant);
  if (!power || (needs_natural && (a.min < 0 || b.min < 0))) return varying_pattern(bits);
  if (!division) return masked(ir::Op::and_, bits, a, *b.constant - 1);
  return shifted_right(bits, a, static_cast<std::uint32_t>(std::countr_zero(*b.constant)));
}

LanePattern Rules::narrow(const ir::Inst& inst, bool wraps) const {
  const std::uint32_t bits = ir::bit_size(inst.type);
  const LanePattern& a = patterns_[inst.args[0]];
  if (!is_linear(a)) return varying_pattern(bits);
  LanePattern result = a;
  result.exact = a.exact && !wraps;
  for (Term& term : result.terms) {
    if (term.coefficient == ir::kNone || bits_of(term.coefficient) < bits) continue;
    const Range full = full_range(bits);
    const LanePattern& coefficient = patterns_[term.coefficient];
    result.exact &= full.contains(coefficient.min) && full.contains(coefficient.max);
    result.exact &= term.sign_extend || coefficient.min >= 0;
    term.sign_extend = true;
  }
  return result;
}

/// Sets how the terms extend their coefficients; returns false if one extension cannot express it.
bool Rules::extend_terms(LanePattern& pattern, std::uint32_t from, std::uint32_t to, bool sign) const {
  for (Term& term : pattern.terms) {
    if (term.coefficient == ir::kNone) continue;
    const std::uint32_t bits = bits_of(term.coefficient);
    const LanePattern& coefficient = patterns_[term.coefficient];
    if (bits > from) {  // the coefficient was truncated
      const Range full = full_range(from);
      const bool kept =
          full.contains(coefficient.min) && full.contains(coefficient.max) && (sign || coefficient.min >= 0);
      if (!kept || bits > to) return false;
    } else if (bits < from && term.sign_extend != sign && coefficient.min < 0) {
      return false;
    }
    term.sign_extend = bits >= to || sign;
  }
  return true;
}

Rules::Result Rules::widen(const ir::Inst& inst) const {
  const Operand from = operand(inst.args[0]);
  const std::uint32_t bits = ir::bit_size(inst.type);
  if (from.pattern.kind == LanePatternKind::uniform) return {uniform_pattern(bits)};
  if (std::optional<Result> affine = widen_affine(inst, from)) return *std::move(affine);
  if (from.bits != 32 || bits != 64) return {varying_pattern(bits)};
  LanePattern offset = varying_pattern(64);
  offset.kind = LanePatternKind::offset32;
  offset.constant = 0;
  offset.index = from.value;
  offset.index_signed = inst.op == ir::Op::sext;
  return {offset};
}

/// An affine value stays affine if it does not wrap between the lanes. That is known, proven, or assumed.
std::optional<Rules::Result> Rules::widen_affine(const ir::Inst& inst, const Operand& from) const {
  const std::uint32_t bits = ir::bit_size(inst.type);
  const bool sign = inst.op == ir::Op::sext;
  if (from.pattern.kind != LanePatternKind::affine) return std::nullopt;
  if (std::optional<std::array<std::uint64_t, kWarpSize>> lanes = known_lanes(from.pattern, from.bits)) {
    for (std::uint64_t& lane : *lanes)
      if (sign) lane = truncate(static_cast<std::uint64_t>(sign_extend(lane, from.bits)), bits);
    return Result{pattern_of_lanes(*lanes, bits, true)};
  }
  LanePattern result = from.pattern;
  result.constant.reset();
  const bool as_signed = from.pattern.exact && (sign || from.pattern.min >= 0);
  if (as_signed && extend_terms(result, from.bits, bits, true)) return Result{result};
  result = from.pattern;
  result.constant.reset();
  result.exact = true;
  // The offsets cannot carry out of the narrow width, which is a multiple of the alignment.
  if (are_offsets_below_alignment(from.pattern)) return Result{result};
  const bool may_assume = assumption_ == Assumption::optimistic && from.bits == 32 && bits == 64;
  if (!may_assume || !is_testable(from.pattern) || !extend_terms(result, 32, 64, sign)) return std::nullopt;
  return Result{result, true};
}

/// The result if one operand alone decides it: the taken side of a choice whose condition is known, false of
/// a conjunction. The condition may be assumed, and masked code, in which it is not, returns to full code
/// with the other side if that has the same terms. So exactness and alignment are what both sides have.
std::optional<LanePattern> Rules::decided(const ir::Inst& inst) const {
  const auto known = [&](std::size_t which) -> std::optional<std::uint64_t> {
    const LanePattern& pattern = patterns_[inst.args[which]];
    return pattern.kind == LanePatternKind::uniform ? pattern.constant : std::nullopt;
  };
  if (inst.op == ir::Op::select) {
    const std::optional<std::uint64_t> condition = known(0);
    if (!condition) return std::nullopt;
    LanePattern taken = patterns_[inst.args[*condition != 0 ? 1 : 2]];
    const LanePattern& other = patterns_[inst.args[*condition != 0 ? 2 : 1]];
    taken.exact &= other.exact;
    if (!taken.constant) taken.base_align = std::min(taken.base_align, other.base_align);
    return taken;
  }
  if (inst.op != ir::Op::and_ && inst.op != ir::Op::or_) return std::nullopt;
  const std::uint32_t bits = ir::bit_size(inst.type);
  const std::uint64_t strongest = inst.op == ir::Op::and_ ? 0 : truncate(~std::uint64_t{0}, bits);
  if (known(0) != strongest && known(1) != strongest) return std::nullopt;
  return constant_pattern(bits, strongest);
}

/// Folds the operation if every operand is known in every lane.
std::optional<LanePattern> Rules::folded_lanes(const ir::Inst& inst) const {
  std::vector<std::array<std::uint64_t, kWarpSize>> args;
  for (const ir::Value arg : inst.args) {
    const std::optional<std::array<std::uint64_t, kWarpSize>> lanes =
        known_lanes(patterns_[arg], bits_of(arg));
    if (!lanes) return std::nullopt;
    args.push_back(*lanes);
  }
  std::array<std::uint64_t, kWarpSize> result{};
  std::vector<std::uint64_t> of_lane(args.size());
  for (std::size_t lane = 0; lane < result.size(); ++lane) {
    for (std::size_t i = 0; i < args.size(); ++i) of_lane[i] = args[i][lane];
    const std::optional<std::uint64_t> folded = fold(inst, operand_bits(inst), of_lane);
    if (!folded) return std::nullopt;
    result[lane] = *folded;
  }
  const std::uint32_t bits = ir::bit_size(inst.type);
  LanePattern pattern = pattern_of_lanes(result, bits, is_integer(inst.type) && bits > 1);
  return pattern;
}

/// Sets constant and alignment of the scalar, which is computed from the operands' scalars.
void Rules::set_base_facts(const ir::Inst& inst, LanePattern& pattern) const {
  const std::uint32_t bits = ir::bit_size(inst.type);
  const bool new_offset =
      pattern.kind == LanePatternKind::offset32 && (inst.op == ir::Op::sext || inst.op == ir::Op::zext);
  if (!pattern.constant && !new_offset) {
    std::vector<std::uint64_t> args;
    for (const ir::Value arg : inst.args)
      if (patterns_[arg].constant) args.push_back(*patterns_[arg].constant);
    if (args.size() == inst.args.size() && !args.empty())
      pattern.constant = fold(inst, operand_bits(inst), args);
  }
  pattern.base_align = pattern.constant ? alignment_of(*pattern.constant) : base_alignment(inst);
  if (pattern.kind != LanePatternKind::uniform || !pattern.constant || !is_integer(inst.type)) return;
  const std::int64_t number = sign_extend(*pattern.constant, bits);
  set_range(pattern, {number, number});
}

std::uint64_t Rules::base_alignment(const ir::Inst& inst) const {
  const auto align = [&](std::size_t which) { return patterns_[inst.args[which]].base_align; };
  const auto constant = [&](std::size_t which) { return patterns_[inst.args[which]].constant; };
  const auto power = [&] { return constant(1) && std::has_single_bit(*constant(1)); };
  switch (inst.op) {
    case ir::Op::iadd:
    case ir::Op::isub:
    case ir::Op::or_:
    case ir::Op::xor_:
    case ir::Op::smin:
    case ir::Op::smax:
    case ir::Op::umin:
    case ir::Op::umax:
      return std::min(align(0), align(1));
    case ir::Op::select:
      return std::min(align(1), align(2));
    case ir::Op::and_:
      return std::max(align(0), align(1));
    case ir::Op::imul:
      return std::uint64_t{1} << std::min(63, std::countr_zero(align(0)) + std::countr_zero(align(1)));
    case ir::Op::shl:
      return constant(1) ? std::uint64_t{1} << std::min<std::uint64_t>(
                               63, static_cast<std::uint64_t>(std::countr_zero(align(0))) + *constant(1))
                         : align(0);
    case ir::Op::lshr:
    case ir::Op::ashr:
      return constant(1) && *constant(1) < 64 ? std::max<std::uint64_t>(1, align(0) >> *constant(1)) : 1;
    case ir::Op::udiv:
    case ir::Op::sdiv:
      return power() ? std::max<std::uint64_t>(1, align(0) / *constant(1)) : 1;
    case ir::Op::urem:
    case ir::Op::srem:
      return power() ? std::min(align(0), *constant(1)) : 1;
    case ir::Op::trunc:
    case ir::Op::zext:
    case ir::Op::sext:
      return align(0);
    default:
      return 1;
  }
}

}  // namespace quern::cpu::analysis
