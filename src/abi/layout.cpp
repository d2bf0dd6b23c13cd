// SPDX-License-Identifier: Apache-2.0
#include "quern/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "quern/element_type.hpp"
#include "quern/error.hpp"

namespace quern {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::usage, message); }

detail::AxisList contiguous_strides(std::span<const std::int64_t> shape, std::size_t item, Order order) {
  detail::AxisList strides = detail::AxisList::zeros(shape.size());
  std::uint64_t stride = item;  // unsigned: of an array without elements the product may be anything
  for (std::size_t step = 0; step < shape.size(); ++step) {
    const std::size_t axis = order == Order::c ? shape.size() - 1 - step : step;
    strides[axis] = static_cast<std::int64_t>(stride);
    stride *= static_cast<std::uint64_t>(std::max<std::int64_t>(shape[axis], 1));
  }
  return strides;
}

bool contiguous_along(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides,
                      std::size_t item, Order order) {
  auto expected = static_cast<std::int64_t>(item);
  for (std::size_t step = 0; step < shape.size(); ++step) {
    const std::size_t axis = order == Order::c ? shape.size() - 1 - step : step;
    if (shape[axis] == 1) continue;
    if (strides[axis] != expected) return false;
    expected *= shape[axis];
  }
  return true;
}

/// Python's slice.indices(): the first position, and how many there are.
std::pair<std::int64_t, std::int64_t> positions(const Slice& slice, std::int64_t extent) {
  const auto clamp = [&](std::int64_t at) {
    if (at < 0) at += extent;
    return slice.step > 0 ? std::clamp<std::int64_t>(at, 0, extent)
                          : std::clamp<std::int64_t>(at, -1, extent - 1);
  };
  const std::int64_t start = slice.start ? clamp(*slice.start) : slice.step > 0 ? 0 : extent - 1;
  const std::int64_t stop = slice.stop ? clamp(*slice.stop) : slice.step > 0 ? extent : -1;
  const std::int64_t distance = slice.step > 0 ? stop - start : start - stop;
  if (distance <= 0) return {0, 0};
  // The step's magnitude as unsigned: the most negative number has no positive twin.
  const std::uint64_t magnitude = slice.step > 0 ? static_cast<std::uint64_t>(slice.step)
                                                 : std::uint64_t{0} - static_cast<std::uint64_t>(slice.step);
  return {start, static_cast<std::int64_t>((static_cast<std::uint64_t>(distance) - 1) / magnitude + 1)};
}

}  // namespace

Layout::Layout(Shape shape, std::size_t item_bytes, Order order) : shape_(shape), item_bytes_(item_bytes) {
  check_shape();
  strides_bytes_ = contiguous_strides(this->shape(), item_bytes_, order);
}

Layout::Layout(Shape shape, std::size_t item_bytes, std::vector<std::int64_t> strides_bytes)
    : shape_(shape), strides_bytes_(strides_bytes), item_bytes_(item_bytes) {
  check_shape();
  if (strides_bytes_.size() != shape_.size())
    refuse(fmt::format("an array of shape {} cannot have {} strides; give one for each extent",
                       shape_text(this->shape()), strides_bytes_.size()));
  if (size_ == 0) return;
  for (std::size_t axis = 0; axis < shape_.size(); ++axis) {
    std::int64_t span = 0;
    if (__builtin_mul_overflow(shape_[axis] - 1, strides_bytes_[axis], &span) || span > INT64_MAX / 128 ||
        span < INT64_MIN / 128)
      refuse(fmt::format(
          "an array of shape {} cannot have strides of {} bytes: it would be larger than an address "
          "space; use smaller strides",
          shape_text(this->shape()), shape_text(this->strides_bytes())));
  }
}

