// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/graph/dot.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "base/held_signal.hpp"

namespace quern::cpu::device {
namespace {

struct Writer {
  unsigned flags = 0;
  std::string text{};

  bool asks(unsigned flag) const noexcept { return (flags & (flag | CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE)) != 0; }

  std::string label(const NodeContents& contents) const {
    struct Label {
      const Writer& writer;
      std::string operator()(const KernelNode& node) const {
        std::string label = node.work.function->info().name;
        if (writer.asks(CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS))
          label += fmt::format("\\n<<<({},{},{}),({},{},{}),{}>>>", node.work.grid[0], node.work.grid[1],
                               node.work.grid[2], node.work.block[0], node.work.block[1], node.work.block[2],
                               node.work.dynamic_shared_bytes);
        return label;
      }
      std::string operator()(const CopyNode& node) const {
        if (!writer.asks(CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS)) return "MEMCPY";
        return fmt::format("MEMCPY\\n{} x {} x {} bytes", node.work.width_bytes, node.work.height,
                           node.work.depth);
      }
      std::string operator()(const FillNode& node) const {
        if (!writer.asks(CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS)) return "MEMSET";
        return fmt::format("MEMSET\\n{} x {} of {} bytes, value {}", node.params.width, node.params.height,
                           node.params.elementSize, node.params.value);
      }
      std::string operator()(const HostNode&) const { return "HOST"; }
      std::string operator()(const ChildNode&) const { return "CHILD_GRAPH"; }
      std::string operator()(const EmptyNode&) const { return "EMPTY"; }
      std::string operator()(const EventWaitNode&) const { return "EVENT_WAIT"; }
      std::string operator()(const EventRecordNode&) const { return "EVENT_RECORD"; }
      std::string operator()(const AllocNode& node) const {
        if (!writer.asks(CU_GRAPH_DEBUG_DOT_FLAGS_MEM_ALLOC_NODE_PARAMS)) return "MEM_ALLOC";
        return fmt::format("MEM_ALLOC\\n{} bytes", node.params.bytesize);
      }
      std::string operator()(const FreeNode& node) const {
        if (!writer.asks(CU_GRAPH_DEBUG_DOT_FLAGS_MEM_FREE_NODE_PARAMS)) return "MEM_FREE";
        return fmt::format("MEM_FREE\\n0x{:x}", node.pointer);
      }
      std::string operator()(const BatchNode&) const { return "BATCH_MEM_OP"; }
      std::string operator()(const ConditionalNode&) const { return "CONDITIONAL"; }
    };
    return std::visit(Label{*this}, contents);
  }

  void add(const Graph& graph) {
    text += fmt::format("subgraph cluster_{} {{\nlabel=\"graph_{}\" graph[style=\"dashed\"];\n", graph.id,
                        graph.id);
    for (const auto& node : graph.nodes) add(*node);
    for (const auto& node : graph.nodes)
      for (const Edge& edge : node->dependents)
        text += fmt::format("\"node_{}\" -> \"node_{}\";\n", node->id, edge.node->id);
    text += "}\n";
  }

  void add(const GraphNode& node) {
    std::string its_label = label(node.contents);
    if (asks(CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES))
      its_label += fmt::format("\\n{}", static_cast<const void*>(node.handle));
    text +=
        fmt::format("\"node_{}\"[style=\"solid\" shape=\"rectangle\" label=\"{}\"];\n", node.id, its_label);
    if (const auto* child = std::get_if<ChildNode>(&node.contents)) add(*child->graph);
    if (const auto* conditional = std::get_if<ConditionalNode>(&node.contents))
      for (const auto& body : conditional->bodies) add(*body);
  }
};

}  // namespace

std::string dot_text(const Graph& graph, unsigned flags) {
  Writer writer{flags};
  writer.text = "digraph dot {\n";
  writer.add(graph);
  writer.text += "}\n";
  return std::move(writer.text);
}

bool write_text(const char* path, const std::string& text) {
  const base::HeldSignal quiet(SIGXFSZ);
  std::FILE* const file = std::fopen(path, "w");
  if (file == nullptr) return false;
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  return std::fclose(file) == 0 && written;
}

}  // namespace quern::cpu::device
