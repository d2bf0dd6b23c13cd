// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of this component.
#pragma once

#include <doctest/doctest.h>

#include <utility>

#include "cpu/analysis/analysis.hpp"
#include "ir_builder.hpp"

namespace quern::cpu::test {

inline Specialisation block_of(std::uint32_t x, std::uint32_t y = 1, std::uint32_t z = 1) {
  Specialisation specialisation;
  specialisation.block = {x, y, z};
  return specialisation;
}

inline analysis::Analysis analysed(const IrBuilder& b, const Specialisation& specialisation,
                                   analysis::Assumption assumption = analysis::Assumption::safe) {
  const ir::Module module = b.module();
  Expected<analysis::Analysis> result =
      analysis::analyse(module, module.functions[0], specialisation, assumption);
  REQUIRE(result.has_value());
  return *std::move(result);
}

/// The only or first error of check_lockstep, as text; empty if there is none.
inline std::string refusal(const IrBuilder& b, const Specialisation& specialisation) {
  const ir::Module module = b.module();
  const analysis::Analysis analysis = analysed(b, specialisation);
  const Expected<void> result = analysis::check_lockstep(module, module.functions[0], analysis);
  return result ? "" : to_string(result.errors());
}

/// True if the pattern is affine with the only term step * lane.
inline bool is_strided(const analysis::LanePattern& pattern, std::int64_t step) {
  if (pattern.kind != analysis::LanePatternKind::affine || pattern.terms.size() != 1) return false;
  if (pattern.terms[0].coefficient != ir::kNone) return false;
  for (std::int64_t lane = 0; lane < 32; ++lane)
    if (pattern.terms[0].offsets[static_cast<std::size_t>(lane)] != step * lane) return false;
  return true;
}

}  // namespace quern::cpu::test
