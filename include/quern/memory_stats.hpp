// SPDX-License-Identifier: Apache-2.0
// component: runtime
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "quern/export.hpp"

namespace quern {

/// Kinds of driver resources that a context holds.
enum class ResourceKind : std::uint8_t {
  device,      ///< device memory of the driver's allocator
  pooled,      ///< device memory of another allocator (Session::set_allocator)
  managed,     ///< memory that the driver moves between host and device
  pinned,      ///< page-locked host memory
  mapped,      ///< page-locked host memory that kernels see
  registered,  ///< host memory of the program's own, page-locked for a scope
  stream,
  event,
  module,
};
inline constexpr std::size_t kResourceKindCount = 9;

/// "device", "pinned", ...
QUERN_API std::string_view name(ResourceKind kind) noexcept;

/// Counts and bytes of one context. `live` resources have an owner; `pending` ones are in the queue for their
/// release (Session::defer_cleanup, the limits); `peak_bytes` is the maximum of live and pending bytes
/// together. Bytes are 0 for streams, events and modules.
struct MemoryStats {
  struct Kind {
    std::size_t live_count = 0;
    std::size_t live_bytes = 0;
    std::size_t pending_count = 0;
    std::size_t pending_bytes = 0;
    std::size_t peak_bytes = 0;
    std::uint64_t made_count = 0;  ///< since the context was opened
  };
  std::array<Kind, kResourceKindCount> kinds{};
  std::size_t peak_bytes = 0;  ///< of all kinds together

  struct Live {
    ResourceKind kind{};
    std::size_t size_bytes = 0;
    /// One line per frame, the innermost outside of quern first: "function + 0x1f (program+0x2b1f)".
    std::string made_at;
  };
  /// The live resources, one by one: only if sites are tracked (builds of quern without optimisation,
  /// QUERN_TRACK_ALLOCATIONS=1).
  std::vector<Live> live;

  const Kind& operator[](ResourceKind kind) const noexcept { return kinds[static_cast<std::size_t>(kind)]; }
  /// The sum over all kinds. Its peak is the peak of the sum, which may be less than the sum of the peaks.
  QUERN_API Kind total() const noexcept;
};

/// The text of the leak report: one line for each kind with live or pending resources, then `live`.
QUERN_API std::string to_string(const MemoryStats& stats);

}  // namespace quern
