// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cfenv>

namespace quern::base {

/// While an object of this class lives, this thread computes with the defaults of the C++ and PTX standards:
/// rounding to nearest, denormal numbers kept, no exception trapped. Its destructor restores the caller's
/// floating-point environment, including its exception flags, if it was different. A few nanoseconds if it
/// was the default already: then only exception flags may be raised.
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
