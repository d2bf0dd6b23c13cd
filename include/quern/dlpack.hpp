// SPDX-License-Identifier: Apache-2.0
// room: session
// DLPack, the C ABI by which array libraries hand arrays to each other (github.com/dmlc/dlpack, version 1.0).
// The structs below have that ABI's layout under names of quern's own, so that this header goes together with
// anybody's dlpack.h: cast between `dlpack::ManagedTensorVersioned*` and `DLManagedTensorVersioned*`.
#pragma once

#include <cstdint>
#include <memory>

#include "quern/device_array.hpp"
#include "quern/export.hpp"
#include "quern/host_memory.hpp"
#include "quern/ndarray.hpp"

namespace quern {

class Session;

namespace dlpack {

enum class DeviceType : std::int32_t { cpu = 1, cuda = 2, cuda_host = 3, cuda_managed = 13 };
struct Device {
  DeviceType type = DeviceType::cpu;
  std::int32_t id = 0;
};

enum class TypeCode : std::uint8_t {
  integer = 0,
  unsigned_integer = 1,
  floating = 2,
  opaque = 3,
  bfloat = 4,
  complex = 5,
  boolean = 6
};
struct DataType {
  TypeCode code = TypeCode::floating;
  std::uint8_t bits = 32;
  std::uint16_t lanes = 1;
};

/// DLTensor: strides count elements; null means C-contiguous.
struct Tensor {
  void* data = nullptr;
  Device device;
  std::int32_t ndim = 0;
  DataType dtype;
  std::int64_t* shape = nullptr;
  std::int64_t* strides = nullptr;
  std::uint64_t byte_offset = 0;
};

/// DLManagedTensor, before version 1.0.
struct ManagedTensor {
  Tensor tensor;
  void* context = nullptr;
  void (*deleter)(ManagedTensor*) = nullptr;
};

struct Version {
  std::uint32_t major = 1;
  std::uint32_t minor = 0;
};
inline constexpr std::uint64_t kReadOnly = 1;
inline constexpr std::uint64_t kCopied = 2;

/// DLManagedTensorVersioned, from version 1.0 on.
struct ManagedTensorVersioned {
  Version version;
  void* context = nullptr;
  void (*deleter)(ManagedTensorVersioned*) = nullptr;
  std::uint64_t flags = 0;
  Tensor tensor;
};

}  // namespace dlpack

/// The array for another library, which calls the deleter when it is done; the memory lives until then.
/// Throws Error(usage) for element types that DLPack lacks (records) and for strides that are no multiple of
/// the element. Work on streams is the caller's to order.
QUERN_API dlpack::ManagedTensorVersioned* to_dlpack(const DeviceNDArray& array);
/// As host memory (kDLCPU): host arrays, and the host's side of mapped and managed ones.
QUERN_API dlpack::ManagedTensorVersioned* to_dlpack(const NDArray& array);
/// The same in the ABI before 1.0, which cannot say "read-only": such arrays are refused.
QUERN_API dlpack::ManagedTensor* to_dlpack_unversioned(const DeviceNDArray& array);
QUERN_API dlpack::ManagedTensor* to_dlpack_unversioned(const NDArray& array);

/// A view of another library's host array (kDLCPU, kDLCUDAHost, kDLCUDAManaged). The tensor becomes quern's:
/// its deleter runs when the last view goes, or now if this throws Error(usage).
QUERN_API NDArray from_dlpack(dlpack::ManagedTensorVersioned* tensor);
QUERN_API NDArray from_dlpack(dlpack::ManagedTensor* tensor);
/// A view of another library's device array (kDLCUDA, kDLCUDAHost, kDLCUDAManaged) in this session.
QUERN_API DeviceNDArray from_dlpack(const Session& session, dlpack::ManagedTensorVersioned* tensor);
QUERN_API DeviceNDArray from_dlpack(const Session& session, dlpack::ManagedTensor* tensor);

}  // namespace quern
