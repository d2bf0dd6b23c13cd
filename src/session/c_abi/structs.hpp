// SPDX-License-Identifier: Apache-2.0
// Converts the structs of C callers to C++ types, and back.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <list>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "quern/cuda_array_interface.hpp"
#include "quern/error.hpp"
#include "quern/launch_config.hpp"
#include "quern/layout.hpp"
#include "quern/ndarray.hpp"
#include "quern/quern.h"
#include "quern/where.hpp"

namespace quern::session::c_abi {

inline void require(bool condition, const char* message) {
  if (!condition) throw Error(ErrorCode::usage, message);
}

/// A struct that begins with struct_bytes: its name, and its size in the first version. Later fields follow
/// behind that.
template <class T>
struct Versioned;
#define QUERN_VERSIONED(type, first)                  \
  template <>                                         \
  struct Versioned<type> {                            \
    static constexpr const char* kName = #type;       \
    static constexpr std::size_t kFirstBytes = first; \
  }
QUERN_VERSIONED(QuernLaunch, offsetof(QuernLaunch, timeout_ns));
QUERN_VERSIONED(QuernSessionOptions, offsetof(QuernSessionOptions, bounds_compile_cache));
QUERN_VERSIONED(QuernCompileOptions, sizeof(QuernCompileOptions));
QUERN_VERSIONED(QuernCompileStats, sizeof(QuernCompileStats));
QUERN_VERSIONED(QuernCacheStats, sizeof(QuernCacheStats));
QUERN_VERSIONED(QuernStreamOptions, sizeof(QuernStreamOptions));
QUERN_VERSIONED(QuernCudaArray, offsetof(QuernCudaArray, descr));
QUERN_VERSIONED(QuernAllocator, offsetof(QuernAllocator, trim));
QUERN_VERSIONED(QuernSource, offsetof(QuernSource, defines));
QUERN_VERSIONED(QuernRecord, sizeof(QuernRecord));
QUERN_VERSIONED(QuernArrayType, sizeof(QuernArrayType));
QUERN_VERSIONED(QuernHostArray, sizeof(QuernHostArray));
QUERN_VERSIONED(QuernDeviceInfo, sizeof(QuernDeviceInfo));
QUERN_VERSIONED(QuernKernelInfo, offsetof(QuernKernelInfo, nvrtc_ms));
QUERN_VERSIONED(QuernParameter, sizeof(QuernParameter));
QUERN_VERSIONED(QuernMemoryStats, sizeof(QuernMemoryStats));
QUERN_VERSIONED(QuernFault, sizeof(QuernFault));
#undef QUERN_VERSIONED

/// Copies the known part of a caller's struct of `given_bytes` into `known`, which is zeros. Throws
/// Error(usage) for a size that no version had, Error(unsupported) if the rest is not 0.
void read_known(void* known, std::size_t known_bytes, const void* given, std::size_t given_bytes,
                std::size_t first_bytes, const char* name);

/// The caller's struct of any version; fields that the caller does not know are 0. `given` must not be null.
template <class T>
T read_struct(const T* given) {
  static_assert(std::is_trivially_copyable_v<T> && offsetof(T, struct_bytes) == 0);
  std::uint32_t bytes = 0;
  std::memcpy(&bytes, given, sizeof bytes);
  T known{};
  read_known(&known, sizeof known, given, bytes, Versioned<T>::kFirstBytes, Versioned<T>::kName);
  return known;
}

/// Throws Error(usage) for null and for a size that no version had.
void check_target(const void* target, std::size_t first_bytes, const char* name);

/// Copies as much of `result` as the caller's version has; its struct_bytes is kept. check_target() was
/// called.
template <class T>
void write_struct(T* target, T result) {
  check_target(target, Versioned<T>::kFirstBytes, Versioned<T>::kName);
  std::memcpy(&result.struct_bytes, target, sizeof result.struct_bytes);
  std::memcpy(target, &result, result.struct_bytes < sizeof result ? result.struct_bytes : sizeof result);
}

/// The C struct of an element type, with the objects that its pointers refer to. Not copyable: the pointers
/// refer into it.
class CElement {
 public:
  explicit CElement(const ElementType& element) : element_(describe(element)) {}
  CElement(const CElement&) = delete;
  CElement& operator=(const CElement&) = delete;
  const QuernElement& get() const noexcept { return element_; }

 private:
  QuernElement describe(const ElementType& element);
  QuernField describe(const Field& field);
  const QuernRecord* describe(const RecordType& record);

  // The list keeps the addresses of its elements; it is empty unless the type is a record.
  std::list<std::string> names_;
  std::list<Shape> shapes_;
  std::list<std::vector<QuernField>> fields_;
  std::list<QuernRecord> records_;
  QuernElement element_;
};

Dtype dtype_of(QuernDtype dtype);
Order order_of(QuernOrder order);
Where where_of(QuernWhere where);
ElementType element_of(const QuernElement& given);
/// `values` may be null if `ndim` is 0. Throws Error(usage).
Shape shape_of(std::int32_t ndim, const std::int64_t* values);

struct ArrayType {
  ElementType element;
  Order order = Order::c;
  Shape shape;
  std::optional<std::vector<std::int64_t>> strides_bytes;

  Layout layout() const;
};
/// `what` names the function in messages.
ArrayType array_type_of(const QuernArrayType* given);

/// The host array that `given` describes. Throws Error(usage); BadHandle for a wrong pin.
NDArray host_array_of(const QuernHostArray* given);

CudaArrayInterface interface_of(const QuernCudaArray& given);
Index index_of(const QuernIndex& given);
/// Times that do not fit are the longest.
std::chrono::nanoseconds nanoseconds_of(std::uint64_t count);
LaunchConfig config_of(const QuernLaunch& launch, StreamView stream);

}  // namespace quern::session::c_abi
