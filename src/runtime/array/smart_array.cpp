// SPDX-License-Identifier: Apache-2.0
#include "runtime/array/smart_array.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "quern/error.hpp"
#include "runtime/array/buffer.hpp"
#include "runtime/array/transfer.hpp"
#include "runtime/context/stream.hpp"

namespace quern {
namespace runtime {
namespace {

Shape shape_of(const Layout& layout) { return Shape(layout.shape().begin(), layout.shape().end()); }

std::shared_ptr<SmartState> new_state(const std::shared_ptr<Context>& context, const StridedArray& like) {
  auto state = std::make_shared<SmartState>();
  state->context = context;
  state->element = like.element();
  state->layout = like.layout().contiguous(like.layout().order());
  return state;
}

void wait_for_use(SmartState& state) {
  for (StreamUse& use : state.uses) {
    if (!use.pending) continue;
    use.end.synchronize();
    use.pending = false;
  }
}

/// The use on that stream, or one that has ended, or a new one.
StreamUse& use_on(SmartState& state, CUstream stream) {
  auto use = std::ranges::find(state.uses, stream, &StreamUse::stream);
  if (use == state.uses.end())
    use = std::ranges::find_if(state.uses, [](StreamUse& old) { return !old.pending || old.end.query(); });
  if (use == state.uses.end()) {
    state.uses.push_back({stream, make_event(state.context, false)});
    use = std::prev(state.uses.end());
  } else if (use->stream != stream) {
    use->stream = stream;
    use->pending = false;
  }
  return *use;
}

void bring_to_host(SmartState& state) {
  if (state.host_current) return;
  wait_for_use(state);
  if (!state.host) state.host = NDArray(shape_of(state.layout), state.element, state.layout.order());
  if (state.device_current) state.device->copy_to_host(*state.host);
  state.host_current = true;
}

void bring_to_device(SmartState& state) {
  if (state.device_current) return;
  wait_for_use(state);
  if (!state.device)
    state.device =
        DeviceNDArray(make_buffer(state.context, state.layout.size_bytes()), state.element, state.layout, 0);
  if (state.host_current) state.device->copy_to_device(*state.host);
  state.device_current = true;
}

template <class Array>
void require_writable(const Array& array) {
  if (array.is_read_only())
    throw Error(ErrorCode::usage,
                fmt::format("cannot make a side of a SmartArray of {}: it is read-only; let it be copied",
                            describe(array)));
}

}  // namespace

void expect_writes(SmartState& state) noexcept { state.host_current = false; }

/// The default streams, and quern's own but for the non-blocking ones, are ordered with the default stream,
/// which copies run in. A stream of the program's need not be ordered with it.
void remember_use(SmartState& state, StreamView stream) {
  const CUstream handle = stream_handle(stream, *state.context);
  if (handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) return;
  try {
    if (state.context->own_streams().owner_of(handle) != nullptr && !stream.is_non_blocking()) return;
    StreamUse& use = use_on(state, handle);
    // The handle may be a new stream's, while the work of one that is destroyed still runs.
    if (use.pending) use.end.wait(stream);
    use.end.record(stream);
    use.pending = true;
  } catch (const std::exception&) {  // the work is queued already: wait for it here
    state.context->waiting().synchronize(handle);
  }
}

SmartArray make_smart(const std::shared_ptr<Context>& context, const NDArray& array, bool copy, Where where) {
  if (!copy) require_writable(array);
  auto state = new_state(context, array);
  if (copy) wait_until_filled(*context, array);
  state->host = copy ? array.copy(array.layout().order()) : array;
  state->host_current = true;
  if (where == Where::device) bring_to_device(*state);
  return SmartArray(std::move(state));
}

SmartArray make_smart(const std::shared_ptr<Context>& context, const DeviceNDArray& array, bool copy,
                      Where where) {
  if (!copy) require_writable(array);
  auto state = new_state(context, array);
  state->device = copy ? array.copy(array.layout().order()) : array;
  state->device_current = true;
  if (where == Where::host) bring_to_host(*state);
  return SmartArray(std::move(state));
}

SmartArray make_smart(const std::shared_ptr<Context>& context, Shape shape, const ElementType& element,
                      Order order, Where where) {
  auto state = std::make_shared<SmartState>();
  state->context = context;
  state->element = element;
  state->layout = Layout(std::move(shape), element.size_bytes, order);
  if (where == Where::host)
    bring_to_host(*state);
  else
    bring_to_device(*state);
  return SmartArray(std::move(state));
}

}  // namespace runtime

NDArray SmartArray::host() const {
  runtime::bring_to_host(*state_);
  return *state_->host;
}

DeviceNDArray SmartArray::device() const {
  runtime::bring_to_device(*state_);
  return *state_->device;
}

void SmartArray::mark_changed(Where where, StreamView stream) const {
  runtime::SmartState& state = *state_;
  const bool on_host = where == Where::host;
  // A side that is out of date is not updated first: that would overwrite what was written to it. Nothing was
  // written to a side that was never requested.
  if (on_host && !state.host) runtime::bring_to_host(state);
  if (!on_host && !state.device) runtime::bring_to_device(state);
  state.host_current = on_host;
  state.device_current = !on_host;
  runtime::remember_use(state, stream);
  // The program always holds memory of its own (a view).
  if (on_host && state.device && state.device->buffer().state().use_count() > 1)
    runtime::bring_to_device(state);
  else if (!on_host && state.host && (!state.host->owns_memory() || state.host->owner().use_count() > 1))
    runtime::bring_to_host(state);
}

bool SmartArray::is_current(Where where) const noexcept {
  return where == Where::host ? state_->host_current : state_->device_current;
}
const ElementType& SmartArray::element() const noexcept { return state_->element; }
const Layout& SmartArray::layout() const noexcept { return state_->layout; }

}  // namespace quern
