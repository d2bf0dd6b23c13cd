// SPDX-License-Identifier: Apache-2.0
// Computes the pattern of a result from the patterns of its operands, with one rule for each family of
// operations. The solver handles phis.
#pragma once

#include <vector>

#include "cpu/analysis/algebra.hpp"
#include "cpu/analysis/analysis.hpp"
#include "cpu/analysis/edges.hpp"

namespace quern::cpu::analysis {

class Rules {
 public:
  /// `patterns`, by value, is read at every call and may change between calls.
  Rules(const ir::Module& module, const ir::Function& function, const Specialisation& specialisation,
        Assumption assumption, const std::vector<LanePattern>& patterns);

  struct Result {
    LanePattern pattern;   ///< undefined while an operand is undefined
    bool assumed = false;  ///< see Analysis::assumed
  };
  Result evaluate(ir::Value value) const;

 private:
  Operand operand(ir::Value value) const;
  std::uint32_t bits_of(ir::Value value) const;
  /// Width of the operands: that of the first one, or for a select of the second one.
  std::uint32_t operand_bits(const ir::Inst& inst) const;
  bool all_operands(const ir::Inst& inst, bool (*is)(const LanePattern&)) const;

  LanePattern special(const ir::Inst& inst) const;
  LanePattern symbol(const ir::Inst& inst) const;
  LanePattern load(const ir::Inst& inst) const;
  LanePattern convert_space(const ir::Inst& inst) const;
  Result pure(ir::Value value) const;
  LanePattern linear(const ir::Inst& inst, bool wraps) const;
  LanePattern compare(const ir::Inst& inst) const;
  LanePattern extreme(const ir::Inst& inst) const;
  LanePattern bitwise(const ir::Inst& inst) const;
  LanePattern power_of_two(const ir::Inst& inst) const;
  LanePattern narrow(const ir::Inst& inst, bool wraps) const;
  void find_assumable();
  Result widen(const ir::Inst& inst) const;
  std::optional<Result> widen_affine(const ir::Inst& inst, const Operand& from) const;
  std::optional<Result> divide_together(const ir::Inst& inst) const;
  std::optional<Result> rest_of_division(const ir::Inst& inst) const;
  std::optional<LanePattern> within_edges(ir::Value value) const;
  std::optional<LanePattern> at_edge(ir::Value value) const;
  std::optional<Result> natural_sign(const ir::Inst& inst) const;
  std::optional<LanePattern> decided(const ir::Inst& inst) const;
  bool extend_terms(LanePattern& pattern, std::uint32_t from, std::uint32_t to, bool sign) const;
  std::optional<LanePattern> folded_lanes(const ir::Inst& inst) const;
  void set_base_facts(const ir::Inst& inst, LanePattern& pattern) const;
  std::uint64_t base_alignment(const ir::Inst& inst) const;

  const ir::Module& module_;
  const ir::Function& function_;
  const Specialisation& specialisation_;
  Assumption assumption_;
  const std::vector<LanePattern>& patterns_;
  std::array<LanePattern, 3> thread_index_;
  // Empty unless optimistic.
  std::vector<bool> divides_;  ///< by value: it is a dividend or a divisor
  Edges edges_;
};

}  // namespace quern::cpu::analysis
