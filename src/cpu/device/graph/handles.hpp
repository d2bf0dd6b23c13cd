// SPDX-License-Identifier: Apache-2.0
// The handles of graphs and of what belongs to them.
#pragma once

#include <cuda.h>

#include "cpu/device/handles.hpp"

namespace quern::cpu::device {

struct Graph;
struct GraphNode;
struct GraphExec;
class UserObject;

template <>
struct HandleTraits<Graph> {
  using Handle = CUgraph;
  static constexpr HandleKind kKind = HandleKind::graph;
};
template <>
struct HandleTraits<GraphNode> {
  using Handle = CUgraphNode;
  static constexpr HandleKind kKind = HandleKind::graph_node;
};
template <>
struct HandleTraits<GraphExec> {
  using Handle = CUgraphExec;
  static constexpr HandleKind kKind = HandleKind::graph_exec;
};
template <>
struct HandleTraits<UserObject> {
  using Handle = CUuserObject;
  static constexpr HandleKind kKind = HandleKind::user_object;
};

}  // namespace quern::cpu::device
