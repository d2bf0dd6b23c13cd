// SPDX-License-Identifier: Apache-2.0
// Runs chunks of blocks of a launch on one thread.
#include <algorithm>
#include <chrono>

#include "cpu/engine/output.hpp"
#include "cpu/engine/resident.hpp"
#include "cpu/engine/scheduler.hpp"

namespace quern::cpu::engine {
namespace {

struct Loop {
  LaunchJob& job;
  Worker& worker;
  std::uint32_t worker_count;
  std::chrono::steady_clock::time_point applied{};  ///< before the first time, which is due at once

  /// Runs large grids in a few large chunks, and the last blocks one by one. Checks for a fault of another
  /// worker at least every 1,024 blocks.
  void run() {
    constexpr std::uint64_t kMaxChunk = 1024;
    const std::uint64_t steps = std::uint64_t{16} * worker_count;
    while (!job.exhausted()) {
      const std::uint64_t left = job.block_count - job.next_block.load(std::memory_order_relaxed);
      const std::uint64_t chunk = job.cooperative ? 1 : std::clamp<std::uint64_t>(left / steps, 1, kMaxChunk);
      const std::uint64_t first = job.next_block.fetch_add(chunk, std::memory_order_relaxed);
      if (first >= job.block_count) break;
      worker.chunk_first = first;
      worker.chunk_count = std::min(chunk, job.block_count - first);
      forget_running_threads(worker.state());
      job.run(&job.state, &worker.state(), first, worker.chunk_count);
      if (!job.exhausted()) apply_if_due();  // a small launch needs no clock
    }
    apply_all_pending(worker.state());
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

std::unique_ptr<Fault> run_chunks(LaunchJob& job, Worker& worker, std::uint32_t worker_count) {
  KernelRun run;
  run.text_begin = job.text_begin;
  run.text_end = job.text_end;
  run.window = worker.services().window;
  run.stack = &worker.stack();
  run.may_overflow = job.needs.may_overflow;
  Loop loop{job, worker, worker_count};
  {
    const Worker::Stay stay(worker, run);
    run_guarded(run, [](void* argument) { static_cast<Loop*>(argument)->run(); }, &loop);
  }
  note_running_threads(run.fault, worker.state(), worker.chunk_first, worker.chunk_count);
  return kept(run.fault);
}

}  // namespace

std::unique_ptr<Fault> run_launch(LaunchJob& job, Worker& worker, std::uint32_t worker_count,
                                  Watchdog& watchdog, const std::function<void()>& meanwhile) {
  worker.owner = job.owner;
  worker.device = job.device;
  worker.kernel = &job.kernel;
  worker.heap_bytes = job.heap_bytes;
  if (!worker.prepare(job.needs)) return kept({.kind = FaultKind::out_of_memory});
  std::unique_ptr<Fault> fault;
  {
    const Watchdog::Watch watch(watchdog, job, worker);
    fault = job.waits ? kept(run_resident(job, worker, meanwhile)) : run_chunks(job, worker, worker_count);
  }
  if (fault != nullptr) {
    job.stopped.store(true, std::memory_order_relaxed);  // set before the explanation, which takes time
    if (fault->pc != nullptr && job.explainer != nullptr) job.explainer->explain(*fault, job, worker);
  }
  if (worker.printed) worker.services().output->flush();
  if (fault == nullptr && job.timed_out.load(std::memory_order_relaxed))
    fault = kept({.kind = FaultKind::launch_timeout});
  return fault;
}

}  // namespace quern::cpu::engine
