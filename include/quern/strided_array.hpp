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

#include "quern/element_type.hpp"
#include "quern/export.hpp"
#include "quern/layout.hpp"
#include "quern/record.hpp"

namespace quern {

/// The common base of host and device arrays: the type of an element and the offsets of the elements. Shapes
/// count elements, strides bytes.
class StridedArray {
 public:
  StridedArray() = default;
  StridedArray(ElementType element, Layout layout)
      : element_(std::move(element)), layout_(std::move(layout)) {}

  const ElementType& element() const noexcept { return element_; }
  /// Nothing for records and opaque elements.
  const std::optional<Dtype>& dtype() const noexcept { return element_.dtype; }
  const Layout& layout() const noexcept { return layout_; }
  std::span<const std::int64_t> shape() const noexcept { return layout_.shape(); }
  std::span<const std::int64_t> strides_bytes() const noexcept { return layout_.strides_bytes(); }
  std::size_t ndim() const noexcept { return layout_.ndim(); }
  /// The number of elements.
  std::size_t size() const noexcept { return layout_.size(); }
  /// Bytes of all elements, gaps not counted.
  std::size_t size_bytes() const noexcept { return layout_.size_bytes(); }
  bool is_c_contiguous() const noexcept { return layout_.is_c_contiguous(); }
  bool is_f_contiguous() const noexcept { return layout_.is_f_contiguous(); }

 protected:
  ElementType element_;
  Layout layout_;
};

/// "float32 with shape (3, 4) in C order": for messages.
QUERN_API std::string describe(const StridedArray& array);

namespace detail {
/// The views that host and device arrays have in common; `Array` is the class that derives from this. Its
/// over(layout, offset) makes a view of its memory, and its reshape(span, order) reshapes it.
template <class Array>
class ArrayViews : public StridedArray {
 public:
  /// `a(i, Slice{2, 8}, kEllipsis)`: a view. Throws Error(usage) for positions outside.
  template <class... I>
    requires(std::convertible_to<I, Index> && ...)
  Array operator()(I... indices) const {
    const Index list[] = {Index(indices)..., kEllipsis};
    return indexed(std::span<const Index>(list, sizeof...(I)));
  }
  Array operator[](Index index) const { return indexed({&index, 1}); }
  Array indexed(std::span<const Index> indices) const {
    Layout::View view = layout_.indexed(indices);
    return self().over(std::move(view.layout), view.offset_bytes);
  }
  Array transpose() const { return self().over(layout_.transposed()); }
  Array reshape(std::initializer_list<std::int64_t> shape, Order order = Order::c) const {
    return self().reshape(std::span(shape.begin(), shape.size()), order);
  }
  /// Without the axes of extent 1.
  Array squeeze() const { return self().over(layout_.squeezed()); }

 protected:
  ArrayViews() = default;
  ArrayViews(ElementType element, Layout layout) : StridedArray(std::move(element), std::move(layout)) {}

 private:
  const Array& self() const noexcept { return static_cast<const Array&>(*this); }
};

/// Throws Error(usage) unless the array's elements are of that type; an opaque element of the right size is
/// accepted for any record.
QUERN_API void require_element(const StridedArray& array, const ElementType& wanted, const char* action);
/// Throws Error(usage) naming both sides unless shapes and element types agree.
QUERN_API void require_alike(const StridedArray& from, const char* from_what, const StridedArray& to,
                             const char* to_what);
/// Throws Error(usage) unless the array has `rank` dimensions.
QUERN_API void require_rank(const StridedArray& array, std::size_t rank);
/// Writes the scalar as one element of `element`, converted as Argument converts scalars. Throws Error(usage)
/// if it does not fit.
QUERN_API void encode_scalar(const ElementType& element, Dtype from, const void* value, std::byte* out);

/// One element of a given type, from a C++ scalar or struct.
class OneElement {
 public:
  template <class T>
  OneElement(const ElementType& element, const T& value) {
    if constexpr (requires { DtypeOf<T>::value; } || std::is_arithmetic_v<T>) {
      encode_scalar(element, *element_type_of<T>().dtype, &value, small_);
    } else {
      require_element(StridedArray(element, Layout({}, element.size_bytes)), element_type_of<T>(),
                      "assign to");
      data_ = reinterpret_cast<const std::byte*>(&value);
    }
  }
  OneElement(const OneElement&) = delete;
  OneElement& operator=(const OneElement&) = delete;
  const std::byte* data() const noexcept { return data_; }

 private:
  std::byte small_[16] = {};
  const std::byte* data_ = small_;
};
}  // namespace detail

}  // namespace quern
