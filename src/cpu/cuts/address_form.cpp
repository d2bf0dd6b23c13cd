// SPDX-License-Identifier: Apache-2.0
#include "cpu/cuts/address_form.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <optional>

#include "cpu/ir/fold.hpp"

namespace quern::cpu::cuts {
namespace {

using analysis::Range;
using ir::Op;

/// Longer sums, and values of which more must be looked at, stay as they are.
constexpr std::size_t kMostTerms = 4;
constexpr unsigned kMostDepth = 4;
constexpr unsigned kMostSums = 16;  ///< inside of each other
/// Sums and products of numbers below are far below 2^63.
constexpr std::int64_t kMostFactor = std::int64_t{1} << 24;

AddressForm leaf(ir::Value value) { return {{{value, 1}}, 0}; }

/// a + b * factor, or nothing if it has too many terms or too large ones.
std::optional<AddressForm> sum(const AddressForm& a, const AddressForm& b, std::int64_t factor) {
  AddressForm result = a;
  for (const auto& [value, times] : b.terms) {
    const auto at =
        std::ranges::lower_bound(result.terms, value, {}, [](const auto& term) { return term.first; });
    if (at != result.terms.end() && at->first == value)
      at->second += times * factor;
    else
      result.terms.insert(at, {value, times * factor});
  }
  std::erase_if(result.terms, [](const auto& term) { return term.second == 0; });
  result.offset += b.offset * factor;
  const auto is_small = [](std::int64_t number) { return std::abs(number) <= kMostFactor; };
  const bool small = is_small(result.offset) && std::ranges::all_of(result.terms, [&](const auto& term) {
                       return is_small(term.second);
                     });
  if (!small || result.terms.size() > kMostTerms) return std::nullopt;
  return result;
}

}  // namespace

std::optional<std::int64_t> AddressForms::constant(ir::Value value) const {
  const ir::Inst& inst = function_[value];
  if (inst.op != Op::constant) return std::nullopt;
  const std::int64_t number = ir::sign_extend(inst.imm, ir::bit_size(inst.type));
  return number > -kMostFactor && number < kMostFactor ? std::optional(number) : std::nullopt;
}

/// Returns the number of lowest bits that are known to be 0.
unsigned AddressForms::low_zeros(ir::Value value, unsigned depth) const {
  const ir::Inst& inst = function_[value];
  const unsigned bits = ir::bit_size(inst.type);
  const auto arg = [&](std::size_t which) { return low_zeros(inst.args[which], depth + 1); };
  if (inst.op == Op::constant)
    return inst.imm == 0 ? bits : static_cast<unsigned>(std::countr_zero(inst.imm));
  if (depth == kMostDepth) return 0;
  switch (inst.op) {
    case Op::shl: {
      const std::optional<std::int64_t> by = constant(inst.args[1]);
      return by && *by >= 0 && *by < bits ? std::min(bits, arg(0) + static_cast<unsigned>(*by)) : 0;
    }
    case Op::imul:
      return std::min(bits, arg(0) + arg(1));
    case Op::iadd:
    case Op::isub:
    case Op::or_:
      return std::min(arg(0), arg(1));
    case Op::and_:
      return std::max(arg(0), arg(1));
    case Op::sext:
    case Op::zext:
      return arg(0);
    default:
      return 0;
  }
}

/// Bounds of a value in every lane, as a signed number.
Range AddressForms::range_of(ir::Value value, unsigned depth) const {
  const ir::Inst& inst = function_[value];
  const unsigned bits = ir::bit_size(inst.type);
  const Range full = analysis::full_range(bits);
  if (inst.op == Op::special) {
    const analysis::LanePattern& pattern = patterns_[value];
    return pattern.kind == analysis::LanePatternKind::undefined ? full : Range{pattern.min, pattern.max};
  }
  if (inst.op == Op::constant) {
    const std::int64_t number = ir::sign_extend(inst.imm, bits);
    return {number, number};
  }
  const bool pure = ir::has_trait(inst.op, 'p') && inst.op != Op::phi && !inst.args.empty();
  if (depth == kMostDepth || !pure || ir::is_float(inst.type)) return full;
  std::vector<Range> args;
  for (const ir::Value arg : inst.args) {
    if (ir::is_float(function_[arg].type)) return full;
    args.push_back(range_of(arg, depth + 1));
  }
  const ir::Value first = inst.args[inst.op == Op::select ? 1 : 0];
  return analysis::range_of(inst, ir::bit_size(function_[first].type), args).range;
}

/// A sum that is computed in 32 bits and then widened, if it is known not to wrap.
AddressForm AddressForms::widened(ir::Value value, unsigned depth) {
  const ir::Inst& inst = function_[value];
  if (function_[inst.args[0]].type != ir::Type::i32) return leaf(value);
  const AddressForm narrow = of(inst.args[0], depth + 1);
  std::int64_t min = narrow.offset, max = narrow.offset;
  for (const auto& [factor, times] : narrow.terms) {
    const auto at = ranges_.find(factor);
    const Range range =
        at != ranges_.end() ? at->second : ranges_.emplace(factor, range_of(factor)).first->second;
    min += std::min(range.min * times, range.max * times);
    max += std::max(range.min * times, range.max * times);
  }
  const bool fits = min >= (inst.op == Op::zext ? 0 : INT32_MIN) && max <= INT32_MAX;
  return fits ? narrow : leaf(value);
}

AddressForm AddressForms::find(ir::Value value, unsigned depth) {
  const ir::Inst& inst = function_[value];
  const auto arg = [&](std::size_t which) { return of(inst.args[which], depth + 1); };
  if (depth == kMostSums || (inst.type != ir::Type::i32 && inst.type != ir::Type::i64)) return leaf(value);
  const auto scaled = [&](std::optional<std::int64_t> factor) {
    return factor ? sum({}, arg(0), *factor).value_or(leaf(value)) : leaf(value);
  };
  switch (inst.op) {
    case Op::constant:
      if (const std::optional<std::int64_t> number = constant(value)) return {{}, *number};
      return leaf(value);
    case Op::iadd:
      return sum(arg(0), arg(1), 1).value_or(leaf(value));
    case Op::isub:
      return sum(arg(0), arg(1), -1).value_or(leaf(value));
    case Op::or_: {  // a sum if no bit is in both
      const std::optional<std::int64_t> bits = constant(inst.args[1]);
      const bool apart = bits && *bits >= 0 && *bits >> std::min(62u, low_zeros(inst.args[0])) == 0;
      return apart ? sum(arg(0), {{}, *bits}, 1).value_or(leaf(value)) : leaf(value);
    }
    case Op::imul:
      return scaled(constant(inst.args[1]));
    case Op::shl: {
      const std::optional<std::int64_t> by = constant(inst.args[1]);
      const bool small = by && *by >= 0 && *by <= 16;
      return scaled(small ? std::optional(std::int64_t{1} << *by) : std::nullopt);
    }
    case Op::sext:
    case Op::zext:
      return widened(value, depth);
    default:
      return leaf(value);
  }
}

AddressForm AddressForms::of(ir::Value value, unsigned depth) {
  const auto at = known_.find(value);
  if (at != known_.end()) return at->second;
  AddressForm form = find(value, depth);
  if (depth == 0) known_.emplace(value, form);
  return form;
}

}  // namespace quern::cpu::cuts
