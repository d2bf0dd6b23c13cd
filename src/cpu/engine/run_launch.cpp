// SPDX-License-Identifier: Apache-2.0
// Runs chunks of blocks of a launch on one thread.
#include <sched.h>

#include <chrono>

#include "cpu/engine/output.hpp"
#include "cpu/engine/resident.hpp"
#include "cpu/engine/scheduler.hpp"

namespace quern::cpu::engine {
namespace {

/// The number of the processor that runs this thread, which may change at any time.
std::uint32_t current_processor() noexcept {
  const int number = ::sched_getcpu();
  return number < 0 ? 0 : static_cast<std::uint32_t>(number);
}

struct Loop {
  LaunchJob& job;
  const Grid& grid;
  Worker& worker;
  std::uint32_t worker_count;
  const Turn* turn;  ///< it ends with it; null: it ends with the grid
  std::uint64_t blocks_run = 0;
  std::chrono::steady_clock::time_point applied{};  ///< before the first time, which is due at once

  void run() {
    std::uint32_t share = job.shares != nullptr ? job.shares->join(current_processor()) : 0;
    while (!job.exhausted()) {
      const Chunk chunk = job.shares != nullptr ? job.shares->take(share) : take_in_order();
      if (chunk.count == 0) break;
      worker.chunk_first = chunk.first;
      worker.chunk_count = chunk.count;
      forget_running_threads(worker.state());
      grid.run(&grid.state, &worker.state(), chunk.first, chunk.count);
      blocks_run += chunk.count;
      if (job.exhausted()) continue;  // a small launch needs no clock
      if (turn == nullptr)
        apply_if_due();
      else if (turn->is_over())
        break;
    }
    apply_all_pending(worker.state());
  }

  Chunk take_in_order() noexcept {
    const std::uint64_t parts = BlockShares::kParts * worker_count;
    return take_chunk(job.next_block, grid.block_count, job.cooperative ? grid.block_count : parts);
  }

