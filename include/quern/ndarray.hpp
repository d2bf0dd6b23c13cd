// SPDX-License-Identifier: Apache-2.0
// component: runtime
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "quern/array_view.hpp"
#include "quern/expected.hpp"
#include "quern/export.hpp"
#include "quern/strided_array.hpp"

namespace quern {

/// An N-dimensional array in host memory, NumPy's ndarray: copies and views share the memory and keep it
/// alive. Made by its constructors it owns its memory; made by view() it refers to memory of the program's
/// own, which must outlive every use. A const NDArray is a handle of the same elements for its whole life,
/// and they can be written through it; elements that must not be written are those of an array that
/// is_read_only(): a view of const data, or of a producer that forbids writing. quern rejects such an array
/// as a target; a program must not write to its elements through data() and at(), and reads them with
/// at<const T>(), values<const T>() and view_as<const T, N>(). Thread-compatible, as a container is.
class QUERN_API NDArray : public detail::ArrayViews<NDArray> {
 public:
  NDArray() = default;
  /// Zeros. Throws Error(usage) for invalid shapes.
  NDArray(Shape shape, ElementType element, Order order = Order::c);
  /// Memory that `owner` keeps alive (null: it has no owner); `data` is element 0.
  NDArray(std::shared_ptr<const void> owner, void* data, ElementType element, Layout layout,
          bool page_locked = false)
      : ArrayViews(std::move(element), std::move(layout)),
        owner_(std::move(owner)),
        data_(static_cast<std::byte*>(data)),
        page_locked_(page_locked) {}

  /// A copy of contiguous host data (vector, span, C array), 1-D or of the shape given.
  template <std::ranges::contiguous_range Range>
  static NDArray of(const Range& values, Shape shape = {-1}) {
    using T = std::remove_cv_t<std::ranges::range_value_t<Range>>;
    const auto count = static_cast<std::int64_t>(std::ranges::size(values));
    NDArray array({count}, element_type_of<T>());
    const std::span<const T> span(std::ranges::data(values), std::ranges::size(values));
    array.copy_bytes_from(std::as_bytes(span));
    return array.reshape(shape);
  }
  template <class T>
  static NDArray of(std::initializer_list<T> values, Shape shape = {-1}) {
    return of(std::span<const T>(values.begin(), values.size()), std::move(shape));
  }
  /// One element, 0-d.
  template <class T>
  static NDArray scalar(const T& value) {
    return of(std::span<const T>(&value, 1), {});
  }
  /// The program's own memory, seen as an array; nothing is copied. It is read-only if the data is const.
  template <std::ranges::contiguous_range Range>
  static NDArray view(Range& values) {
    const auto count = static_cast<std::int64_t>(std::ranges::size(values));
    return view(std::ranges::data(values), Shape{count});
  }
  template <class T>
  static NDArray view(T* data, Shape shape, Order order = Order::c) {
    return view_of(data, Layout(std::move(shape), sizeof(T), order));
  }
  /// A std::mdspan, an ArrayView or the like, of any strides.
  template <MdspanLike M>
  static NDArray view(const M& values) {
    return view_of(values.data_handle(), detail::layout_of(values));
  }

  /// The elements under a type with a fixed number of axes: `auto m = a.view_as<float, 2>(); m(i, j)`. The
  /// view keeps nothing alive. Throws Error(usage) for another element type or number of dimensions, and for
  /// a T that is not const if the array is read-only.
  template <class T, std::size_t Rank>
  ArrayView<T, Rank> view_as() const {
    detail::require_element(*this, element_type_of<std::remove_cv_t<T>>(), "view");
    detail::require_rank(*this, Rank);
    if constexpr (!std::is_const_v<T>) require_writable();
    std::array<std::int64_t, Rank> extents{};
    std::array<std::int64_t, Rank> strides{};
    std::ranges::copy(shape(), extents.begin());
    std::ranges::copy(strides_bytes(), strides.begin());
    return {reinterpret_cast<T*>(data_), extents, strides};
  }

