// SPDX-License-Identifier: Apache-2.0
#include "quern/device_array.hpp"

#include <fmt/format.h>

#include "quern/attempt.hpp"
#include "quern/error.hpp"
#include "runtime/array/buffer.hpp"
#include "runtime/array/interop.hpp"
#include "runtime/array/transfer.hpp"

namespace quern {
namespace {

using runtime::DeviceSide;
using runtime::HostSide;

DeviceSide side(const DeviceNDArray& array) {
  const runtime::BufferState* state = array.buffer().state().get();
  return {reinterpret_cast<std::uintptr_t>(array.data()), array.layout(),
          state != nullptr ? state->memory : nullptr};
}

HostSide side(const NDArray& array) {
  return {array.data(), array.layout(), array.owner(), array.is_page_locked()};
}

void require_writable(const DeviceNDArray& array) {
  if (array.is_read_only())
    throw Error(ErrorCode::usage,
                fmt::format("cannot write to {}: the array is read-only; copy() it", describe(array)));
}

void require_same_context(const DeviceNDArray& to, const DeviceNDArray& from) {
  if (&runtime::context_of(to.buffer()) != &runtime::context_of(from.buffer()))
    throw Error(ErrorCode::usage, "cannot copy between arrays of two sessions; copy_to_host() on the way");
}

Layout checked(const DeviceBuffer& buffer, const ElementType& element, Layout layout, std::int64_t offset) {
  const Layout::Reach reach = layout.reach();
  const auto size = static_cast<std::int64_t>(buffer.size_bytes());
  if (layout.size() > 0 && (offset + reach.lowest < 0 || offset + reach.end > size))
    throw Error(
        ErrorCode::usage,
        fmt::format(
            "an array of shape {} and {} with strides {} needs bytes {} to {} of its buffer, which has "
            "{}; give a larger buffer",
            shape_text(layout.shape()), to_string(element), shape_text(layout.strides_bytes()),
            offset + reach.lowest, offset + reach.end, size));
  return layout;
}

}  // namespace

DeviceNDArray::DeviceNDArray(DeviceBuffer buffer, ElementType element, Shape shape) {
  layout_ = checked(buffer, element, Layout(std::move(shape), element.size_bytes), 0);
  element_ = std::move(element);
  buffer_ = std::move(buffer);
}

DeviceNDArray::DeviceNDArray(DeviceBuffer buffer, ElementType element, Layout layout,
                             std::int64_t offset_bytes)
    : offset_bytes_(offset_bytes) {
  layout_ = checked(buffer, element, std::move(layout), offset_bytes);
  element_ = std::move(element);
  buffer_ = std::move(buffer);
}

bool DeviceNDArray::is_read_only() const noexcept {
  return read_only_ || (buffer_.state() != nullptr && buffer_.state()->read_only);
}

DeviceNDArray DeviceNDArray::as_read_only() const {
  DeviceNDArray array = *this;
  array.read_only_ = true;
  return array;
}

DeviceNDArray DeviceNDArray::over(Layout layout, std::int64_t offset_bytes) const {
  DeviceNDArray view;
  view.element_ = element_;
  view.layout_ = std::move(layout);
  view.buffer_ = buffer_;
  view.offset_bytes_ = offset_bytes_ + offset_bytes;
  view.read_only_ = read_only_;
  return view;
}

DeviceNDArray DeviceNDArray::as_element(const ElementType& element) const {
  DeviceNDArray view = over(layout_.reinterpreted(element.size_bytes));
  view.element_ = element;
  return view;
}

Expected<DeviceNDArray> DeviceNDArray::try_reshape(std::span<const std::int64_t> shape, Order order) const {
  return attempt([&] { return reshape(shape, order); });
}

DeviceNDArray DeviceNDArray::reshape(std::span<const std::int64_t> shape, Order order) const {
  if (std::optional<Layout> layout = layout_.reshaped(shape, order)) return over(*std::move(layout));
  throw Error(ErrorCode::usage, fmt::format("cannot reshape {} to {} without copying; copy() it first",
                                            describe(*this), shape_text(shape)));
}

DeviceNDArray DeviceNDArray::ravel(Order order, std::optional<StreamView> stream) const {
  const std::int64_t flat[] = {-1};
  if (std::optional<Layout> layout = layout_.reshaped(flat, order)) return over(*std::move(layout));
  return copy(order, stream).reshape(flat, order);
}

std::vector<DeviceNDArray> DeviceNDArray::split(std::int64_t section) const {
  if (ndim() != 1 || section < 1)
    throw Error(ErrorCode::usage,
                fmt::format("cannot split {} into sections of {}; split a 1-D array into sections of "
                            "1 element or more",
                            describe(*this), section));
  std::vector<DeviceNDArray> sections;
  for (std::int64_t begin = 0; begin < shape()[0]; begin += section)
    sections.push_back(operator()(Slice{begin, std::min(begin + section, shape()[0])}));
  return sections;
}

DeviceNDArray DeviceNDArray::field(std::string_view name) const {
  // NDArray::field() computes the layout; the device address is never dereferenced.
  const NDArray as_host(nullptr, data(), element_, layout_);
  const NDArray field = as_host.field(name);
  DeviceNDArray view = over(field.layout(), field.data() - as_host.data());
  view.element_ = field.element();
  return view;
}

NDArray DeviceNDArray::fetch(const NDArray& target, std::optional<StreamView> stream) const {
  detail::require_alike(*this, "the device array", target, "the host array");
  const bool turned =
      (is_c_contiguous() && !is_f_contiguous() && target.is_f_contiguous() && !target.is_c_contiguous()) ||
      (is_f_contiguous() && !is_c_contiguous() && target.is_c_contiguous() && !target.is_f_contiguous());
  if (turned)
    throw Error(ErrorCode::usage,
                fmt::format("cannot copy the device array of {} to the host array of {}: the memory "
                            "orders differ; give a host array of the device array's order, or copy "
                            "to a new one",
                            describe(*this), describe(target)));
  if (target.is_read_only())
    throw Error(
        ErrorCode::usage,
        fmt::format("cannot copy to the host array of {}: it is read-only; give one that may be written",
                    describe(target)));
  if (size() > 0) runtime::copy_to_host(runtime::context_of(buffer_), side(target), side(*this), stream);
  return target;
}

NDArray DeviceNDArray::copy_to_host(std::optional<StreamView> stream) const {
  return fetch(NDArray(Shape(shape().begin(), shape().end()), element_, layout_.order()), stream);
}
NDArray DeviceNDArray::copy_to_host(const NDArray& target, std::optional<StreamView> stream) const {
  return fetch(target, stream);
}

void DeviceNDArray::send(const NDArray& source, std::optional<StreamView> stream) const {
  require_writable(*this);
  detail::require_alike(source, "the host array", *this, "the device array");
  if (size() > 0) runtime::copy_to_device(runtime::context_of(buffer_), side(*this), side(source), stream);
}

void DeviceNDArray::send(const DeviceNDArray& source, std::optional<StreamView> stream) const {
  require_writable(*this);
  detail::require_alike(source, "the device array", *this, "the device array");
  if (size() == 0) return;
  require_same_context(*this, source);
  runtime::copy_on_device(runtime::context_of(buffer_), side(*this), side(source), stream);
}

void DeviceNDArray::send(const CudaArrayInterface& source, std::shared_ptr<const void> owner,
                         std::optional<StreamView> stream) const {
  const std::shared_ptr<runtime::Context> context = runtime::shared_context_of(buffer_);
  const DeviceNDArray view = runtime::adopt_cuda_array(context, source, std::move(owner), !stream);
  if (stream && source.stream) runtime::wait_for_producer(context, *source.stream, stream);
  send(view, stream);
}

void DeviceNDArray::copy_to_device(const NDArray& source, std::optional<StreamView> stream) const {
  send(source, stream);
}
void DeviceNDArray::copy_to_device(const DeviceNDArray& source, std::optional<StreamView> stream) const {
  send(source, stream);
}

DeviceNDArray DeviceNDArray::copy(Order order, std::optional<StreamView> stream) const {
  DeviceBuffer memory =
      runtime::make_buffer(runtime::shared_context_of(buffer_), size_bytes(), stream.value_or(StreamView()));
  const DeviceNDArray made(std::move(memory), element_, layout_.contiguous(order), 0);
  made.send(*this, stream);
  return made;
}

void DeviceNDArray::assign(const NDArray& values, std::optional<StreamView> stream) const {
  send(NDArray(values.owner(), values.data(), values.element(), values.layout().broadcast(shape()),
               values.is_page_locked()),
       stream);
}

void DeviceNDArray::assign(const DeviceNDArray& values, std::optional<StreamView> stream) const {
  DeviceNDArray all = values;
  all.layout_ = values.layout_.broadcast(shape());
  send(all, stream);
}

void DeviceNDArray::assign_element(const std::byte* element, std::optional<StreamView> stream) const {
  require_writable(*this);
  if (size() == 0) return;
  // One element is copied, the device repeats it.
  DeviceBuffer one = runtime::make_buffer(runtime::shared_context_of(buffer_), element_.size_bytes,
                                          stream.value_or(StreamView()));
  const DeviceNDArray single(std::move(one), element_, Shape{});
  single.send(NDArray(nullptr, const_cast<std::byte*>(element), element_, single.layout()), stream);
  assign(single, stream);
}

void DeviceNDArray::read_element(void* value) const {
  if (size() != 1)
    throw Error(ErrorCode::usage, fmt::format("{} has {} elements, but exactly one is needed; index it first",
                                              describe(*this), size()));
  const Layout one(Shape(ndim(), 1), element_.size_bytes);
  runtime::copy_to_host(runtime::context_of(buffer_), {static_cast<std::byte*>(value), one, nullptr, false},
                        side(*this), {});
}

NDArray DeviceNDArray::host_view(const void* bytes, std::size_t size, const char* what) const {
  if (size != size_bytes())
    throw Error(
        ErrorCode::usage,
        fmt::format("cannot copy {} the device array of {} with shape {}: it has {} bytes, the host side {}; "
                    "give as many",
                    what, to_string(element_), shape_text(shape()), size_bytes(), size));
  return NDArray(nullptr, const_cast<void*>(bytes), element_, layout_.contiguous(Order::c));
}

void DeviceNDArray::copy_bytes_from_host(std::span<const std::byte> bytes,
                                         std::optional<StreamView> stream) const {
  send(host_view(bytes.data(), bytes.size(), "to"), stream);
}
void DeviceNDArray::copy_bytes_to_host(std::span<std::byte> bytes, std::optional<StreamView> stream) const {
  const NDArray target = host_view(bytes.data(), bytes.size(), "from");
  if (size() > 0) runtime::copy_to_host(runtime::context_of(buffer_), side(target), side(*this), stream);
}

DeviceRecord::DeviceRecord(DeviceNDArray array) : DeviceNDArray(std::move(array)) {
  if (ndim() == 0 && !dtype()) return;
  throw Error(ErrorCode::usage,
              fmt::format("{} is not one record; index a record array first", describe(*this)));
}

}  // namespace quern
