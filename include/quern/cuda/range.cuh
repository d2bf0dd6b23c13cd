// SPDX-License-Identifier: Apache-2.0
// component: compile
// Python's range, for loops whose step is not known or whose variable changes in them:
//
//   for (const int i : quern::range<int>(start, stop, step))
#pragma once

#include <quern/cuda/array.cuh>

namespace quern {

template <class T>
class range {
 public:
  QUERN_HOST_DEVICE constexpr explicit range(T stop) : range(0, stop, 1) {}
  QUERN_HOST_DEVICE constexpr range(T start, T stop, T step = 1)
      : start_(start), step_(step), count_(count(start, stop, step)) {}

  struct iterator {
    T value;
    T step;
    unsigned long long left;

    QUERN_HOST_DEVICE constexpr T operator*() const { return value; }
    QUERN_HOST_DEVICE constexpr iterator& operator++() {
      // The last step may leave T; what comes of it is not read.
      value = static_cast<T>(static_cast<unsigned long long>(value) + static_cast<unsigned long long>(step));
      --left;
      return *this;
    }
    QUERN_HOST_DEVICE constexpr bool operator!=(const iterator& other) const { return left != other.left; }
  };
  QUERN_HOST_DEVICE constexpr iterator begin() const { return {start_, step_, count_}; }
  QUERN_HOST_DEVICE constexpr iterator end() const { return {start_, step_, 0}; }
  QUERN_HOST_DEVICE constexpr long long size() const { return static_cast<long long>(count_); }
  QUERN_HOST_DEVICE constexpr T operator[](long long index) const {
    return static_cast<T>(static_cast<unsigned long long>(start_) +
                          static_cast<unsigned long long>(index) * static_cast<unsigned long long>(step_));
  }

  /// Is it one of them?
  QUERN_HOST_DEVICE constexpr bool contains(long long value) const {
    using wide = unsigned long long;
    const bool up = step_ > 0;
    if (up ? value < static_cast<long long>(start_) : value > static_cast<long long>(start_)) return false;
    const wide far = up ? wide(value) - wide(start_) : wide(start_) - wide(value);
    const wide stride = up ? wide(step_) : 0 - wide(step_);
    return stride != 0 && far % stride == 0 && far / stride < count_;
  }

 private:
  static QUERN_HOST_DEVICE constexpr unsigned long long count(T start, T stop, T step) {
    using wide = unsigned long long;
    if (step > 0) return start < stop ? (wide(stop) - wide(start) - 1) / wide(step) + 1 : 0;
    if (step == 0) return 0;
    return start > stop ? (wide(start) - wide(stop) - 1) / (0 - wide(step)) + 1 : 0;
  }

  T start_, step_;
  unsigned long long count_;
};

}  // namespace quern
