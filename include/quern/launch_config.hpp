// SPDX-License-Identifier: Apache-2.0
// component: launch
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "quern/export.hpp"
#include "quern/stream.hpp"

namespace quern {

namespace detail {
/// Throws Error(usage) for an extent that is negative or does not fit 32 bits.
[[noreturn]] QUERN_API void throw_bad_extent(bool negative, std::uint64_t magnitude);
}  // namespace detail

/// Extents along x, y, z: one to three integers of any type; the missing ones are 1.
struct Dim3 {
  std::uint32_t x = 1;
  std::uint32_t y = 1;
  std::uint32_t z = 1;

  constexpr Dim3() noexcept = default;
  template <std::integral X>
  constexpr Dim3(X extent_x) : x(checked(extent_x)) {}  // NOLINT(google-explicit-constructor)
  template <std::integral X, std::integral Y>
  constexpr Dim3(X extent_x, Y extent_y) : x(checked(extent_x)), y(checked(extent_y)) {}
  template <std::integral X, std::integral Y, std::integral Z>
  constexpr Dim3(X extent_x, Y extent_y, Z extent_z)
      : x(checked(extent_x)), y(checked(extent_y)), z(checked(extent_z)) {}

  /// x * y * z.
  constexpr std::uint64_t count() const noexcept { return std::uint64_t{x} * y * z; }
  friend constexpr bool operator==(const Dim3&, const Dim3&) = default;

 private:
  template <std::integral T>
  static constexpr std::uint32_t checked(T extent) {
    if constexpr (std::is_signed_v<T>)
      if (extent < 0) detail::throw_bad_extent(true, std::uint64_t{0} - static_cast<std::uint64_t>(extent));
    if constexpr (sizeof(T) > 4)
      if (static_cast<std::uint64_t>(extent) > UINT32_MAX)
        detail::throw_bad_extent(false, static_cast<std::uint64_t>(extent));
    return static_cast<std::uint32_t>(extent);
  }
};

/// The configuration of a launch: `{.grid = {64, 64}, .block = {16, 16}}`. The grid counts blocks; an extent
/// of 0 in it is legal and launches nothing. `shared_bytes` is dynamic shared memory; beyond the device's
/// default the kernel's limit is raised automatically. `cooperative` allows grid-wide synchronisation and
/// needs all blocks resident at once. `timeout`: a kernel that runs longer is ended, which ends its context
/// as any fault does (CUDA_ERROR_LAUNCH_TIMEOUT); the time in the queue does not count. 0:
/// SessionOptions::launch_timeout applies. On a GPU, where CUDA has no such limit, a launch with a timeout
/// throws Error(unsupported).
struct LaunchConfig {
  Dim3 grid = {};
  Dim3 block = {};
  std::size_t shared_bytes = 0;
  StreamView stream = {};
  bool cooperative = false;
  std::chrono::nanoseconds timeout{0};
};

}  // namespace quern
