// SPDX-License-Identifier: Apache-2.0
#include "cpu/analysis/regions.hpp"

namespace quern::cpu::analysis {
namespace {

/// The node that represents `block` in `region` (a loop that contains it, or kNone).
Node node_in(const Analysis& analysis, const Regions& regions, std::uint32_t region, ir::BlockId block) {
  std::uint32_t loop = analysis.loop_of[block];
  if (loop == region) return block;
  while (analysis.loops[loop].parent != region) loop = analysis.loops[loop].parent;
  return regions.node_of_loop(loop);
}

}  // namespace

Regions find_regions(const Analysis& analysis, const std::vector<std::vector<ir::BlockId>>& targets) {
  const auto blocks = static_cast<Node>(targets.size());
  const auto loops = static_cast<Node>(analysis.loops.size());
  Regions regions{Graph(blocks + loops + 2), blocks, blocks + loops, blocks + loops + 1};
  regions.graph.edge(regions.root, 0);
  for (const Loop& loop : analysis.loops) regions.graph.edge(regions.root, loop.header);
  for (ir::BlockId from = 0; from < blocks; ++from)
    for (const ir::BlockId to : targets[from]) {
      std::uint32_t region = analysis.loop_of[from];
      for (; !loop_contains(analysis, region, to); region = analysis.loops[region].parent)
        regions.graph.edge(node_in(analysis, regions, region, from), regions.end);
      const bool back = region != ir::kNone && analysis.loops[region].header == to;
      regions.graph.edge(node_in(analysis, regions, region, from),
                         back ? regions.end : node_in(analysis, regions, region, to));
    }
  return regions;
}

}  // namespace quern::cpu::analysis
