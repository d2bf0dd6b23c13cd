// SPDX-License-Identifier: Apache-2.0
#include "witness.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "cpu/ir/fold.hpp"

namespace quern::cpu::test {
namespace {

using analysis::LanePattern;
using analysis::LanePatternKind;
__extension__ using Wide = __int128;

struct Member {
  std::uint32_t lane;
  const BlockRun* run;
};

class Warp {
 public:
  Warp(const ir::Function& function, const analysis::Analysis& analysis, const Launch& launch,
       std::uint32_t warp, Witnessed& witnessed)
      : function_(function), analysis_(analysis), witnessed_(witnessed) {
    const std::uint32_t threads = launch.specialisation.threads();
    for (std::uint32_t thread = warp * 32; thread < std::min(threads, warp * 32 + 32); ++thread) {
      traces_.push_back(run_lane(function, analysis, launch, thread));
      if (!traces_.back().ended) break;
    }
    values_.assign(traces_.size(), std::vector<std::uint64_t>(function.insts.size()));
  }

  std::string check() {
    for (const LaneTrace& trace : traces_)
      if (!trace.ended) return ++witnessed_.counts["endless"], "";
    ++witnessed_.counts["ended"];
    if (std::string wrong = check_order(); !wrong.empty()) return wrong;
    std::map<Time, std::vector<Member>> groups;
    for (std::uint32_t lane = 0; lane < traces_.size(); ++lane)
      for (const BlockRun& run : traces_[lane].runs) groups[run.time].push_back({lane, &run});
    for (const auto& [time, group] : groups) {
      if (std::string wrong = check_group(time, group); !wrong.empty()) return wrong;
      if (assumption_failed_) return ++witnessed_.counts["wrapped"], "";
    }
    return "";
  }

 private:
  std::string check_order() const {
    for (const LaneTrace& trace : traces_)
      for (std::size_t i = 1; i < trace.runs.size(); ++i)
        if (!(trace.runs[i - 1].time < trace.runs[i].time))
          return fmt::format("block {} ran after block {}", trace.runs[i].block, trace.runs[i - 1].block);
    return "";
  }

  std::string check_group(const Time& time, const std::vector<Member>& group) {
    const ir::BlockId block = group[0].run->block;
    const std::vector<ir::Value>& insts = function_.blocks[block].insts;
    // Reads all phis before writing any.
    for (std::size_t i = 0; i < insts.size(); ++i)
      if (function_[insts[i]].op == ir::Op::phi) store(insts[i], i, group);
    for (std::size_t i = 0; i < insts.size(); ++i) {
      store(insts[i], i, group);
      if (function_[insts[i]].type == ir::Type::none) continue;
      if ((analysis_.assumed[insts[i]] && !assumption_holds(insts[i], group)) ||
          (analysis_.together[insts[i]] && !arrives_together(insts[i], group))) {
        assumption_failed_ = true;
        return "";
      }
      if (std::string wrong = check_value(insts[i], group); !wrong.empty())
        return fmt::format("value {} ({}) in block {}: {}", insts[i], ir::name(function_[insts[i]].op), block,
                           wrong);
    }
    return check_control(time, block, group);
  }
  void store(ir::Value value, std::size_t place, const std::vector<Member>& group) {
    for (const Member& member : group) values_[member.lane][value] = member.run->values[place];
  }