/// Extents and their product, checked; sets size_.
void Layout::check_shape() {
  constexpr std::size_t kMaxRank = 64;
  if (shape_.size() > kMaxRank)
    refuse(fmt::format("an array cannot have {} dimensions; {} is the most", shape_.size(), kMaxRank));
  bool empty = false;
  for (const std::int64_t extent : shape()) {
    if (extent < 0)
      refuse(fmt::format("an array of shape {} cannot be: extent {} is negative; give extents of 0 or more",
                         shape_text(this->shape()), extent));
    empty = empty || extent == 0;
  }
  size_ = empty ? 0 : 1;
  std::size_t bytes = item_bytes_;
  for (const std::int64_t extent : shape()) {
    if (empty) break;
    size_ *= static_cast<std::size_t>(extent);
    if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(extent), &bytes) ||
        bytes > static_cast<std::size_t>(INT64_MAX / 128))
      refuse(
          fmt::format("an array of shape {} with elements of {} bytes is larger than an address space; use a "
                      "smaller one",
                      shape_text(this->shape()), item_bytes_));
  }
}

bool Layout::is_c_contiguous() const noexcept {
  return size_ == 0 || contiguous_along(shape(), this->strides_bytes(), item_bytes_, Order::c);
}
bool Layout::is_f_contiguous() const noexcept {
  return size_ == 0 || contiguous_along(shape(), this->strides_bytes(), item_bytes_, Order::f);
}
Order Layout::order() const noexcept { return is_f_contiguous() && !is_c_contiguous() ? Order::f : Order::c; }

Layout::Reach Layout::reach() const noexcept {
  Reach reach;
  if (size_ == 0) return reach;
  reach.end = static_cast<std::int64_t>(item_bytes_);
  for (std::size_t axis = 0; axis < shape_.size(); ++axis) {
    const std::int64_t span = (shape_[axis] - 1) * strides_bytes_[axis];
    (span < 0 ? reach.lowest : reach.end) += span;
  }
  return reach;
}

bool Layout::is_dense() const noexcept {
  if (reach().size_bytes() != size_bytes()) return false;
  // As many bytes as elements need; still two axes might run over the same ones. From the innermost axis out:
  auto expected = static_cast<std::int64_t>(item_bytes_);
  for (std::size_t found = 0; found < shape_.size(); ++found) {
    std::size_t axis = 0;
    while (axis < shape_.size() && (shape_[axis] <= 1 || std::abs(strides_bytes_[axis]) != expected)) ++axis;
    if (axis == shape_.size()) break;
    expected *= shape_[axis];
  }
  return size_ == 0 || expected == static_cast<std::int64_t>(size_bytes());
}

bool Layout::same_places(const Layout& other) const noexcept {
  if (!(shape_ == other.shape_) || item_bytes_ != other.item_bytes_) return false;
  if (size_ == 0) return true;
  for (std::size_t axis = 0; axis < shape_.size(); ++axis)
    if (shape_[axis] > 1 && strides_bytes_[axis] != other.strides_bytes_[axis]) return false;
  return true;
}

