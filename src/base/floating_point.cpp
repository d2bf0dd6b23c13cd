// SPDX-License-Identifier: Apache-2.0
#include "base/floating_point.hpp"

#include <cstdint>

namespace quern::base {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kDefaultMxcsr = 0x1f80;
constexpr std::uint32_t kMxcsrFlags = 0x3f;  ///< exceptions that happened
constexpr std::uint16_t kDefaultControlWord = 0x37f;

bool is_default() noexcept {
  std::uint32_t mxcsr = 0;
  std::uint16_t control_word = 0;
  asm volatile("stmxcsr %0" : "=m"(mxcsr));
  asm volatile("fnstcw %0" : "=m"(control_word));
  return (mxcsr & ~kMxcsrFlags) == kDefaultMxcsr && control_word == kDefaultControlWord;
}

/// fesetenv(FE_DFL_ENV) does not end the flushing of denormal numbers in every C library.
void set_default() noexcept {
  std::fesetenv(FE_DFL_ENV);
  const std::uint32_t mxcsr = kDefaultMxcsr;
  asm volatile("ldmxcsr %0" : : "m"(mxcsr));
}
#else
bool is_default() noexcept { return false; }
void set_default() noexcept { std::fesetenv(FE_DFL_ENV); }
#endif

}  // namespace

FloatingPointScope::FloatingPointScope() noexcept : changed_(!is_default()) {
  if (!changed_) return;
  std::fegetenv(&callers_);
  set_default();
}

}  // namespace quern::base
