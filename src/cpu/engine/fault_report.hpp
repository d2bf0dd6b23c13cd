// SPDX-License-Identifier: Apache-2.0
// Facts about the fault that ended a context: the launch, the threads, the place, and the access.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace quern::cpu::engine {

enum class AccessKind : std::uint8_t { none, load, store, atomic };

using Index3 = std::array<std::uint32_t, 3>;

/// Immutable once its domain has it.
struct FaultReport {
  std::string kernel;  ///< as its author wrote it, where that is known
  Index3 grid{};       ///< blocks; all 0 where no launch is to blame
  Index3 block_dim{};  ///< threads
  std::optional<Index3> block;
  /// The lowest thread known to have met it and the last that may have: one and the same where it is exact.
  std::optional<Index3> first_thread;
  std::optional<Index3> last_thread;
  std::string file;                      ///< empty: `line` is one of the PTX
  std::uint32_t line = 0;                ///< 0: not known
  std::optional<std::uint64_t> address;  ///< as the kernel computed it
  AccessKind access = AccessKind::none;
  std::uint32_t access_bytes = 0;  ///< of one thread
  std::string_view space;          ///< "global"; empty: not known
  /// All of it in words, to stand behind the sentence that the fault has.
  std::string text;
};

}  // namespace quern::cpu::engine