  // --- control
  std::string check_control(const Time& time, ir::BlockId block, const std::vector<Member>& group) {
    const bool together = std::all_of(group.begin(), group.end(), [&](const Member& member) {
      return member.run->next == group[0].run->next;
    });
    if (!together && !analysis_.divergent_branch[block])
      return fmt::format("lanes leave block {} apart", block);
    ++witnessed_.counts[analysis_.divergent_branch[block] ? "divergent branch" : "uniform branch"];
    for (std::uint32_t loop = analysis_.loop_of[block]; loop != ir::kNone;
         loop = analysis_.loops[loop].parent) {
      const auto leaves = [&](const Member& member) {
        return member.run->next == ir::kNone || !contains(loop, member.run->next);
      };
      const auto count = std::count_if(group.begin(), group.end(), leaves);
      const bool others = count > 0 && someone_goes_on(time, loop);
      if (others && !analysis_.loops[loop].divergent)
        return fmt::format("lanes leave the loop of block {} at different iterations",
                           analysis_.loops[loop].header);
    }
    if (analysis_.divergent_control[block]) return "";
    std::set<std::uint32_t> here;
    for (const Member& member : group) here.insert(member.lane);
    for (std::uint32_t lane = 0; lane < traces_.size(); ++lane)
      if (!here.contains(lane) && last_time(lane) > time && !function_.blocks[block].succs.empty())
        return fmt::format("lane {} is alive, but not in block {}", lane, block);
    ++witnessed_.counts["block with all live lanes"];
    return "";
  }
  bool contains(std::uint32_t loop, ir::BlockId block) const {
    std::uint32_t inner = analysis_.loop_of[block];
    while (inner != ir::kNone && inner != loop) inner = analysis_.loops[inner].parent;
    return inner == loop;
  }
  /// True if a lane runs a later iteration of the loop that contains `time`, in the same execution of the
  /// loop.
  bool someone_goes_on(const Time& time, std::uint32_t loop) const {
    std::size_t depth = 0;
    for (std::uint32_t at = analysis_.loops[loop].parent; at != ir::kNone; at = analysis_.loops[at].parent)
      depth += 2;
    const auto later = [&](const BlockRun& run) {
      return run.time.size() > depth + 2 &&
             std::equal(time.begin(), time.begin() + static_cast<std::ptrdiff_t>(depth) + 1,
                        run.time.begin()) &&
             run.time[depth + 1] > time[depth + 1];
    };
    return std::any_of(traces_.begin(), traces_.end(), [&](const LaneTrace& trace) {
      return std::any_of(trace.runs.begin(), trace.runs.end(), later);
    });
  }
  /// The time at which the lane runs its last block with an effect other than ending.
  Time last_time(std::uint32_t lane) const {
    const std::vector<BlockRun>& runs = traces_[lane].runs;
    std::size_t count = runs.size();
    while (count > 0 && is_silent(runs[count - 1].block)) --count;
    return count == 0 ? Time{} : runs[count - 1].time;
  }
  bool is_silent(ir::BlockId block) const {
    const std::vector<ir::Value>& insts = function_.blocks[block].insts;
    return std::all_of(insts.begin(), insts.end(), [&](ir::Value value) {
      const ir::Op op = function_[value].op;
      return ir::has_trait(op, 'p') || op == ir::Op::br || op == ir::Op::ret;
    });
  }

  // --- values
  std::uint32_t bits_of(ir::Value value) const { return ir::bit_size(function_[value].type); }

