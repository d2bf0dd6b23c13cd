// SPDX-License-Identifier: Apache-2.0
#include "runtime/array/host_memory.hpp"

#include <fmt/format.h>

#include "quern/error.hpp"
#include "runtime/array/buffer.hpp"
#include "runtime/context/stream.hpp"
#include "runtime/device/exit.hpp"

namespace quern {
namespace runtime {
namespace {

/// The layout of a new array, whose memory begins with element 0.
Layout new_layout(Shape shape, const ElementType& element, Order order,
                  const std::optional<std::vector<std::int64_t>>& strides) {
  if (!strides) return Layout(std::move(shape), element.size_bytes, order);
  Layout layout(std::move(shape), element.size_bytes, *strides);
  if (layout.reach().lowest < 0)
    throw Error(
        ErrorCode::usage,
        fmt::format("a new array of shape {} cannot have strides of {} bytes: elements would lie before its "
                    "memory; make it with positive strides and take a view with negative steps",
                    shape_text(layout.shape()), shape_text(*strides)));
  return layout;
}

std::size_t bytes_of(const Layout& layout) { return layout.reach().size_bytes(); }

/// Host memory of the driver's, seen by the device.
std::shared_ptr<BufferState> host_state(const std::shared_ptr<Context>& context, std::size_t bytes,
                                        ResourceKind kind, unsigned flags, const char* what) {
  auto state = std::make_shared<BufferState>();
  state->context = context;
  state->size_bytes = bytes;
  if (bytes == 0) return state;
  context->work().reap();
  const CurrentContext current(*context);
  const driver::DriverTable& api = context->api();
  if (kind == ResourceKind::managed) {
    context->allocation().allocate_with_retry(
        [&] { return api.cuMemAllocManaged(&state->address, bytes, flags); }, "cuMemAllocManaged", bytes,
        what);
    state->host = reinterpret_cast<std::byte*>(state->address);
    state->memory = context->resources().own(release_of(kind, state->address, bytes));
    return state;
  }
  void* host = nullptr;
  context->allocation().allocate_with_retry([&] { return api.cuMemHostAlloc(&host, bytes, flags); },
                                            "cuMemHostAlloc", bytes, what);
  state->host = static_cast<std::byte*>(host);
  state->memory = context->resources().own(release_of(kind, host, bytes));
  if ((flags & CU_MEMHOSTALLOC_DEVICEMAP) != 0)
    context->check(api.cuMemHostGetDevicePointer_v2(&state->address, host, 0), "cuMemHostGetDevicePointer_v2",
                   "query where the device sees mapped memory");
  return state;
}

std::string overlap_hint(CUresult result) {
  if (result == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED)
    return "some of it is page-locked already; pin each array once, and none that overlap";
  return {};
}

}  // namespace

DeviceNDArray make_device_array(const std::shared_ptr<Context>& context, Shape shape,
                                const ElementType& element, const ArrayOptions& options) {
  Layout layout = new_layout(std::move(shape), element, options.order, options.strides_bytes);
  DeviceBuffer memory = make_buffer(context, bytes_of(layout), options.stream);
  return DeviceNDArray(std::move(memory), element, std::move(layout), 0);
}

NDArray make_pinned_array(const std::shared_ptr<Context>& context, Shape shape, const ElementType& element,
                          const ArrayOptions& options) {
  Layout layout = new_layout(std::move(shape), element, options.order, options.strides_bytes);
  auto state = host_state(context, bytes_of(layout), ResourceKind::pinned, CU_MEMHOSTALLOC_PORTABLE,
                          "page-locked host memory");
  std::byte* const data = state->host;
  return NDArray(std::move(state), data, element, std::move(layout), true);
}

MappedNDArray make_mapped_array(const std::shared_ptr<Context>& context, Shape shape,
                                const ElementType& element, const MappedOptions& options) {
  Layout layout = new_layout(std::move(shape), element, options.order, options.strides_bytes);
  unsigned flags = CU_MEMHOSTALLOC_DEVICEMAP;
  if (options.portable) flags |= CU_MEMHOSTALLOC_PORTABLE;
  if (options.write_combined) flags |= CU_MEMHOSTALLOC_WRITECOMBINED;
  auto state = host_state(context, bytes_of(layout), ResourceKind::mapped, flags, "mapped host memory");
  state->portable = options.portable;
  return MappedNDArray(DeviceNDArray(DeviceBuffer(std::move(state)), element, std::move(layout), 0));
}

ManagedNDArray make_managed_array(const std::shared_ptr<Context>& context, Shape shape,
                                  const ElementType& element, const ArrayOptions& options,
                                  bool attach_global) {
  Layout layout = new_layout(std::move(shape), element, options.order, options.strides_bytes);
  const unsigned flags = attach_global ? CU_MEM_ATTACH_GLOBAL : CU_MEM_ATTACH_HOST;
  auto state = host_state(context, bytes_of(layout), ResourceKind::managed, flags, "managed memory");
  state->portable = attach_global;
  return ManagedNDArray(DeviceNDArray(DeviceBuffer(std::move(state)), element, std::move(layout), 0));
}

Registration::Registration(std::shared_ptr<Context> context, const NDArray& array, unsigned flags)
    : context_(std::move(context)) {
  const Layout::Reach reach = array.layout().reach();
  begin_ = array.data() + reach.lowest;
  size_bytes_ = reach.size_bytes();
  if (size_bytes_ == 0) return;
  const CurrentContext current(*context_);
  const CUresult result = context_->api().cuMemHostRegister_v2(begin_, size_bytes_, flags);
  if (result == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED)
    throw Error(ErrorCode::usage,
                fmt::format("cannot page-lock the array of {}: {}", describe(array), overlap_hint(result)));
  context_->check(result, "cuMemHostRegister_v2",
                  [&] { return "page-lock the array of " + describe(array); });
  resource_ = context_->resources().own(release_of(ResourceKind::registered, begin_, size_bytes_));
  context_->locked_memory().add(begin_, size_bytes_, resource_);
}

PinnedScope pin(const std::shared_ptr<Context>& context, std::span<const NDArray> arrays) {
  std::vector<std::unique_ptr<Registration>> registrations;
  for (const NDArray& array : arrays)
    registrations.push_back(std::make_unique<Registration>(context, array, 0));
  return PinnedScope(std::move(registrations));
}

MappedScope map(const std::shared_ptr<Context>& context, std::span<const NDArray> arrays, StreamView stream) {
  std::vector<std::unique_ptr<Registration>> registrations;
  std::vector<MappedNDArray> views;
  const CurrentContext current(*context);
  for (const NDArray& array : arrays) {
    const auto& made = registrations.emplace_back(
        std::make_unique<Registration>(context, array, CU_MEMHOSTREGISTER_DEVICEMAP));
    auto state = std::make_shared<BufferState>();
    state->context = context;
    state->host = made->begin();
    state->size_bytes = made->size_bytes();
    state->read_only = array.is_read_only();
    if (state->size_bytes > 0)
      context->check(context->api().cuMemHostGetDevicePointer_v2(&state->address, made->begin(), 0),
                     "cuMemHostGetDevicePointer_v2", "query where the device sees mapped memory");
    views.push_back(MappedNDArray(DeviceNDArray(DeviceBuffer(std::move(state)), array.element(),
                                                array.layout(), array.data() - made->begin())));
  }
  return MappedScope(PinnedScope(std::move(registrations)), std::move(views),
                     StreamView(context.get(), stream_handle(stream, *context)));
}

}  // namespace runtime

MappedNDArray::MappedNDArray(DeviceNDArray array) : DeviceNDArray(std::move(array)) {
  if (size_bytes() > 0 && (buffer().state() == nullptr || buffer().state()->host == nullptr))
    throw Error(ErrorCode::usage,
                fmt::format("the host does not see the memory of {}; make it with mapped_array() or "
                            "managed_array()",
                            describe(*this)));
}

NDArray MappedNDArray::host() const {
  const runtime::BufferState* state = buffer().state().get();
  std::byte* const base = state != nullptr ? state->host : nullptr;
  const NDArray array(buffer().state(), base + offset_bytes(), element_, layout_, true);
  return is_read_only() ? array.as_read_only() : array;
}

std::vector<MappedNDArray> MappedNDArray::split(std::int64_t section) const {
  std::vector<MappedNDArray> sections;
  for (DeviceNDArray& part : DeviceNDArray::split(section)) sections.emplace_back(std::move(part));
  return sections;
}

namespace {

/// The memory from an array's first to its last byte, gaps included.
struct Extent {
  CUdeviceptr begin = 0;
  std::size_t size_bytes = 0;
};
Extent extent_of(const DeviceNDArray& array) {
  const auto reach = array.layout().reach();
  return {reinterpret_cast<CUdeviceptr>(static_cast<std::byte*>(array.data()) + reach.lowest),
          reach.size_bytes()};
}

CUmemLocation location_of(Where where, const runtime::Context& context) {
  if (where == Where::host) return {CU_MEM_LOCATION_TYPE_HOST, 0};
  return {CU_MEM_LOCATION_TYPE_DEVICE, context.device().handle};
}

CUmem_advise advice_of(MemoryAdvice advice) {
  switch (advice) {
    case MemoryAdvice::read_mostly:
      return CU_MEM_ADVISE_SET_READ_MOSTLY;
    case MemoryAdvice::unset_read_mostly:
      return CU_MEM_ADVISE_UNSET_READ_MOSTLY;
    case MemoryAdvice::preferred_location:
      return CU_MEM_ADVISE_SET_PREFERRED_LOCATION;
    case MemoryAdvice::unset_preferred_location:
      return CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION;
    case MemoryAdvice::accessed_by:
      return CU_MEM_ADVISE_SET_ACCESSED_BY;
    case MemoryAdvice::unset_accessed_by:
      return CU_MEM_ADVISE_UNSET_ACCESSED_BY;
  }
  throw Error(ErrorCode::usage, "the advice is none of MemoryAdvice");
}

}  // namespace

void ManagedNDArray::prefetch(Where where, StreamView stream) const {
  if (size_bytes() == 0) return;
  const runtime::Context& context = runtime::context_of(buffer());
  const runtime::CurrentContext current(context);
  const Extent extent = extent_of(*this);
  context.check(
      context.api().cuMemPrefetchAsync_v2(extent.begin, extent.size_bytes, location_of(where, context), 0,
                                          runtime::stream_handle(stream, context)),
      "cuMemPrefetchAsync_v2", "prefetch managed memory");
}

void ManagedNDArray::advise(MemoryAdvice advice, Where where) const {
  if (size_bytes() == 0) return;
  const runtime::Context& context = runtime::context_of(buffer());
  const runtime::CurrentContext current(context);
  const Extent extent = extent_of(*this);
  context.check(context.api().cuMemAdvise_v2(extent.begin, extent.size_bytes, advice_of(advice),
                                             location_of(where, context)),
                "cuMemAdvise_v2", "advise on managed memory");
}

PinnedScope::PinnedScope(std::vector<std::unique_ptr<runtime::Registration>> registrations)
    : registrations_(std::move(registrations)) {}
PinnedScope::PinnedScope(PinnedScope&&) noexcept = default;
PinnedScope& PinnedScope::operator=(PinnedScope&&) noexcept = default;

/// Queued copies hold the lock; they end first, so that nothing is locked beyond the scope.
PinnedScope::~PinnedScope() {
  for (const std::unique_ptr<runtime::Registration>& registration : registrations_) {
    if (runtime::process_is_exiting() || runtime::exit_has_begun()) return;
    try {
      if (registration->context()->work().count() > 0) registration->context()->waiting().synchronize();
    } catch (const std::exception&) {  // a fault is reported by the next call again; its work is dropped
      registration->context()->work().reap();
    }
  }
}

MappedScope::~MappedScope() {
  if (views_.empty()) return;  // moved from, or nothing was mapped
  try {
    stream_.synchronize();
  } catch (
      const std::exception&) {  // a fault is reported by the next call again; the arrays are still released
  }
}

}  // namespace quern
