// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/graph/arguments.hpp"

#include <algorithm>

namespace quern::cpu::device {
namespace {

bool is_default(const CUgraphEdgeData& data) {
  return data.from_port == 0 && data.to_port == 0 && data.type == CU_GRAPH_DEPENDENCY_TYPE_DEFAULT;
}

void check(const CUgraphEdgeData& data, const GraphNode& from) {
  require(data.type <= CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC && data.to_port == 0);
  require(data.from_port <= CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER);
  require(std::ranges::all_of(data.reserved, [](unsigned char each) { return each == 0; }));
  require(is_default(data) || std::holds_alternative<KernelNode>(from.contents));
}

}  // namespace

std::vector<Edge> edges_of(Driver& driver, const CUgraphNode* nodes, const CUgraphEdgeData* data,
                           std::size_t count) {
  require(count == 0 || nodes != nullptr);
  std::vector<Edge> edges;
  for (std::size_t i = 0; i < count; ++i) {
    const auto node = driver.find(nodes[i]);
    const CUgraphEdgeData edge = data == nullptr ? CUgraphEdgeData{} : data[i];
    check(edge, *node);
    edges.push_back({node.get(), edge});
  }
  return edges;
}

void write_nodes(const std::vector<CUgraphNode>& handles, CUgraphNode* nodes, std::size_t* count) {
  require(count != nullptr);
  if (nodes != nullptr) {
    require(*count > 0);
    const std::size_t written = std::min(handles.size(), *count);
    std::copy_n(handles.begin(), written, nodes);
    std::fill(nodes + written, nodes + *count, nullptr);
    *count = written;
    return;
  }
  *count = handles.size();
}

void write_edges(const std::vector<Edge>& edges, const EdgeList& list) {
  require(list.count != nullptr);
  if (list.to == nullptr) {
    *list.count = edges.size();
    return;
  }
  require(*list.count > 0);
  require(
      !list.old_version || std::ranges::all_of(edges, [](const Edge& edge) { return is_default(edge.data); }),
      CUDA_ERROR_LOSSY_QUERY);
  const std::size_t written = std::min(edges.size(), *list.count);
  for (std::size_t i = 0; i < *list.count; ++i) {
    list.to[i] = i < written ? edges[i].node->handle : nullptr;
    if (list.data != nullptr) list.data[i] = i < written ? edges[i].data : CUgraphEdgeData{};
  }
  *list.count = written;
}

}  // namespace quern::cpu::device