  std::uint64_t extended(ir::Value value, std::uint32_t lane, bool sign) const {
    const std::uint64_t raw = values_[lane][value];
    return sign ? static_cast<std::uint64_t>(as_signed(raw, bits_of(value))) : raw;
  }
  /// The sum of the terms, or the part of the index, in this lane.
  std::uint64_t difference(const LanePattern& pattern, std::uint32_t lane) const {
    std::uint64_t result = 0;
    for (const analysis::Term& term : pattern.terms) {
      const std::uint64_t factor =
          term.coefficient == ir::kNone ? 1 : extended(term.coefficient, lane, term.sign_extend);
      result += factor * static_cast<std::uint64_t>(term.offsets[lane]);
    }
    if (pattern.kind == LanePatternKind::offset32)
      result +=
          extended(pattern.index, lane, pattern.index_signed) * static_cast<std::uint64_t>(pattern.scale);
    return result;
  }
  std::uint64_t base(ir::Value value, std::uint32_t lane) const {
    return masked(values_[lane][value] - difference(analysis_.patterns[value], lane), bits_of(value));
  }
  Wide exact_value(ir::Value value, std::uint32_t lane, bool sign) const {
    const LanePattern& pattern = analysis_.patterns[value];
    const auto number = [&](std::uint64_t raw, std::uint32_t bits) {
      return sign ? Wide{as_signed(raw, bits)} : Wide{raw};
    };
    Wide result = number(base(value, lane), bits_of(value));
    for (const analysis::Term& term : pattern.terms) {
      Wide factor = 1;
      if (term.coefficient != ir::kNone) {
        const bool narrow = bits_of(term.coefficient) < bits_of(value);
        const std::uint64_t raw =
            masked(extended(term.coefficient, lane, narrow && term.sign_extend), bits_of(value));
        factor = number(raw, bits_of(value));
      }
      result += factor * term.offsets[lane];
    }
    return result;
  }
  bool assumption_holds(ir::Value value, const std::vector<Member>& group) {
    const ir::Op op = function_[value].op;
    if (op == ir::Op::sext || op == ir::Op::zext) return widens(value, group);
    if ((op == ir::Op::icmp || op == ir::Op::lshr || op == ir::Op::ashr) && compares_index(value)) {
      const bool apart = compares_alike(value, group);
      if (apart) ++witnessed_.counts["not at an edge"];
      return apart;
    }
    if (is_extreme(op) || op == ir::Op::iabs) {
      const bool inside = is_index_itself(value, group);
      if (inside) ++witnessed_.counts["within edges"];
      return inside;
    }
    if (op == ir::Op::icmp || op == ir::Op::lshr || op == ir::Op::ashr) {
      const ir::Inst& number = function_[function_[value].args[0]];
      const std::vector<ir::Value> of =
          number.op == ir::Op::xor_ ? number.args : std::vector{function_[value].args[0]};
      const bool natural = std::ranges::all_of(of, [&](ir::Value part) { return is_natural(part, group); });
      if (natural) ++witnessed_.counts["natural"];
      return natural;
    }
    const ir::Value division = op == ir::Op::isub ? quotient_in(value) : value;
    const bool together = std::ranges::all_of(
        group, [&](const Member& member) { return divides_together(division, member.lane); });
    if (together && op == ir::Op::isub) ++witnessed_.counts["rest of a division"];
    if (together) ++witnessed_.counts["divides together"];
    return together;
  }
  /// True if all 32 lanes would have the same quotient, by what `lane` knows: as signed numbers, the
  /// dividends are not negative and the divisor is positive.
  bool divides_together(ir::Value division, std::uint32_t lane) const {
    const ir::Inst& inst = function_[division];
    const std::uint32_t bits = bits_of(division);
    const Wide most = bits == 64 ? Wide{INT64_MAX} : Wide{INT32_MAX};
    const Wide divisor = as_signed(values_[lane][inst.args[1]], bits);
    const Wide first = as_signed(base(inst.args[0], lane), bits);
    if (divisor <= 0 || first < 0) return false;
    const std::vector<analysis::Term>& terms = analysis_.patterns[inst.args[0]].terms;
    return std::ranges::all_of(terms[0].offsets, [&](std::int64_t offset) {
      return first + offset <= most && (first + offset) / divisor == first / divisor;
    });
  }
  static bool is_extreme(ir::Op op) {
    return op == ir::Op::smin || op == ir::Op::smax || op == ir::Op::umin || op == ir::Op::umax;
  }
  bool is_affine(ir::Value value) const { return analysis_.patterns[value].kind == LanePatternKind::affine; }
  bool compares_index(ir::Value comparison) const {
    const std::vector<ir::Value>& args = function_[comparison].args;
    return is_affine(args[0]) || is_affine(args[1]);
  }
  /// The numbers of all 32 lanes, by what `lane` knows; nothing if they wrap between the lanes.
  std::vector<Wide> numbers_of(ir::Value index, std::uint32_t lane) const {
    const std::uint32_t bits = bits_of(index);
    const Wide most = bits == 64 ? Wide{INT64_MAX} : Wide{INT32_MAX};
    const Wide first = as_signed(base(index, lane), bits);
    std::vector<Wide> numbers;
    for (const std::int64_t offset : analysis_.patterns[index].terms[0].offsets) {
      if (first + offset > most || first + offset < -most - 1) return {};
      numbers.push_back(first + offset);
    }
    return numbers;
  }
  /// True if all lanes, by what each of the group knows, compare with the result that the analysis has, or
  /// alike if it has none.
  bool compares_alike(ir::Value comparison, const std::vector<Member>& group) const {
    const ir::Inst& inst = function_[comparison];
    const bool index_first = is_affine(inst.args[0]);
    const ir::Value index = inst.args[index_first ? 0 : 1], bound = inst.args[index_first ? 1 : 0];
    const std::uint32_t bits = bits_of(index);
    const std::optional<std::uint64_t> expected = analysis_.patterns[comparison].constant;
    return std::ranges::all_of(group, [&](const Member& member) {
      const std::vector<Wide> numbers = numbers_of(index, member.lane);
      std::set<bool> results;
      for (const Wide number : numbers) {
        if (inst.attr.icmp >= ir::Icmp::ult && number < 0) return false;
        std::uint64_t sides[] = {static_cast<std::uint64_t>(number), values_[member.lane][bound]};
        if (!index_first) std::swap(sides[0], sides[1]);
        results.insert(*ir::fold(inst, bits, sides) != 0);
      }
      return results.size() == 1 && (!expected || *results.begin() == (*expected != 0));
    });
  }
  /// True if the result is the index in all lanes, by what each of the group knows.
  bool is_index_itself(ir::Value clamp, const std::vector<Member>& group) const {
    const ir::Inst& inst = function_[clamp];
    const std::size_t which = is_affine(inst.args[0]) ? 0 : 1;
    const ir::Value index = inst.args[which];
    const bool natural = inst.op != ir::Op::smin && inst.op != ir::Op::smax;
    return std::ranges::all_of(group, [&](const Member& member) {
      const std::vector<Wide> numbers = numbers_of(index, member.lane);
      return !numbers.empty() && std::ranges::all_of(numbers, [&](Wide number) {
        if (natural && number < 0) return false;
        const auto bits = ir::truncate(static_cast<std::uint64_t>(number), bits_of(index));
        std::vector<std::uint64_t> args{bits};
        if (inst.args.size() > 1) args.push_back(values_[member.lane][inst.args[1 - which]]);
        return *ir::fold(inst, bits_of(index), args) == bits;
      });
    });
  }
  /// The division of a - a / b * b.
  ir::Value quotient_in(ir::Value rest) const {
    const std::vector<ir::Value>& factors = function_[function_[rest].args[1]].args;
    const ir::Op op = function_[factors[0]].op;
    const bool first = (op == ir::Op::udiv || op == ir::Op::sdiv) &&
                       function_[factors[0]].args == std::vector{function_[rest].args[0], factors[1]};
    return factors[first ? 0 : 1];
  }
  /// True if the numbers of all 32 lanes, by what each of the group knows, are not negative.
  bool is_natural(ir::Value number, const std::vector<Member>& group) const {
    const std::uint32_t bits = bits_of(number);
    const LanePattern& pattern = analysis_.patterns[number];
    if (pattern.min >= 0) return true;
    const Wide most = bits == 64 ? Wide{INT64_MAX} : Wide{INT32_MAX};
    return std::ranges::all_of(group, [&](const Member& member) {
      const Wide first = as_signed(base(number, member.lane), bits);
      if (pattern.terms.empty()) return first >= 0;
      return first >= 0 && std::ranges::all_of(pattern.terms[0].offsets,
                                               [&](std::int64_t offset) { return first + offset <= most; });
    });
  }
  bool widens(ir::Value widening, const std::vector<Member>& group) const {
    const bool sign = function_[widening].op == ir::Op::sext;
    const ir::Value narrow = function_[widening].args[0];
    return std::all_of(group.begin(), group.end(), [&](const Member& member) {
      const Wide value = exact_value(narrow, member.lane, sign);
      return sign ? value >= INT32_MIN && value <= INT32_MAX : value >= 0 && value <= UINT32_MAX;
    });
  }

