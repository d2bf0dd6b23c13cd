// SPDX-License-Identifier: Apache-2.0
#include "launch/loaded_kernel.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/background.hpp"
#include "launch/global.hpp"
#include "launch/host_arguments.hpp"
#include "launch/pack.hpp"
#include "quern/error.hpp"
#include "runtime/array/buffer.hpp"
#include "runtime/context/stream.hpp"

namespace quern {
namespace launch {
namespace {

constexpr char kAxes[] = "xyz";

std::string extents_text(const Dim3& extents) {
  return fmt::format("({}, {}, {})", extents.x, extents.y, extents.z);
}

/// The first axis along which the extents exceed the limits.
std::optional<std::size_t> axis_beyond(const Dim3& extents, const std::array<std::uint32_t, 3>& limits) {
  const std::array<std::uint32_t, 3> given = {extents.x, extents.y, extents.z};
  for (std::size_t axis = 0; axis < given.size(); ++axis)
    if (given[axis] > limits[axis]) return axis;
  return std::nullopt;
}

constexpr const char* kSmallerBlock = "use a smaller block and a larger grid";

[[noreturn]] void refuse(const std::string& message, const char* hint) {
  throw Error(ErrorCode::unsupported, fmt::format("{}\nhint: {}", message, hint));
}

}  // namespace

std::vector<Parameter> public_parameters(const abi::EntryInfo& entry) {
  std::vector<Parameter> parameters;
  for (const abi::ParameterInfo& info : entry.parameters)
    parameters.push_back({info.name, info.type, info.offset, info.size, info.align, info.pointer});
  return parameters;
}

LoadedKernel::LoadedKernel(std::shared_ptr<runtime::Module> module, Image image, const abi::EntryInfo& entry,
                           std::shared_ptr<const std::string> cuda_source)
    : module_(std::move(module)),
      image_(std::move(image)),
      entry_(entry),
      cuda_source_(std::move(cuda_source)),
      function_(module_->function(entry.lowered_name)),
      signature_(read_signature(entry)),
      parameters_(public_parameters(entry)),
      allowed_shared_bytes_(0) {
  const std::size_t without_asking = module_->context()->device().shared_bytes_per_block;
  allowed_shared_bytes_ =
      without_asking > function_.shared_bytes ? without_asking - function_.shared_bytes : 0;
  check_parameters();
  // Reports of faults name the kernel as its author does.
  if (const QuernCpuPlugin* const plugin = module_->context()->driver().plugin; plugin != nullptr)
    plugin->name_kernel(function_.handle, entry_.name.c_str());
  if (entry_.reports_failures) failure_check_.emplace(*module_, entry_.name);
}

/// Checks that driver and compiler agree on the layout of the parameter buffer.
void LoadedKernel::check_parameters() const {
  for (std::size_t i = 0; i < signature_.parameters.size(); ++i) {
    const std::optional<runtime::ParameterRange> range = module_->parameter(function_, i);
    if (!range) return;  // drivers before CUDA 12.4 do not answer
    const ParameterPlan& plan = signature_.parameters[i];
    if (range->offset == plan.offset && range->size == plan.size) continue;
    throw Error(ErrorCode::internal,
                fmt::format("parameter {} of kernel {} is {} bytes at {} in its PTX and {} bytes at {} for "
                            "the driver; please report "
                            "this with the kernel's source",
                            i, entry_.name, plan.size, plan.offset, range->size, range->offset));
  }
}

KernelInfo LoadedKernel::info() const {
  KernelInfo info;
  info.name = entry_.name;
  info.lowered_name = entry_.lowered_name;
  info.signature = signature_.text;
  info.parameters = parameters_;
  info.ptx = image_->ptx;
  if (cuda_source_ != nullptr) info.cuda_source = *cuda_source_;
  info.registers = function_.registers;
  info.shared_bytes = function_.shared_bytes;
  info.local_bytes = function_.local_bytes;
  info.constant_bytes = function_.constant_bytes;
  info.max_threads_per_block = function_.max_threads_per_block;
  const runtime::CompileTime device = module_->compile_time(function_);
  info.nvrtc_ms = image_->compile_ms;
  info.load_ms = std::chrono::duration<double, std::milli>(device.load).count();
  info.machine_code_ms = std::chrono::duration<double, std::milli>(device.machine_code).count();
  info.compile_ms = info.nvrtc_ms + info.load_ms + info.machine_code_ms;
  return info;
}

void LoadedKernel::check_block(const LaunchConfig& config) const {
  const runtime::DeviceState& device = module_->context()->device();
  const std::uint64_t threads = config.block.count();
  if (threads == 0)
    refuse(fmt::format("cannot launch kernel {} with block {}: a block has at least one thread", entry_.name,
                       extents_text(config.block)),
           "give extents of 1 or more");
  if (const std::optional<std::size_t> axis = axis_beyond(config.block, device.max_block))
    refuse(fmt::format("cannot launch kernel {} with block {}: {} allows at most {} threads along {}",
                       entry_.name, extents_text(config.block), device.name, device.max_block[*axis],
                       kAxes[*axis]),
           "use a smaller block");
  if (threads > device.max_threads_per_block)
    refuse(fmt::format(
               "cannot launch kernel {} with block {}: that is {} threads, {} allows at most {} in a block",
               entry_.name, extents_text(config.block), threads, device.name, device.max_threads_per_block),
           kSmallerBlock);
  if (threads > function_.max_threads_per_block)
    refuse(fmt::format("cannot launch kernel {} with block {}: that is {} threads, this kernel allows at "
                       "most {} in a block "
                       "(__launch_bounds__, .maxntid, or its {} registers a thread)",
                       entry_.name, extents_text(config.block), threads, function_.max_threads_per_block,
                       function_.registers),
           kSmallerBlock);
}

void LoadedKernel::check_grid(const LaunchConfig& config) const {
  const runtime::DeviceState& device = module_->context()->device();
  if (const std::optional<std::size_t> axis = axis_beyond(config.grid, device.max_grid))
    refuse(
        fmt::format("cannot launch kernel {} with grid {}: {} allows at most {} blocks along {}", entry_.name,
                    extents_text(config.grid), device.name, device.max_grid[*axis], kAxes[*axis]),
        "use a smaller grid, with a loop over the rest in the kernel");
}

void LoadedKernel::check_shared(const LaunchConfig& config) const {
  const std::size_t most = module_->context()->device().max_shared_bytes_per_block;
  if (function_.shared_bytes <= most && config.shared_bytes <= most - function_.shared_bytes) return;
  refuse(
      fmt::format(
          "cannot launch kernel {} with {} bytes of dynamic shared memory: with its own {} bytes that is "
          "more than the {} bytes that {} allows a block",
          entry_.name, config.shared_bytes, function_.shared_bytes, most, module_->context()->device().name),
      "use less shared memory");
}

/// A kernel must request dynamic shared memory beyond the default; one request covers every smaller launch.
void LoadedKernel::allow_shared(std::size_t bytes) const {
  if (bytes <= allowed_shared_bytes_.load(std::memory_order_acquire)) return;
  const runtime::Context& context = *module_->context();
  context.check(
      context.api().cuFuncSetAttribute(function_.handle, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                       static_cast<int>(bytes)),
      "cuFuncSetAttribute",
      fmt::format("allow kernel {} {} bytes of dynamic shared memory", entry_.name, bytes));
  std::size_t seen = allowed_shared_bytes_.load(std::memory_order_relaxed);
  while (seen < bytes &&
         !allowed_shared_bytes_.compare_exchange_weak(seen, bytes, std::memory_order_release)) {
  }
}

namespace {

/// Launches of this thread have this limit as long as the object exists.
class LaunchLimit {
 public:
  LaunchLimit(const QuernCpuPlugin& plugin, std::chrono::nanoseconds limit) : plugin_(plugin) {
    plugin.set_launch_limit(static_cast<std::uint64_t>(limit.count()));
  }
  ~LaunchLimit() { plugin_.set_launch_limit(0); }
  LaunchLimit(const LaunchLimit&) = delete;
  LaunchLimit& operator=(const LaunchLimit&) = delete;

