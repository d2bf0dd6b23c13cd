// SPDX-License-Identifier: Apache-2.0
// Loop bodies as graphs without cycles.
#pragma once

#include <vector>

#include "cpu/analysis/structure.hpp"

namespace quern::cpu::analysis {

/// The function and each loop is a region: its own blocks, and each loop directly inside as one node; no
/// cycles. One graph holds all regions as separate parts: block b is node b, followed by the loops, then
/// `end`, the target of edges to the next iteration or out of the loop, and `root`, with an edge to the first
/// block of each region.
struct Regions {
  Graph graph;
  Node first_loop;
  Node end;
  Node root;

  Node node_of_loop(std::uint32_t loop) const { return first_loop + loop; }
  bool is_loop(Node node) const { return node >= first_loop && node < end; }
};

/// `targets[b]`: the successors of block b that count, in the order in which they should come.
Regions find_regions(const Analysis& analysis, const std::vector<std::vector<ir::BlockId>>& targets);

}  // namespace quern::cpu::analysis
