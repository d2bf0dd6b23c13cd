// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cpu/device/graph/graph.hpp"

namespace quern::cpu::device {

/// The graph in the language of Graphviz, with what `flags` (CUgraphDebugDot_flags) ask for. Under
/// graph_mutex().
std::string dot_text(const Graph& graph, unsigned flags);

/// False: the file cannot be written.
bool write_text(const char* path, const std::string& text);

}  // namespace quern::cpu::device
