// SPDX-License-Identifier: Apache-2.0
#include "cpu/analysis/regular.hpp"

#include <algorithm>

namespace quern::cpu::analysis {
namespace {

/// Conditions that depend on more values are not regular.
constexpr std::size_t kMaxValues = 64;

class Search {
 public:
  /// `floats`: also by floating-point operations.
  Search(const ir::Function& function, const std::vector<LanePattern>& patterns, bool floats)
      : function_(function), patterns_(patterns), floats_(floats) {}

  /// Returns false if `condition` depends on data.
  bool run(ir::Value condition) {
    std::vector<ir::Value> open{condition};
    while (!open.empty()) {
      const ir::Value value = open.back();
      open.pop_back();
      if (std::ranges::find(seen_, value) != seen_.end()) continue;
      seen_.push_back(value);
      if (seen_.size() > kMaxValues) return false;
      if (is_leaf(value)) continue;
      const ir::Inst& inst = function_[value];
      if (!ir::has_trait(inst.op, 'p') || (ir::is_float(inst.type) && !floats_)) return false;
      open.insert(open.end(), inst.args.begin(), inst.args.end());
    }
    return true;
  }
  /// A value was found that is not known at compile time.
  bool found_unknown() const { return unknown_; }

 private:
  /// True if the operands of `value` do not matter.
  bool is_leaf(ir::Value value) {
    const LanePattern& pattern = patterns_[value];
    if (function_[value].op == ir::Op::special && !pattern.constant)
      unknown_ |= pattern.kind == LanePatternKind::uniform;
    else if (pattern.kind == LanePatternKind::uniform)
      unknown_ |= !pattern.constant;
    else
      return false;
    return true;
  }

  const ir::Function& function_;
  const std::vector<LanePattern>& patterns_;
  const bool floats_;
  std::vector<ir::Value> seen_;
  bool unknown_ = false;
};

}  // namespace

bool is_regular(const ir::Function& function, const std::vector<LanePattern>& patterns, ir::Value condition) {
  Search search(function, patterns, false);
  return search.run(condition) && search.found_unknown();
}

bool depends_on_data(const ir::Function& function, const std::vector<LanePattern>& patterns,
                     ir::Value condition) {
  return !Search(function, patterns, false).run(condition);
}

bool depends_on_loads(const ir::Function& function, const std::vector<LanePattern>& patterns,
                      ir::Value value) {
  return !Search(function, patterns, true).run(value);
}

}  // namespace quern::cpu::analysis
