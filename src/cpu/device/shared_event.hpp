// SPDX-License-Identifier: Apache-2.0
// Events that several processes record and wait for (CU_EVENT_INTERPROCESS). See
// docs/decisions/0037-virtual-memory.md.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "cpu/device/driver.hpp"
#include "cpu/device/ipc.hpp"
#include "cpu/engine/jobs.hpp"

namespace quern::cpu::device {

struct SharedPage;
class PeerRecord;

/// The memory of such an event, which each process that uses the event maps. Each record has a ticket; the
/// tickets of all processes are one sequence. Thread-safe.
class SharedEvent : public std::enable_shared_from_this<SharedEvent> {
 public:
  /// Throws Failure(CUDA_ERROR_OUT_OF_MEMORY).
  static std::shared_ptr<SharedEvent> make(std::uint32_t device);
  /// An event that another process made. Throws Failure(CUDA_ERROR_MAP_FAILED).
  static std::shared_ptr<SharedEvent> open(const SharedFile& file);
  ~SharedEvent();
  SharedEvent(const SharedEvent&) = delete;
  SharedEvent& operator=(const SharedEvent&) = delete;

  /// For other processes; only of an event that this process made.
  SharedFile file() const;

  struct Begun {
    std::uint32_t ticket = 0;
    /// For the stream. If it is released before the stream comes to the record, the record has failed.
    std::shared_ptr<engine::PointObserver> observer;
    /// The stream must come to this point before the record; null: there is none.
    std::shared_ptr<engine::PeerPoint> after;
  };
  /// Whoever waits for the event from now on waits for this record.
  Begun begin_record();

  struct Last {
    std::uint32_t ticket = 0;
    std::int32_t process = 0;
  };
  /// The last record of any process, or nothing.
  std::optional<Last> last() const noexcept;

 private:
  friend class PeerRecord;
  SharedEvent(int descriptor, SharedPage* page) : descriptor_(descriptor), page_(page) {}
  static std::shared_ptr<SharedEvent> map(int descriptor, bool keep_descriptor);

  const int descriptor_;  ///< -1: another process made the event
  SharedPage* const page_;
};

/// A record of a shared event, as other processes see it. Thread-safe.
class PeerRecord final : public engine::PeerPoint {
 public:
  PeerRecord(std::shared_ptr<SharedEvent> event, SharedEvent::Last record);
  /// Finds out at most every 50 ms whether the recording process still runs.
  State look() noexcept override;
  /// Returns when the state may have changed, 50 ms later at the latest.
  void sleep() const noexcept;

 private:
  State state() const noexcept;

  const std::shared_ptr<SharedEvent> event_;
  const std::uint32_t ticket_;
  const ProcessId process_;
  std::atomic<std::int64_t> next_check_ns_{0};
};

/// Records the event on the stream, or on all streams of the event's context (null).
void record_event(Driver& driver, EventObject& event, const std::shared_ptr<engine::Stream>& stream);

/// The point that a wait for an event waits for: one of this process, a record of another one, or none.
struct AwaitedPoint {
  std::shared_ptr<engine::EventPoint> own;
  std::shared_ptr<PeerRecord> peer;
};
AwaitedPoint awaited_point(EventObject& event);

/// cuEventQuery. Throws Failure(CUDA_ERROR_LAUNCH_FAILED) if the record is lost.
bool is_reached(const AwaitedPoint& point);
/// Blocks the caller until the point is reached, or the context of `event` has ended. Throws Failure as
/// is_reached().
void wait_for(Driver& driver, const EventObject& event, const AwaitedPoint& point);
/// Makes commands submitted from now on to the stream, or to all streams of the context (null), run after
/// the point. Throws Failure as is_reached().
void queue_wait(Driver& driver, const ContextState& context, const std::shared_ptr<engine::Stream>& stream,
                const AwaitedPoint& point);

}  // namespace quern::cpu::device
