// SPDX-License-Identifier: Apache-2.0
// Directed graphs: orders and dominators. Independent of blocks and instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace quern::cpu::analysis {

using Node = std::uint32_t;
inline constexpr Node kNoNode = 0xffffffffu;

struct Graph {
  explicit Graph(std::size_t nodes) : succs(nodes), preds(nodes) {}
  void edge(Node from, Node to) {
    succs[from].push_back(to);
    preds[to].push_back(from);
  }
  std::size_t size() const { return succs.size(); }

  std::vector<std::vector<Node>> succs;
  std::vector<std::vector<Node>> preds;
};

/// The nodes reachable from `root`, each before its successors except along back edges. If several orders are
/// possible, successors of a node come in the order of their list.
std::vector<Node> reverse_postorder(const Graph& graph, Node root);

/// Immediate dominators by node (Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm"); kNoNode
/// for the root, rpo[0], and for nodes that are not in `rpo`.
std::vector<Node> immediate_dominators(const Graph& graph, const std::vector<Node>& rpo);

/// Children of each node in the dominator tree, in the order of `rpo`.
std::vector<std::vector<Node>> dominator_children(const std::vector<Node>& idom,
                                                  const std::vector<Node>& rpo);

/// Immediate post-dominators, by node, of a graph whose reachable nodes are `rpo`; kNoNode: the end. A node
/// without successors is an end; the last node of a part that never ends is treated as one.
std::vector<Node> immediate_post_dominators(const Graph& graph, const std::vector<Node>& rpo);

}  // namespace quern::cpu::analysis
