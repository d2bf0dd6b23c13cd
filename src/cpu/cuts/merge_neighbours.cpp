// SPDX-License-Identifier: Apache-2.0
// point.x, point.y, point.z, point.w  or  points[i, 0], points[i, 1], ...
//
// of lanes whose points are apart become one access to several elements: NVRTC merges accesses only where it
// knows that they are aligned so. The lanes of such an access are loaded or stored one by one and sorted in
// registers (emit/operations/lane_by_lane), where each of the accesses would be a gather or scatter.
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <map>
#include <utility>
#include <vector>

#include "cpu/analysis/regular.hpp"
#include "cpu/cuts/accesses.hpp"
#include "cpu/cuts/address_form.hpp"
#include "cpu/cuts/passes.hpp"

namespace quern::cpu::cuts {
namespace {

using analysis::LanePattern;
using analysis::LanePatternKind;

/// An access of at most this many bytes in each lane is done lane by lane, if it has a suitable number of
/// elements.
constexpr std::uint32_t kBytes = 16;

class Merger {
 public:
  Merger(ir::Function& function, const std::vector<LanePattern>& patterns)
      : function_(function), patterns_(patterns), forms_(function, patterns) {}

  /// Returns whether it merged any.
  bool run() {
    for (ir::BlockId block = 0; block < function_.blocks.size(); ++block) run(block);
    // Only now: there are no patterns of the instructions that this adds.
    for (const Accesses& parts : chosen_)
      function_[parts[0]].op == ir::Op::store ? make_one_store(parts) : make_one_load(parts);
    return !chosen_.empty();
  }

 private:
  using Accesses = std::vector<ir::Value>;
  /// By what their addresses have in common, in a fixed order: equal kernels have equal code.
  using Groups = std::map<std::vector<std::pair<ir::Value, std::int64_t>>, Accesses>;

  /// Merges loads between which nothing writes their memory or waits, and stores to global memory between
  /// which nothing accesses memory.
  void run(ir::BlockId block) {
    Groups loads, shared_loads, stores;
    for (const ir::Value value : function_.blocks[block].insts) {
      if (ir::has_trait(function_[value].op, 'p')) continue;
      const ir::Inst& inst = function_[value];
      if (inst.op == ir::Op::load && !ir::is_ordered(inst.attr)) {
        merge_all(stores);
        if (may_merge(inst, inst.type))
          (inst.attr.space == ir::Space::shared ? shared_loads : loads)[terms_of(value)].push_back(value);
      } else if (inst.op == ir::Op::store && inst.attr.space == ir::Space::global &&
                 may_merge(inst, function_[inst.args[1]].type)) {
        merge_all(loads);
        // Another address may be the same one, and a store to the same place must stay behind the first.
        const auto same = stores.find(terms_of(value));
        if (same == stores.end() || overlaps(value, same->second)) merge_all(stores);
        stores[terms_of(value)].push_back(value);
      } else if (ir::has_trait(inst.op, 's') || ir::has_trait(inst.op, 't')) {
        merge_all(stores);
        merge_all(shared_loads);
        if (!is_in_shared(inst)) merge_all(loads);
      }
    }
  }

  std::vector<std::pair<ir::Value, std::int64_t>> terms_of(ir::Value access) {
    return forms_.of(function_[access].args[0]).terms;
  }
  /// From what its address has in common with others.
  std::int64_t offset_of(ir::Value access) {
    const ir::Inst& inst = function_[access];
    return forms_.of(inst.args[0]).offset + static_cast<std::int64_t>(inst.imm);
  }

  /// True for a store or an atomic operation that neither touches global memory nor orders loads of it.
  static bool is_in_shared(const ir::Inst& inst) {
    return (inst.op == ir::Op::store || inst.op == ir::Op::atomic) && inst.attr.space == ir::Space::shared &&
           is_unordered(inst) && !inst.attr.is_volatile;
  }

  static bool may_merge(const ir::Inst& access, ir::Type type) {
    const std::uint32_t bytes = ir::byte_size(type);
    const bool elsewhere = access.attr.space != ir::Space::global && access.attr.space != ir::Space::shared;
    return !elsewhere && access.attr.count == 1 && !ir::is_ordered(access.attr) && type != ir::Type::i1 &&
           (bytes == 4 || bytes == 8);
  }

  bool overlaps(ir::Value store, const Accesses& others) {
    const auto begin = [&](ir::Value value) { return offset_of(value); };
    const auto end = [&](ir::Value value) { return begin(value) + ir::byte_size(type_of(value)); };
    return std::ranges::any_of(
        others, [&](ir::Value other) { return begin(store) < end(other) && begin(other) < end(store); });
  }

  ir::Type type_of(ir::Value access) const {
    const ir::Inst& inst = function_[access];
    return inst.op == ir::Op::store ? function_[inst.args[1]].type : inst.type;
  }

  void merge_all(Groups& groups) {
    for (auto& [terms, accesses] : groups)
      if (accesses.size() > 1) merge(std::move(accesses));
    groups.clear();
  }

