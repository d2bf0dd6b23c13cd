// SPDX-License-Identifier: Apache-2.0
// component: launch
#pragma once

#include <array>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

#include "quern/device_array.hpp"
#include "quern/dtype.hpp"
#include "quern/export.hpp"
#include "quern/ndarray.hpp"
#include "quern/smart_array.hpp"

namespace quern {

/// The copies that a launch makes of a host array: to the device before it, back after it, or both.
enum class Transfer : std::uint8_t { in, out, in_out };

namespace detail {

template <class T>
inline constexpr bool always_false = false;

template <class T>
inline constexpr bool is_std_array = false;
template <class T, std::size_t N>
inline constexpr bool is_std_array<std::array<T, N>> = true;

template <class T>
inline constexpr bool is_tuple = false;
template <class... T>
inline constexpr bool is_tuple<std::tuple<T...>> = true;
template <class A, class B>
inline constexpr bool is_tuple<std::pair<A, B>> = true;

/// Host data that a launch copies: ranges, but not std::array, which is passed by value as the struct it is.
template <class T>
concept HostRange = std::ranges::contiguous_range<const T> && !is_std_array<T>;

template <class T>
NDArray host_array(T& values) {
  if constexpr (std::derived_from<std::remove_cv_t<T>, NDArray>)
    return values;
  else
    return NDArray::view(values);
}

/// True if the elements may be written through a `T&`.
template <class T>
constexpr bool writable_elements() {
  using Plain = std::remove_cvref_t<T>;
  if constexpr (MdspanLike<Plain>)
    return !std::is_const_v<typename Plain::element_type>;
  else if constexpr (std::derived_from<Plain, NDArray>)
    return true;
  else
    return !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<T>>>;
}
/// True if the elements of a `T&&` outlive the expression.
template <class T>
constexpr bool outlives_call() {
  using Plain = std::remove_cvref_t<T>;
  return std::is_lvalue_reference_v<T> || MdspanLike<Plain> || std::derived_from<Plain, NDArray> ||
         std::ranges::borrowed_range<Plain>;
}

}  // namespace detail

/// A host array as an argument, with its direction: `kernel(config)(In(x), Out(y), InOut(z))`. The array must
/// live until the launch is over: on a stream, until it is synchronised, unless it is an NDArray that owns
/// its memory.
struct HostArgument {
  NDArray array;
  Transfer transfer = Transfer::in_out;
};
template <class T>
HostArgument In(const T& values) {  // NOLINT(readability-identifier-naming): Numba's names
  return {detail::host_array(values), Transfer::in};
}
template <class T>
HostArgument Out(T&& values) {  // NOLINT(readability-identifier-naming)
  static_assert(detail::writable_elements<T>(), "Out() writes to the array, which is const");
  static_assert(detail::outlives_call<T&&>(), "the values would come back to a temporary that is gone");
  return {detail::host_array(values), Transfer::out};
}
template <class T>
HostArgument InOut(T&& values) {  // NOLINT(readability-identifier-naming)
  static_assert(detail::writable_elements<T>(), "InOut() writes to the array, which is const");
  static_assert(detail::outlives_call<T&&>(), "the values would come back to a temporary that is gone");
  return {detail::host_array(values), Transfer::in_out};
}

/// One argument of a launch, seen by value: scalars are copied, arrays and structs are referred to and must
/// live until the launch call returns. Made implicitly by `kernel(config)(arguments...)`; the static
/// functions serve callers that only know their types at run time.
///
/// A scalar is converted to the parameter's type if the kernel's source gives one and the value fits (an int
/// literal for a `float`, a double for a `float`, an int for a `size_t`); it is never truncated. A device
/// array is passed to a pointer of its element type, or to a `quern::array<T, N>`; so is a host array, which
/// is copied to the device before and back after the kernel, on the launch's stream; a temporary container is
/// copied to the device only. A std::tuple goes by value as a struct of its elements in order.
class QUERN_API Argument {
 public:
  enum class Kind : std::uint8_t { scalar, array, pointer, bytes, host, smart };

  template <class T>
  Argument(const T& value) {  // NOLINT(google-explicit-constructor)
    if constexpr (std::derived_from<T, DeviceNDArray>)
      set_array(value);
    else if constexpr (std::same_as<T, DeviceBuffer>)
      set_buffer(value);
    else if constexpr (std::same_as<T, HostArgument>)
      set_host(value);
    else if constexpr (std::derived_from<T, NDArray>)
      set_host({value, value.is_read_only() ? Transfer::in : Transfer::in_out});
    else if constexpr (MdspanLike<T>)
      set_host({detail::host_array(value), detail::writable_elements<T>() ? Transfer::in_out : Transfer::in});
    else if constexpr (std::same_as<T, SmartArray>)
      set_smart(value);
    else if constexpr (std::is_null_pointer_v<T>)
      set_pointer(nullptr);
    else if constexpr (std::is_enum_v<T>)
      set_scalar(static_cast<std::underlying_type_t<T>>(value));
    else if constexpr (std::is_arithmetic_v<T> || requires { DtypeOf<T>::value; })
      set_scalar(value);
    else if constexpr (std::is_pointer_v<T>)
      set_pointer(const_cast<const void*>(static_cast<const volatile void*>(value)));
    else if constexpr (detail::is_tuple<T>)
      set_tuple(value);
    else if constexpr (detail::HostRange<T>)
      set_host({detail::host_array(value), Transfer::in});
    else if constexpr (std::is_class_v<T> && std::is_trivially_copyable_v<T>)
      set_bytes(&value, sizeof(T));
    else
      static_assert(detail::always_false<T>,
                    "this type cannot be a kernel argument: it is neither an array nor trivially copyable");
  }
  /// Containers that can be written to are copied back.
  template <class T>
    requires(detail::HostRange<T> && !std::derived_from<T, StridedArray> && !MdspanLike<T>)
  Argument(T& value) {  // NOLINT(google-explicit-constructor)
    constexpr bool kWritable = !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<T>>>;
    set_host({detail::host_array(value), kWritable ? Transfer::in_out : Transfer::in});
  }

