// SPDX-License-Identifier: Apache-2.0
// The commands of a stream.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "cpu/abi/facts.hpp"
#include "cpu/abi/state.hpp"
#include "cpu/engine/block_shares.hpp"
#include "cpu/engine/memory.hpp"
#include "cpu/engine/worker.hpp"

namespace quern::cpu::engine {

struct Fault;
struct Grid;

/// Finds the instruction and the thread that faulted. Takes as long as compiling the kernel again.
/// Thread-safe.
class FaultExplainer {
 public:
  virtual ~FaultExplainer() = default;
  virtual void explain(Fault& fault, const Grid& grid, const Worker& worker) const noexcept = 0;
};

/// Remembers how long a kernel's blocks took lately, in ticks of the time-stamp counter. Thread-safe.
class Pace {
 public:
  void note(std::uint64_t ticks, std::uint64_t blocks) noexcept {
    const std::uint64_t now = ticks / blocks + 1;
    const std::uint64_t before = block_ticks_.load(std::memory_order_relaxed);
    // Less is believed at once: more may be the time of another program that had the processor.
    const std::uint64_t next = before == 0 || now < before ? now : before + (now - before) / 2;
    block_ticks_.store(next, std::memory_order_relaxed);
  }
  /// True if so many blocks take fewer ticks, by what is known.
  bool is_within(std::uint64_t ticks, std::uint64_t blocks) const noexcept {
    const std::uint64_t each = block_ticks_.load(std::memory_order_relaxed);
    return each != 0 && blocks < ticks / each;
  }

 private:
  std::atomic<std::uint64_t> block_ticks_{0};  ///< 0: not known
};

/// The blocks of a kernel to run. Does not change while it runs.
struct Grid {
  RunBlocks run = nullptr;
  const std::byte* text_begin = nullptr;
  const std::byte* text_end = nullptr;
  WorkerNeeds needs;
  LaunchState state;
  std::shared_ptr<const std::byte[]> params;  ///< owns the target of state.params; null: the job does
  std::uint64_t block_count = 0;
  bool waits = false;  ///< blocks may wait for others, or for the host
  ir::AtomicUse atomics = ir::AtomicUse::none;
  std::uint64_t owner = 0;
  std::uint32_t device = 0;
  std::uint64_t heap_bytes = 0;
  const std::string* kernel = nullptr;                   ///< its name in the author's source; null: no name
  const std::vector<ir::Location>* locations = nullptr;  ///< for Fault::location
  const FaultExplainer* explainer = nullptr;             ///< null: faults are not explained
  Pace* pace = nullptr;                                  ///< of the kernel's code; null: nobody asks
  std::shared_ptr<const void> keep_alive;                ///< owns all that these point to
};

/// Grids to run one after another: one, or the chain of an executable graph, which makes its grids once. The
/// first group of members does not change after submission. The second is its progress, which the workers
/// share.
struct LaunchJob {
  LaunchJob() noexcept {}     // not defaulted: that would first set all of it to zero, also the parameters
  Grid own;                   ///< the only grid, unless it is a chain
  std::span<Grid> chain;      ///< empty: it is none. One thread runs it, which writes the grids' ids
  std::uint64_t grid_id = 0;  ///< of a chain's first grid; the others follow
  /// One thread runs all blocks of a grid, or of a launch as many as it can in a turn. Always true for a
  /// chain. Guarded by the scheduler's mutex.
  bool alone = false;
  bool cooperative = false;                ///< all blocks run at the same time
  bool is_copy = false;                    ///< a copy that a kernel makes: cancelling does not end copies
  std::shared_ptr<const void> workspace;   ///< owns the target of state.grid_workspace
  std::shared_ptr<const void> keep_alive;  ///< owns the chain
  std::vector<std::shared_ptr<Mapping>> mappings;  ///< host memory through which it may wait for the host
  std::chrono::nanoseconds limit{0};               ///< limit of each grid's running time; 0: none

  /// Room for few parameters, which saves an allocation: `own.state.params` may point there.
  static constexpr std::size_t kParameterBytes = 192;
  alignas(16) std::byte parameters[kParameterBytes];

