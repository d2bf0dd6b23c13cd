// SPDX-License-Identifier: Apache-2.0
#include "cpu/engine/resident.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "cpu/abi/warp_size.hpp"
#include "cpu/abi/warps.hpp"
#include "cpu/engine/mapping.hpp"
#include "cpu/engine/output.hpp"

namespace quern::cpu::engine {
namespace {

constexpr std::uint32_t kMaxBlocks = 24;
constexpr std::uint32_t kMaxThreads = 1536;
constexpr std::uint64_t kSystemSharedBytes = 1024;  ///< of each block

/// Waits between rounds in which all blocks only waited. At first it keeps the processor, then it yields it
/// to other threads, then it sleeps.
class Backoff {
 public:
  /// Returns true if the wait was long, so that the caller may do other work, too.
  bool rest() {
    ++rounds_;
    if (rounds_ < kSpins) {
      __builtin_ia32_pause();
      return false;
    }
    if (rounds_ < kYields)
      ::sched_yield();
    else
      std::this_thread::sleep_for(kNap);
    return true;
  }
  void renew() { rounds_ = 0; }
  bool is_short_of() const { return rounds_ >= kRounds; }

 private:
  static constexpr std::uint32_t kRounds = 16;
  static constexpr std::uint32_t kSpins = 64;
  static constexpr std::uint32_t kYields = 512;
  static constexpr std::chrono::microseconds kNap{50};
  std::uint32_t rounds_ = 0;
};

/// `from` may be null if there are no bytes.
void copy(std::vector<std::byte>& to, const std::byte* from, std::uint64_t bytes) {
  to.assign(from, from + bytes);
}

}  // namespace

void quern_cpu_yield(WorkerState*) { suspend_run(); }

std::uint32_t resident_blocks(std::uint32_t threads, std::uint64_t shared_bytes) noexcept {
  const std::uint32_t whole_warps = (threads + kWarpSize - 1) / kWarpSize * kWarpSize;
  const std::uint64_t by_threads = kMaxThreads / std::max(whole_warps, 1u);
  const std::uint64_t by_shared = kSharedBytes / (shared_bytes + kSystemSharedBytes);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>({kMaxBlocks, by_threads, by_shared}));
}

// --- local memory of a block that waits

LanesLocal::LanesLocal(const WorkerState& state, const WorkerNeeds& needs)
    : base_(state.local_base), stride_(state.local_stride), lanes_(std::uint64_t{needs.warps} * kWarpSize) {
  lane_bytes_ = needs.local_bytes == 0 ? 0 : std::min(stride_, round_up(needs.local_bytes, 16));
  own_bytes_ = lane_bytes_ - std::min(lane_bytes_, needs.activation_bytes);
}

std::uint64_t LanesLocal::bytes_in_use(const std::byte* lane) const {
  if (own_bytes_ == lane_bytes_) return lane_bytes_;
  std::uint32_t end = 0;
  std::memcpy(&end, lane + own_bytes_, sizeof end);
  return std::clamp<std::uint64_t>(end, own_bytes_ + sizeof end, lane_bytes_);
}

void LanesLocal::save() {
  if (lane_bytes_ == 0) return;
  sizes_.resize(lanes_);
  copy_.clear();
  for (std::uint64_t i = 0; i < lanes_; ++i) {
    const std::byte* const lane = base_ + i * stride_;
    sizes_[i] = bytes_in_use(lane);
    copy_.insert(copy_.end(), lane, lane + sizes_[i]);
  }
}

void LanesLocal::put_back() const {
  const std::byte* from = copy_.data();
  for (std::uint64_t i = 0; i < sizes_.size(); ++i) {
    std::memcpy(base_ + i * stride_, from, sizes_[i]);
    from += sizes_[i];
  }
}

// --- a resident block

ResidentBlock::ResidentBlock(Worker& worker, GuardedStack stack)
    : worker_(worker), state_(worker.state()), stack_(std::move(stack)) {}

Expected<std::unique_ptr<ResidentBlock>> ResidentBlock::make(Worker& worker) {
  Expected<GuardedStack> stack = GuardedStack::make(
      worker.services().window->compact() ? GuardedStack::kSmallStackBytes : GuardedStack::kStackBytes[0]);
  if (!stack) return std::move(stack).errors();
  return std::unique_ptr<ResidentBlock>(new ResidentBlock(worker, std::move(*stack)));
}

bool ResidentBlock::prepare(const Grid& grid) {
  state_ = worker_.state();
  shared_bytes_ = grid.state.total_shared_bytes;
  local_ = LanesLocal(state_, grid.needs);
  if (!frames_.reserve(grid.needs.frame_bytes * grid.needs.warps)) return false;
  state_.frames = frames_.data();
  taken_ = started_ = has_copy_ = false;
  return true;
}

void ResidentBlock::begin(const Grid& grid, std::uint64_t block) {
  grid_ = &grid;
  block_ = block;
  forget_running_threads(state_);
  run_ = std::make_unique<KernelRun>();
  run_->text_begin = grid.text_begin;
  run_->text_end = grid.text_end;
  run_->window = worker_.services().window;
  run_->stack = &stack_;
  run_->may_overflow = grid.needs.may_overflow;
  taken_ = true;
  started_ = has_copy_ = false;
}

void ResidentBlock::move_in() {
  if (!has_copy_) return;
  std::copy(shared_.begin(), shared_.end(), state_.shared_base);
  local_.put_back();
}

void ResidentBlock::move_out() {
  if (!taken_) return;
  copy(shared_, state_.shared_base, shared_bytes_);
  local_.save();
  has_copy_ = true;
}

