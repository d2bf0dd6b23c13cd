// SPDX-License-Identifier: Apache-2.0
// Represents loop bodies as acyclic graphs.
#pragma once

#include <vector>

#include "cpu/analysis/structure.hpp"

namespace quern::cpu::analysis {

/// The function and each loop is a region. A region is an acyclic graph: its own blocks, and each loop
/// directly inside it as one node. One graph holds all regions as separate parts: block b is node b; then
/// follow the loops, `end`, the target of edges to the next iteration or out of the loop, and `root`, which
/// has an edge to the first block of each region.
struct Regions {
  Graph graph;
  Node first_loop;
  Node end;
  Node root;

  Node node_of_loop(std::uint32_t loop) const { return first_loop + loop; }
  bool is_loop(Node node) const { return node >= first_loop && node < end; }
};

/// `targets[b]`: the successors of block b to include, in the order in which they should come.
Regions find_regions(const Analysis& analysis, const std::vector<std::vector<ir::BlockId>>& targets);

}  // namespace quern::cpu::analysis
