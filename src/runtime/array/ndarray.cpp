// SPDX-License-Identifier: Apache-2.0
#include "quern/ndarray.hpp"

#include <fmt/format.h>

#include <cstring>

#include "quern/error.hpp"
#include "runtime/copy/strided.hpp"

namespace quern {

NDArray::NDArray(Shape shape, ElementType element, Order order) {
  element_ = std::move(element);
  layout_ = Layout(std::move(shape), element_.size_bytes, order);
  // Aligned for any element and for whole cache lines.
  constexpr std::align_val_t kAlignment{64};
  const std::size_t bytes = layout_.size_bytes();
  if (bytes == 0) {
    owner_ = std::make_shared<char>();
    return;
  }
  auto* const memory = static_cast<std::byte*>(::operator new(bytes, kAlignment));
  owner_ = std::shared_ptr<const void>(
      memory, [](const void* block) { ::operator delete(const_cast<void*>(block), kAlignment); });
  std::memset(memory, 0, bytes);
  data_ = memory;
}

NDArray NDArray::reshape(std::span<const std::int64_t> shape, Order order) const {
  if (std::optional<Layout> layout = layout_.reshaped(shape, order)) return over(*std::move(layout));
  return copy(order).reshape(shape, order);
}

NDArray NDArray::field(std::string_view name) const {
  if (element_.record == nullptr)
    throw Error(ErrorCode::usage,
                fmt::format("an array of {} has no fields, hence no field '{}'", to_string(element_), name));
  const Field& field = element_.record->field(name);
  Shape shape(layout_.shape().begin(), layout_.shape().end());
  std::vector<std::int64_t> strides(layout_.strides_bytes().begin(), layout_.strides_bytes().end());
  const Layout inner(field.shape, field.element.size_bytes);
  shape.insert(shape.end(), inner.shape().begin(), inner.shape().end());
  strides.insert(strides.end(), inner.strides_bytes().begin(), inner.strides_bytes().end());
  return of_element(field.element, Layout(std::move(shape), field.element.size_bytes, std::move(strides)),
                    static_cast<std::int64_t>(field.offset_bytes));
}

NDArray NDArray::as_element(const ElementType& element) const {
  return of_element(element, layout_.reinterpreted(element.size_bytes), 0);
}

NDArray NDArray::copy(Order order) const {
  NDArray made(Shape(shape().begin(), shape().end()), element_, order);
  made.assign(*this);
  return made;
}

void NDArray::assign(const NDArray& values) const {
  require_writable();
  if (values.element_ != element_) detail::require_element(values, element_, "assign");
  const Layout from = values.layout_.broadcast(shape());
  const Layout::Reach here = layout_.reach();
  const Layout::Reach there = from.reach();
  const bool overlap =
      data_ + here.lowest < values.data_ + there.end && values.data_ + there.lowest < data_ + here.end;
  if (overlap && !(data_ == values.data_ && layout_.same_places(from))) return assign(values.copy());
  runtime::copy_on_host(data_, values.data_, runtime::plan_copy(layout_, from));
}

void NDArray::assign_element(const std::byte* element) const {
  require_writable();
  const Layout from = Layout({}, element_.size_bytes).broadcast(shape());
  runtime::copy_on_host(data_, element, runtime::plan_copy(layout_, from));
}

void NDArray::copy_bytes_from(std::span<const std::byte> bytes) const {
  require_writable();
  require_c_contiguous();
  if (bytes.size() != size_bytes())
    throw Error(ErrorCode::usage, fmt::format("cannot copy {} bytes to {}: it has {} bytes; give as many",
                                              bytes.size(), describe(*this), size_bytes()));
  if (!bytes.empty()) std::memcpy(data_, bytes.data(), bytes.size());
}

bool NDArray::identical(const NDArray& other) const {
  if (element_ != other.element_ || !layout_.same_shape(other.layout_)) return false;
  const NDArray mine = is_c_contiguous() ? *this : copy();
  const NDArray its = other.is_c_contiguous() ? other : other.copy();
  return size_bytes() == 0 || std::memcmp(mine.data_, its.data_, size_bytes()) == 0;
}

void NDArray::require_one() const {
  if (size() == 1) return;
  throw Error(ErrorCode::usage, fmt::format("{} has {} elements, but exactly one is needed; index it first",
                                            describe(*this), size()));
}

void NDArray::require_writable() const {
  if (!read_only_) return;
  throw Error(
      ErrorCode::usage,
      fmt::format("cannot write to {}: it is a view of const data, or its producer forbids it; copy() it",
                  describe(*this)));
}

void NDArray::require_c_contiguous() const {
  if (is_c_contiguous()) return;
  throw Error(ErrorCode::usage,
              fmt::format("{} is not one run of elements; copy() it first", describe(*this)));
}

}  // namespace quern