Layout::View Layout::indexed(std::span<const Index> indices) const {
  using Kind = Index::Kind;
  const auto of = [&](Kind kind) {
    return static_cast<std::size_t>(std::count_if(indices.begin(), indices.end(),
                                                  [&](const Index& index) { return index.kind == kind; }));
  };
  const std::size_t named = of(Kind::at) + of(Kind::slice);
  if (named > shape_.size() || of(Kind::ellipsis) > 1)
    refuse(fmt::format(
        "cannot index an array of shape {} with {} indices and {} ellipses; give at most one index a "
        "dimension and one ellipsis",
        shape_text(this->shape()), named, of(Kind::ellipsis)));
  detail::AxisList shape;
  detail::AxisList strides;
  std::int64_t offset = 0;
  std::size_t axis = 0;
  const auto keep = [&](std::size_t count) {
    for (; count > 0; --count, ++axis) {
      shape.push_back(shape_[axis]);
      strides.push_back(strides_bytes_[axis]);
    }
  };
  for (const Index& index : indices) {
    if (index.kind == Kind::ellipsis) {
      keep(shape_.size() - named);
    } else if (index.kind == Kind::new_axis) {
      shape.push_back(1);
      strides.push_back(0);
    } else if (index.kind == Kind::at) {
      const std::int64_t at = index.position < 0 ? index.position + shape_[axis] : index.position;
      if (shape_[axis] == 0)
        refuse(fmt::format("index {} is outside axis {} of an array of shape {}: that axis is empty",
                           index.position, axis, shape_text(this->shape())));
      if (at < 0 || at >= shape_[axis])
        refuse(fmt::format("index {} is outside axis {} of an array of shape {}; give -{} to {}",
                           index.position, axis, shape_text(this->shape()), shape_[axis], shape_[axis] - 1));
      offset += at * strides_bytes_[axis++];
    } else {
      if (index.range.step == 0) refuse("a slice cannot have a step of 0; give a positive or a negative one");
      const auto [start, count] = positions(index.range, shape_[axis]);
      offset += start * strides_bytes_[axis];
      shape.push_back(count);
      strides.push_back(count > 1 ? strides_bytes_[axis] * index.range.step : strides_bytes_[axis]);
      ++axis;
    }
  }
  keep(shape_.size() - axis);
  View view{Layout(std::move(shape), item_bytes_, std::move(strides)), offset};
  if (view.layout.size() == 0) view.offset_bytes = 0;  // nothing is there; stay inside the base
  return view;
}

Layout Layout::transposed() const {
  Layout turned = *this;
  std::ranges::reverse(turned.shape_.values());
  std::ranges::reverse(turned.strides_bytes_.values());
  return turned;
}

Shape Layout::resolve_shape(std::span<const std::int64_t> shape) const {
  Shape wanted(shape.begin(), shape.end());
  std::int64_t* open = nullptr;
  std::size_t known = 1;
  for (std::int64_t& extent : wanted) {
    if (extent == -1 && open == nullptr) {
      open = &extent;
      continue;
    }
    if (extent < 0)
      refuse(fmt::format("cannot reshape to {}: one extent may be -1, the others must be 0 or more",
                         shape_text(shape)));
    if (__builtin_mul_overflow(known, static_cast<std::size_t>(extent), &known)) known = SIZE_MAX;
  }
  if (open != nullptr && known != 0 && size_ % known == 0) {
    *open = static_cast<std::int64_t>(size_ / known);
    known = size_;
  } else if (open != nullptr && known == 0 && size_ == 0) {
    refuse(
        fmt::format("cannot reshape an array of shape {} to {}: beside an extent of 0 anything could stand "
                    "for -1; give all extents",
                    shape_text(this->shape()), shape_text(shape)));
  } else if (open != nullptr) {
    known = size_ + 1;  // nothing fits
  }
  if (known != size_)
    refuse(fmt::format(
        "cannot reshape an array of shape {} to {}: it has {} elements; give a shape with as many",
        shape_text(this->shape()), shape_text(shape), size_));
  return wanted;
}

namespace {

/// Strides for `shape`, in C order, over axes `old_shape`/`old_strides` (none of extent 1); nothing if no
/// strides give that order. Groups of axes with equal products are matched from the outside in.
std::optional<std::vector<std::int64_t>> regroup(std::span<const std::int64_t> old_shape,
                                                 std::span<const std::int64_t> old_strides,
                                                 std::span<const std::int64_t> shape, std::int64_t item) {
  std::vector<std::int64_t> strides(shape.size(), item);
  std::size_t from = 0;
  std::size_t to = 0;
  while (from < old_shape.size()) {
    std::size_t from_end = from + 1;
    std::size_t to_end = to + 1;
    std::int64_t old_count = old_shape[from];
    std::int64_t count = shape[to];
    while (count != old_count)
      if (count < old_count)
        count *= shape[to_end++];
      else
        old_count *= old_shape[from_end++];
    for (std::size_t axis = from; axis + 1 < from_end; ++axis)
      if (old_strides[axis] != old_shape[axis + 1] * old_strides[axis + 1]) return std::nullopt;
    strides[to_end - 1] = old_strides[from_end - 1];
    for (std::size_t axis = to_end - 1; axis > to; --axis) strides[axis - 1] = strides[axis] * shape[axis];
    from = from_end;
    to = to_end;
  }
  return strides;
}

}  // namespace

