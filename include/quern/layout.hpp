// SPDX-License-Identifier: Apache-2.0
// component: abi
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "quern/axis_list.hpp"
#include "quern/export.hpp"

namespace quern {

/// Memory order: C (the last index changes fastest) or Fortran (the first one).
enum class Order : std::uint8_t { c, f };

/// Extents of an array, in elements.
using Shape = std::vector<std::int64_t>;

/// Python's start:stop:step; negative numbers count from the end, a missing bound is the end in that
/// direction. `Slice{}` is the whole axis.
struct Slice {
  std::optional<std::int64_t> start;
  std::optional<std::int64_t> stop;
  std::int64_t step = 1;
};

/// One index of `array(i, Slice{2, 8}, kEllipsis)`: a position (drops the axis), a slice, an ellipsis (all
/// axes that are not named) or a new axis of extent 1.
struct Index {
  enum class Kind : std::uint8_t { at, slice, ellipsis, new_axis };
  Kind kind = Kind::slice;
  std::int64_t position = 0;
  Slice range;

  constexpr Index(Slice slice) : range(slice) {}  // NOLINT(google-explicit-constructor)
  template <std::integral T>
  constexpr Index(T at) : kind(Kind::at), position(static_cast<std::int64_t>(at)) {}  // NOLINT
  static constexpr Index of(Kind special) {
    Index index{Slice{}};
    index.kind = special;
    return index;
  }
};
inline constexpr Index kEllipsis = Index::of(Index::Kind::ellipsis);
inline constexpr Index kNewAxis = Index::of(Index::Kind::new_axis);

/// The offsets of a strided array's elements from element 0: shape in elements, strides in bytes, which may
/// be negative. Host and device arrays share it; it refers to no memory. A value. Rank 0 is one element;
/// extents of 0 are legal.
class QUERN_API Layout {
 public:
  /// The layout of no array: rank 0, no elements.
  Layout() = default;
  /// Contiguous. Throws Error(usage) for negative extents and for sizes beyond an address space.
  Layout(Shape shape, std::size_t item_bytes, Order order = Order::c);
  /// With the given strides, one per extent.
  Layout(Shape shape, std::size_t item_bytes, std::vector<std::int64_t> strides_bytes);

  std::span<const std::int64_t> shape() const noexcept { return shape_.values(); }
  std::span<const std::int64_t> strides_bytes() const noexcept { return strides_bytes_.values(); }
  std::size_t ndim() const noexcept { return shape_.size(); }
  std::size_t item_bytes() const noexcept { return item_bytes_; }
  /// The number of elements.
  std::size_t size() const noexcept { return size_; }
  /// Bytes of all elements, gaps not counted.
  std::size_t size_bytes() const noexcept { return size_ * item_bytes_; }

  /// NumPy's rules: axes of extent 1 are ignored, an array without elements is both.
  bool is_c_contiguous() const noexcept;
  bool is_f_contiguous() const noexcept;
  /// Fortran order if the array is Fortran-contiguous and not C-contiguous, otherwise C: the order of an
  /// array "like" this one.
  Order order() const noexcept;

  /// The bytes that the elements touch, relative to element 0: [lowest, end). Empty: {0, 0}.
  struct Reach {
    std::int64_t lowest = 0;
    std::int64_t end = 0;
    std::size_t size_bytes() const noexcept { return static_cast<std::size_t>(end - lowest); }
  };
  Reach reach() const noexcept;
  /// True if the elements fill their reach without gaps or repetition.
  bool is_dense() const noexcept;
  /// True if every element i has the same offset from element 0 in both.
  bool same_places(const Layout& other) const noexcept;
  bool same_shape(const Layout& other) const noexcept { return shape_ == other.shape_; }

  struct View;
  /// NumPy's basic indexing. Throws Error(usage) for positions outside, too many indices, a step of 0.
  View indexed(std::span<const Index> indices) const;
  /// Axes in reverse order.
  Layout transposed() const;
  /// The same elements, taken in that order, in another shape; one extent may be -1. Nothing if this needs a
  /// copy. Throws Error(usage) if the number of elements differs.
  std::optional<Layout> reshaped(std::span<const std::int64_t> shape, Order order) const;
  /// The extents that `shape` requests for this array, -1 resolved. Throws Error(usage).
  Shape resolve_shape(std::span<const std::int64_t> shape) const;
  /// Element 0 repeated so that the array has `shape` (strides of 0 for the repeated axes). Throws
  /// Error(usage) if NumPy's broadcasting does not allow it.
  Layout broadcast(std::span<const std::int64_t> shape) const;
  /// The contiguous layout of the same shape.
  Layout contiguous(Order order) const;
  /// The same offsets, with elements of another size (a field of each).
  Layout with_item_bytes(std::size_t item_bytes) const;
  /// The same bytes as elements of another size, NumPy's view(): the last axis becomes longer or shorter.
  /// Throws Error(usage) if that axis is not contiguous or its bytes are not a multiple of the size.
  Layout reinterpreted(std::size_t item_bytes) const;
  /// Without the axes of extent 1.
  Layout squeezed() const;

  friend bool operator==(const Layout&, const Layout&) = default;

 private:
  /// For offsets that are known to be inside an array that was checked.
  Layout(detail::AxisList shape, std::size_t item_bytes, detail::AxisList strides_bytes)
      : shape_(std::move(shape)), strides_bytes_(std::move(strides_bytes)), item_bytes_(item_bytes) {
    check_shape();
  }
  void check_shape();

  detail::AxisList shape_;
  detail::AxisList strides_bytes_;
  std::size_t item_bytes_ = 0;
  std::size_t size_ = 0;
};

/// A part of an array: its layout, and the offset of its element 0 from the array's element 0.
struct Layout::View {
  Layout layout;
  std::int64_t offset_bytes = 0;
};

}  // namespace quern