  std::size_t position = 0;                  ///< in the chain. The thread that runs it writes it
  std::atomic<std::uint64_t> next_block{0};  ///< not used if there are shares
  /// Null: the blocks are taken in order, by one thread or because they may wait for each other.
  std::unique_ptr<BlockShares> shares;
  /// a worker had a fault, the time limit was exceeded, or it was cancelled
  std::atomic<bool> stopped{false};
  std::atomic<std::int64_t> started_ns{0};  ///< monotonic; set if launches are watched
  std::atomic<bool> timed_out{false};
  bool waits() const noexcept { return own.waits; }  ///< grids of a chain do not
  /// The grid that runs, or runs next.
  Grid& grid() noexcept { return chain.empty() ? own : chain[position]; }
  const Grid& grid() const noexcept { return chain.empty() ? own : chain[position]; }
  /// True if no thread needs to join, or to run it again.
  bool exhausted() const noexcept {
    if (stopped.load(std::memory_order_relaxed)) return true;
    return shares != nullptr ? shares->exhausted()
                             : next_block.load(std::memory_order_relaxed) >= grid().block_count;
  }
};

/// Distances between the starts of rows, and between the starts of slices.
struct Strides {
  std::uint64_t row_bytes = 0;
  std::uint64_t slice_bytes = 0;
};

/// A copy, or a fill with a 1-, 2- or 4-byte pattern if `source` is null: `slices` of `rows` of `bytes`.
struct TransferJob {
  std::byte* destination = nullptr;
  const std::byte* source = nullptr;
  std::uint64_t bytes = 0;
  std::uint64_t rows = 1;
  std::uint64_t slices = 1;
  Strides destination_strides;  ///< not used for a single row or slice
  Strides source_strides;
  std::uint32_t pattern = 0;
  std::uint32_t pattern_bytes = 1;
  std::unique_ptr<std::byte[]> staged;  ///< a copy of the source, if the caller's may change
  std::shared_ptr<const void> keep_destination;
  std::shared_ptr<const void> keep_source;
  /// Registered memory among these: the program may take it away, as by truncating its file.
  std::array<Range, 2> registered;
};
/// Returns false if registered memory is not there any more.
[[nodiscard]] bool run(const TransferJob& job) noexcept;

/// Brings a mapping's two sides together.
struct MappingJob {
  std::shared_ptr<Mapping> mapping;
};

/// A host function, called on a separate thread.
struct HostJob {
  void (*function)(void*) = nullptr;
  void* user = nullptr;
  std::shared_ptr<const void> keep;  ///< owns the data of `user`; null: the host owns it
  bool after_fault = false;          ///< call it even if a fault has ended the context
};

/// True on a thread that is in a host function: it may not call the driver, which may wait for it.
bool in_host_function() noexcept;

/// Waits until memory has a value, which the host, a kernel or another stream writes.
struct ValueJob {
  enum class Relation : std::uint8_t { at_least, equal, any_bit, no_nor_bit };
  const std::byte* address = nullptr;
  std::uint64_t value = 0;
  std::uint32_t bytes = 4;  ///< 4 or 8
  Relation relation = Relation::at_least;
  std::shared_ptr<const void> keep;  ///< owns the memory; null: the host owns it
  std::array<Range, 2> registered;   ///< as in a TransferJob
};

/// The state of what a stream waits for. Lost: it will never come.
enum class Awaited : std::uint8_t { ahead, passed, lost };

/// Lost: its memory is not there any more.
Awaited look(const ValueJob& job) noexcept;

/// A point in a stream of another process. Thread-safe.
class PeerPoint {
 public:
  using State = Awaited;
  virtual ~PeerPoint() = default;
  /// Lost: the other process ended, or its context failed, before its stream came to the point.
  virtual State look() noexcept = 0;
};

/// Waits for a point; a lost one ends the context.
struct PeerJob {
  std::shared_ptr<PeerPoint> point;
};

/// Is told that a stream has come to a point. Called once, under the scheduler's mutex.
class PointObserver {
 public:
  virtual ~PointObserver() = default;
  /// `dropped`: a fault, or the end of the context, has dropped the work before the point.
  virtual void passed(bool dropped) noexcept = 0;
};

class Stream;

/// A point in a stream that an event recorded.
struct EventPoint {
  std::shared_ptr<Stream> stream;
  std::uint64_t sequence = 0;
  /// in its domain's clock, which is monotonic; valid after completion
  std::atomic<std::int64_t> time_ns{0};
  bool done() const noexcept;
};

struct RecordJob {
  std::shared_ptr<EventPoint> point;
  std::shared_ptr<PointObserver> observer = {};  ///< null: nobody
};
/// Does nothing. Its dependencies delay the stream.
struct WaitJob {};

struct Command;
/// Provides commands that are determined only when the stream reaches this one. Thread-compatible.
class CommandSource {
 public:
  virtual ~CommandSource() = default;
  /// Returns the commands to run next. It is called again after they have run. If it returns none, the job is
  /// complete. Called on a thread for copies. An exception ends the context.
  virtual std::vector<std::unique_ptr<Command>> next() = 0;
};
struct SourceJob {
  std::shared_ptr<CommandSource> source;
};

using Job = std::variant<WaitJob, RecordJob, HostJob, ValueJob, PeerJob, SourceJob, TransferJob, MappingJob,
                         std::unique_ptr<LaunchJob>>;

}  // namespace quern::cpu::engine
