// SPDX-License-Identifier: Apache-2.0
// room: abi
// Typed views of host memory with as many axes as their type says: what std::mdspan is from C++23 on, with
// strides. Any mdspan (std's, or a library's for C++20) is taken wherever a host array is.
#pragma once

#include <array>
#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#if __has_include(<mdspan>)
#include <mdspan>
#endif

#include "quern/layout.hpp"

namespace quern {

/// std::mdspan and its like over plain memory, ArrayView among them.
template <class M>
concept MdspanLike = requires(const M& view, std::size_t axis) {
  typename M::element_type;
  requires std::convertible_to<decltype(M::rank()), std::size_t>;
  { view.extent(axis) } -> std::convertible_to<std::int64_t>;
  { view.stride(axis) } -> std::convertible_to<std::int64_t>;
  { view.data_handle() } -> std::same_as<typename M::element_type*>;
};

/// Elements of type T along `Rank` axes in memory that others own: by value, not kept. Extents count
/// elements, strides bytes, so that a field of an array of records is one as well. Indices are not checked,
/// as std's are not, but asserted.
template <class T, std::size_t Rank>
class ArrayView {
 public:
  using element_type = T;
  using value_type = std::remove_cv_t<T>;
  using index_type = std::int64_t;
  using Extents = std::array<std::int64_t, Rank>;

  ArrayView() = default;
  /// In C order.
  ArrayView(T* data, const Extents& extents) noexcept : data_(data), extents_(extents) {
    auto stride = static_cast<std::int64_t>(sizeof(T));
    for (std::size_t axis = Rank; axis-- > 0; stride *= extents_[axis]) strides_bytes_[axis] = stride;
  }
  ArrayView(T* data, const Extents& extents, const Extents& strides_bytes) noexcept
      : data_(data), extents_(extents), strides_bytes_(strides_bytes) {}
  /// A view that must not be written through.
  operator ArrayView<const T, Rank>() const noexcept  // NOLINT(google-explicit-constructor)
    requires(!std::is_const_v<T>)
  {
    return {data_, extents_, strides_bytes_};
  }

  static constexpr std::size_t rank() noexcept { return Rank; }
  std::int64_t extent(std::size_t axis) const noexcept { return extents_[axis]; }
  const Extents& extents() const noexcept { return extents_; }
  std::int64_t stride_bytes(std::size_t axis) const noexcept { return strides_bytes_[axis]; }
  const Extents& strides_bytes() const noexcept { return strides_bytes_; }
  /// In elements; only where stride_bytes() is a multiple of one.
  std::int64_t stride(std::size_t axis) const noexcept {
    return strides_bytes_[axis] / static_cast<std::int64_t>(sizeof(T));
  }
  /// Element (0, ..., 0).
  T* data_handle() const noexcept { return data_; }
  /// Elements in all.
  std::size_t size() const noexcept {
    std::size_t count = 1;
    for (const std::int64_t extent : extents_) count *= static_cast<std::size_t>(extent);
    return count;
  }
  bool empty() const noexcept { return size() == 0; }

  template <std::integral... I>
    requires(sizeof...(I) == Rank)
  T& operator()(I... index) const noexcept {
    return at({static_cast<std::int64_t>(index)...});
  }
  /// `view[{i, j}]`, and from C++23 on `view[i, j]`.
  T& operator[](const Extents& index) const noexcept { return at(index); }
  T& operator[](std::int64_t index) const noexcept
    requires(Rank == 1)
  {
    return at({index});
  }
#ifdef __cpp_multidimensional_subscript
  template <std::integral... I>
    requires(sizeof...(I) == Rank && Rank > 1)
  T& operator[](I... index) const noexcept {
    return at({static_cast<std::int64_t>(index)...});
  }
#endif

  bool is_c_contiguous() const noexcept {
    auto expected = static_cast<std::int64_t>(sizeof(T));
    for (std::size_t axis = Rank; axis-- > 0; expected *= extents_[axis])
      if (extents_[axis] != 1 && strides_bytes_[axis] != expected && !empty()) return false;
    return true;
  }

#ifdef __cpp_lib_mdspan
  /// Strides must be multiples of an element.
  operator std::mdspan<T, std::dextents<std::int64_t, Rank>, std::layout_stride>() const {  // NOLINT
    using Std = std::mdspan<T, std::dextents<std::int64_t, Rank>, std::layout_stride>;
    Extents strides{};
    for (std::size_t axis = 0; axis < Rank; ++axis) strides[axis] = stride(axis);
    return Std(data_, typename Std::mapping_type(std::dextents<std::int64_t, Rank>(extents_), strides));
  }
#endif

 private:
  T& at(const Extents& index) const noexcept {
    std::int64_t offset = 0;
    for (std::size_t axis = 0; axis < Rank; ++axis) {
      assert(index[axis] >= 0 && index[axis] < extents_[axis]);
      offset += index[axis] * strides_bytes_[axis];
    }
    using Byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
    return *reinterpret_cast<T*>(reinterpret_cast<Byte*>(data_) + offset);
  }

  T* data_ = nullptr;
  Extents extents_{};
  Extents strides_bytes_{};
};

namespace detail {

template <MdspanLike M>
Layout layout_of(const M& view) {
  Shape shape;
  std::vector<std::int64_t> strides;
  for (std::size_t axis = 0; axis < M::rank(); ++axis) {
    shape.push_back(static_cast<std::int64_t>(view.extent(axis)));
    if constexpr (requires { view.stride_bytes(axis); })
      strides.push_back(view.stride_bytes(axis));
    else
      strides.push_back(static_cast<std::int64_t>(view.stride(axis)) *
                        static_cast<std::int64_t>(sizeof(typename M::element_type)));
  }
  return Layout(std::move(shape), sizeof(typename M::element_type), std::move(strides));
}

}  // namespace detail

}  // namespace quern
