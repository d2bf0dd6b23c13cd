// SPDX-License-Identifier: Apache-2.0
// component: abi
// The structs of DLPack, the C ABI by which array libraries hand arrays to each other
// (github.com/dmlc/dlpack, version 1.3). They have that ABI's layout and names of quern's own, so that a
// program can include this header and any dlpack.h: cast between `dlpack::ManagedTensorVersioned*` and
// `DLManagedTensorVersioned*`.
#pragma once

#include <cstdint>

namespace quern::dlpack {

/// Producers may use other device types; quern rejects them by name.
enum class DeviceType : std::int32_t { cpu = 1, cuda = 2, cuda_host = 3, cuda_managed = 13 };
struct Device {
  DeviceType type = DeviceType::cpu;
  std::int32_t id = 0;
};

/// The codes of quern's element types; producers may use others, which quern rejects by name.
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

/// DLTensor: strides count elements; null, before version 1.2, means C-contiguous.
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

/// Another minor version adds devices and element types, another major one changes the structs.
struct Version {
  std::uint32_t major = 1;
  std::uint32_t minor = 3;
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

}  // namespace quern::dlpack