std::optional<Layout> Layout::reshaped(std::span<const std::int64_t> shape, Order order) const {
  Shape wanted = resolve_shape(shape);
  if (size_ <= 1) return Layout(std::move(wanted), item_bytes_, order);
  Shape old_shape;
  std::vector<std::int64_t> old_strides;
  for (std::size_t axis = 0; axis < shape_.size(); ++axis)
    if (shape_[axis] != 1) {
      old_shape.push_back(shape_[axis]);
      old_strides.push_back(strides_bytes_[axis]);
    }
  const auto flip = [&](std::vector<std::int64_t>& axes) {
    if (order == Order::f) std::reverse(axes.begin(), axes.end());
  };
  flip(old_shape);
  flip(old_strides);
  flip(wanted);
  auto strides = regroup(old_shape, old_strides, wanted, static_cast<std::int64_t>(item_bytes_));
  if (!strides) return std::nullopt;
  flip(wanted);
  flip(*strides);
  return Layout(std::move(wanted), item_bytes_, *std::move(strides));
}

Layout Layout::broadcast(std::span<const std::int64_t> shape) const {
  std::vector<std::int64_t> strides(shape.size(), 0);
  bool fits = shape.size() >= shape_.size();
  for (std::size_t back = 1; fits && back <= shape_.size(); ++back) {
    const std::size_t own = shape_.size() - back;
    const std::size_t axis = shape.size() - back;
    if (shape_[own] == shape[axis])
      strides[axis] = strides_bytes_[own];
    else
      fits = shape_[own] == 1;
  }
  if (!fits)
    refuse(fmt::format(
        "cannot broadcast an array of shape {} to {}; extents must agree from the last one on, or be 1",
        shape_text(this->shape()), shape_text(shape)));
  return Layout(Shape(shape.begin(), shape.end()), item_bytes_, std::move(strides));
}

Layout Layout::contiguous(Order order) const {
  return Layout(shape_, item_bytes_, contiguous_strides(shape(), item_bytes_, order));
}

Layout Layout::with_item_bytes(std::size_t item_bytes) const {
  return Layout(shape_, item_bytes, strides_bytes_);
}

Layout Layout::reinterpreted(std::size_t item_bytes) const {
  if (item_bytes == item_bytes_) return *this;
  const auto refuse_because = [&](const char* why) {
    refuse(
        fmt::format("cannot see elements of {} bytes in an array of shape {} as elements of {} bytes: {}; "
                    "copy() it, or reshape it first",
                    item_bytes_, shape_text(shape()), item_bytes, why));
  };
  if (shape_.size() == 0) refuse_because("it has no axis that could take another extent");
  const std::size_t last = shape_.size() - 1;
  if (shape_[last] != 1 && strides_bytes_[last] != static_cast<std::int64_t>(item_bytes_))
    refuse_because("its last axis is not contiguous");
  const auto bytes = static_cast<std::int64_t>(item_bytes_) * shape_[last];
  const auto item = static_cast<std::int64_t>(item_bytes);
  if (item == 0 || bytes % item != 0) refuse_because("the bytes of its last axis do not divide");
  detail::AxisList extents = shape_;
  detail::AxisList strides = strides_bytes_;
  extents[last] = bytes / item;
  strides[last] = item;
  return Layout(std::move(extents), item_bytes, std::move(strides));
}

Layout Layout::squeezed() const {
  detail::AxisList extents;
  detail::AxisList strides;
  for (std::size_t axis = 0; axis < shape_.size(); ++axis) {
    if (shape_[axis] == 1) continue;
    extents.push_back(shape_[axis]);
    strides.push_back(strides_bytes_[axis]);
  }
  return Layout(std::move(extents), item_bytes_, std::move(strides));
}

}  // namespace quern