 private:
  const QuernCpuPlugin& plugin_;
};

}  // namespace

void LoadedKernel::check_timeout(std::chrono::nanoseconds timeout) const {
  if (timeout.count() < 0)
    throw Error(
        ErrorCode::usage,
        fmt::format("cannot launch kernel {} with a time limit of {} ns: it is negative\nhint: 0 is no "
                    "limit",
                    entry_.name, timeout.count()));
  if (module_->context()->driver().plugin == nullptr)
    refuse(fmt::format("cannot launch kernel {} with a time limit: CUDA has none on {}", entry_.name,
                       module_->context()->device().name),
           "leave LaunchConfig::timeout at 0 on a GPU");
}

CUresult LoadedKernel::start(const LaunchConfig& config, CUstream stream, void** parameters) const {
  const driver::DriverTable& api = module_->context()->api();
  const std::chrono::nanoseconds timeout =
      config.timeout.count() != 0 ? config.timeout : module_->launch_timeout();
  std::optional<LaunchLimit> limit;
  if (timeout.count() != 0) [[unlikely]]
    limit.emplace(*module_->context()->driver().plugin, timeout);
  const auto shared_bytes = static_cast<unsigned>(config.shared_bytes);
  if (!config.cooperative)
    return api.cuLaunchKernel(function_.handle, config.grid.x, config.grid.y, config.grid.z, config.block.x,
                              config.block.y, config.block.z, shared_bytes, stream, parameters, nullptr);
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  attribute.value.cooperative = 1;
  CUlaunchConfig launch{};
  launch.gridDimX = config.grid.x;
  launch.gridDimY = config.grid.y;
  launch.gridDimZ = config.grid.z;
  launch.blockDimX = config.block.x;
  launch.blockDimY = config.block.y;
  launch.blockDimZ = config.block.z;
  launch.sharedMemBytes = shared_bytes;
  launch.hStream = stream;
  launch.attrs = &attribute;
  launch.numAttrs = 1;
  return api.cuLaunchKernelEx(&launch, function_.handle, parameters, nullptr);
}

std::uint32_t LoadedKernel::active_blocks(std::uint32_t block, std::size_t shared_bytes) const {
  const runtime::Context& context = *module_->context();
  const runtime::CurrentContext current(context);
  int blocks = 0;
  context.check(context.api().cuOccupancyMaxActiveBlocksPerMultiprocessor(
                    &blocks, function_.handle, static_cast<int>(block), shared_bytes),
                "cuOccupancyMaxActiveBlocksPerMultiprocessor", "query how many blocks fit a multiprocessor");
  return static_cast<std::uint32_t>(blocks);
}

std::uint64_t LoadedKernel::resident_blocks(std::uint32_t block, std::size_t shared_bytes) const {
  return std::uint64_t{active_blocks(block, shared_bytes)} *
         static_cast<std::uint64_t>(module_->context()->device().multiprocessor_count);
}

/// The size is the same for every launch, so the one without shared memory is queried once.
std::uint32_t LoadedKernel::suggested_block(std::size_t shared_bytes, std::uint32_t limit) const {
  const bool usual = shared_bytes == 0 && limit == 0;
  if (const std::uint32_t known = suggested_block_.load(std::memory_order_relaxed); usual && known != 0)
    return known;
  check_shared({.shared_bytes = shared_bytes});
  const runtime::CurrentContext current(*module_->context());
  allow_shared(shared_bytes);  // otherwise the driver answers that no block fits
  const auto warp = static_cast<std::uint32_t>(module_->context()->device().warp_size);
  std::uint32_t most = function_.max_threads_per_block;
  if (limit != 0) most = std::min(most, limit);
  std::uint32_t best = std::min(most, warp);
  std::uint64_t best_threads = 0;
  for (std::uint32_t block = most / warp * warp; block >= warp; block -= warp) {
    const std::uint64_t threads = std::uint64_t{active_blocks(block, shared_bytes)} * block;
    if (threads <= best_threads) continue;
    best_threads = threads;
    best = block;
  }
  if (usual) suggested_block_.store(best, std::memory_order_relaxed);
  return best;
}

void LoadedKernel::fail(const LaunchConfig& config, CUresult result) const {
  std::string attempted = fmt::format("launch kernel {} with grid {} and block {}", entry_.name,
                                      extents_text(config.grid), extents_text(config.block));
  const auto fitting = [&]() -> std::uint64_t {
    try {
      return resident_blocks(static_cast<std::uint32_t>(config.block.count()), config.shared_bytes);
    } catch (const DriverError&) {  // the launch's own error is reported
      return 0;
    }
  };
  if (result == CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE)
    attempted += fmt::format(" cooperatively: at most {} of its blocks fit the device at once", fitting());
  module_->context()->fail(result, config.cooperative ? "cuLaunchKernelEx" : "cuLaunchKernel", attempted);
}

namespace {

/// True for memory of another context that a kernel can access. With unified addressing it has one address in
/// all contexts of a driver. Each session has a table of its own, so drivers are compared by their functions.
bool is_shared(const runtime::BufferState& memory, const runtime::Context& context) {
  return memory.portable && memory.context->api().cuLaunchKernel == context.api().cuLaunchKernel &&
         !memory.context->lost();
}

}  // namespace

/// A kernel can access the memory of its own context, and memory that others share.
void LoadedKernel::check_memory(std::span<const Argument> arguments) const {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].buffer() == nullptr) continue;
    const runtime::BufferState* memory = arguments[i].buffer()->state().get();
    if (memory != nullptr && memory->context != module_->context() &&
        !is_shared(*memory, *module_->context())) [[unlikely]]
      throw Error(
          ErrorCode::usage,
          fmt::format(
              "argument #{} of kernel {} is an array of another session than the "
              "kernel's\nhint: make it with the same session, or share it: a portable mapped_array(), "
              "or a managed_array()",
              i, entry_.name));
  }
}

