// SPDX-License-Identifier: Apache-2.0
// Loop counters: phi(start, phi + step) in a loop that continues only while a comparison with the counter
// holds.
#pragma once

#include <optional>
#include <vector>

#include "cpu/analysis/range.hpp"
#include "cpu/analysis/structure.hpp"

namespace quern::cpu::analysis {

struct Counter {
  /// The loop continues only if `stay` holds between the counter (or the counter plus step) and `limit`.
  struct Test {
    ir::Icmp stay = ir::Icmp::ne;
    bool on_next = false;
    ir::Value limit = ir::kNone;
  };
  ir::Value start = ir::kNone;
  std::int64_t step = 0;
  std::vector<Test> tests;
};

/// The counter for `phi`; nullopt if it is not a counter, or no test bounds it.
std::optional<Counter> find_counter(const ir::Function& function, const Analysis& analysis, ir::Value phi);

/// Bounds of the counter while the loop runs, from those of its start and limits; nullopt if it may wrap.
/// Holds for the lanes that run.
std::optional<Range> counter_range(const Counter& counter, std::uint32_t bits,
                                   const std::vector<LanePattern>& patterns);

}  // namespace quern::cpu::analysis