  /// True if full code could run the phi: every lane is here, and their values form its pattern.
  bool arrives_together(ir::Value phi, const std::vector<Member>& group) const {
    return group.size() == traces_.size() &&
           std::all_of(group.begin(), group.end(), [&](const Member& member) {
             return base(phi, member.lane) == base(phi, group[0].lane);
           });
  }

  std::string check_value(ir::Value value, const std::vector<Member>& group) {
    if (analysis_.together[value]) ++witnessed_.counts["together"];
    const LanePattern& pattern = analysis_.patterns[value];
    static const char* const names[] = {"undefined", "uniform", "affine", "offset32", "varying"};
    ++witnessed_.counts[names[static_cast<std::size_t>(pattern.kind)]];
    if (pattern.kind == LanePatternKind::undefined) return "undefined";
    if (!ir::is_float(function_[value].type))
      for (const Member& member : group) {
        const std::int64_t number = as_signed(values_[member.lane][value], bits_of(value));
        if (number < pattern.min || number > pattern.max)
          return fmt::format("{} is not in [{}, {}]", number, pattern.min, pattern.max);
      }
    if (!pattern.scalar()) return "";
    const std::uint64_t scalar = base(value, group[0].lane);
    for (const Member& member : group)
      if (base(value, member.lane) != scalar)
        return fmt::format("{}: lane {} has base {}, lane {} has {}",
                           names[static_cast<std::size_t>(pattern.kind)], group[0].lane, scalar, member.lane,
                           base(value, member.lane));
    if (std::string wrong = check_scalar(value, pattern, scalar); !wrong.empty()) return wrong;
    if (pattern.kind == LanePatternKind::affine && pattern.exact)
      for (const Member& member : group)
        if (exact_value(value, member.lane, true) != as_signed(values_[member.lane][value], bits_of(value)))
          return fmt::format("wraps in lane {}", member.lane);
    return check_emission(value, scalar, group[0].lane);
  }
  std::string check_scalar(ir::Value value, const LanePattern& pattern, std::uint64_t scalar) {
    for (const analysis::Term& term : pattern.terms) {
      if (term.offsets[0] != 0) return "the offsets do not start at 0";
      if (term.coefficient != ir::kNone &&
          analysis_.patterns[term.coefficient].kind != LanePatternKind::uniform)
        return "a coefficient varies";
    }
    if (pattern.kind == LanePatternKind::affine && (pattern.terms.empty() || pattern.terms.size() > 2))
      return "bad count of terms";
    if (pattern.constant) ++witnessed_.counts["constant"];
    if (pattern.constant && *pattern.constant != scalar)
      return fmt::format("base {} is not {}", scalar, *pattern.constant);
    if (scalar % pattern.base_align != 0)
      return fmt::format("base {} is not a multiple of {}", scalar, pattern.base_align);
    const std::int64_t number = as_signed(scalar, bits_of(value));
    if (pattern.kind != LanePatternKind::offset32 && !ir::is_float(function_[value].type) &&
        (number < pattern.min || number > pattern.max))
      return fmt::format("base {} is not in [{}, {}]", number, pattern.min, pattern.max);
    return "";
  }
  /// The scalar must be the result of the operation on the operands' scalars, since the emitter computes it
  /// that way.
  std::string check_emission(ir::Value value, std::uint64_t scalar, std::uint32_t lane) {
    const ir::Inst& inst = function_[value];
    if (!ir::has_trait(inst.op, 'p') || inst.args.empty() || inst.op == ir::Op::phi) return "";
    if (inst.op == ir::Op::to_generic || inst.op == ir::Op::from_generic) return "";
    const bool widening = inst.op == ir::Op::sext || inst.op == ir::Op::zext;
    if (widening && analysis_.patterns[value].kind == LanePatternKind::offset32)
      return analysis_.patterns[value].constant == 0u ? "" : "a new offset must have base 0";
    if (analysis_.patterns[value].constant && analysis_.patterns[value].kind == LanePatternKind::uniform)
      return "";  // no code
    const LanePattern& condition = analysis_.patterns[inst.args[0]];
    if (inst.op == ir::Op::select && condition.kind == LanePatternKind::uniform && condition.constant) {
      const ir::Value taken = inst.args[*condition.constant != 0 ? 1 : 2];
      if (!analysis_.patterns[taken].scalar()) return "a scalar is chosen that is none";
      return base(taken, lane) == scalar ? "" : "another scalar is chosen";
    }
    std::vector<std::uint64_t> args;
    for (const ir::Value arg : inst.args) {
      if (!analysis_.patterns[arg].scalar()) return "a scalar has an operand that is none";
      args.push_back(base(arg, lane));
    }
    const std::uint64_t emitted = compute(function_, inst, args);
    return emitted == scalar ? "" : fmt::format("base is {}, computed from bases {}", scalar, emitted);
  }

  const ir::Function& function_;
  const analysis::Analysis& analysis_;
  Witnessed& witnessed_;
  std::vector<LaneTrace> traces_;
  std::vector<std::vector<std::uint64_t>> values_;  ///< by lane and value: the latest value
  bool assumption_failed_ = false;
};

}  // namespace

std::string contradiction(const ir::Function& function, const analysis::Analysis& analysis,
                          const Launch& launch, std::uint32_t warp, Witnessed& witnessed) {
  return Warp(function, analysis, launch, warp, witnessed).check();
}

}  // namespace quern::cpu::test
