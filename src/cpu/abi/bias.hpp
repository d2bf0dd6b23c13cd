// SPDX-License-Identifier: Apache-2.0
// Regions of memory that are biased towards a worker (docs/decisions/0068-biased-regions.md): as long as no
// other worker has asked for the region, its owner makes atomic operations there by plain instructions, as
// the owner of a biased lock takes it without an atomic instruction.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::cpu::engine {

struct WorkerState;

/// A region has 16 KiB; several have one entry in the table of owners.
inline constexpr unsigned kBiasRegionBits = 14;
inline constexpr std::uint64_t kBiasRegionBytes = std::uint64_t{1} << kBiasRegionBits;
inline constexpr std::uint64_t kNoOwner = 0;
inline constexpr std::uint64_t kNoTag = 1;  ///< no entry has this value

/// Emitted code reads the table through this: owners[(address >> kBiasRegionBits) & mask] is the entry of the
/// region of an address.
struct BiasView {
  const std::uint64_t* owners = &kNoOwner;
  std::uint64_t mask = 0;
  std::uint64_t tag = kNoTag;  ///< the entry of a region that this worker owns
  /// Odd while the worker makes plain operations in its regions. Emitted code increases it before it reads
  /// an entry, and after the operation. Another worker that takes the region away first changes the entry,
  /// makes all threads of the process execute a fence, and then waits until the number is even or has
  /// changed.
  std::uint64_t section = 0;
};

/// Asks for the regions of `first` and `last`, bytes of one access of a warp, which are at most one region
/// apart. Returns true if the worker owns both; its section is odd then, and even otherwise. If not, no
/// worker owns them any more, so that locked instructions exclude each other.
extern "C" bool quern_cpu_own(WorkerState* worker, std::uint64_t first, std::uint64_t last);
/// The same for the addresses of the lanes in `mask`, which are accessed by locked instructions: afterwards
/// no other worker owns a region of theirs.
extern "C" void quern_cpu_unbias(WorkerState* worker, const std::uint64_t* addresses, std::uint32_t mask);

}  // namespace quern::cpu::engine
