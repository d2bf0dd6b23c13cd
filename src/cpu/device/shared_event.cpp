// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/shared_event.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <ctime>
#include <utility>

#include "base/clock.hpp"
#include "base/thread.hpp"
#include "cpu/engine/backing.hpp"

namespace quern::cpu::device {

/// The memory that the processes share. A record ends in the slot of its ticket. Tickets whose slot has a
/// record that is not reached yet are left out: whoever waits for that one must not be woken by a later one.
struct SharedPage {
  static constexpr std::uint32_t kSlots = 1024;
  struct Slot {
    /// Twice the last ticket that was reached or lost, and 1 more if it was lost. Values wrap around.
    std::atomic<std::uint32_t> value;
    std::atomic<std::uint32_t> taken;   ///< the last ticket; 0: none
    std::atomic<std::int32_t> process;  ///< that took it
  };
  /// The last ticket and the process that took it, in one word: whoever sees a ticket knows the process for
  /// whose end it has to watch. 0: no record.
  std::atomic<std::uint64_t> last;
  std::atomic<std::uint32_t> sleepers;
  Slot slots[kSlots];

  Slot& slot(std::uint32_t ticket) noexcept { return slots[ticket % kSlots]; }
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
              std::atomic<std::uint32_t>::is_always_lock_free);

namespace {

using State = engine::PeerPoint::State;

constexpr std::chrono::milliseconds kCheckInterval{50};

State state_of(std::uint32_t value, std::uint32_t ticket) noexcept {
  const auto beyond = static_cast<std::int32_t>(value - 2 * ticket);
  if (beyond < 0) return State::ahead;
  return beyond == 1 ? State::lost : State::passed;
}

long futex(const std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const std::timespec* timeout) noexcept {
  return ::syscall(SYS_futex, &word, operation, value, timeout, nullptr, 0);
}

/// The record has come to its end, unless another process has found that already.
void settle(SharedPage& page, std::uint32_t ticket, bool lost) noexcept {
  std::atomic<std::uint32_t>& value = page.slot(ticket).value;
  std::uint32_t seen = value.load();
  while (state_of(seen, ticket) == State::ahead) {
    if (!value.compare_exchange_weak(seen, 2 * ticket + (lost ? 1 : 0))) continue;
    if (page.sleepers.load() > 0) futex(value, FUTEX_WAKE, INT_MAX, nullptr);
    return;
  }
}

/// A record of this process.
class OwnRecord final : public engine::PointObserver {
 public:
  OwnRecord(std::shared_ptr<SharedEvent> event, SharedPage& page, std::uint32_t ticket)
      : event_(std::move(event)), page_(page), ticket_(ticket) {}
  ~OwnRecord() override { settle(page_, ticket_, true); }
  OwnRecord(const OwnRecord&) = delete;
  OwnRecord& operator=(const OwnRecord&) = delete;
  void passed(bool dropped) noexcept override { settle(page_, ticket_, dropped); }

 private:
  const std::shared_ptr<SharedEvent> event_;  ///< owns the page
  SharedPage& page_;
  const std::uint32_t ticket_;
};

/// The same record, of which it does not matter whether it is lost.
class Settled final : public engine::PeerPoint {
 public:
  explicit Settled(std::shared_ptr<PeerRecord> record) : record_(std::move(record)) {}
  State look() noexcept override { return record_->look() == State::ahead ? State::ahead : State::passed; }

