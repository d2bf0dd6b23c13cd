// SPDX-License-Identifier: Apache-2.0
// room: runtime
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quern/export.hpp"
#include "quern/strided_array.hpp"

namespace quern {

/// An N-dimensional array in host memory, NumPy's ndarray: copies and views share the memory and keep it
/// alive. Made by its constructors it owns its memory; made by view() it refers to memory of the program's
/// own, which must outlive every use. Thread-compatible, as a container is.
class QUERN_API NDArray : public StridedArray {
 public:
  NDArray() = default;
  /// Zeros. Throws Error(usage) for shapes that cannot be.
  NDArray(Shape shape, ElementType element, Order order = Order::c);
  /// Memory that `owner` keeps alive (null: nobody does); `data` is element 0.
  NDArray(std::shared_ptr<const void> owner, void* data, ElementType element, Layout layout,
          bool page_locked = false)
      : StridedArray(std::move(element), std::move(layout)),
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
  /// The program's own memory, seen as an array; nothing is copied.
  template <std::ranges::contiguous_range Range>
  static NDArray view(Range& values) {
    using T = std::ranges::range_value_t<Range>;
    const auto count = static_cast<std::int64_t>(std::ranges::size(values));
    return NDArray(nullptr, const_cast<std::remove_cv_t<T>*>(std::ranges::data(values)),
                   element_type_of<std::remove_cv_t<T>>(), Layout({count}, sizeof(T)));
  }
  template <class T>
  static NDArray view(T* data, Shape shape, Order order = Order::c) {
    return NDArray(nullptr, data, element_type_of<T>(), Layout(std::move(shape), sizeof(T), order));
  }

  /// Element 0.
  std::byte* data() const noexcept { return data_; }
  template <class T>
  T* data_as() const {
    detail::require_element(*this, element_type_of<T>(), "read");
    return reinterpret_cast<T*>(data_);
  }
  /// False for a view of memory that is the program's own.
  bool owns_memory() const noexcept { return owner_ != nullptr; }
  const std::shared_ptr<const void>& owner() const noexcept { return owner_; }
  /// True for memory that the driver locked: queued copies use it directly.
  bool is_page_locked() const noexcept { return page_locked_; }

  /// `a(i, Slice{2, 8}, kEllipsis)`: a view. Throws Error(usage) for positions outside.
  template <class... I>
    requires(std::convertible_to<I, Index> && ...)
  NDArray operator()(I... indices) const {
    const Index list[] = {Index(indices)..., kEllipsis};
    return indexed(std::span<const Index>(list, sizeof...(I)));
  }
  NDArray operator[](Index index) const { return indexed({&index, 1}); }
  NDArray indexed(std::span<const Index> indices) const;
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
  /// The elements of a C-contiguous array. Throws Error(usage) where it is not.
  template <class T>
  std::span<T> values() const {
    require_c_contiguous();
    return {data_as<T>(), size()};
  }

  NDArray transpose() const { return over(layout_.transposed()); }
  /// A view where the layout allows it, else a copy (NumPy's reshape). One extent may be -1.
  NDArray reshape(std::span<const std::int64_t> shape, Order order = Order::c) const;
  NDArray reshape(std::initializer_list<std::int64_t> shape, Order order = Order::c) const {
    return reshape(std::span(shape.begin(), shape.size()), order);
  }
  NDArray ravel(Order order = Order::c) const { return reshape({-1}, order); }
  /// One field of every record, as a view; an array field adds its axes at the end.
  NDArray field(std::string_view name) const;
  /// The same bytes as elements of another type of the same size.
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
  void save_npy(const std::filesystem::path& path) const;

 private:
  NDArray over(Layout layout, std::int64_t offset_bytes = 0) const {
    return NDArray(owner_, data_ + offset_bytes, element_, std::move(layout), page_locked_);
  }
  template <class T>
  T* only() const {
    require_one();
    return data_as<T>();
  }
  void require_one() const;
  void require_c_contiguous() const;
  void assign_element(const std::byte* element) const;

  std::shared_ptr<const void> owner_;
  std::byte* data_ = nullptr;
  bool page_locked_ = false;
};

}  // namespace quern
