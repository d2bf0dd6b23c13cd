// SPDX-License-Identifier: Apache-2.0
// Capture of streams into graphs.
#include "cpu/device/cuda_api.hpp"

#include <utility>

#include "cpu/device/graph/arguments.hpp"
#include "cpu/device/graph/capture.hpp"

using namespace quern::cpu::device;
using quern::base::LockGuard;

namespace {

/// Where cuStreamGetCaptureInfo writes; all but the status may be null.
struct InfoTargets {
  CUstreamCaptureStatus* status = nullptr;
  cuuint64_t* id = nullptr;
  CUgraph* graph = nullptr;
  const CUgraphNode** nodes = nullptr;
  const CUgraphEdgeData** edges = nullptr;
  std::size_t* count = nullptr;
};

CUresult tell(CUstream stream, const InfoTargets& to, bool tells_edges) {
  return entry([&] {
    Driver& driver = Driver::get();
    const StreamObject its_stream = driver.stream_of(stream);
    require(to.status != nullptr);
    const CaptureInfo info = capture_info(its_stream);
    *to.status = info.status;
    if (to.id != nullptr) *to.id = info.id;
    if (info.status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return;
    for (std::size_t i = 0; i < info.count && to.nodes != nullptr && !tells_edges; ++i)
      require(info.edges[i].type == CU_GRAPH_DEPENDENCY_TYPE_DEFAULT && info.edges[i].from_port == 0,
              CUDA_ERROR_LOSSY_QUERY);
    if (to.graph != nullptr) *to.graph = info.graph;
    if (to.nodes != nullptr) *to.nodes = info.nodes;
    if (to.edges != nullptr) *to.edges = info.edges;
    if (to.count != nullptr) *to.count = info.count;
  });
}

CUresult begin(CUstream stream, CUstreamCaptureMode mode) {
  return entry([&] {
    Driver& driver = Driver::get();
    const StreamObject its_stream = driver.stream_of(stream);
    const LockGuard lock(graph_mutex());
    begin_capture(driver, its_stream, mode, nullptr, {});
  });
}

CUresult update(CUstream stream, const CUgraphNode* nodes, const CUgraphEdgeData* data, std::size_t count,
                unsigned flags) {
  return entry([&] {
    Driver& driver = Driver::get();
    const StreamObject its_stream = driver.stream_of(stream);
    const LockGuard lock(graph_mutex());
    require_captures(*its_stream.stream);
    require(flags == CU_STREAM_ADD_CAPTURE_DEPENDENCIES || flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES);
    update_dependencies(*its_stream.stream, edges_of(driver, nodes, data, count),
                        flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES);
  });
}

}  // namespace

CUresult cuStreamBeginCapture(CUstream stream) { return begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL); }
CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) { return begin(stream, mode); }

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode* nodes,
                                     const CUgraphEdgeData* data, std::size_t count,
                                     CUstreamCaptureMode mode) {
  return entry([&] {
    Driver& driver = Driver::get();
    const StreamObject its_stream = driver.stream_of(stream);
    const LockGuard lock(graph_mutex());
    require_can_capture(its_stream, mode);
    const auto its_graph = driver.find(graph);
    std::vector<Edge> edges = edges_of(driver, nodes, data, count);
    for (const Edge& edge : edges) require(edge.node->graph == its_graph.get());
    begin_capture(driver, its_stream, mode, its_graph, std::move(edges));
  });
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return entry([&] {
    Driver& driver = Driver::get();
    const StreamObject its_stream = driver.stream_of(stream);
    require(graph != nullptr);
    *graph = nullptr;
    *graph = end_capture(driver, its_stream);
  });
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  return tell(stream, {.status = status}, true);
}
CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id) {
  return tell(stream, {.status = status, .id = id}, true);
}
CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** nodes, std::size_t* count) {
  return tell(stream, {status, id, graph, nodes, nullptr, count}, false);
}
CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** nodes, const CUgraphEdgeData** edges,
                                   std::size_t* count) {
  return tell(stream, {status, id, graph, nodes, edges, count}, edges != nullptr);
}

CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* nodes, std::size_t count,
                                           unsigned flags) {
  return update(stream, nodes, nullptr, count, flags);
}
CUresult cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode* nodes,
                                              const CUgraphEdgeData* data, std::size_t count,
                                              unsigned flags) {
  return update(stream, nodes, data, count, flags);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return entry([&] {
    Driver::get();
    require(mode != nullptr);  // unknown modes are taken, too, as by the driver of a GPU
    *mode = exchange_thread_mode(*mode);
  });
}
