// SPDX-License-Identifier: Apache-2.0
#include "quern/dlpack.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "quern/error.hpp"
#include "quern/session.hpp"
#include "runtime/array/buffer.hpp"
#include "runtime/array/dlpack.hpp"
#include "runtime/context/stream.hpp"

namespace quern {
namespace {

using namespace dlpack;
using runtime::refuse_dlpack;

/// The object behind an exported tensor; it keeps the memory alive.
template <class Managed>
struct Exported {
  Managed managed;
  Shape shape;
  std::vector<std::int64_t> strides;
  std::shared_ptr<const void> keep;
};

DataType data_type(const StridedArray& array) {
  if (!array.dtype())
    refuse_dlpack(fmt::format("DLPack has no data type for elements that are a {}; export single fields",
                              to_string(array.element())));
  return runtime::dlpack_type(*array.dtype());
}

std::vector<std::int64_t> strides_in_elements(const StridedArray& array) {
  const auto item = static_cast<std::int64_t>(array.element().size_bytes);
  std::vector<std::int64_t> strides;
  for (std::size_t axis = 0; axis < array.ndim(); ++axis) {
    const std::int64_t stride = array.strides_bytes()[axis];
    if (stride % item != 0 && array.shape()[axis] > 1)
      refuse_dlpack(fmt::format("a stride of {} bytes is not a multiple of {}; copy() it first", stride,
                                to_string(array.element())));
    strides.push_back(stride / item);
  }
  return strides;
}

void set_flags(ManagedTensorVersioned& managed, bool read_only, bool copied) {
  managed.flags = (read_only ? kReadOnly : 0) | (copied ? kCopied : 0);
}
void set_flags(ManagedTensor&, bool read_only, bool) {
  if (read_only)
    refuse_dlpack("it is read-only, which the ABI before 1.0 cannot express; use to_dlpack(), or copy() it");
}

template <class Managed>
Managed* export_array(const StridedArray& array, void* data, dlpack::Device device,
                      std::shared_ptr<const void> keep, bool read_only, bool copied) {
  auto exported = std::make_unique<Exported<Managed>>();
  Managed& managed = exported->managed;
  set_flags(managed, read_only, copied);
  managed.tensor.dtype = data_type(array);
  exported->shape.assign(array.shape().begin(), array.shape().end());
  exported->strides = strides_in_elements(array);
  exported->keep = std::move(keep);
  managed.tensor.data = array.size() > 0 ? data : nullptr;
  managed.tensor.device = device;
  managed.tensor.ndim = static_cast<std::int32_t>(array.ndim());
  managed.tensor.shape = exported->shape.data();
  managed.tensor.strides = exported->strides.data();
  managed.deleter = [](Managed* done) { delete static_cast<Exported<Managed>*>(done->context); };
  managed.context = exported.get();
  return &exported.release()->managed;
}

template <class Managed>
Managed* export_device(const DeviceNDArray& array, const ToDlpack& options) {
  // Keeps the context too: a view may need it as long as its memory.
  auto keep = std::make_shared<const DeviceNDArray>(array);
  const std::shared_ptr<runtime::Context> context =
      array.buffer().state() != nullptr ? array.buffer().state()->context : nullptr;
  if (context != nullptr) context->require_alive();
  const std::int32_t id = context != nullptr ? context->device().ordinal : 0;
  Managed* const tensor = export_array<Managed>(array, array.data(), {DeviceType::cuda, id}, std::move(keep),
                                                array.is_read_only(), options.copied);
  std::unique_ptr<Managed, void (*)(Managed*)> guard(tensor, tensor->deleter);
  if (context != nullptr && options.consumer)
    runtime::order_after(context, options.producer, *options.consumer);
  return guard.release();
}

template <class Managed>
Managed* export_host(const NDArray& array, bool copied) {
  return export_array<Managed>(array, array.data(), {DeviceType::cpu, 0}, array.owner(), array.is_read_only(),
                               copied);
}

template <class Managed>
DeviceNDArray import_device(const Session& session, Managed* tensor, const FromDlpack& options) {
  const std::shared_ptr<runtime::Context> context = session.default_stream().context()->shared_from_this();
  const DeviceNDArray array = runtime::take_device_tensor(context, tensor);
  if (!options.producer) return array;
  if (options.consumer)
    runtime::order_after(context, *options.producer, *options.consumer);
  else
    context->waiting().synchronize(runtime::stream_handle(*options.producer, *context));
  return array;
}

constexpr std::int64_t kNoOrder = -1;

}  // namespace

ManagedTensorVersioned* to_dlpack(const DeviceNDArray& array, const ToDlpack& options) {
  return export_device<ManagedTensorVersioned>(array, options);
}
ManagedTensorVersioned* to_dlpack(const NDArray& array, bool copied) {
  return export_host<ManagedTensorVersioned>(array, copied);
}
ManagedTensor* to_dlpack_unversioned(const DeviceNDArray& array, const ToDlpack& options) {
  return export_device<ManagedTensor>(array, options);
}
ManagedTensor* to_dlpack_unversioned(const NDArray& array) {
  return export_host<ManagedTensor>(array, false);
}

std::optional<StreamView> dlpack_consumer(std::int64_t stream) {
  if (stream == kNoOrder) return std::nullopt;
  if (stream <= 0)
    refuse_dlpack(
        fmt::format("its consumer's stream is {}, which the protocol forbids; give 1 for the legacy "
                    "default stream, 2 for the per-thread one, a CUstream, or -1 for none",
                    stream));
  return StreamView(nullptr, reinterpret_cast<void*>(stream));  // 1 and 2 are the driver's own names
}

std::int64_t dlpack_stream(StreamView consumer) noexcept {
  const auto handle = reinterpret_cast<std::intptr_t>(consumer.handle());
  return handle == 0 ? 1 : handle;
}

NDArray from_dlpack(ManagedTensorVersioned* tensor) { return runtime::take_host_tensor(tensor); }
NDArray from_dlpack(ManagedTensor* tensor) { return runtime::take_host_tensor(tensor); }
DeviceNDArray from_dlpack(const Session& session, ManagedTensorVersioned* tensor, const FromDlpack& options) {
  return import_device(session, tensor, options);
}
DeviceNDArray from_dlpack(const Session& session, ManagedTensor* tensor, const FromDlpack& options) {
  return import_device(session, tensor, options);
}

}  // namespace quern