  /// Element 0.
  std::byte* data() const noexcept { return data_; }
  template <class T>
  T* data_as() const {
    detail::require_element(*this, element_type_of<std::remove_cv_t<T>>(), "read");
    return reinterpret_cast<T*>(data_);
  }
  /// False for a view of memory that is the program's own.
  bool owns_memory() const noexcept { return owner_ != nullptr; }
  const std::shared_ptr<const void>& owner() const noexcept { return owner_; }
  /// True if quern rejects writes.
  bool is_read_only() const noexcept { return read_only_; }
  /// The same array, read-only.
  NDArray as_read_only() const {
    NDArray array = *this;
    array.read_only_ = true;
    return array;
  }
  /// True for memory that the driver locked: queued copies use it directly.
  bool is_page_locked() const noexcept { return page_locked_; }

  /// The element at a position, 0 <= index < extent for each axis. Throws Error(usage) for another type.
  template <class T, std::integral... I>
  T& at(I... position) const {
    return *operator()(static_cast<std::int64_t>(position)...).template only<T>();
  }
  /// The value of an array of one element.
  template <class T>
  T item() const {
    return *only<T>();
  }
  /// The elements of a C-contiguous array. Throws Error(usage) if it is not contiguous.
  template <class T>
  std::span<T> values() const {
    require_c_contiguous();
    return {data_as<T>(), size()};
  }

  /// A view if the layout allows it, otherwise a copy (NumPy's reshape). One extent may be -1.
  NDArray reshape(std::span<const std::int64_t> shape, Order order = Order::c) const;
  using ArrayViews::reshape;
  NDArray ravel(Order order = Order::c) const { return reshape({-1}, order); }
  /// One field of every record, as a view; an array field adds its axes at the end.
  NDArray field(std::string_view name) const;
  /// The same bytes as elements of another type, NumPy's view(dtype). If the size differs, the last axis,
  /// which must be contiguous, gets another extent. Throws Error(usage) if that is not possible.
  NDArray as_element(const ElementType& element) const;

  /// Contiguous, with memory of its own.
  NDArray copy(Order order = Order::c) const;
  /// Sets every element: from another array, broadcast to this one's shape, or from one value.
  void assign(const NDArray& values) const;
  template <class T>
    requires(!std::derived_from<T, StridedArray>)
  void assign(const T& value) const {
    assign_element(detail::OneElement(element_, value).data());
  }
  /// All bytes of a C-contiguous array at once.
  void copy_bytes_from(std::span<const std::byte> bytes) const;

  /// Same type, shape and bytes of every element (a NaN equals itself, 0.0 is not -0.0).
  bool identical(const NDArray& other) const;

  /// A .npy file (NumPy Enhancement Proposal 1). Fortran order is kept; big-endian elements are swapped.
  /// Throws Error(io) naming the file.
  static NDArray load_npy(const std::filesystem::path& path);
  static Expected<NDArray> try_load_npy(const std::filesystem::path& path);
  void save_npy(const std::filesystem::path& path) const;

 private:
  friend class detail::ArrayViews<NDArray>;
  template <class T>
  static NDArray view_of(T* data, Layout layout) {
    using Value = std::remove_cv_t<T>;
    NDArray array(nullptr, const_cast<Value*>(data), element_type_of<Value>(), std::move(layout));
    array.read_only_ = std::is_const_v<T>;
    return array;
  }
  NDArray over(Layout layout, std::int64_t offset_bytes = 0) const {
    return of_element(element_, std::move(layout), offset_bytes);
  }
  NDArray of_element(const ElementType& element, Layout layout, std::int64_t offset_bytes) const {
    NDArray array(owner_, data_ + offset_bytes, element, std::move(layout), page_locked_);
    array.read_only_ = read_only_;
    return array;
  }
  template <class T>
  T* only() const {
    require_one();
    return data_as<T>();
  }
  void require_one() const;
  void require_writable() const;
  void require_c_contiguous() const;
  void assign_element(const std::byte* element) const;

  std::shared_ptr<const void> owner_;
  std::byte* data_ = nullptr;
  bool page_locked_ = false;
  bool read_only_ = false;
};

}  // namespace quern