  /// Makes gathered updates visible to other kernels while this one runs.
  void apply_if_due() {
    constexpr std::chrono::microseconds kInterval{100};
    const auto now = std::chrono::steady_clock::now();
    if (now - applied < kInterval) return;
    apply_all_pending(worker.state());
    applied = now;
  }
};

std::unique_ptr<Fault> kept(const Fault& fault) {
  return fault.kind == FaultKind::none ? nullptr : std::make_unique<Fault>(fault);
}

std::unique_ptr<Fault> run_chunks(LaunchJob& job, Worker& worker, const Turn& turn,
                                  std::uint32_t worker_count) {
  KernelRun run;
  const Grid& grid = job.grid();
  run.text_begin = grid.text_begin;
  run.text_end = grid.text_end;
  run.window = worker.services().window;
  run.stack = &worker.stack();
  run.may_overflow = grid.needs.may_overflow;
  const bool shares = worker_count > 1 && grid.block_count > 1;
  Loop loop{job, grid, worker, worker_count, shares && job.alone ? &turn : nullptr};
  const std::uint64_t begin = shares ? __builtin_ia32_rdtsc() : 0;
  {
    const Worker::Stay stay(worker, run);
    run_guarded(run, [](void* argument) { static_cast<Loop*>(argument)->run(); }, &loop);
  }
  if (shares && grid.pace != nullptr && loop.blocks_run > 0)
    grid.pace->note(__builtin_ia32_rdtsc() - begin, loop.blocks_run);
  // Whoever asked the thread to leave has ended the context's work, though it may not know this launch.
  if (is_stopped(run)) job.stopped.store(true, std::memory_order_relaxed);
  note_running_threads(run.fault, worker.state(), worker.chunk_first, worker.chunk_count);
  return kept(run.fault);
}

/// Delivers what the grid printed. It can be asked to leave this as it can leave the kernel.
void flush_output(LaunchJob& job, Worker& worker, Watchdog& watchdog) {
  KernelRun waiting;
  const Watchdog::Watch watch(watchdog, job, worker);
  const Worker::Stay stay(worker, waiting);
  worker.services().output->flush(&job, [&waiting] { return is_stopped(waiting); });
  if (is_stopped(waiting)) job.stopped.store(true, std::memory_order_relaxed);
}

std::unique_ptr<Fault> run_grid(LaunchJob& job, Worker& worker, const Turn& turn, std::uint32_t worker_count,
                                Watchdog& watchdog, const std::function<void()>& meanwhile) {
  const Grid& grid = job.grid();
  worker.owner = grid.owner;
  worker.device = grid.device;
  worker.kernel = grid.kernel;
  worker.launch = &job;
  worker.heap_bytes = grid.heap_bytes;
  if (!worker.prepare(grid.needs)) return kept({.kind = FaultKind::out_of_memory});
  std::unique_ptr<Fault> fault;
  Bias& bias = worker.services().memory->bias();
  bias.enter(worker.state(), grid.atomics);
  {
    const Watchdog::Watch watch(watchdog, job, worker);
    fault =
        grid.waits ? kept(run_resident(job, worker, meanwhile)) : run_chunks(job, worker, turn, worker_count);
  }
  bias.leave(worker.state(), grid.atomics);
  if (fault != nullptr) {
    job.stopped.store(true, std::memory_order_relaxed);  // set before the explanation, which takes time
    if (fault->pc != nullptr && grid.explainer != nullptr) grid.explainer->explain(*fault, grid, worker);
  }
  if (worker.printed) flush_output(job, worker, watchdog);
  if (fault == nullptr && job.timed_out.load(std::memory_order_relaxed))
    fault = kept({.kind = FaultKind::launch_timeout});
  return fault;
}

bool has_blocks_left(const LaunchJob& job) noexcept {
  return job.next_block.load(std::memory_order_relaxed) < job.grid().block_count;
}

void begin_grid(LaunchJob& job) noexcept {
  if (!job.chain.empty()) job.grid().state.grid_id = job.grid_id + job.position;
}

/// Goes on to the chain's next grid. Returns false if there is none, or blocks of this one are left.
bool advance(LaunchJob& job) noexcept {
  if (has_blocks_left(job)) return false;
  if (job.position + 1 >= job.chain.size() || job.stopped.load(std::memory_order_relaxed)) return false;
  ++job.position;
  job.next_block.store(0, std::memory_order_relaxed);
  job.started_ns.store(0, std::memory_order_relaxed);
  return true;
}

}  // namespace

Turn::Turn() noexcept : begin_(__builtin_ia32_rdtsc()) {}
bool Turn::is_over() const noexcept { return __builtin_ia32_rdtsc() - begin_ > 50'000; }

std::unique_ptr<Fault> run_launch(LaunchJob& job, Worker& worker, const Turn& turn,
                                  std::uint32_t worker_count, Watchdog& watchdog,
                                  const std::function<void()>& meanwhile) {
  for (;;) {
    begin_grid(job);
    std::unique_ptr<Fault> fault = run_grid(job, worker, turn, worker_count, watchdog, meanwhile);
    if (fault != nullptr || !advance(job) || turn.is_over()) return fault;
  }
}

std::vector<std::unique_ptr<Command>> split_chain(const LaunchJob& job) {
  std::vector<std::unique_ptr<Command>> commands;
  if (job.chain.empty() || !has_blocks_left(job) || job.next_block.load(std::memory_order_relaxed) == 0)
    return commands;
  for (std::size_t i = job.position; i < job.chain.size(); ++i) {
    auto one = std::make_unique<LaunchJob>();
    one->own = job.chain[i];
    one->own.state.grid_id = job.grid_id + i;
    one->alone = one->own.block_count == 1;
    one->limit = job.limit;
    one->keep_alive = job.keep_alive;
    if (i == job.position) {
      one->next_block = job.next_block.load();
      one->started_ns = job.started_ns.load();
    }
    commands.push_back(std::make_unique<Command>());
    commands.back()->job = std::move(one);
  }
  return commands;
}

}  // namespace quern::cpu::engine
