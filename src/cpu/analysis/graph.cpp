// SPDX-License-Identifier: Apache-2.0
#include "cpu/analysis/graph.hpp"

#include <algorithm>

namespace quern::cpu::analysis {
namespace {

std::vector<std::uint32_t> positions(std::size_t nodes, const std::vector<Node>& order) {
  std::vector<std::uint32_t> result(nodes, kNoNode);
  for (std::size_t i = 0; i < order.size(); ++i) result[order[i]] = static_cast<std::uint32_t>(i);
  return result;
}

/// Marks all nodes from which `node` is reachable.
void mark_backwards(const Graph& graph, Node node, std::vector<bool>& marked) {
  std::vector<Node> stack{node};
  marked[node] = true;
  while (!stack.empty()) {
    const Node at = stack.back();
    stack.pop_back();
    for (const Node pred : graph.preds[at]) {
      if (marked[pred]) continue;
      marked[pred] = true;
      stack.push_back(pred);
    }
  }
}

}  // namespace

std::vector<Node> reverse_postorder(const Graph& graph, Node root) {
  struct Frame {
    Node node;
    // successors still to visit; the last one is visited first, so that the first one comes first in the
    // reversed order
    std::size_t left;
  };
  std::vector<Node> order;
  std::vector<bool> seen(graph.size());
  std::vector<Frame> stack{{root, graph.succs[root].size()}};
  seen[root] = true;
  while (!stack.empty()) {
    Frame& top = stack.back();
    if (top.left == 0) {
      order.push_back(top.node);
      stack.pop_back();
      continue;
    }
    const Node next = graph.succs[top.node][--top.left];
    if (seen[next]) continue;
    seen[next] = true;
    stack.push_back({next, graph.succs[next].size()});
  }
  std::reverse(order.begin(), order.end());
  return order;
}

std::vector<Node> immediate_dominators(const Graph& graph, const std::vector<Node>& rpo) {
  const std::vector<std::uint32_t> position = positions(graph.size(), rpo);
  std::vector<Node> idom(graph.size(), kNoNode);
  idom[rpo[0]] = rpo[0];
  const auto common = [&](Node a, Node b) {
    while (a != b) {
      while (position[a] > position[b]) a = idom[a];
      while (position[b] > position[a]) b = idom[b];
    }
    return a;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 1; i < rpo.size(); ++i) {
      Node dominator = kNoNode;
      for (const Node pred : graph.preds[rpo[i]])
        if (idom[pred] != kNoNode) dominator = dominator == kNoNode ? pred : common(dominator, pred);
      changed |= idom[rpo[i]] != dominator;
      idom[rpo[i]] = dominator;
    }
  }
  idom[rpo[0]] = kNoNode;
  return idom;
}

std::vector<std::vector<Node>> dominator_children(const std::vector<Node>& idom,
                                                  const std::vector<Node>& rpo) {
  std::vector<std::vector<Node>> children(idom.size());
  for (const Node node : rpo)
    if (idom[node] != kNoNode) children[idom[node]].push_back(node);
  return children;
}

std::vector<Node> immediate_post_dominators(const Graph& graph, const std::vector<Node>& rpo) {
  const Node end = static_cast<Node>(graph.size());
  Graph reversed(graph.size() + 1);
  std::vector<bool> ends(graph.size());
  for (const Node node : rpo) {
    for (const Node succ : graph.succs[node]) reversed.edge(succ, node);
    if (!graph.succs[node].empty()) continue;
    reversed.edge(end, node);
    mark_backwards(graph, node, ends);
  }
  for (auto node = rpo.rbegin(); node != rpo.rend(); ++node) {
    if (ends[*node]) continue;
    reversed.edge(end, *node);
    mark_backwards(graph, *node, ends);
  }
  std::vector<Node> result = immediate_dominators(reversed, reverse_postorder(reversed, end));
  result.pop_back();
  for (Node& node : result)
    if (node == end) node = kNoNode;
  return result;
}

}  // namespace quern::cpu::analysis
