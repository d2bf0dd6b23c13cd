// SPDX-License-Identifier: Apache-2.0
#include "quern/dlpack.hpp"

#include <fmt/format.h>

#include "quern/error.hpp"
#include "quern/session.hpp"
#include "runtime/buffer.hpp"

namespace quern {
namespace {

using namespace dlpack;

static_assert(sizeof(Tensor) == 48 && sizeof(ManagedTensor) == 64 && sizeof(ManagedTensorVersioned) == 80,
              "the layout of DLPack 1.0 on 64-bit machines");

struct TypeRow {
  Dtype dtype;
  TypeCode code;
};
constexpr TypeRow kTypes[] = {
    {Dtype::bool_, TypeCode::boolean},           {Dtype::int8, TypeCode::integer},
    {Dtype::int16, TypeCode::integer},           {Dtype::int32, TypeCode::integer},
    {Dtype::int64, TypeCode::integer},           {Dtype::uint8, TypeCode::unsigned_integer},
    {Dtype::uint16, TypeCode::unsigned_integer}, {Dtype::uint32, TypeCode::unsigned_integer},
    {Dtype::uint64, TypeCode::unsigned_integer}, {Dtype::float16, TypeCode::floating},
    {Dtype::bfloat16, TypeCode::bfloat},         {Dtype::float32, TypeCode::floating},
    {Dtype::float64, TypeCode::floating},        {Dtype::complex64, TypeCode::complex},
    {Dtype::complex128, TypeCode::complex},
};

[[noreturn]] void refuse(const std::string& why) {
  throw Error(ErrorCode::usage, "cannot exchange the array by DLPack: " + why);
}

// --- export

/// What an exported tensor points to, and what keeps the memory.
template <class Managed>
struct Exported {
  Managed managed;
  Shape shape;
  std::vector<std::int64_t> strides;
  std::shared_ptr<const void> keep;
};

DataType data_type(const StridedArray& array) {
  if (!array.dtype())
    refuse(fmt::format("it has no word for elements that are a {}; hand over single fields",
                       to_string(array.element())));
  return {kTypes[static_cast<std::size_t>(*array.dtype())].code,
          static_cast<std::uint8_t>(8 * array.element().size_bytes), 1};
}

template <class Managed>
Managed* export_array(const StridedArray& array, void* data, dlpack::Device device,
                      std::shared_ptr<const void> keep, bool read_only) {
  auto exported = std::make_unique<Exported<Managed>>();
  exported->managed.tensor.dtype = data_type(array);
  exported->shape.assign(array.shape().begin(), array.shape().end());
  const auto item = static_cast<std::int64_t>(array.element().size_bytes);
  for (std::size_t axis = 0; axis < array.ndim(); ++axis) {
    const std::int64_t stride = array.strides_bytes()[axis];
    if (stride % item != 0 && array.shape()[axis] > 1)
      refuse(fmt::format("a stride of {} bytes is no whole number of {}; copy() it first", stride,
                         to_string(array.element())));
    exported->strides.push_back(stride / item);
  }
  exported->keep = std::move(keep);
  Managed& managed = exported->managed;
  managed.tensor.data = array.size() > 0 ? data : nullptr;
  managed.tensor.device = device;
  managed.tensor.ndim = static_cast<std::int32_t>(array.ndim());
  managed.tensor.shape = exported->shape.data();
  managed.tensor.strides = exported->strides.data();
  if constexpr (std::is_same_v<Managed, ManagedTensorVersioned>)
    managed.flags = read_only ? kReadOnly : 0;
  else if (read_only)
    refuse("it is read-only, which the ABI before 1.0 cannot say; use to_dlpack()");
  managed.deleter = [](Managed* done) { delete static_cast<Exported<Managed>*>(done->context); };
  managed.context = exported.get();
  return &exported.release()->managed;
}

template <class Managed>
Managed* export_device(const DeviceNDArray& array) {
  // A view may need its context as long as its memory.
  auto keep = std::make_shared<const DeviceNDArray>(array);
  const std::int32_t id =
      array.buffer().state() != nullptr ? array.buffer().state()->context->device().ordinal : 0;
  return export_array<Managed>(array, array.data(), {DeviceType::cuda, id}, std::move(keep),
                               array.is_read_only());
}

template <class Managed>
Managed* export_host(const NDArray& array) {
  return export_array<Managed>(array, array.data(), {DeviceType::cpu, 0}, array.owner(),
                               array.is_read_only());
}

// --- import

std::uint64_t flags_of(const ManagedTensorVersioned& tensor) { return tensor.flags; }
std::uint64_t flags_of(const ManagedTensor&) { return 0; }
void check_version(const ManagedTensorVersioned& tensor) {
  if (tensor.version.major != 1)
    refuse(fmt::format("version {} of the ABI is unknown; 1 is", tensor.version.major));
}
void check_version(const ManagedTensor&) {}

template <class Managed>
std::shared_ptr<const void> own(Managed* tensor) {
  if (tensor == nullptr) refuse("the tensor is null");
  return {tensor, [tensor](const void*) {
            if (tensor->deleter != nullptr) tensor->deleter(tensor);
          }};
}

ElementType element_of(const DataType& type) {
  for (const TypeRow& row : kTypes)
    if (row.code == type.code && 8 * size_bytes(row.dtype) == type.bits && type.lanes == 1) return row.dtype;
  refuse(fmt::format("its elements (code {}, {} bits, {} lanes) have no counterpart in kernels",
                     static_cast<int>(type.code), type.bits, type.lanes));
}

Layout layout_of(const Tensor& tensor, std::size_t item) {
  if (tensor.ndim < 0 || (tensor.ndim > 0 && tensor.shape == nullptr)) refuse("it has no shape");
  Shape shape(tensor.shape, tensor.shape + tensor.ndim);
  if (tensor.strides == nullptr) return Layout(std::move(shape), item);
  std::vector<std::int64_t> strides(tensor.strides, tensor.strides + tensor.ndim);
  for (std::int64_t& stride : strides)
    if (__builtin_mul_overflow(stride, static_cast<std::int64_t>(item), &stride))
      refuse("a stride overflows");
  return Layout(std::move(shape), item, std::move(strides));
}

template <class Managed>
NDArray import_host(Managed* managed) {
  std::shared_ptr<const void> owner = own(managed);
  check_version(*managed);
  const Tensor& tensor = managed->tensor;
  if (tensor.device.type != DeviceType::cpu && tensor.device.type != DeviceType::cuda_host &&
      tensor.device.type != DeviceType::cuda_managed)
    refuse(fmt::format("it lies on a device of type {}, not in host memory; give a session to take it",
                       static_cast<int>(tensor.device.type)));
  const ElementType element = element_of(tensor.dtype);
  const NDArray array(std::move(owner), static_cast<std::byte*>(tensor.data) + tensor.byte_offset, element,
                      layout_of(tensor, element.size_bytes));
  return (flags_of(*managed) & kReadOnly) != 0 ? array.as_read_only() : array;
}

template <class Managed>
DeviceNDArray import_device(const Session& session, Managed* managed) {
  std::shared_ptr<const void> owner = own(managed);
  check_version(*managed);
  const Tensor& tensor = managed->tensor;
  if (tensor.device.type == DeviceType::cpu)
    refuse("it lies in ordinary host memory; take it as a host array and to_device() it");
  const ElementType element = element_of(tensor.dtype);
  const Layout layout = layout_of(tensor, element.size_bytes);
  CudaArrayInterface array;
  array.shape.assign(layout.shape().begin(), layout.shape().end());
  array.strides_bytes.emplace(layout.strides_bytes().begin(), layout.strides_bytes().end());
  array.typestr = element.dtype == Dtype::bfloat16 ? "|V2" : typestr(element);
  array.descr = element;
  array.data = tensor.data == nullptr ? nullptr : static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  array.read_only = (flags_of(*managed) & kReadOnly) != 0;
  return session.adopt(array, std::move(owner));
}

}  // namespace

ManagedTensorVersioned* to_dlpack(const DeviceNDArray& array) {
  return export_device<ManagedTensorVersioned>(array);
}
ManagedTensorVersioned* to_dlpack(const NDArray& array) { return export_host<ManagedTensorVersioned>(array); }
ManagedTensor* to_dlpack_unversioned(const DeviceNDArray& array) {
  return export_device<ManagedTensor>(array);
}
ManagedTensor* to_dlpack_unversioned(const NDArray& array) { return export_host<ManagedTensor>(array); }

NDArray from_dlpack(ManagedTensorVersioned* tensor) { return import_host(tensor); }
NDArray from_dlpack(ManagedTensor* tensor) { return import_host(tensor); }
DeviceNDArray from_dlpack(const Session& session, ManagedTensorVersioned* tensor) {
  return import_device(session, tensor);
}
DeviceNDArray from_dlpack(const Session& session, ManagedTensor* tensor) {
  return import_device(session, tensor);
}

}  // namespace quern
