// SPDX-License-Identifier: Apache-2.0
// Lists of nodes and edges as arguments of functions. All throw Failure, and are called under graph_mutex().
#pragma once

#include <cuda.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "cpu/device/graph/graph.hpp"

namespace quern::cpu::device {

/// Nodes with the data of edges; `data` may be null.
std::vector<Edge> edges_of(Driver& driver, const CUgraphNode* nodes, const CUgraphEdgeData* data,
                           std::size_t count);

/// Where a function that lists edges writes. Null arrays: only the count.
struct EdgeList {
  CUgraphNode* from = nullptr;
  CUgraphNode* to = nullptr;
  CUgraphEdgeData* data = nullptr;
  std::size_t* count = nullptr;
  bool old_version = false;  ///< cannot tell the data of edges: CUDA_ERROR_LOSSY_QUERY if there are any
};

/// Writes `handles`, the rest of the array null, and their count.
void write_nodes(const std::vector<CUgraphNode>& handles, CUgraphNode* nodes, std::size_t* count);
/// Writes the edges' nodes to `list.to`.
void write_edges(const std::vector<Edge>& edges, const EdgeList& list);

}  // namespace quern::cpu::device
