// SPDX-License-Identifier: Apache-2.0
// room: launch
#pragma once

#include <array>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <ranges>
#include <span>
#include <type_traits>

#include "quern/device_array.hpp"
#include "quern/dtype.hpp"
#include "quern/export.hpp"

namespace quern {

namespace detail {

template <class T>
inline constexpr bool always_false = false;

template <class T>
inline constexpr bool is_std_array = false;
template <class T, std::size_t N>
inline constexpr bool is_std_array<std::array<T, N>> = true;

template <class T>
inline constexpr bool is_std_complex = false;
template <class T>
inline constexpr bool is_std_complex<std::complex<T>> = true;

/// The Dtype of any arithmetic type, by size and sign: `long long` is int64 as `long` is.
template <class T>
constexpr Dtype scalar_dtype() {
  if constexpr (std::is_same_v<T, bool>)
    return Dtype::bool_;
  else if constexpr (std::is_same_v<T, float>)
    return Dtype::float32;
  else if constexpr (std::is_same_v<T, double>)
    return Dtype::float64;
  else if constexpr (sizeof(T) == 1)
    return std::is_signed_v<T> ? Dtype::int8 : Dtype::uint8;
  else if constexpr (sizeof(T) == 2)
    return std::is_signed_v<T> ? Dtype::int16 : Dtype::uint16;
  else if constexpr (sizeof(T) == 4)
    return std::is_signed_v<T> ? Dtype::int32 : Dtype::uint32;
  else
    return std::is_signed_v<T> ? Dtype::int64 : Dtype::uint64;
}

}  // namespace detail

/// One argument of a launch, seen by value: scalars are copied, arrays and structs are referred to and must
/// live until the launch call returns. Made implicitly by `kernel(config)(arguments...)`; the static
/// functions serve callers that only know their types at run time.
///
/// A scalar is converted to the parameter's type where the kernel's source gives one and the value fits (an
/// int literal for a `float`, a double for a `float`, an int for a `size_t`); it is never cut short. A device
/// array goes to a pointer of its element type, or to a `quern::array<T, N>`.
class QUERN_API Argument {
 public:
  enum class Kind : std::uint8_t { scalar, array, pointer, bytes };

  template <class T>
  Argument(const T& value) {  // NOLINT(google-explicit-constructor)
    if constexpr (std::derived_from<T, DeviceNDArray>)
      set_array(value);
    else if constexpr (std::same_as<T, DeviceBuffer>)
      set_pointer(value.data());
    else if constexpr (std::is_null_pointer_v<T>)
      set_pointer(nullptr);
    else if constexpr (std::is_enum_v<T>)
      set_scalar(static_cast<std::underlying_type_t<T>>(value));
    else if constexpr (std::is_arithmetic_v<T>)
      set_scalar(value);
    else if constexpr (detail::is_std_complex<T>)
      set_complex(value);
    else if constexpr (std::is_pointer_v<T>)
      set_pointer(const_cast<const void*>(static_cast<const volatile void*>(value)));
    else if constexpr (detail::is_std_array<T>)
      set_bytes(&value, sizeof(T));
    else if constexpr (std::is_array_v<T> || std::ranges::range<T>)
      static_assert(detail::always_false<T>,
                    "host data cannot be a kernel argument: copy it with session.to_device(...) first");
    else if constexpr (std::is_class_v<T> && std::is_trivially_copyable_v<T>)
      set_bytes(&value, sizeof(T));
    else
      static_assert(detail::always_false<T>,
                    "this type cannot be a kernel argument: it is not trivially copyable");
  }

  /// A scalar given by its bytes, exactly size_bytes(dtype) of them.
  static Argument scalar(Dtype dtype, std::span<const std::byte> bytes);
  /// A struct by value; `bytes` must outlive the launch call.
  static Argument value(std::span<const std::byte> bytes);

  Kind kind() const noexcept { return kind_; }
  /// Of a scalar or of an array's elements; nothing for the rest.
  const std::optional<Dtype>& dtype() const noexcept { return dtype_; }
  /// The bytes that a scalar, pointer or struct puts into the parameter buffer.
  const void* data() const noexcept { return kind_ == Kind::bytes ? external_ : inline_; }
  std::size_t size() const noexcept { return size_; }
  const DeviceNDArray* array() const noexcept { return array_; }

 private:
  Argument() = default;
  template <class T>
  void set_scalar(T value) {
    static_assert(!std::is_same_v<T, long double>, "kernels have no long double");
    kind_ = Kind::scalar;
    dtype_ = detail::scalar_dtype<T>();
    size_ = sizeof(T);
    std::memcpy(inline_, &value, sizeof value);
  }
  template <class T>
  void set_complex(const std::complex<T>& value) {
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>,
                  "kernels have complex64 and complex128");
    kind_ = Kind::scalar;
    dtype_ = sizeof(T) == 4 ? Dtype::complex64 : Dtype::complex128;
    size_ = sizeof value;
    std::memcpy(inline_, &value, sizeof value);
  }
  void set_pointer(const void* address) {
    kind_ = Kind::pointer;
    size_ = sizeof address;
    std::memcpy(inline_, &address, sizeof address);
  }
  void set_array(const DeviceNDArray& array) {
    set_pointer(array.data());
    kind_ = Kind::array;
    dtype_ = array.dtype();
    array_ = &array;
  }
  void set_bytes(const void* data, std::size_t size) {
    kind_ = Kind::bytes;
    external_ = data;
    size_ = size;
  }

  alignas(16) std::byte inline_[16] = {};
  const void* external_ = nullptr;
  const DeviceNDArray* array_ = nullptr;
  std::size_t size_ = 0;
  std::optional<Dtype> dtype_;
  Kind kind_ = Kind::pointer;
};

}  // namespace quern