/// Memory that must be kept until the kernel has run, since others could get it earlier: memory of a pool or
/// of other owners, and memory of another context, whose releases do not wait for this one's work.
runtime::InFlight::Work LoadedKernel::to_keep(CUstream stream, std::span<const Argument> arguments) const {
  runtime::InFlight::Work work;
  for (const Argument& argument : arguments) {
    const DeviceBuffer* buffer = argument.buffer();
    if (buffer == nullptr) continue;
    if (runtime::needs_keeping(*buffer, stream))
      work.keep.push_back(buffer->state()->memory);
    else if (buffer->state() != nullptr && buffer->state()->context != module_->context()) [[unlikely]]
      work.keep.push_back(buffer->state());  // holds its context as well
  }
  return work;
}

void LoadedKernel::launch_packed(const LaunchConfig& wanted, std::span<const Argument> arguments) const {
  LaunchConfig config = wanted;
  config.cooperative = config.cooperative || entry_.grid_wide;
  const runtime::Context& context = *module_->context();
  const CUstream stream = runtime::stream_handle(config.stream, context);
  PackedArguments packed(signature_, arguments);
  if (packed.has_memory()) check_memory(arguments);
  check_block(config);
  check_grid(config);
  check_shared(config);
  if (config.cooperative && !context.device().cooperative_launch)
    refuse(fmt::format("cannot launch kernel {} cooperatively: {} does not support that", entry_.name,
                       context.device().name),
           "use another device");
  if (config.timeout.count() != 0) [[unlikely]]
    check_timeout(config.timeout);
  if (config.grid.count() == 0) return;  // an empty grid is legal and has nothing to run
  const runtime::CurrentContext current(context);
  allow_shared(config.shared_bytes);
  runtime::InFlight::Work work;
  if (packed.has_memory()) work = to_keep(stream, arguments);
  const CUresult result = start(config, stream, packed.pointers());
  if (result != CUDA_SUCCESS) [[unlikely]]
    fail(config, result);
  if (!work.keep.empty()) [[unlikely]]
    module_->context()->work().after(stream, std::move(work));
  if (failure_check_) failure_check_->after_launch(context, stream);
}