  /// Merges neighbours among accesses whose distances are known.
  void merge(Accesses accesses) {
    std::ranges::sort(accesses, {}, [&](ir::Value value) { return offset_of(value); });
    for (std::size_t first = 0; first < accesses.size();) {
      std::size_t last = first + 1;
      while (last < accesses.size() && follows(accesses[last - 1], accesses[last])) ++last;
      first += merge_run({accesses.begin() + static_cast<std::ptrdiff_t>(first),
                          accesses.begin() + static_cast<std::ptrdiff_t>(last)});
    }
  }

  /// A fault in a store of several elements is reported for the line of one part, so all parts have one line.
  /// Each element of a load keeps its own.
  bool follows(ir::Value before, ir::Value access) {
    const ir::Inst &first = function_[before], &second = function_[access];
    ir::Attributes expected = first.attr;
    expected.alignment = second.attr.alignment;
    return offset_of(access) == offset_of(before) + ir::byte_size(type_of(before)) &&
           type_of(access) == type_of(before) && second.attr == expected &&
           (first.op == ir::Op::load || ir::same_line(function_, first.location, second.location));
  }

  /// Chooses the first of `accesses`, which follow each other in memory, and returns how many it has dealt
  /// with.
  std::size_t merge_run(const Accesses& accesses) {
    const ir::Value address = function_[accesses[0]].args[0];
    const std::uint32_t bytes = ir::byte_size(type_of(accesses[0]));
    const bool loads = function_[accesses[0]].op == ir::Op::load;
    for (std::uint32_t count = kBytes / bytes; count > 1; --count)
      if ((loads || std::has_single_bit(count)) && count <= accesses.size() &&
          are_apart(address, count * bytes)) {
        chosen_.emplace_back(accesses.begin(), accesses.begin() + static_cast<std::ptrdiff_t>(count));
        return count;
      }
    return 1;
  }

  /// True if the lanes' elements would be gathered: other patterns have vectors for each of the loads.
  bool are_apart(ir::Value address, std::int64_t bytes) const {
    const LanePattern& pattern = patterns_[address];
    switch (pattern.kind) {
      case LanePatternKind::affine:
        return std::ranges::all_of(pattern.terms, [&](const analysis::Term& term) {
          return term.coefficient != ir::kNone || std::abs(term.offsets[1]) >= bytes;
        });
      case LanePatternKind::offset32:
      case LanePatternKind::varying:
        return analysis::depends_on_data(function_, patterns_, address);
      default:
        return false;
    }
  }

  /// One access to what all of `parts` access, by the address of `present`, one of them.
  ir::Inst whole_of(const Accesses& parts, ir::Value present) {
    ir::Inst whole = function_[parts[0]];
    whole.args[0] = function_[present].args[0];
    whole.imm = function_[present].imm + static_cast<std::uint64_t>(offset_of(parts[0]) - offset_of(present));
    whole.location = function_[present].location;
    whole.attr.count = static_cast<std::uint8_t>(parts.size());
    whole.attr.alignment = ir::byte_size(type_of(parts[0]));
    return whole;
  }

  /// The loads become elements of one, in front of the first of them in the block.
  void make_one_load(const Accesses& parts) {
    Accesses& insts = function_.blocks[function_[parts[0]].block].insts;
    const auto is_part = [&](ir::Value value) { return std::ranges::find(parts, value) != parts.end(); };
    const auto at = std::ranges::find_if(insts, is_part) - insts.begin();
    ir::Inst whole = whole_of(parts, insts[static_cast<std::size_t>(at)]);
    std::erase_if(insts, is_part);

    const auto made = static_cast<ir::Value>(function_.insts.size());
    Accesses added{made};
    added.insert(added.end(), parts.begin(), parts.end());
    insts.insert(insts.begin() + at, added.begin(), added.end());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      ir::Inst& part = function_[parts[i]];
      part.op = ir::Op::extract;
      part.attr = {};
      part.imm = i;
      part.args = {made};
    }
    function_.insts.push_back(std::move(whole));
  }

  /// The last of the stores in the block stores all elements.
  void make_one_store(const Accesses& parts) {
    Accesses& insts = function_.blocks[function_[parts[0]].block].insts;
    const auto is_part = [&](ir::Value value) { return std::ranges::find(parts, value) != parts.end(); };
    const ir::Value last = *std::ranges::find_if(insts.rbegin(), insts.rend(), is_part);
    ir::Inst whole = whole_of(parts, last);
    for (std::size_t i = 1; i < parts.size(); ++i) whole.args.push_back(function_[parts[i]].args[1]);
    std::erase_if(insts, [&](ir::Value value) { return value != last && is_part(value); });
    function_[last] = std::move(whole);
  }

  ir::Function& function_;
  const std::vector<LanePattern>& patterns_;
  AddressForms forms_;
  std::vector<Accesses> chosen_;  ///< accesses that become one, in the order of their addresses
};

}  // namespace

Expected<void> merge_neighbours(ir::Function& function, Plan& plan, const Specialisation& specialisation) {
  if (!plan.has_full || plan.dispatched) return {};
  if (!Merger(function, plan.uncut.patterns).run()) return {};
  return analyse_uncut(function, plan, specialisation);
}

}  // namespace quern::cpu::cuts
