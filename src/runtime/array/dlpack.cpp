// SPDX-License-Identifier: Apache-2.0
// Arrays that other libraries hand over by DLPack.
#include "runtime/array/dlpack.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>
#include <utility>

#include "quern/error.hpp"
#include "runtime/array/buffer.hpp"
#include "runtime/array/interop.hpp"

namespace quern {
namespace runtime {
namespace {

using namespace dlpack;

static_assert(sizeof(Tensor) == 48 && sizeof(ManagedTensor) == 64 && sizeof(ManagedTensorVersioned) == 80,
              "the layout of DLPack 1.3 on 64-bit machines");
constexpr std::uint32_t kMajorVersion = 1;

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

/// DLDataTypeCode, by number. The first ones are families, to be followed by the number of bits, but for 3.
constexpr std::string_view kTypeNames[] = {"int",
                                           "uint",
                                           "float",
                                           "opaque handles",
                                           "bfloat",
                                           "complex",
                                           "bool",
                                           "float8_e3m4",
                                           "float8_e4m3",
                                           "float8_e4m3b11fnuz",
                                           "float8_e4m3fn",
                                           "float8_e4m3fnuz",
                                           "float8_e5m2",
                                           "float8_e5m2fnuz",
                                           "float8_e8m0fnu",
                                           "float6_e2m3fn",
                                           "float6_e3m2fn",
                                           "float4_e2m1fn"};
constexpr std::size_t kFamilies = 7;

/// Names of the DLDeviceType values, for messages.
constexpr std::pair<int, std::string_view> kDevices[] = {
    {1, "ordinary host"},
    {2, "CUDA device"},
    {3, "page-locked CUDA host"},
    {4, "OpenCL"},
    {7, "Vulkan"},
    {8, "Metal"},
    {9, "VPI"},
    {10, "ROCm"},
    {11, "page-locked ROCm host"},
    {12, "extension device"},
    {13, "managed CUDA"},
    {14, "oneAPI"},
    {15, "WebGPU"},
    {16, "Hexagon"},
    {17, "MAIA"},
    {18, "Trainium"},
};

std::string memory_text(DeviceType type) {
  for (const auto& [number, name] : kDevices)
    if (number == static_cast<int>(type)) return fmt::format("it lies in {} memory", name);
  return fmt::format("it lies on a device of the unknown type {}", static_cast<int>(type));
}

std::string type_text(const DataType& type) {
  const auto code = static_cast<std::size_t>(type.code);
  std::string text;
  if (code >= std::size(kTypeNames))
    text = fmt::format("{}-bit elements of the unknown type code {}", type.bits, code);
  else
    text = code < kFamilies && type.code != TypeCode::opaque
               ? fmt::format("{}{}", kTypeNames[code], type.bits)
               : std::string(kTypeNames[code]);
  return type.lanes == 1 ? text : fmt::format("vectors of {} lanes of {}", type.lanes, text);
}

ElementType element_of(const DataType& type) {
  for (const TypeRow& row : kTypes)
    if (row.code == type.code && 8 * size_bytes(row.dtype) == type.bits && type.lanes == 1) return row.dtype;
  refuse_dlpack(fmt::format(
      "its elements are {}, which quern does not have; convert them, or hand the same memory over "
      "as uint8",
      type_text(type)));
}

/// If the major version differs, only the version and the deleter may be read.
void check_version(const ManagedTensorVersioned& tensor) {
  if (tensor.version.major != kMajorVersion)
    refuse_dlpack(
        fmt::format("it has version {}.{} of the ABI, and quern knows version {}; ask its producer "
                    "for that one (max_version)",
                    tensor.version.major, tensor.version.minor, kMajorVersion));
}
void check_version(const ManagedTensor&) {}

/// From here on quern owns the tensor, even if an error follows.
template <class Managed>
std::shared_ptr<const Managed> own(Managed* tensor) {
  if (tensor == nullptr) refuse_dlpack("the tensor is null");
  const std::shared_ptr<const Managed> owner(tensor, [](Managed* done) {
    if (done->deleter != nullptr) done->deleter(done);
  });
  check_version(*owner);
  return owner;
}

bool is_read_only(const ManagedTensorVersioned& tensor) { return (tensor.flags & kReadOnly) != 0; }
bool is_read_only(const ManagedTensor&) { return false; }

Layout layout_of(const Tensor& tensor, std::size_t item) {
  if (tensor.ndim < 0 || (tensor.ndim > 0 && tensor.shape == nullptr)) refuse_dlpack("it has no shape");
  Shape shape(tensor.shape, tensor.shape + tensor.ndim);
  if (tensor.strides == nullptr) return Layout(std::move(shape), item);
  std::vector<std::int64_t> strides(tensor.strides, tensor.strides + tensor.ndim);
  for (std::int64_t& stride : strides)
    if (__builtin_mul_overflow(stride, static_cast<std::int64_t>(item), &stride))
      refuse_dlpack("a stride overflows");
  return Layout(std::move(shape), item, std::move(strides));
}

/// A tensor's description, checked.
struct Described {
  ElementType element;
  Layout layout;
  std::byte* data;
};
Described describe_tensor(const Tensor& tensor) {
  Described it{element_of(tensor.dtype), {}, static_cast<std::byte*>(tensor.data)};
  it.layout = layout_of(tensor, it.element.size_bytes);
  if (it.data != nullptr)
    it.data += tensor.byte_offset;
  else if (it.layout.size() > 0)
    refuse_dlpack("its address is null, but it has elements");
  return it;
}

template <class Managed>
NDArray take_host(std::shared_ptr<const Managed> managed) {
  const Tensor& tensor = managed->tensor;
  const DeviceType device = tensor.device.type;
  if (device != DeviceType::cpu && device != DeviceType::cuda_host && device != DeviceType::cuda_managed)
    refuse_dlpack(fmt::format(
        "{}, not in host memory; {}", memory_text(device),
        device == DeviceType::cuda ? "give a session to take it" : "let its producer copy it to the host"));
  Described it = describe_tensor(tensor);
  const bool read_only = is_read_only(*managed);
  const NDArray array(std::move(managed), it.data, std::move(it.element), std::move(it.layout));
  return read_only ? array.as_read_only() : array;
}

template <class Managed>
DeviceNDArray take_device(const std::shared_ptr<Context>& context, std::shared_ptr<const Managed> managed) {
  const Tensor& tensor = managed->tensor;
  const DeviceType device = tensor.device.type;
  if (device == DeviceType::cpu)
    refuse_dlpack("it lies in ordinary host memory; take it as a host array and to_device() it");
  if (device != DeviceType::cuda && device != DeviceType::cuda_host && device != DeviceType::cuda_managed)
    refuse_dlpack(fmt::format("{}, which kernels do not reach; let its producer copy it to the host",
                              memory_text(device)));
  const Described it = describe_tensor(tensor);
  CudaArrayInterface array;
  array.shape.assign(it.layout.shape().begin(), it.layout.shape().end());
  array.strides_bytes.emplace(it.layout.strides_bytes().begin(), it.layout.strides_bytes().end());
  array.typestr = typestr(it.element);
  array.data = it.data;
  array.read_only = is_read_only(*managed);
  return adopt_cuda_array(context, array, std::move(managed), false);
}

/// A tensor in ordinary host memory is copied to the device; others are copied on it.
template <class Managed>
void copy_tensor(const DeviceNDArray& to, Managed* source, std::optional<StreamView> stream) {
  std::shared_ptr<const Managed> managed = own(source);
  const auto copy = [&](const auto& from) {
    stream ? to.copy_to_device(from, *stream) : to.copy_to_device(from);
  };
  if (managed->tensor.device.type == DeviceType::cpu)
    copy(take_host(std::move(managed)));
  else
    copy(take_device(shared_context_of(to.buffer()), std::move(managed)));
}

}  // namespace

dlpack::DataType dlpack_type(Dtype dtype) noexcept {
  return {kTypes[static_cast<std::size_t>(dtype)].code, static_cast<std::uint8_t>(8 * size_bytes(dtype)), 1};
}

void refuse_dlpack(const std::string& why) {
  throw Error(ErrorCode::usage, "cannot exchange the array by DLPack: " + why);
}

NDArray take_host_tensor(ManagedTensorVersioned* tensor) {
  return take_host<ManagedTensorVersioned>(own(tensor));
}
NDArray take_host_tensor(ManagedTensor* tensor) { return take_host<ManagedTensor>(own(tensor)); }
DeviceNDArray take_device_tensor(const std::shared_ptr<Context>& context, ManagedTensorVersioned* tensor) {
  return take_device(context, own(tensor));
}
DeviceNDArray take_device_tensor(const std::shared_ptr<Context>& context, ManagedTensor* tensor) {
  return take_device(context, own(tensor));
}

}  // namespace runtime

void DeviceNDArray::copy_to_device(dlpack::ManagedTensorVersioned* source,
                                   std::optional<StreamView> stream) const {
  runtime::copy_tensor(*this, source, stream);
}
void DeviceNDArray::copy_to_device(dlpack::ManagedTensor* source, std::optional<StreamView> stream) const {
  runtime::copy_tensor(*this, source, stream);
}

}  // namespace quern
