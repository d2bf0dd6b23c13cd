// SPDX-License-Identifier: Apache-2.0
// component: abi
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace quern::detail {

/// One integer per axis: extents or strides. The object stores the usual number of axes inline, so that views
/// of arrays allocate no memory.
class AxisList {
 public:
  AxisList() noexcept = default;
  explicit AxisList(std::span<const std::int64_t> values) { assign(values); }
  AxisList(const AxisList& other) { assign(other.values()); }
  AxisList(AxisList&& other) noexcept { take(other); }
  AxisList& operator=(const AxisList& other) {
    if (this != &other) assign(other.values());
    return *this;
  }
  AxisList& operator=(AxisList&& other) noexcept {
    if (this != &other) take(other);
    return *this;
  }

  static AxisList zeros(std::size_t count) {
    AxisList list;
    for (std::size_t i = 0; i < count; ++i) list.push_back(0);
    return list;
  }

  std::size_t size() const noexcept { return size_; }
  std::int64_t* data() noexcept { return heap_ != nullptr ? heap_.get() : inline_; }
  const std::int64_t* data() const noexcept { return heap_ != nullptr ? heap_.get() : inline_; }
  std::span<const std::int64_t> values() const noexcept { return {data(), size_}; }
  std::span<std::int64_t> values() noexcept { return {data(), size_}; }
  std::int64_t& operator[](std::size_t axis) noexcept { return data()[axis]; }
  const std::int64_t& operator[](std::size_t axis) const noexcept { return data()[axis]; }
  void push_back(std::int64_t value) {
    if (size_ == capacity_) grow(2 * capacity_);
    data()[size_++] = value;
  }
  friend bool operator==(const AxisList& a, const AxisList& b) noexcept {
    return std::ranges::equal(a.values(), b.values());
  }

 private:
  static constexpr std::size_t kInline = 4;

  void assign(std::span<const std::int64_t> values) {
    if (values.size() > capacity_) grow(values.size());
    std::copy(values.begin(), values.end(), data());
    size_ = values.size();
  }
  void take(AxisList& other) noexcept {
    heap_ = std::move(other.heap_);
    std::copy_n(other.inline_, kInline, inline_);
    size_ = std::exchange(other.size_, 0);
    capacity_ = std::exchange(other.capacity_, kInline);
  }
  void grow(std::size_t capacity) {
    auto larger = std::make_unique_for_overwrite<std::int64_t[]>(capacity);
    std::copy_n(data(), size_, larger.get());
    heap_ = std::move(larger);
    capacity_ = capacity;
  }

  std::int64_t inline_[kInline] = {};
  std::unique_ptr<std::int64_t[]> heap_;
  std::size_t size_ = 0;
  std::size_t capacity_ = kInline;
};

}  // namespace quern::detail
