// SPDX-License-Identifier: Apache-2.0
// component: abi
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "quern/export.hpp"

namespace quern {

/// Element types that host and kernel share. Records are not among them; see ElementType.
enum class Dtype : std::uint8_t {
  bool_,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  float16,
  bfloat16,
  float32,
  float64,
  complex64,
  complex128,
};

/// Bytes of one element.
QUERN_API std::size_t size_bytes(Dtype dtype) noexcept;
/// "float32", "bool", ...
QUERN_API std::string_view name(Dtype dtype) noexcept;
QUERN_API std::optional<Dtype> dtype_named(std::string_view name) noexcept;

/// The Dtype of a C++ type, DtypeOf<float>::value; defined only for types that have one.
template <class T>
struct DtypeOf;
#define QUERN_DTYPE_OF(type, dtype)              \
  template <>                                    \
  struct DtypeOf<type> {                         \
    static constexpr Dtype value = Dtype::dtype; \
  }
QUERN_DTYPE_OF(bool, bool_);
QUERN_DTYPE_OF(std::int8_t, int8);
QUERN_DTYPE_OF(std::int16_t, int16);
QUERN_DTYPE_OF(std::int32_t, int32);
QUERN_DTYPE_OF(std::int64_t, int64);
QUERN_DTYPE_OF(std::uint8_t, uint8);
QUERN_DTYPE_OF(std::uint16_t, uint16);
QUERN_DTYPE_OF(std::uint32_t, uint32);
QUERN_DTYPE_OF(std::uint64_t, uint64);
QUERN_DTYPE_OF(float, float32);
QUERN_DTYPE_OF(double, float64);
#undef QUERN_DTYPE_OF

}  // namespace quern