void LoadedKernel::launch(const LaunchConfig& config, std::span<const Argument> arguments) const {
  const auto travels = [](const Argument& argument) {
    return argument.kind() == Argument::Kind::host || argument.kind() == Argument::Kind::smart;
  };
  if (std::none_of(arguments.begin(), arguments.end(), travels)) return launch_packed(config, arguments);
  const HostArguments there(module_->context(), config.stream, arguments);
  there.expect_writes();
  launch_packed(config, there.arguments());
  there.copy_back();
}

void LoadedKernel::prepare(const Dim3& block) const {
  const runtime::Context& context = *module_->context();
  context.require_alive();
  LaunchConfig config;
  config.block = block;
  check_block(config);
  const QuernCpuPlugin* const plugin = context.driver().plugin;
  if (plugin == nullptr) return;  // a GPU needs only the module to be loaded
  const runtime::CurrentContext current(context);
  const std::uint32_t extents[3] = {block.x, block.y, block.z};
  const auto result = static_cast<CUresult>(plugin->prepare_kernel(function_.handle, extents));
  if (result == CUDA_SUCCESS) return;
  context.fail(result, "cuLaunchKernel",
               fmt::format("prepare kernel {} for block {}", entry_.name, extents_text(block)));
}

namespace {

/// Registers and limits belong to code, and a kernel that is compiled for its arguments has none yet.
const LoadedKernel& loaded(const KernelState& state, const char* asked) {
  if (const LoadedKernel* code = state.loaded()) return *code;
  throw Error(ErrorCode::usage,
              fmt::format("cannot tell the {} of kernel {}: it is compiled for the types of its arguments\n"
                          "hint: call it on kernel.specialise(arguments...)",
                          asked, state.name()));
}

}  // namespace
}  // namespace launch

