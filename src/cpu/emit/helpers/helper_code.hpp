// SPDX-License-Identifier: Apache-2.0
// Shared by the source files of the helpers. Emitters do not include it.
#pragma once

#include <cstdint>
#include <span>

#include "base/uninstrumented.hpp"
#include "cpu/abi/warp_size.hpp"
#include "cpu/emit/helpers/helpers.hpp"

/// Puts a function into the section of helpers that access kernel memory. It is not instrumented: the
/// addresses are those of the kernel, and the functions of a sanitizer would be outside the section. All
/// functions that it calls must be inlined into it, including lambdas (QUERN_INLINE_BODY before their
/// braces). tests/unit/cpu/check_section.py checks this.
#define QUERN_KERNEL_MEMORY __attribute__((section("quern_helper_text"), noinline, used)) QUERN_UNINSTRUMENTED
#define QUERN_INLINE_BODY __attribute__((always_inline)) QUERN_UNINSTRUMENTED
#define QUERN_INLINE QUERN_INLINE_BODY inline

namespace quern::cpu::emit {

std::span<const Helper> memory_helpers();
std::span<const Helper> atomic_helpers();
std::span<const Helper> arithmetic_helpers();
std::span<const Helper> warp_helpers();
std::span<const Helper> system_helpers();
std::span<const Helper> dispatch_helpers();

template <class Function>
Helper helper_row(const char* name, Function* function) {
  return {name, reinterpret_cast<void*>(function)};
}
#define QUERN_HELPER(name) helper_row(#name, name)

/// Returns the number if one operand is NaN; -0 is less than +0.
template <class T>
QUERN_INLINE T lesser(T a, T b) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) return __builtin_signbit(a) ? a : b;
  return a < b ? a : b;
}
template <class T>
QUERN_INLINE T greater(T a, T b) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) return __builtin_signbit(a) ? b : a;
  return a > b ? a : b;
}

/// An access by the kernel to any address, aligned or not.
template <class T>
struct __attribute__((packed, may_alias)) KernelMemory {
  T value;
};

template <class T>
QUERN_INLINE T read_at(std::int64_t address) {
  return reinterpret_cast<const KernelMemory<T>*>(address)->value;  // NOLINT(performance-no-int-to-ptr)
}
template <class T>
QUERN_INLINE void write_at(std::int64_t address, T value) {
  reinterpret_cast<KernelMemory<T>*>(address)->value = value;  // NOLINT(performance-no-int-to-ptr)
}

/// Calls visit(lane) for each set bit, lowest first.
template <class Visit>
QUERN_INLINE void for_each_lane(std::uint32_t mask, Visit visit) {
  for (; mask != 0; mask &= mask - 1) visit(static_cast<unsigned>(__builtin_ctz(mask)));
}

}  // namespace quern::cpu::emit
