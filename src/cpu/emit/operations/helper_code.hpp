// SPDX-License-Identifier: Apache-2.0
// What the helpers' source files share. Not for emitters.
#pragma once

#include <cstdint>
#include <span>

#include "cpu/emit/operations/helpers.hpp"

/// Puts a function into the section of helpers that access kernel memory. Whatever it calls must be inlined
/// into it.
#define QUERN_KERNEL_MEMORY __attribute__((section("quern_helper_text"), noinline, used))
#define QUERN_INLINE __attribute__((always_inline)) inline

namespace quern::cpu::emit {

inline constexpr unsigned kHelperLanes = 32;

std::span<const Helper> memory_helpers();
std::span<const Helper> atomic_helpers();
std::span<const Helper> arithmetic_helpers();
std::span<const Helper> warp_helpers();
std::span<const Helper> system_helpers();

template <class Function>
Helper helper_row(const char* name, Function* function) {
  return {name, reinterpret_cast<void*>(function)};
}
#define QUERN_HELPER(name) helper_row(#name, name)

/// Calls visit(lane) for each set bit, lowest first.
template <class Visit>
QUERN_INLINE void for_each_lane(std::uint32_t mask, Visit visit) {
  for (; mask != 0; mask &= mask - 1) visit(static_cast<unsigned>(__builtin_ctz(mask)));
}

}  // namespace quern::cpu::emit
