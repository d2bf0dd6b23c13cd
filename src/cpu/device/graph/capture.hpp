// SPDX-License-Identifier: Apache-2.0
// Capture of streams into graphs. Source of the rules: "CUDA C++ Programming Guide", section "Creating a
// Graph Using Stream Capture", and cuda.h, cuStreamBeginCapture and cuThreadExchangeStreamCaptureMode.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "cpu/device/driver.hpp"
#include "cpu/device/graph/graph.hpp"
#include "cpu/engine/stream.hpp"

namespace quern::cpu::device {

struct Capture;

/// Where an event was recorded in a capture. Immutable.
struct CapturedPoint {
  std::shared_ptr<Capture> capture;
  std::vector<Edge> nodes;
};

/// For a call that queues work: true if the stream captures it. Throws Failure for an invalidated capture,
/// and for the legacy stream while a blocking stream of the context captures.
bool is_capturing(const StreamObject& stream);
/// Adds a node to the graph that `stream` captures into.
void record(Driver& driver, const StreamObject& stream, NodeContents contents);
/// For a call that waits for the stream, or cannot be captured: throws Failure if the stream captures.
void refuse_capturing(const StreamObject& stream);
/// The same for all streams of the context.
void refuse_capturing(const ContextState& context);
/// For a call that asks about the stream itself: throws Failure if its capture is invalid.
void refuse_invalid_capture(const engine::Stream& stream);
/// For a call that may be unsafe while streams capture: throws Failure if the capture modes forbid it.
void refuse_unsafe_call();
/// For a call that asks about the work before an event: throws Failure if a capture recorded it, which the
/// call then invalidates unless it has ended.
void refuse_captured(EventObject& event);

/// True if the event is recorded in a capture, so that nothing is left to do. Throws Failure.
bool capture_record(Driver& driver, const StreamObject& stream, CUevent handle,
                    const std::shared_ptr<EventObject>& event, bool external);
/// True if the wait is captured. Throws Failure.
bool capture_wait(Driver& driver, const StreamObject& stream, CUevent handle,
                  const std::shared_ptr<EventObject>& event, bool external);

/// Under graph_mutex(): throws Failure if a capture of this mode cannot begin with this stream.
void require_can_capture(const StreamObject& stream, CUstreamCaptureMode mode);
/// Under graph_mutex(): throws Failure if the stream does not capture, or its capture is invalid.
void require_captures(const engine::Stream& stream);
/// Under graph_mutex(): a capture into a new graph if `graph` is null, otherwise into it, after
/// `dependencies`. Throws Failure.
void begin_capture(Driver& driver, const StreamObject& stream, CUstreamCaptureMode mode,
                   std::shared_ptr<Graph> graph, std::vector<Edge> dependencies);
/// Throws Failure; the capture has ended also then, unless the call is not for this stream or thread.
CUgraph end_capture(Driver& driver, const StreamObject& stream);
/// A stream that is destroyed invalidates its capture.
void forget_stream(const engine::Stream& stream);
/// Ends the captures of the streams of a context that has ended.
void forget_context(const ContextState& context);

struct CaptureInfo {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  std::uint64_t id = 0;
  CUgraph graph = nullptr;
  const CUgraphNode* nodes = nullptr;  ///< until the next call for the stream
  const CUgraphEdgeData* edges = nullptr;
  std::size_t count = 0;
};
/// Throws Failure for the legacy stream while a blocking stream captures.
CaptureInfo capture_info(const StreamObject& stream);
/// Under graph_mutex(). Throws Failure.
void update_dependencies(const engine::Stream& stream, const std::vector<Edge>& dependencies, bool replace);

/// Under graph_mutex(): true while a stream captures into the graph.
bool is_captured_into(const Graph& graph);
/// The same, or into a graph in a node of it.
bool is_captured_within(const Graph& graph);

CUstreamCaptureMode exchange_thread_mode(CUstreamCaptureMode mode) noexcept;

}  // namespace quern::cpu::device
