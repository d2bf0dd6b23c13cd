// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cpu/device/driver.hpp"
#include "cpu/device/objects.hpp"
#include "cpu/engine/jobs.hpp"
#include "cpu/engine/stream.hpp"

namespace quern::cpu::device {

struct LaunchRequest {
  std::uint32_t grid[3]{1, 1, 1};
  std::uint32_t block[3]{1, 1, 1};
  std::uint32_t dynamic_shared_bytes = 0;
  bool cooperative = false;
  CUstream stream = nullptr;
  void** parameters = nullptr;  ///< one pointer a parameter, or null
  void** extra = nullptr;       ///< CU_LAUNCH_PARAM_*, or null
};

/// A launch of which everything is checked that can be before the kernel runs; the code is made. Immutable.
struct LaunchWork {
  CUfunction handle = nullptr;
  std::shared_ptr<FunctionObject> function;
  std::uint32_t grid[3]{1, 1, 1};
  std::uint32_t block[3]{1, 1, 1};
  std::uint32_t dynamic_shared_bytes = 0;
  bool cooperative = false;
  std::shared_ptr<const std::byte[]> params;  ///< as the kernel reads them; null: in the job
  const LoadedCode* loaded = nullptr;         ///< of `function`
  std::uint32_t warps = 0;
  std::chrono::nanoseconds limit{0};
  std::int64_t made_since_ns = 0;  ///< since when its code was made for it; 0: there was code
};

/// Checks the request but for its stream, and copies the parameters. `job`: what will run it, to which few
/// parameters are copied; null: it becomes a node of a graph, which may run many times and waits for good
/// code. Throws Failure.
LaunchWork prepare_launch(Driver& driver, CUfunction handle, std::shared_ptr<FunctionObject> function,
                          const LaunchRequest& request, engine::LaunchJob* job = nullptr);

/// True if QUERN_CPU_TIER asks for quick code of all kernels.
bool makes_quick_code_only() noexcept;

/// True for a launch whose grid can be made once and run many times, by one thread.
bool may_repeat(Driver& driver, const LaunchWork& work);
/// False: it takes longer by now than when it was judged to be worth one thread only.
bool is_still_short(const engine::Grid& grid) noexcept;
/// Fills in all but the grid's id.
void fill_grid(engine::Grid& grid, Driver& driver, LaunchWork work);
/// Returns the first of as many new numbers of grids.
std::uint64_t take_grid_ids(std::uint64_t count) noexcept;

/// Appends the commands of the launch: the job, and what brings together mapped memory before and after it.
/// Throws Failure.
void append_commands(Driver& driver, const LaunchWork& work,
                     std::vector<std::unique_ptr<engine::Command>>& commands);

/// Checks everything that can be checked before the kernel runs, copies the parameters, and queues the
/// launch, or records it if the stream captures. Throws Failure.
void launch(Driver& driver, CUfunction function, const LaunchRequest& request);

/// Generates the code that launch() would for this block shape and a small grid. Throws Failure.
void prepare(Driver& driver, CUfunction function, const std::uint32_t (&block)[3]);

/// Sets the time limit for launches of this thread from now on, in ns; 0: the device's own limit applies.
void set_launch_limit(std::uint64_t nanoseconds) noexcept;

}  // namespace quern::cpu::device