StayEnd ResidentBlock::go_on() {
  worker_.chunk_first = block_;
  worker_.chunk_count = 1;
  StayEnd end = StayEnd::finished;
  const Worker::Stay stay(worker_, *run_);
  if (started_) {
    end = resume_guarded(*run_);
  } else {
    started_ = true;
    end = run_guarded(
        *run_,
        [](void* argument) {
          auto& resident = *static_cast<ResidentBlock*>(argument);
          resident.grid_->run(&resident.grid_->state, &resident.state_, resident.block_, 1);
        },
        this);
  }
  if (end == StayEnd::left) note_running_threads(run_->fault, state_, block_, 1);
  if (end != StayEnd::suspended) taken_ = false;
  return end;
}

// --- the blocks of a thread

namespace {

class Residents {
 public:
  Residents(LaunchJob& job, Worker& worker, const std::function<void()>& meanwhile)
      : job_(job), worker_(worker), meanwhile_(meanwhile), most_(most(job)) {}

  Fault run() {
    Backoff backoff;
    while (!job_.stopped.load(std::memory_order_relaxed)) {
      ended_ = false;
      const bool waiting = turn_of_each();
      if (fault_.kind != FaultKind::none) return fault_;
      // Other threads may be about to release the waiting blocks, so another block is started only after a
      // long wait.
      const bool started = (job_.cooperative || !waiting || backoff.is_short_of()) && start_one();
      if (fault_.kind != FaultKind::none) return fault_;
      if (!waiting && !started && !any_taken()) break;
      if (started || ended_)
        backoff.renew();
      else if (backoff.rest())
        look_outside();
      if (fault_.kind != FaultKind::none) return fault_;
    }
    return fault_;
  }

 private:
  /// A cooperative launch has no more blocks than fit on the device. If other threads are slow to join, one
  /// thread runs all of them.
  static std::uint64_t most(const LaunchJob& job) {
    const Grid& grid = job.grid();
    if (job.cooperative) return grid.block_count;
    return std::max(1u, resident_blocks(grid.needs.warps * kWarpSize, grid.state.total_shared_bytes));
  }

  /// The blocks wait for others, or for the host.
  void look_outside() {
    for (const std::shared_ptr<Mapping>& mapping : job_.mappings)
      if (!mapping->bring_together()) fault_.kind = FaultKind::illegal_address;
    meanwhile_();
  }

  bool any_taken() const {
    return std::any_of(residents().begin(), residents().end(),
                       [](const auto& resident) { return resident->is_taken(); });
  }
  const std::vector<std::unique_ptr<ResidentBlock>>& residents() const { return worker_.residents; }

  /// Runs each started block once. Returns true if some block still waits.
  bool turn_of_each() {
    bool waiting = false;
    for (std::size_t i = 0; i < ready_; ++i) {
      ResidentBlock& resident = *worker_.residents[i];
      if (!resident.is_taken()) continue;
      if (go_on(resident) == StayEnd::suspended) waiting = true;
      if (fault_.kind != FaultKind::none || job_.stopped.load(std::memory_order_relaxed)) break;
    }
    return waiting;
  }

  StayEnd go_on(ResidentBlock& resident) {
    if (present_ != &resident) {
      if (present_ != nullptr) present_->move_out();
      resident.move_in();
      present_ = &resident;
    }
    const StayEnd end = resident.go_on();
    if (end != StayEnd::suspended) ended_ = true;
    if (end == StayEnd::left) fault_ = resident.fault();
    return end;
  }

  /// Starts the next block of the grid, if there is one and it fits.
  bool start_one() {
    if (job_.exhausted()) return false;
    ResidentBlock* resident = free_resident();
    if (resident == nullptr) return false;
    const std::uint64_t block = job_.next_block.fetch_add(1, std::memory_order_relaxed);
    if (block >= job_.grid().block_count) return false;
    resident->begin(job_.grid(), block);
    go_on(*resident);
    return true;
  }

  ResidentBlock* free_resident() {
    for (std::size_t i = 0; i < ready_; ++i)
      if (!worker_.residents[i]->is_taken()) return worker_.residents[i].get();
    if (ready_ >= most_) return nullptr;
    if (ready_ == worker_.residents.size()) {
      Expected<std::unique_ptr<ResidentBlock>> resident = ResidentBlock::make(worker_);
      if (!resident) return no_room();
      worker_.residents.push_back(std::move(*resident));
    }
    if (!worker_.residents[ready_]->prepare(job_.grid())) return no_room();
    return worker_.residents[ready_++].get();
  }
  /// Handles lack of memory. With one resident block the grid still makes progress, block after block, unless
  /// it needs several at the same time.
  ResidentBlock* no_room() {
    if (ready_ == 0 || job_.cooperative) fault_.kind = FaultKind::out_of_memory;
    return nullptr;
  }

  LaunchJob& job_;
  Worker& worker_;
  const std::function<void()>& meanwhile_;
  const std::uint64_t most_;
  std::size_t ready_ = 0;             ///< blocks prepared for this launch
  ResidentBlock* present_ = nullptr;  ///< the block whose memory is now in the worker
  bool ended_ = false;                ///< a block ended in this round
  Fault fault_;
};

}  // namespace

Fault run_resident(LaunchJob& job, Worker& worker, const std::function<void()>& meanwhile) {
  const Fault fault = Residents(job, worker, meanwhile).run();
  for (const auto& resident : worker.residents) resident->abandon();
  return fault;
}

}  // namespace quern::cpu::engine
