// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/launch.hpp"
#include "base/env.hpp"
#include "cpu/engine/mapping.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "cpu/abi/limits.hpp"
#include "cpu/device/exit.hpp"
#include "cpu/device/graph/capture.hpp"
#include "cpu/device/library.hpp"
#include "cpu/device/limits.hpp"
#include "cpu/engine/resident.hpp"

namespace quern::cpu::device {
namespace {

/// Emitted code may read a whole vector at the last parameter.
constexpr std::uint64_t kParameterPadding = 64;
/// A smaller grid hardly fills a large array, and its launch is short.
constexpr std::uint64_t kStreamingWarps = 64;

std::atomic<std::uint64_t> next_grid_id{1};
thread_local std::chrono::nanoseconds launch_limit{0};

void check_shape(const LaunchRequest& request, const FunctionObject& function) {
  for (int d = 0; d < 3; ++d) {
    require(request.grid[d] > 0 && request.grid[d] <= kMaxGrid[d]);
    require(request.block[d] > 0 && request.block[d] <= kMaxBlock[d]);
  }
  const std::uint64_t threads = std::uint64_t{request.block[0]} * request.block[1] * request.block[2];
  require(threads <= kMaxThreadsPerBlock && threads <= function.info().max_threads);
  // .reqntid: exactly that shape.
  const std::array<std::uint32_t, 3>& required = function.ptx().performance.reqntid;
  if (required[0] != 0)
    for (int d = 0; d < 3; ++d)
      require(request.block[d] == std::max(required[static_cast<std::size_t>(d)], 1u));
  require(request.dynamic_shared_bytes <=
          function.settings.max_dynamic_shared_bytes.load(std::memory_order_relaxed));
  require(function.info().static_shared_bytes + request.dynamic_shared_bytes <= kOptInSharedBytes);
}

/// The buffer that `extra` describes. CU_LAUNCH_PARAM_END ends it. As on a GPU, a buffer may be shorter than
/// the parameters, whose rest is then zero here, and not longer.
void copy_packed(void** extra, std::byte* to, std::uint64_t bytes) {
  const void* buffer = nullptr;
  const std::size_t* size = nullptr;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
      buffer = extra[1];
    else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
      size = static_cast<const std::size_t*>(extra[1]);
    else
      fail(CUDA_ERROR_INVALID_VALUE);
  }
  if (bytes == 0) return;
  require(buffer != nullptr && size != nullptr && *size > 0);
  require(*size <= bytes, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  std::memcpy(to, buffer, *size);
}

void copy_parameters(const LaunchRequest& request, const KernelInfo& info, std::byte* to) {
  require(request.parameters == nullptr || request.extra == nullptr || info.params.empty());
  if (request.extra != nullptr) return copy_packed(request.extra, to, info.param_bytes);
  require(request.parameters != nullptr || info.params.empty());
  for (std::size_t i = 0; i < info.params.size(); ++i) {
    require(request.parameters[i] != nullptr);
    std::memcpy(to + info.params[i].offset, request.parameters[i], info.params[i].size);
  }
}

/// Null: they are in the job.
std::shared_ptr<const std::byte[]> place_parameters(const LaunchRequest& request, const KernelInfo& info,
                                                    engine::LaunchJob* job) {
  const std::uint64_t bytes = info.param_bytes + kParameterPadding;
  if (job != nullptr && bytes <= sizeof job->parameters) {
    std::memset(job->parameters, 0, bytes);
    copy_parameters(request, info, job->parameters);
    job->own.state.params = job->parameters;
    return nullptr;
  }
  auto buffer = std::make_shared<std::byte[]>(bytes);
  copy_parameters(request, info, buffer.get());
  return buffer;
}

enum class WantedTier : std::uint8_t { automatic, good, quick };
WantedTier wanted_tier() {
  constexpr std::string_view kWords[] = {"auto", "good", "quick"};
  static const auto tier =
      static_cast<WantedTier>(base::env_word("QUERN_CPU_TIER", kWords, &engine::report_variable).value_or(0));
  return tier;
}

/// About where quick code takes as much longer to run a kernel without loops as it takes less time to
/// compile, if divided by a few iterations of a loop. Measured with sin() and with functions in f64.
constexpr std::uint64_t kMostQuickThreads = std::uint64_t{1} << 16;

/// The code that the launch takes if it does not run more than once.
Tier tier_of(const LaunchRequest& request, const Specialisation& specialisation) {
  const std::uint64_t blocks = std::uint64_t{request.grid[0]} * request.grid[1] * request.grid[2];
  const bool quick = wanted_tier() == WantedTier::automatic && specialisation.opt_level == kGoodLevel &&
                     !specialisation.compact && !request.cooperative &&
                     blocks <= kMostQuickThreads / specialisation.threads();
  return quick ? Tier::quick_first : Tier::good;
}

Specialisation specialisation_of(const LaunchRequest& request, const ModuleObject& module, Driver& driver) {
  Specialisation specialisation;
  static const Isa isa = host_isa();
  static const bool dispatch =
      base::env_switch("QUERN_CPU_DISPATCH", &engine::report_variable).value_or(false);
  specialisation.isa = isa;
  specialisation.compact = driver.window().compact();
  specialisation.alone = driver.scheduler().worker_count() == 1 && !driver.memory().bias().is_forbidden();
  specialisation.dispatch = dispatch;
  if (makes_quick_code_only()) specialisation.opt_level = kQuickLevel;
  if (!module.settings.optimised) specialisation.opt_level = kDebugLevel;
  for (std::size_t d = 0; d < 3; ++d) {
    specialisation.block[d] = request.block[d];
    specialisation.small_grid &= std::uint64_t{request.grid[d]} * request.block[d] < (std::uint64_t{1} << 31);
  }
  return specialisation;
}

void fill_state(engine::LaunchState& state, const LaunchWork& work, Driver& driver) {
  state.window_base = driver.window().base();
  state.window_bytes = driver.window().bytes();
  std::copy_n(work.grid, 3, state.grid);
  std::copy_n(work.block, 3, state.block);
  state.dynamic_shared_bytes = work.dynamic_shared_bytes;
  state.total_shared_bytes =
      static_cast<std::uint32_t>(work.function->info().static_shared_bytes) + work.dynamic_shared_bytes;
  if (work.params != nullptr) state.params = work.params.get();
  state.symbols = work.loaded->symbols.data();
  state.sm_count = driver.scheduler().worker_count();
}

/// An array of more bytes does not stay in the caches until a later launch reads it: half of the last cache,
/// as far as a program is likely to have that for itself.
std::uint64_t streamed_bytes() {
  static constexpr std::uint64_t kLeast = std::uint64_t{8} << 20, kMost = std::uint64_t{32} << 20;
  static const std::uint64_t bytes = [] {
    const long cache = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
    return std::clamp(cache > 0 ? static_cast<std::uint64_t>(cache) / 2 : kMost, kLeast, kMost);
  }();
  return bytes;
}

/// Returns the parameters among `streamed` (CodeFacts) whose arrays are large.
std::uint64_t find_streams(std::uint64_t streamed, const std::byte* parameters, Driver& driver) {
  std::uint64_t streams = 0;
  for (std::uint64_t rest = streamed; rest != 0; rest &= rest - 1) {
    const auto slot = static_cast<unsigned>(std::countr_zero(rest));
    const void* array = nullptr;
    std::memcpy(&array, parameters + 8 * slot, sizeof array);
    const auto allocation = driver.memory().find(array);
    if (allocation != nullptr && allocation->bytes >= streamed_bytes()) streams |= std::uint64_t{1} << slot;
  }
  return streams;
}

/// The local memory of a thread for called functions: at least the default, more if the context's limit asks
/// for it.
std::uint64_t stack_bytes(const LocalNeeds& local, const ContextState& context) {
  if (!local.calls) return 0;
  const std::uint64_t wanted =
      std::max<std::uint64_t>(ir::kCalledStackBytes, context.stack_bytes.load(std::memory_order_relaxed));
  constexpr std::uint64_t kMost = ir::kMaxThreadLocalBytes;
  return std::min(wanted, kMost - std::min(kMost, local.bytes));
}

/// Allocates the workspace for the grid barrier of a cooperative launch: cooperative_groups keeps a size and
/// a counter there (cooperative_groups/details/driver_abi.h), which must be zero at first.
void give_workspace(engine::LaunchJob& job, Driver& driver, const ContextState& context) {
  constexpr std::uint64_t kBytes = 256;
  engine::Memory& memory = driver.memory();
  const auto allocation = driver.allocate(context, engine::AllocationKind::module, kBytes);
  require(allocation != nullptr, CUDA_ERROR_OUT_OF_MEMORY);
  std::memset(allocation->base, 0, kBytes);
  job.own.state.grid_workspace = reinterpret_cast<std::uint64_t>(allocation->base);
  // By identity: the context may have ended by then, and its addresses may be another's.
  job.workspace = std::shared_ptr<const void>(
      allocation->base, [&memory, allocation](const void*) { memory.remove(*allocation); });
}

std::uint64_t block_count(const LaunchWork& work) noexcept {
  return std::uint64_t{work.grid[0]} * work.grid[1] * work.grid[2];
}

/// True if the grid's arrays may be too large for the caches, which depends on what is allocated.
bool may_stream(const LaunchWork& work) noexcept {
  return work.loaded->code->streamed != 0 && block_count(work) * work.warps >= kStreamingWarps;
}

/// A launch that takes fewer ticks of the time-stamp counter is not worth waking another thread: about 10 us.
constexpr std::uint64_t kShortTicks = 30'000;

/// True if a thread should begin the launch before others are woken for it: these could do nothing, or the
/// kernel's blocks took so little before that waking does not pay. The launch may take longer than it did,
/// but then the thread leaves the rest to others, too, when its turn is over.
bool begins_alone(Driver& driver, const LaunchWork& work) noexcept {
  if (work.cooperative || work.loaded->code->waits) return false;
  return driver.scheduler().worker_count() == 1 || block_count(work) == 1 ||
         work.loaded->pace->is_within(kShortTicks, block_count(work));
}

}  // namespace

void fill_grid(engine::Grid& grid, Driver& driver, LaunchWork work) {
  const ContextState& context = *work.function->module().context;
  const KernelCode& code = *work.loaded->code;
  grid.run = code.run;
  grid.text_begin = code.text_begin;
  grid.text_end = code.text_end;
  grid.kernel = &work.function->display_name();
  grid.locations = &code.locations;
  grid.explainer = work.loaded->explainer.get();
  grid.pace = work.loaded->pace.get();
  grid.needs = {work.warps,
                code.local.bytes,
                code.frame_bytes,
                stack_bytes(code.local, context),
                code.local.activation_bytes,
                code.calls};
  fill_state(grid.state, work, driver);
  grid.block_count = block_count(work);
  if (may_stream(work)) grid.state.streams = find_streams(code.streamed, grid.state.params, driver);
  grid.waits = code.waits;
  grid.atomics = code.atomics;
  grid.owner = context.id;
  grid.device = context.device;
  grid.heap_bytes = context.heap_bytes.load(std::memory_order_relaxed);
  grid.params = std::move(work.params);
  grid.keep_alive = std::move(work.function);  // owns code, symbols, locations and the explainer
}

std::uint64_t take_grid_ids(std::uint64_t count) noexcept {
  return next_grid_id.fetch_add(count, std::memory_order_relaxed);
}

bool is_still_short(const engine::Grid& grid) noexcept {
  return grid.block_count == 1 || grid.pace->is_within(2 * kShortTicks, grid.block_count);
}

bool may_repeat(Driver& driver, const LaunchWork& work) {
  return begins_alone(driver, work) && !may_stream(work) &&
         !work.function->is_copy.load(std::memory_order_relaxed);
}

namespace {

void fill_job(engine::LaunchJob& job, Driver& driver, LaunchWork work) {
  job.alone = begins_alone(driver, work);
  job.cooperative = work.cooperative;
  job.is_copy = work.function->is_copy.load(std::memory_order_relaxed);
  job.limit = work.limit;
  if (work.cooperative) give_workspace(job, driver, *work.function->module().context);
  fill_grid(job.own, driver, std::move(work));
  job.own.state.grid_id = take_grid_ids(1);
}

void append(std::vector<std::unique_ptr<engine::Command>>& commands, engine::Job job) {
  auto command = std::make_unique<engine::Command>();
  command->job = std::move(job);
  commands.push_back(std::move(command));
}

}  // namespace

bool makes_quick_code_only() noexcept { return wanted_tier() == WantedTier::quick; }

void set_launch_limit(std::uint64_t nanoseconds) noexcept {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  launch_limit = std::chrono::nanoseconds(static_cast<std::int64_t>(std::min(nanoseconds, kMost)));
}

void prepare(Driver& driver, CUfunction handle, const std::uint32_t (&block)[3]) {
  const std::shared_ptr<FunctionObject> function = find_function(driver, handle);
  require(function->module().context == driver.current(), CUDA_ERROR_INVALID_HANDLE);
  LaunchRequest request;
  std::copy_n(block, 3, request.block);
  check_shape(request, *function);
  static_cast<void>(function->code_for(specialisation_of(request, function->module(), driver), Tier::good));
}

LaunchWork prepare_launch(Driver& driver, CUfunction handle, std::shared_ptr<FunctionObject> function,
                          const LaunchRequest& request, engine::LaunchJob* job) {
  check_shape(request, *function);
  const KernelInfo& info = function->info();
  const std::uint64_t shared_bytes = info.static_shared_bytes + request.dynamic_shared_bytes;
  const std::uint64_t resident =
      std::uint64_t{driver.scheduler().worker_count()} *
      engine::resident_blocks(request.block[0] * request.block[1] * request.block[2], shared_bytes);
  const std::uint64_t blocks = std::uint64_t{request.grid[0]} * request.grid[1] * request.grid[2];
  require(!request.cooperative || blocks <= resident, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  LaunchWork work;
  work.params = place_parameters(request, info, job);
  const Specialisation specialisation = specialisation_of(request, function->module(), driver);
  std::optional<std::int64_t> made_since_ns;
  const Tier tier = job != nullptr ? tier_of(request, specialisation) : Tier::good;
  work.loaded = &function->code_for(specialisation, tier, &made_since_ns);
  if (made_since_ns) work.made_since_ns = *made_since_ns;
  work.warps = specialisation.warps();
  std::copy_n(request.grid, 3, work.grid);
  std::copy_n(request.block, 3, work.block);
  work.dynamic_shared_bytes = request.dynamic_shared_bytes;
  work.cooperative = request.cooperative;
  work.limit = launch_limit;
  work.handle = handle;
  work.function = std::move(function);
  return work;
}

void append_commands(Driver& driver, const LaunchWork& work,
                     std::vector<std::unique_ptr<engine::Command>>& commands) {
  std::unique_ptr<engine::Command> command = driver.scheduler().make_launch();
  engine::LaunchJob& job = *command->launch();
  fill_job(job, driver, work);
  const auto mappings = driver.memory().mappings(job.own.owner);
  if (job.waits()) job.mappings = mappings;
  for (const auto& mapping : mappings) append(commands, engine::MappingJob{mapping});
  commands.push_back(std::move(command));
  for (const auto& mapping : mappings) append(commands, engine::MappingJob{mapping});
}

void launch(Driver& driver, CUfunction handle, const LaunchRequest& request) {
  const StreamObject stream = driver.stream_of(request.stream);
  std::shared_ptr<FunctionObject> function = find_function(driver, handle, stream.context);
  require(function->module().context == stream.context, CUDA_ERROR_INVALID_HANDLE);
  if (is_capturing(stream))
    return record(driver, stream, KernelNode(prepare_launch(driver, handle, std::move(function), request)));
  std::unique_ptr<engine::Command> command = driver.scheduler().make_launch();
  engine::LaunchJob& job = *command->launch();
  LaunchWork work = prepare_launch(driver, handle, std::move(function), request, &job);
  const std::int64_t made_since_ns = work.made_since_ns;
  fill_job(job, driver, std::move(work));
  const auto mappings = driver.memory().mappings(stream.context->id);
  if (job.waits()) job.mappings = mappings;
  for (const auto& mapping : mappings) driver.scheduler().submit(stream.stream, engine::MappingJob{mapping});
  end_launches_at_exit();
  if (made_since_ns != 0) driver.scheduler().exclude(*stream.context->domain, made_since_ns);
  driver.scheduler().submit(stream.stream, std::move(command));
  for (const auto& mapping : mappings) driver.scheduler().submit(stream.stream, engine::MappingJob{mapping});
}

}  // namespace quern::cpu::device