 private:
  const std::shared_ptr<PeerRecord> record_;
};

/// Queues a wait for the point on the stream, or on all streams of the domain (null).
void queue(Driver& driver, engine::Domain& domain, const std::shared_ptr<engine::Stream>& stream,
           std::shared_ptr<engine::PeerPoint> point) {
  engine::Scheduler& scheduler = driver.scheduler();
  if (stream != nullptr) return scheduler.submit(stream, engine::PeerJob{std::move(point)});
  const auto waiting = scheduler.make_stream(domain, false);
  scheduler.submit(waiting, engine::PeerJob{std::move(point)});
  scheduler.wait_event(domain, *scheduler.record(waiting));
  scheduler.retire(*waiting);
}

[[noreturn]] void fail_lost() {
  fail(CUDA_ERROR_LAUNCH_FAILED,
       "the process that recorded the event ended, or its context failed, before the event was reached");
}

}  // namespace

std::shared_ptr<SharedEvent> SharedEvent::map(int descriptor, bool keep_descriptor) {
  void* const page = ::mmap(nullptr, sizeof(SharedPage), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (!keep_descriptor || page == MAP_FAILED) ::close(descriptor);
  if (page == MAP_FAILED) return nullptr;
  return std::shared_ptr<SharedEvent>(
      new SharedEvent(keep_descriptor ? descriptor : -1, static_cast<SharedPage*>(page)));
}

std::shared_ptr<SharedEvent> SharedEvent::make(std::uint32_t device) {
  const int descriptor = engine::make_memory_file(sizeof(SharedPage), device);  // filled with zeros
  require(descriptor >= 0, CUDA_ERROR_OUT_OF_MEMORY);
  auto event = map(descriptor, true);
  require(event != nullptr, CUDA_ERROR_OUT_OF_MEMORY);
  return event;
}

std::shared_ptr<SharedEvent> SharedEvent::open(const SharedFile& file) {
  const int descriptor = open_shared_file(file);
  if (engine::examine_memory_file(descriptor).bytes != sizeof(SharedPage)) {
    ::close(descriptor);
    fail(CUDA_ERROR_MAP_FAILED);
  }
  auto event = map(descriptor, false);
  require(event != nullptr, CUDA_ERROR_MAP_FAILED);
  return event;
}

SharedEvent::~SharedEvent() {
  ::munmap(page_, sizeof(SharedPage));
  if (descriptor_ >= 0) ::close(descriptor_);
}

SharedFile SharedEvent::file() const {
  return shared_file(SharedKind::event, descriptor_, 0, sizeof(SharedPage));
}

std::optional<SharedEvent::Last> SharedEvent::last() const noexcept {
  const std::uint64_t word = page_->last.load();
  if (word == 0) return std::nullopt;
  return Last{static_cast<std::uint32_t>(word >> 32), static_cast<std::int32_t>(word & 0xffffffffu)};
}

SharedEvent::Begun SharedEvent::begin_record() {
  const auto process = static_cast<std::int32_t>(::getpid());
  const auto is_free = [this](std::uint32_t ticket) {
    const SharedPage::Slot& slot = page_->slot(ticket);
    return state_of(slot.value.load(), slot.taken.load()) != State::ahead;
  };
  std::uint64_t word = page_->last.load();
  std::uint32_t ticket = 0;
  Last earlier;
  do {
    const std::uint32_t next = static_cast<std::uint32_t>(word >> 32) + 1;
    ticket = next;
    while (!is_free(ticket) && ticket - next < SharedPage::kSlots) ++ticket;
    const SharedPage::Slot& slot = page_->slot(ticket);
    earlier = {slot.taken.load(), slot.process.load()};
  } while (!page_->last.compare_exchange_weak(
      word, (std::uint64_t{ticket} << 32) | static_cast<std::uint32_t>(process)));
  // No slot was free: the stream comes to the record that has this one first.
  std::shared_ptr<PeerRecord> before;
  SharedPage::Slot& slot = page_->slot(ticket);
  if (state_of(slot.value.load(), earlier.ticket) == State::ahead)
    before = std::make_shared<PeerRecord>(shared_from_this(), earlier);
  slot.process.store(process);
  slot.taken.store(ticket);
  Begun begun{ticket, std::make_shared<OwnRecord>(shared_from_this(), *page_, ticket), nullptr};
  if (before != nullptr) begun.after = std::make_shared<Settled>(std::move(before));
  return begun;
}

PeerRecord::PeerRecord(std::shared_ptr<SharedEvent> event, SharedEvent::Last record)
    : event_(std::move(event)), ticket_(record.ticket), process_(process_of(record.process)) {}

PeerRecord::State PeerRecord::state() const noexcept {
  return state_of(event_->page_->slot(ticket_).value.load(), ticket_);
}

PeerRecord::State PeerRecord::look() noexcept {
  const State now = state();
  if (now != State::ahead) return now;
  const std::int64_t now_ns = base::now_ns();
  if (now_ns < next_check_ns_.load(std::memory_order_relaxed)) return now;
  next_check_ns_.store(now_ns + std::chrono::nanoseconds(kCheckInterval).count(), std::memory_order_relaxed);
  try {
    if (!is_alive(process_)) settle(*event_->page_, ticket_, true);
  } catch (...) {  // no memory or no descriptor is left to find out: the next look tries again
  }
  return state();
}

void PeerRecord::sleep() const noexcept {
  SharedPage& page = *event_->page_;
  const std::atomic<std::uint32_t>& value = page.slot(ticket_).value;
  const std::timespec timeout{0, std::chrono::nanoseconds(kCheckInterval).count()};
  ++page.sleepers;
  const std::uint32_t seen = value.load();
  if (state_of(seen, ticket_) == State::ahead) futex(value, FUTEX_WAIT, seen, &timeout);
  --page.sleepers;
}

void record_event(Driver& driver, EventObject& event, const std::shared_ptr<engine::Stream>& stream) {
  engine::Domain& domain = *event.context->domain;
  SharedEvent::Begun begun;
  if (event.shared != nullptr) begun = event.shared->begin_record();
  if (begun.after != nullptr) queue(driver, domain, stream, std::move(begun.after));
  auto point = stream != nullptr ? driver.scheduler().record(stream, std::move(begun.observer))
                                 : driver.scheduler().record(domain, std::move(begun.observer));
  const base::LockGuard lock(event.mutex);
  event.point = std::move(point);
  event.ticket = begun.ticket;
  event.captured = nullptr;
}

AwaitedPoint awaited_point(EventObject& event) {
  std::optional<SharedEvent::Last> last;
  {
    const base::LockGuard lock(event.mutex);
    if (event.shared != nullptr) last = event.shared->last();
    if (!last || (event.point != nullptr && last->ticket == event.ticket)) return {event.point, nullptr};
  }
  return {nullptr, std::make_shared<PeerRecord>(event.shared, *last)};
}

bool is_reached(const AwaitedPoint& point) {
  if (point.peer == nullptr) return point.own == nullptr || point.own->done();
  const State state = point.peer->look();
  if (state == State::lost) fail_lost();
  return state == State::passed;
}

void wait_for(Driver& driver, const EventObject& event, const AwaitedPoint& point) {
  if (point.own != nullptr) return driver.scheduler().synchronize(*point.own);
  const base::NoCancellation whole;
  while (!is_reached(point)) {
    require_not_ended(*event.context);
    check_fault(*event.context);
    driver.scheduler().help();  // the other process may wait for this one
    point.peer->sleep();
  }
}

void queue_wait(Driver& driver, const ContextState& context, const std::shared_ptr<engine::Stream>& stream,
                const AwaitedPoint& point) {
  if (is_reached(point)) return;
  if (point.peer != nullptr) return queue(driver, *context.domain, stream, point.peer);
  if (stream != nullptr)
    driver.scheduler().wait_event(stream, *point.own);
  else
    driver.scheduler().wait_event(*context.domain, *point.own);
}

}  // namespace quern::cpu::device