const std::string& Kernel::name() const noexcept { return state_->name(); }
const std::string& Kernel::signature() const noexcept { return state_->signature_text(); }
const std::vector<Parameter>& Kernel::parameters() const noexcept { return state_->parameters(); }
KernelInfo Kernel::info() const { return state_->info(); }
std::uint32_t Kernel::active_blocks(std::uint32_t block, std::size_t shared_bytes) const {
  return launch::loaded(*state_, "occupancy").active_blocks(block, shared_bytes);
}
std::uint32_t Kernel::suggested_block(std::size_t shared_bytes, std::uint32_t limit) const {
  return launch::loaded(*state_, "block size").suggested_block(shared_bytes, limit);
}
std::uint64_t Kernel::max_cooperative_blocks(std::uint32_t block, std::size_t shared_bytes) const {
  return launch::loaded(*state_, "largest cooperative grid").resident_blocks(block, shared_bytes);
}
void* Kernel::handle() const noexcept {
  const launch::LoadedKernel* code = state_->loaded();
  return code == nullptr ? nullptr : code->handle();
}
void* Kernel::module_handle() const noexcept {
  const launch::LoadedKernel* code = state_->loaded();
  return code == nullptr ? nullptr : code->module_handle();
}
Kernel Kernel::specialise(std::span<const Argument> arguments) const {
  std::shared_ptr<const launch::KernelState> special = state_->specialise(arguments);
  return special == nullptr ? *this : Kernel(std::move(special));
}
Kernel Kernel::specialise(std::string_view signature) const {
  std::shared_ptr<const launch::KernelState> special = state_->specialise(signature);
  if (special != nullptr) return Kernel(std::move(special));
  throw Error(
      ErrorCode::unsupported,
      fmt::format("cannot compile kernel {} for the types '{}': its source gives its types\n    {}\nhint: "
                  "launch it with arguments of these",
                  name(), signature, this->signature()));
}
void Kernel::prepare(const Dim3& block) const { state_->prepare(block); }
void Kernel::prepare(const Dim3& block, std::string_view signature) const {
  specialise(signature).prepare(block);
}
void Kernel::prepare(const Dim3& block, std::span<const Argument> arguments) const {
  specialise(arguments).prepare(block);
}
namespace {
Preparation in_background(const Kernel& kernel, std::function<void()> work) {
  return Preparation(base::run_in_background("prepare kernel " + kernel.name(), std::move(work)));
}
}  // namespace
Preparation Kernel::prepare_async(const Dim3& block) const {
  return in_background(*this, [kernel = *this, block] { kernel.prepare(block); });
}
Preparation Kernel::prepare_async(const Dim3& block, std::string_view signature) const {
  return in_background(
      *this, [kernel = *this, block, types = std::string(signature)] { kernel.prepare(block, types); });
}
std::vector<std::string> Kernel::specialisations() const { return state_->specialisations(); }
void Kernel::launch(const LaunchConfig& config, std::span<const Argument> arguments) const {
  state_->launch(config, arguments);
}
void Kernel::launch_for_all(std::uint64_t task_count, LaunchConfig config,
                            std::span<const Argument> arguments) const {
  const std::shared_ptr<const launch::KernelState> special = state_->specialise(arguments);
  const launch::KernelState& code = special != nullptr ? *special : *state_;
  if (config.block == Dim3())
    config.block = launch::loaded(code, "block size").suggested_block(config.shared_bytes, 0);
  const std::uint64_t threads = config.block.count();
  config.grid = threads == 0 ? task_count : task_count / threads + (task_count % threads != 0 ? 1 : 0);
  code.launch(config, arguments);
}
GlobalVariable Kernel::global(std::string_view name) const {
  const launch::LoadedKernel& code = launch::loaded(*state_, "variables");
  return launch::find_global(code.module(), code.image(), name, "the module of kernel " + code.name());
}

}  // namespace quern
