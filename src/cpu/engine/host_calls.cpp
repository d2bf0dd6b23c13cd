// SPDX-License-Identifier: Apache-2.0
// Functions that emitted code calls: traps, and device functions that the host executes for a lane. An
// invalid pointer from the kernel ends the launch as if the kernel itself had accessed it. raise_fault() is
// called only where no object with a destructor is alive.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <thread>

#include "cpu/abi/facts.hpp"
#include "cpu/abi/state.hpp"
#include "cpu/abi/warp_size.hpp"
#include "cpu/engine/fault.hpp"
#include "cpu/engine/memory.hpp"
#include "cpu/engine/output.hpp"
#include "cpu/engine/printf_format.hpp"
#include "cpu/engine/worker.hpp"

namespace quern::cpu::engine {
namespace {

constexpr std::size_t kMaxStringBytes = 65536;

Worker& worker_of(WorkerState* state) { return *static_cast<Worker*>(state->scheduler); }

std::optional<std::string> read_string(const Worker& worker, std::uint64_t address) {
  std::string text;
  for (; text.size() < kMaxStringBytes; ++address) {
    if (!worker.may_access(address, 1)) return std::nullopt;
    const char letter = *reinterpret_cast<const volatile char*>(address);
    if (letter == '\0') break;
    text += letter;
  }
  return text;
}

std::optional<std::uint64_t> read_number(const Worker& worker, std::uint64_t address, std::uint32_t size) {
  std::uint64_t bits = 0;
  if (!worker.may_access(address, size)) return std::nullopt;
  std::memcpy(&bits, reinterpret_cast<const void*>(address), size);
  return bits;
}

/// The outcome of a device function: its result, an invalid address from the kernel, or lack of memory.
struct Outcome {
  std::uint64_t result = 0;
  FaultKind fault = FaultKind::none;
};

Outcome device_vprintf(Worker& worker, const LaunchState&, const std::uint64_t* args) {
  if (args[0] == 0) return {static_cast<std::uint64_t>(-1)};
  const std::optional<std::string> format = read_string(worker, args[0]);
  if (!format) return {0, FaultKind::illegal_address};
  const DeviceReader reader{
      [&worker](std::uint64_t address, std::uint32_t size) { return read_number(worker, address, size); },
      [&worker](std::uint64_t address) { return read_string(worker, address); },
  };
  std::optional<Formatted> formatted = format_printf(*format, args[1], reader);
  if (!formatted) return {0, FaultKind::illegal_address};
  worker.printed = true;
  worker.services().output->write({std::move(formatted->text), *worker.kernel, worker.owner, worker.launch},
                                  [&worker] { return worker.is_asked_to_leave(); });
  return {formatted->argument_count};
}

std::string coordinates(std::uint64_t index, const std::uint32_t extent[3]) {
  return fmt::format("[{},{},{}]", index % extent[0], index / extent[0] % extent[1],
                     index / extent[0] / extent[1]);
}

/// The block for a report: the one that the kernel stored; otherwise that of the chunk, if it has only one
/// block.
std::string block_text(const Worker& worker, const WorkerState& state, const LaunchState& launch) {
  if (state.block_index != kUnknownIndex) return coordinates(state.block_index, launch.grid);
  if (worker.chunk_count == 1) return coordinates(worker.chunk_first, launch.grid);
  return "[?,?,?]";
}

std::string thread_text(const WorkerState& state, const LaunchState& launch) {
  if (state.warp_index == kUnknownWarp) return "[?,?,?]";
  return coordinates(std::uint64_t{state.warp_index} * kWarpSize + state.fault_lane, launch.block);
}

Outcome device_assertfail(Worker& worker, const WorkerState& state, const LaunchState& launch,
                          const std::uint64_t* args) {
  const std::optional<std::string> message = read_string(worker, args[0]);
  const std::optional<std::string> file = read_string(worker, args[1]);
  const std::optional<std::string> function = read_string(worker, args[3]);
  const std::string line = std::to_string(static_cast<std::uint32_t>(args[2]));
  const std::string block = block_text(worker, state, launch);
  const std::string thread = thread_text(state, launch);
  const std::string text =
      fmt::format("{}:{}: {}: block: {}, thread: {} Assertion `{}` failed.", file.value_or("?"), line,
                  function.value_or("?"), block, thread, message.value_or("?"));
  report(LogLevel::error, text,
         {{"kernel", *worker.kernel},
          {"file", file.value_or("?")},
          {"line", line},
          {"block", block},
          {"thread", thread}},
         "");
  return {0, FaultKind::assertion};
}

Outcome device_malloc(Worker& worker, const LaunchState&, const std::uint64_t* args) {
  Memory& memory = *worker.services().memory;
  const std::uint64_t used = memory.heap_used_bytes(worker.owner);
  if (args[0] == 0 || used >= worker.heap_bytes || args[0] > worker.heap_bytes - used) return {0};
  const auto allocation = memory.allocate({args[0], AllocationKind::heap, worker.device, worker.owner, 0});
  return {allocation == nullptr ? 0 : reinterpret_cast<std::uint64_t>(allocation->base)};
}

/// The CUDA Programming Guide, "Heap Memory Allocation", leaves freeing a pointer that malloc() did not
/// return undefined. Here it ends the launch, since the pointer may be memory of another context.
Outcome device_free(Worker& worker, const LaunchState&, const std::uint64_t* args) {
  if (args[0] == 0) return {};
  const auto allocation =
      worker.services().memory->remove_from_heap(reinterpret_cast<const void*>(args[0]), worker.owner);
  return {0, allocation == nullptr ? FaultKind::trap : FaultKind::none};
}

FaultKind kind_of(std::uint32_t trap) noexcept {
  switch (static_cast<ir::Trap>(trap)) {
    case ir::Trap::trap:
      return FaultKind::trap;
    case ir::Trap::assert:
      return FaultKind::assertion;
    case ir::Trap::stack_overflow:
      return FaultKind::stack_overflow;
    case ir::Trap::divergent_barrier:
      return FaultKind::divergent_barrier;
    case ir::Trap::unreachable:
      return FaultKind::unreachable;
    case ir::Trap::no_such_barrier:
      return FaultKind::no_such_barrier;
    case ir::Trap::barrier_of_part:
      return FaultKind::barrier_of_part;
  }
  return FaultKind::trap;
}

/// The code that called this knows no exceptions.
Outcome host_call(WorkerState* state, const LaunchState* launch, std::uint32_t call,
                  const std::uint64_t* args) noexcept try {
  Worker& worker = worker_of(state);
  switch (static_cast<ir::HostCall>(call)) {
    case ir::HostCall::vprintf:
      return device_vprintf(worker, *launch, args);
    case ir::HostCall::assertfail:
      return device_assertfail(worker, *state, *launch, args);
    case ir::HostCall::malloc:
      return device_malloc(worker, *launch, args);
    case ir::HostCall::free:
      return device_free(worker, *launch, args);
    case ir::HostCall::fault:
      return {0, kind_of(static_cast<std::uint32_t>(args[0]))};
  }
  return {0, FaultKind::trap};
} catch (const std::bad_alloc&) {
  return {0, FaultKind::out_of_memory};
}

/// Raises a fault that the kernel's own code detected. The code has stored its location.
[[noreturn]] void raise_here(const WorkerState& worker, FaultKind kind) {
  Fault fault{.kind = kind, .location = worker.fault_location, .lane = worker.fault_lane, .knows_lane = true};
  if (worker.warp_index != kUnknownWarp) {
    fault.warp = worker.warp_index;
    fault.warp_count = 1;
  }
  raise_fault(fault);
}

}  // namespace

void quern_cpu_trap(WorkerState* worker, std::uint32_t trap) { raise_here(*worker, kind_of(trap)); }

// Kernels that wait in these two functions are rarely in their own code when a signal to end arrives.

std::uint64_t quern_cpu_global_timer() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  end_if_stopped();
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000000u + static_cast<std::uint64_t>(now.tv_nsec);
}

void quern_cpu_nanosleep(std::uint32_t nanoseconds) {
  if (nanoseconds == 0) {
    std::this_thread::yield();
  } else {
    const timespec time{0, static_cast<long>(std::min<std::uint32_t>(nanoseconds, 1000000))};
    nanosleep(&time, nullptr);
  }
  end_if_stopped();
}

std::uint64_t quern_cpu_host_call(WorkerState* worker, const LaunchState* launch, std::uint32_t call,
                                  const std::uint64_t* args) {
  const Outcome outcome = host_call(worker, launch, call, args);
  end_if_stopped();
  if (outcome.fault != FaultKind::none) raise_here(*worker, outcome.fault);
  return outcome.result;
}

}  // namespace quern::cpu::engine
