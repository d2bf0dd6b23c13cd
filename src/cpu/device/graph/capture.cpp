// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/graph/capture.hpp"

#include <algorithm>
#include <atomic>
#include <thread>
#include <unordered_set>
#include <utility>

namespace quern::cpu::device {

/// Guarded by graph_mutex().
struct Capture {
  std::uint64_t id = 0;
  std::shared_ptr<Graph> graph;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id thread = std::this_thread::get_id();
  const engine::Stream* origin = nullptr;
  std::vector<Edge> last_of_destroyed;  ///< last nodes of streams that were destroyed during the capture
  bool own_graph = true;                ///< made for the capture
  bool invalid = false;
  bool ended = false;
};

namespace {

/// A stream that captures.
struct Capturing : StreamObject {
  std::shared_ptr<Capture> capture;
  std::vector<Edge> dependencies;  ///< of the next node
  std::vector<CUgraphNode> told_nodes;
  std::vector<CUgraphEdgeData> told_edges;
};

/// Guarded by graph_mutex().
std::vector<Capturing>& all() {
  static auto* const instance = new std::vector<Capturing>;  // used by any thread until the process ends
  return *instance;
}
/// The size of the above, so that calls without a capture take no lock.
std::atomic<std::size_t> capturing_count{0};
std::uint64_t next_capture_id = 1;
thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

bool none() noexcept { return capturing_count.load(std::memory_order_acquire) == 0; }

void note_count() noexcept { capturing_count.store(all().size(), std::memory_order_release); }

Capturing* find(const engine::Stream& stream) {
  const auto found =
      std::ranges::find_if(all(), [&](const auto& each) { return each.stream.get() == &stream; });
  return found == all().end() ? nullptr : &*found;
}

void require_valid(const Capture& capture) {
  require(!capture.invalid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

/// Throws Failure if the stream is the legacy one and a blocking stream of its context captures.
void check_implicit(const StreamObject& stream, bool invalidate) {
  if (stream.stream != stream.context->domain->legacy_stream()) return;
  bool found = false;
  for (const Capturing& each : all()) {
    if (each.context != stream.context || !each.stream->blocking()) continue;
    found = true;
    if (invalidate) each.capture->invalid = true;
  }
  require(!found, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
}

void merge(std::vector<Edge>& into, const std::vector<Edge>& edges) {
  for (const Edge& edge : edges)
    if (std::ranges::none_of(into, [&](const Edge& each) { return each.node == edge.node; }))
      into.push_back(edge);
}

/// True if the last nodes of every other stream are before those of the origin.
bool is_joined(const Capture& capture, const std::vector<Edge>& last) {
  std::unordered_set<const GraphNode*> before;
  std::vector<const GraphNode*> open;
  for (const Edge& edge : last) open.push_back(edge.node);
  while (!open.empty()) {
    const GraphNode* const node = open.back();
    open.pop_back();
    if (!before.insert(node).second) continue;
    for (const Edge& edge : node->dependencies) open.push_back(edge.node);
  }
  const auto all_before = [&](const std::vector<Edge>& edges) {
    return std::ranges::all_of(edges, [&](const Edge& edge) { return before.contains(edge.node); });
  };
  return all_before(capture.last_of_destroyed) && std::ranges::all_of(all(), [&](const Capturing& each) {
           return each.capture.get() != &capture || all_before(each.dependencies);
         });
}

/// Takes out the capture's streams. The graph is the client's from now on, or else returned to be destroyed.
std::shared_ptr<Graph> close(Driver& driver, Capture& capture, bool keep_graph) {
  capture.ended = true;
  std::erase_if(all(), [&](const Capturing& each) { return each.capture.get() == &capture; });
  note_count();
  std::shared_ptr<Graph> graph = std::move(capture.graph);
  if (!keep_graph && capture.own_graph) forget_handles(driver, *graph);
  return graph;
}

}  // namespace

bool is_capturing(const StreamObject& stream) {
  if (none()) return false;
  const base::LockGuard lock(graph_mutex());
  check_implicit(stream, true);
  const Capturing* const found = find(*stream.stream);
  if (found == nullptr) return false;
  require_valid(*found->capture);
  return true;
}

void record(Driver& driver, const StreamObject& stream, NodeContents contents) {
  const base::LockGuard lock(graph_mutex());
  Capturing* const found = find(*stream.stream);
  require(found != nullptr, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);  // another thread has ended it meanwhile
  require_valid(*found->capture);
  GraphNode& node = add_node(driver, *found->capture->graph, found->dependencies, std::move(contents));
  found->dependencies = {{&node, {}}};
}

void refuse_capturing(const StreamObject& stream) {
  if (none()) return;
  const base::LockGuard lock(graph_mutex());
  check_implicit(stream, true);
  const Capturing* const found = find(*stream.stream);
  if (found == nullptr) return;
  found->capture->invalid = true;
  fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

void refuse_capturing(const ContextState& context) {
  if (none()) return;
  const base::LockGuard lock(graph_mutex());
  bool found = false;
  for (const Capturing& each : all()) {
    if (each.context.get() != &context) continue;
    found = true;
    each.capture->invalid = true;
  }
  require(!found, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

void refuse_invalid_capture(const engine::Stream& stream) {
  if (none()) return;
  const base::LockGuard lock(graph_mutex());
  const Capturing* const found = find(stream);
  if (found != nullptr) require_valid(*found->capture);
}

void refuse_unsafe_call() {
  if (none() || thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return;
  const base::LockGuard lock(graph_mutex());
  bool found = false;
  for (const Capturing& each : all()) {
    Capture& capture = *each.capture;
    const bool mine =
        capture.thread == std::this_thread::get_id() && capture.mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    const bool global =
        thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!mine && !global) continue;
    found = true;
    capture.invalid = true;
  }
  require(!found, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

void refuse_captured(EventObject& event) {
  std::shared_ptr<const CapturedPoint> captured;
  {
    const base::LockGuard lock(event.mutex);
    captured = event.captured;
  }
  if (captured == nullptr) return;
  const base::LockGuard lock(graph_mutex());
  require(!captured->capture->ended);
  captured->capture->invalid = true;
  fail(CUDA_ERROR_CAPTURED_EVENT);
}

bool capture_record(Driver& driver, const StreamObject& stream, CUevent handle,
                    const std::shared_ptr<EventObject>& event, bool external) {
  if (!is_capturing(stream)) return false;
  if (external) {
    record(driver, stream, EventRecordNode{{handle, event}});
    return true;
  }
  auto point = std::make_shared<CapturedPoint>();
  {
    const base::LockGuard lock(graph_mutex());
    const Capturing* const found = find(*stream.stream);
    require(found != nullptr, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    point->capture = found->capture;
    point->nodes = found->dependencies;
  }
  const base::LockGuard lock(event->mutex);
  event->captured = std::move(point);
  return true;
}

bool capture_wait(Driver& driver, const StreamObject& stream, CUevent handle,
                  const std::shared_ptr<EventObject>& event, bool external) {
  const bool capturing = is_capturing(stream);
  if (external) {
    if (capturing) record(driver, stream, EventWaitNode{{handle, event}});
    return capturing;
  }
  std::shared_ptr<const CapturedPoint> captured;
  {
    const base::LockGuard lock(event->mutex);
    captured = event->captured;
  }
  if (!capturing && captured == nullptr) return false;
  const base::LockGuard lock(graph_mutex());
  Capturing* const found = find(*stream.stream);
  if (captured == nullptr || captured->capture->ended) {
    require(found != nullptr);  // the capture that recorded the event has ended
    found->capture->invalid = true;
    fail(CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  }
  require_valid(*captured->capture);
  if (found == nullptr) {
    if (stream.stream == stream.context->domain->legacy_stream()) {
      captured->capture->invalid = true;
      fail(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    }
    all().push_back({stream, captured->capture, captured->nodes, {}, {}});
    note_count();
    return true;
  }
  if (found->capture != captured->capture) {
    found->capture->invalid = true;
    captured->capture->invalid = true;
    fail(CUDA_ERROR_STREAM_CAPTURE_MERGE);
  }
  merge(found->dependencies, captured->nodes);
  return true;
}

void require_can_capture(const StreamObject& stream, CUstreamCaptureMode mode) {
  require(mode == CU_STREAM_CAPTURE_MODE_GLOBAL || mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL ||
          mode == CU_STREAM_CAPTURE_MODE_RELAXED);
  require(stream.stream != stream.context->domain->legacy_stream(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  require_not_ended(*stream.context);  // forget_context() comes after that
  require(find(*stream.stream) == nullptr, CUDA_ERROR_ILLEGAL_STATE);
}

void require_captures(const engine::Stream& stream) {
  const Capturing* const found = find(stream);
  require(found != nullptr, CUDA_ERROR_ILLEGAL_STATE);
  require_valid(*found->capture);
}

void begin_capture(Driver& driver, const StreamObject& stream, CUstreamCaptureMode mode,
                   std::shared_ptr<Graph> graph, std::vector<Edge> dependencies) {
  require_can_capture(stream, mode);
  require(graph == nullptr || !is_captured_into(*graph));
  auto capture = std::make_shared<Capture>();
  capture->id = next_capture_id++;
  capture->own_graph = graph == nullptr;
  capture->graph = graph == nullptr ? make_graph(driver) : std::move(graph);
  capture->mode = mode;
  capture->origin = stream.stream.get();
  all().push_back({stream, std::move(capture), std::move(dependencies), {}, {}});
  note_count();
}

CUgraph end_capture(Driver& driver, const StreamObject& stream) {
  std::shared_ptr<Graph> graph;  // may be destroyed after the lock
  const base::LockGuard lock(graph_mutex());
  Capturing* const found = find(*stream.stream);
  require(found != nullptr, CUDA_ERROR_ILLEGAL_STATE);
  const std::shared_ptr<Capture> capture = found->capture;
  // Any thread may end a capture that is of no use any more. Another one is lost if the wrong thread ends it,
  // as on a GPU.
  if (!capture->invalid && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
      capture->thread != std::this_thread::get_id()) {
    graph = close(driver, *capture, false);
    fail(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  }
  if (capture->origin != stream.stream.get()) {
    capture->invalid = true;
    fail(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  }
  const bool joined = is_joined(*capture, found->dependencies);
  const bool valid = joined && !capture->invalid;
  graph = close(driver, *capture, valid);
  require(!capture->invalid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  require(joined, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  return graph->handle;
}

void forget_stream(const engine::Stream& stream) {
  if (none()) return;
  std::shared_ptr<Graph> graph;  // destroyed after the lock
  const base::LockGuard lock(graph_mutex());
  const Capturing* const found = find(stream);
  if (found == nullptr) return;
  const std::shared_ptr<Capture> capture = found->capture;
  if (capture->origin == &stream) {
    // Nobody could end the capture without its origin.
    capture->invalid = true;
    graph = close(Driver::get(), *capture, false);
  } else {
    merge(capture->last_of_destroyed, found->dependencies);
    std::erase_if(all(), [&](const Capturing& each) { return each.stream.get() == &stream; });
  }
  note_count();
}

void forget_context(const ContextState& context) {
  if (none()) return;
  std::vector<std::shared_ptr<Graph>> graphs;  // destroyed after the lock
  const base::LockGuard lock(graph_mutex());
  const auto belongs = [&](const Capturing& each) { return each.context.get() == &context; };
  for (auto found = std::ranges::find_if(all(), belongs); found != all().end();
       found = std::ranges::find_if(all(), belongs)) {
    const std::shared_ptr<Capture> capture = found->capture;
    if (capture->origin == found->stream.get()) {
      graphs.push_back(close(Driver::get(), *capture, false));
    } else {  // a stream of another context can still end it
      capture->invalid = true;
      all().erase(found);
    }
  }
  note_count();
}

CaptureInfo capture_info(const StreamObject& stream) {
  CaptureInfo info;
  if (none()) return info;
  const base::LockGuard lock(graph_mutex());
  check_implicit(stream, false);
  Capturing* const found = find(*stream.stream);
  if (found == nullptr) return info;
  if (found->capture->invalid) {
    info.status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    return info;
  }
  info.status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  info.id = found->capture->id;
  info.graph = found->capture->graph->handle;
  found->told_nodes.clear();
  found->told_edges.clear();
  for (const Edge& edge : found->dependencies) {
    found->told_nodes.push_back(edge.node->handle);
    found->told_edges.push_back(edge.data);
  }
  info.nodes = found->told_nodes.data();
  info.edges = found->told_edges.data();
  info.count = found->told_nodes.size();
  return info;
}

void update_dependencies(const engine::Stream& stream, const std::vector<Edge>& dependencies, bool replace) {
  require_captures(stream);
  Capturing* const found = find(stream);
  for (const Edge& edge : dependencies) require(edge.node->graph == found->capture->graph.get());
  if (replace) found->dependencies.clear();
  merge(found->dependencies, dependencies);
}

bool is_captured_into(const Graph& graph) {
  return std::ranges::any_of(all(),
                             [&](const Capturing& each) { return each.capture->graph.get() == &graph; });
}

bool is_captured_within(const Graph& graph) {
  return std::ranges::any_of(all(),
                             [&](const Capturing& each) { return is_within(*each.capture->graph, graph); });
}

CUstreamCaptureMode exchange_thread_mode(CUstreamCaptureMode mode) noexcept {
  return std::exchange(thread_mode, mode);
}

}  // namespace quern::cpu::device