  /// A scalar given by its bytes, exactly size_bytes(dtype) of them.
  static Argument scalar(Dtype dtype, std::span<const std::byte> bytes);
  /// A struct by value; `bytes` must outlive the launch call.
  static Argument value(std::span<const std::byte> bytes);

  Kind kind() const noexcept { return kind_; }
  /// The dtype of a scalar or of an array's elements; nothing for other arguments.
  const std::optional<Dtype>& dtype() const noexcept { return dtype_; }
  /// The bytes that a scalar, pointer or struct puts into the parameter buffer.
  const void* data() const noexcept { return external_ != nullptr ? external_ : inline_; }
  std::size_t size() const noexcept { return size_; }
  const DeviceNDArray* array() const noexcept { return array_; }
  /// The memory of an array, or of an address that was given as a DeviceBuffer; null if it is not known.
  const DeviceBuffer* buffer() const noexcept { return buffer_; }
  const HostArgument* host() const noexcept { return host_.get(); }
  const SmartArray* smart() const noexcept { return smart_; }

 private:
  Argument() = default;
  template <class T>
  void set_scalar(T value) {
    static_assert(!std::is_same_v<T, long double>, "kernels have no long double");
    kind_ = Kind::scalar;
    dtype_ = scalar_dtype<T>();
    size_ = sizeof(T);
    std::memcpy(inline_, &value, sizeof value);
  }
  template <class T>
  static constexpr Dtype scalar_dtype() {
    if constexpr (requires { DtypeOf<T>::value; })
      return DtypeOf<T>::value;
    else
      return detail::integer_dtype<T>();
  }
  void set_pointer(const void* address) {
    kind_ = Kind::pointer;
    size_ = sizeof address;
    std::memcpy(inline_, &address, sizeof address);
  }
  void set_buffer(const DeviceBuffer& buffer) {
    set_pointer(buffer.data());
    buffer_ = &buffer;
  }
  void set_array(const DeviceNDArray& array) {
    set_pointer(array.data());
    buffer_ = &array.buffer();
    kind_ = Kind::array;
    dtype_ = array.dtype();
    array_ = &array;
  }
  void set_bytes(const void* data, std::size_t size) {
    kind_ = Kind::bytes;
    external_ = data;
    size_ = size;
  }
  void set_host(HostArgument host) {
    kind_ = Kind::host;
    dtype_ = host.array.dtype();
    host_ = std::make_shared<const HostArgument>(std::move(host));
  }
  void set_smart(const SmartArray& array) {
    kind_ = Kind::smart;
    smart_ = &array;
  }
  /// Lays the members out as a C++ compiler does in a struct.
  template <class Tuple>
  void set_tuple(const Tuple& tuple) {
    kind_ = Kind::bytes;
    std::memset(inline_, 0, sizeof inline_);
    std::size_t widest = 1;
    std::apply(
        [&](const auto&... member) {
          static_assert((std::is_trivially_copyable_v<std::remove_cvref_t<decltype(member)>> && ...),
                        "a tuple argument holds values that are trivially copyable");
          static_assert((sizeof member + ... + 0) <= kInlineBytes / 2,
                        "this tuple is too large: pass a struct");
          const auto put = [&](const auto& value) {
            size_ =
                (size_ + alignof(decltype(value)) - 1) / alignof(decltype(value)) * alignof(decltype(value));
            std::memcpy(inline_ + size_, &value, sizeof value);
            size_ += sizeof value;
            widest = widest < alignof(decltype(value)) ? alignof(decltype(value)) : widest;
          };
          (put(member), ...);
        },
        tuple);
    size_ = (size_ + widest - 1) / widest * widest;
  }

  static constexpr std::size_t kInlineBytes = 128;
  alignas(16) std::byte inline_[kInlineBytes];
  const void* external_ = nullptr;
  const DeviceNDArray* array_ = nullptr;
  const DeviceBuffer* buffer_ = nullptr;
  const SmartArray* smart_ = nullptr;
  std::shared_ptr<const HostArgument> host_;
  std::size_t size_ = 0;
  std::optional<Dtype> dtype_;
  Kind kind_ = Kind::pointer;
};

namespace detail {
/// A temporary container does not outlive the launch: nothing is copied back to it.
template <class T>
Argument argument_of(T&& value) {
  if constexpr (HostRange<std::remove_cvref_t<T>> && !outlives_call<T&&>())
    return Argument(std::as_const(value));
  else
    return Argument(value);
}
}  // namespace detail

}  // namespace quern
