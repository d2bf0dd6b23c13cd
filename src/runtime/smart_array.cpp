// SPDX-License-Identifier: Apache-2.0
#include "runtime/smart_array.hpp"

#include "runtime/buffer.hpp"

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

void bring_to_host(SmartState& state) {
  if (state.host_current) return;
  if (!state.host) state.host = NDArray(shape_of(state.layout), state.element, state.layout.order());
  if (state.device_current) state.device->copy_to_host(*state.host);
  state.host_current = true;
}

void bring_to_device(SmartState& state) {
  if (state.device_current) return;
  if (!state.device)
    state.device =
        DeviceNDArray(make_buffer(state.context, state.layout.size_bytes()), state.element, state.layout, 0);
  if (state.host_current) state.device->copy_to_device(*state.host);
  state.device_current = true;
}

}  // namespace

SmartArray make_smart(const std::shared_ptr<Context>& context, const NDArray& array, bool copy, Where where) {
  auto state = new_state(context, array);
  state->host = copy ? array.copy(array.layout().order()) : array;
  state->host_current = true;
  if (where == Where::device) bring_to_device(*state);
  return SmartArray(std::move(state));
}

SmartArray make_smart(const std::shared_ptr<Context>& context, const DeviceNDArray& array, bool copy,
                      Where where) {
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

void SmartArray::mark_changed(Where where) const {
  runtime::SmartState& state = *state_;
  if (where == Where::host) {
    runtime::bring_to_host(state);
    state.device_current = false;
    if (state.device && state.device->buffer().state().use_count() > 1) runtime::bring_to_device(state);
    return;
  }
  runtime::bring_to_device(state);
  state.host_current = false;
  // Memory of the program's own (a view) is always held on to.
  if (state.host && (!state.host->owns_memory() || state.host->owner().use_count() > 1))
    runtime::bring_to_host(state);
}

bool SmartArray::is_current(Where where) const noexcept {
  return where == Where::host ? state_->host_current : state_->device_current;
}
const ElementType& SmartArray::element() const noexcept { return state_->element; }
const Layout& SmartArray::layout() const noexcept { return state_->layout; }

}  // namespace quern
