// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cfenv>

namespace quern::base {

/// While it lives, this thread computes as the C++ and PTX standards' defaults say: rounding to nearest,
/// denormal numbers kept, no exception trapped. Then the caller's floating-point environment is back, its
/// exception flags included, where it was another. A few nanoseconds where it was the default already: then
/// only exception flags may be raised.
class FloatingPointScope {
 public:
  FloatingPointScope() noexcept;
  ~FloatingPointScope() {
    if (changed_) std::fesetenv(&callers_);
  }
  FloatingPointScope(const FloatingPointScope&) = delete;
  FloatingPointScope& operator=(const FloatingPointScope&) = delete;

 private:
  bool changed_ = false;
  std::fenv_t callers_;
};

}  // namespace quern::base
