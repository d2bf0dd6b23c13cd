// SPDX-License-Identifier: Apache-2.0
// Facts about the fault that ended a context: the launch, the threads, the source line, and the access.
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
  /// The first and the last thread that may have faulted; they are equal if the thread is known exactly.
  std::optional<Index3> first_thread;
  std::optional<Index3> last_thread;
  std::string file;                      ///< empty: `line` is one of the PTX
  std::uint32_t line = 0;                ///< 0: not known
  std::optional<std::uint64_t> address;  ///< as the kernel computed it
  AccessKind access = AccessKind::none;
  std::uint32_t access_bytes = 0;  ///< of one thread
  std::string_view space;          ///< "global"; empty: not known
  /// The report in words, to be appended to the sentence for the fault.
  std::string text;
};

}  // namespace quern::cpu::engine
