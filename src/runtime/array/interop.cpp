// SPDX-License-Identifier: Apache-2.0
#include "runtime/array/interop.hpp"

#include <fmt/format.h>

#include "quern/error.hpp"
#include "runtime/array/buffer.hpp"
#include "runtime/context/stream.hpp"

namespace quern {
namespace runtime {
namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw Error(ErrorCode::usage, fmt::format("cannot take the CUDA array: {}", why));
}

ElementType element_of(const CudaArrayInterface& array) {
  const std::optional<ElementType> element = element_of_typestr(array.typestr);
  if (!element)
    refuse(
        fmt::format("its element type '{}' has no counterpart in kernels; convert it first", array.typestr));
  if (!array.descr) return *element;
  if (array.descr->size_bytes != element->size_bytes)
    refuse(fmt::format("its descr has {} bytes, its typestr '{}' {}; correct the producer",
                       array.descr->size_bytes, array.typestr, element->size_bytes));
  return *array.descr;
}

/// Nothing if the driver has no such attribute of the address.
template <class T>
std::optional<T> attribute(const Context& context, CUpointer_attribute which, std::uintptr_t address) {
  T value{};
  const CUresult result = context.api().cuPointerGetAttribute(&value, which, address);
  if (result == CUDA_ERROR_INVALID_VALUE) return std::nullopt;
  context.check(result, "cuPointerGetAttribute", "ask about the address of an array");
  return value;
}

/// True for memory of another context, but for memory that all contexts share. The driver names no context
/// for memory that belongs to none, such as that of its pools: such memory is taken.
bool is_of_another_context(const Context& context, std::uintptr_t address) {
  const CUcontext owner =
      attribute<CUcontext>(context, CU_POINTER_ATTRIBUTE_CONTEXT, address).value_or(nullptr);
  if (owner == nullptr || owner == context.handle()) return false;
  if (attribute<unsigned>(context, CU_POINTER_ATTRIBUTE_IS_MANAGED, address).value_or(0) != 0) return false;
  const auto kind = attribute<unsigned>(context, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
  if (kind != CU_MEMORYTYPE_HOST) return true;
  void* const host = attribute<void*>(context, CU_POINTER_ATTRIBUTE_HOST_POINTER, address).value_or(nullptr);
  unsigned flags = 0;
  const CUresult result = context.api().cuMemHostGetFlags(&flags, host);
  if (result == CUDA_ERROR_INVALID_VALUE) return true;
  context.check(result, "cuMemHostGetFlags", "ask which contexts see host memory");
  return (flags & CU_MEMHOSTALLOC_PORTABLE) == 0;
}

/// The address must be one that this context's kernels can use.
void check_address(const Context& context, const void* address) {
  const CurrentContext current(context);
  int ordinal = -1;
  const CUresult result = context.api().cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                                              reinterpret_cast<std::uintptr_t>(address));
  if (result != CUDA_SUCCESS)
    refuse(fmt::format(
        "{} does not know its address {}; give memory of the same driver, or copy through the host",
        context.device().name, address));
  if (ordinal != context.device().ordinal)
    refuse(fmt::format("it lies on device {}, the session is on device {}; open a session there", ordinal,
                       context.device().ordinal));
  if (is_of_another_context(context, reinterpret_cast<std::uintptr_t>(address)))
    refuse(
        "it belongs to another session than the one that takes it, or to another context\nhint: "
        "make "
        "it with the same session, or share it: a portable mapped_array(), or a managed_array()");
}

}  // namespace

void wait_for_producer(const std::shared_ptr<Context>& context, std::uintptr_t stream,
                       std::optional<StreamView> on) {
  if (stream == 0) refuse("its stream is 0, which the interface forbids (1 is the legacy default stream)");
  auto* const producer =
      reinterpret_cast<CUstream>(stream);  // 1 and 2 are CU_STREAM_LEGACY and CU_STREAM_PER_THREAD
  if (on)
    order_after(context, StreamView(context.get(), producer), *on);
  else
    context->waiting().synchronize(producer);
}

DeviceNDArray adopt_cuda_array(const std::shared_ptr<Context>& context, const CudaArrayInterface& array,
                               std::shared_ptr<const void> owner, bool wait) {
  if (array.version < 1 || array.version > 3)
    refuse(fmt::format("version {} of the interface is unknown; 1 to 3 are", array.version));
  if (array.mask != nullptr) refuse("it is a masked array; give its data and its mask as two arrays");
  const ElementType element = element_of(array);
  Layout layout = array.strides_bytes ? Layout(array.shape, element.size_bytes, *array.strides_bytes)
                                      : Layout(array.shape, element.size_bytes);
  if (layout.size() > 0) {
    if (array.data == nullptr) refuse("its address is null, but it has elements");
    check_address(*context, array.data);
  }
  if (wait && array.stream) wait_for_producer(context, *array.stream, {});
  const Layout::Reach reach = layout.reach();
  const CUdeviceptr first =
      reinterpret_cast<std::uintptr_t>(array.data) + static_cast<std::uint64_t>(reach.lowest);
  DeviceBuffer memory = adopt_buffer(context, layout.size() > 0 ? first : 0, reach.size_bytes(),
                                     std::move(owner), array.read_only);
  return DeviceNDArray(std::move(memory), element, std::move(layout), -reach.lowest);
}

}  // namespace runtime

CudaArrayInterface DeviceNDArray::cuda_array_interface(std::optional<StreamView> stream) const {
  if (buffer_.state() != nullptr) buffer_.state()->context->require_alive();
  CudaArrayInterface array;
  array.shape.assign(shape().begin(), shape().end());
  array.typestr = typestr(element_);
  array.data = size() > 0 ? data() : nullptr;
  array.read_only = is_read_only();
  if (!is_c_contiguous()) array.strides_bytes.emplace(strides_bytes().begin(), strides_bytes().end());
  if (element_.record != nullptr) array.descr = element_;
  if (stream) {
    const auto handle = reinterpret_cast<std::uintptr_t>(stream->handle());
    array.stream = handle == 0 ? 1 : handle;
  }
  return array;
}

}  // namespace quern
