// SPDX-License-Identifier: Apache-2.0
// component: abi
// The CUDA Array Interface, version 3 (Numba manual, "CUDA Array Interface (Version 3)"), for C++: the
// content of the dict __cuda_array_interface__ of Python objects as a struct, which any C++ type can return.
// quern.h has the same as a C struct.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "quern/element_type.hpp"
#include "quern/layout.hpp"

namespace quern {

struct CudaArrayInterface {
  Shape shape;
  std::string typestr;     ///< "<f4"; "|V24" for a record
  void* data = nullptr;    ///< device address of element 0; null only if the array has no elements
  bool read_only = false;  ///< consumers must not write
  std::optional<std::vector<std::int64_t>> strides_bytes;  ///< nothing: C-contiguous
  std::optional<ElementType> descr;  ///< the record type of a typestr "|V..", if it is known
  const void* mask = nullptr;        ///< masked arrays are refused
  /// The producer's stream, whose work the consumer must wait for: 1 is the legacy default stream, 2 the
  /// per-thread one, anything else a CUstream; 0 is not allowed. Nothing: the consumer need not wait.
  std::optional<std::uintptr_t> stream;
  int version = 3;
};

/// A type whose objects are arrays in device memory: `object.cuda_array_interface()`, or a (smart) pointer to
/// one.
template <class A>
concept CudaArray = requires(const A& array) {
  { array.cuda_array_interface() } -> std::convertible_to<CudaArrayInterface>;
};
template <class P>
concept CudaArrayPointer = requires(const P& pointer) {
  { pointer->cuda_array_interface() } -> std::convertible_to<CudaArrayInterface>;
};

/// Numba's is_cuda_array(): true if the type has the interface.
template <class A>
constexpr bool is_cuda_array(const A&) noexcept {
  return CudaArray<A> || CudaArrayPointer<A>;
}

}  // namespace quern
