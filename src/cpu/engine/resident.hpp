// SPDX-License-Identifier: Apache-2.0
// Runs blocks that wait for other blocks or for the host: several of them are started on one thread and run
// in turn.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "cpu/engine/fault.hpp"
#include "cpu/engine/jobs.hpp"
#include "cpu/engine/worker.hpp"

namespace quern::cpu::engine {

/// A copy of a block's part of its lanes' local memory. Functions called as machine functions do not use it
/// while the block waits.
class LanesLocal {
 public:
  LanesLocal() = default;
  LanesLocal(const WorkerState& state, const WorkerNeeds& needs);
  void save();
  void put_back() const;

 private:
  std::uint64_t bytes_in_use(const std::byte* lane) const;

  std::byte* base_ = nullptr;
  std::uint64_t stride_ = 0;
  std::uint64_t lane_bytes_ = 0;  ///< the largest number of bytes in use
  std::uint64_t own_bytes_ = 0;   ///< the least number of bytes in use: without activations
  std::uint64_t lanes_ = 0;
  std::vector<std::uint64_t> sizes_;  ///< by lane
  std::vector<std::byte> copy_;       ///< the copies of all lanes, one after another
};

/// The state of a started block while other blocks of its thread run: its stack and frames, and a copy of its
/// shared and local memory, which have the same addresses for all blocks of a thread.
class ResidentBlock {
 public:
  static Expected<std::unique_ptr<ResidentBlock>> make(Worker& worker);

  /// Prepares memory and stack for blocks of a launch. Returns false if there is not enough memory.
  bool prepare(const Grid& grid);
  void begin(const Grid& grid, std::uint64_t block);
  /// Runs the block until it ends or waits.
  StayEnd go_on();
  bool is_taken() const noexcept { return taken_; }
  /// Called when the launch was stopped: its block does not continue.
  void abandon() noexcept { taken_ = false; }
  const Fault& fault() const noexcept { return run_->fault; }

  /// Copy the block's memory into the worker's memory, and back.
  void move_in();
  void move_out();

 private:
  ResidentBlock(Worker& worker, GuardedStack stack);

  Worker& worker_;
  WorkerState state_;
  GuardedStack stack_;
  AlignedMemory frames_;
  std::vector<std::byte> shared_;
  LanesLocal local_;
  std::uint64_t shared_bytes_ = 0;
  const Grid* grid_ = nullptr;
  std::uint64_t block_ = 0;
  std::unique_ptr<KernelRun> run_;
  bool taken_ = false;
  bool started_ = false;
  bool has_copy_ = false;
};

/// Starts further blocks of the launch while all started ones wait, and runs all of them in turn, until none
/// is left or the launch is stopped. While all of them wait, calls `meanwhile` from time to time.
Fault run_resident(LaunchJob& job, Worker& worker, const std::function<void()>& meanwhile);

/// The largest number of blocks of a launch that one thread runs at the same time: that of a multiprocessor
/// of compute capability 8.9 (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability").
std::uint32_t resident_blocks(std::uint32_t threads, std::uint64_t shared_bytes) noexcept;

}  // namespace quern::cpu::engine
