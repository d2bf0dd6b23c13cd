// SPDX-License-Identifier: Apache-2.0
// component: abi
// Typed views of host memory whose type gives the number of axes, like C++23's std::mdspan, with strides.
// Functions that take a host array take any mdspan as well (std's, or a library's for C++20).
#pragma once

#include <array>
#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "quern/layout.hpp"

namespace quern {

/// std::mdspan and similar types over plain memory, ArrayView among them.
template <class M>
concept MdspanLike = requires(const M& view, std::size_t axis) {
  typename M::element_type;
  requires std::convertible_to<decltype(M::rank()), std::size_t>;
  { view.extent(axis) } -> std::convertible_to<std::int64_t>;
  { view.stride(axis) } -> std::convertible_to<std::int64_t>;
  requires std::same_as<std::remove_cvref_t<decltype(view.data_handle())>, typename M::element_type*>;
};

/// std::mdspan and similar types with strides of any kind (layout_stride), `Rank` axes whose extents are
/// known at run time, over elements of type T or const T: the types that an ArrayView converts to. No header
/// of theirs is needed.
template <class M, class T, std::size_t Rank>
concept StridedMdspan =
    MdspanLike<M> && M::rank() == Rank && M::rank_dynamic() == Rank &&
    std::convertible_to<T (*)[], typename M::element_type (*)[]> && requires { typename M::index_type; } &&
    std::constructible_from<typename M::extents_type, const std::array<typename M::index_type, Rank>&> &&
    std::constructible_from<typename M::mapping_type, const typename M::extents_type&,
                            const std::array<typename M::index_type, Rank>&> &&
    std::constructible_from<M, T*, const typename M::mapping_type&>;

/// A view of elements of type T along `Rank` axes in memory that others own; passed by value, keeps nothing
/// alive. Extents count elements, strides bytes, so that a field of an array of records is such a view as
/// well. Indices are not checked, as std's are not, but asserted.
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
  /// A view whose elements are const.
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
  /// In elements; only if stride_bytes() is a multiple of the element's size.
  std::int64_t stride(std::size_t axis) const noexcept { return strides_bytes_[axis] / kItemBytes; }
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

  /// Converts to a std::mdspan, or a library's, with layout_stride. It requires strides that are positive
  /// multiples of an element, and numbers that fit its index type; both are asserted.
  template <class M>
    requires StridedMdspan<M, T, Rank>
  operator M() const {  // NOLINT(google-explicit-constructor)
    using I = typename M::index_type;
    std::array<I, Rank> extents{};
    std::array<I, Rank> strides{};
    for (std::size_t axis = 0; axis < Rank; ++axis) {
      const bool matters = extents_[axis] > 1;  // the stride of an axis of one element or none is not used
      assert(!matters || (stride_bytes(axis) > 0 && stride(axis) * kItemBytes == stride_bytes(axis)));
      assert(std::in_range<I>(extents_[axis]) && (!matters || std::in_range<I>(stride(axis))));
      extents[axis] = static_cast<I>(extents_[axis]);
      strides[axis] = matters ? static_cast<I>(stride(axis)) : I{1};
    }
    return M(data_, typename M::mapping_type(typename M::extents_type(extents), strides));
  }

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

  static constexpr auto kItemBytes = static_cast<std::int64_t>(sizeof(T));
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
