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

/// Immutable after its domain has received it.
struct FaultReport {
  std::string kernel;  ///< as its author wrote it, if that is known
  Index3 grid{};       ///< in blocks; all 0 if no launch caused the fault
  Index3 block_dim{};  ///< in threads
  std::optional<Index3> block;
  /// The first and the last thread that may have faulted; they are equal if the thread is known exactly.
  std::optional<Index3> first_thread;
  std::optional<Index3> last_thread;
  std::string file;                      ///< empty: `line` is a line of the PTX
  std::uint32_t line = 0;                ///< 0: not known
  std::optional<std::uint64_t> address;  ///< the address that the kernel computed
  AccessKind access = AccessKind::none;
  std::uint32_t access_bytes = 0;  ///< of one thread
  std::string_view space;          ///< "global"; empty: not known
  /// The report in words. It is appended to the sentence that describes the fault.
  std::string text;
};

}  // namespace quern::cpu::engine
