// SPDX-License-Identifier: Apache-2.0
#include "bare_device.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <csetjmp>
#include <cstdlib>
#include <cstring>
#include <new>

#include "cpu/abi/state.hpp"
#include "cpu/ir/ir.hpp"
#include "random.hpp"

namespace quern::cpu::engine {
namespace {
thread_local std::jmp_buf* landing = nullptr;
/// The device's memory, of which every part may be gathered.
thread_local std::uint64_t memory_begin = 0;
thread_local std::uint64_t memory_end = 0;
alignas(64) thread_local std::byte pending_memory[kPendingWindows][kPendingBytes];
}  // namespace

PendingPlace place_pending(WorkerState&, std::uint32_t window, std::uint64_t lowest,
                           std::uint64_t end) noexcept {
  const std::uint64_t first = std::max(memory_begin, lowest - lowest % (kPendingBytes / 2));
  if (lowest < memory_begin || end > std::min(memory_end, first + kPendingBytes)) return {};
  return {first, kPendingBytes, pending_memory[window]};
}

// In the device, the scheduler defines this function. Here a trap returns to BareDevice::launch.
extern "C" void quern_cpu_yield(WorkerState*) {}
extern "C" void quern_cpu_nanosleep(std::uint32_t) {}
extern "C" std::uint64_t quern_cpu_global_timer() { std::abort(); }
extern "C" void quern_cpu_trap(WorkerState*, std::uint32_t trap) {
  std::longjmp(*landing, static_cast<int>(trap) + 1);
}
extern "C" std::uint64_t quern_cpu_host_call(WorkerState*, const LaunchState*, std::uint32_t,
                                             const std::uint64_t*) {
  return 0;
}
}  // namespace quern::cpu::engine

namespace quern::oracle {
namespace {

constexpr std::size_t kArenaBytes = std::size_t{64} << 20;
constexpr std::size_t kLocalBytes = std::size_t{64} << 20;
constexpr std::size_t kSharedBytes = std::size_t{1} << 20;
constexpr std::size_t kReservedBytes =
    2 * cpu::engine::kGapBytes + kArenaBytes + cpu::engine::kSharedReservationBytes + kLocalBytes;

/// A separate function, so that no local variable of the caller is live across the longjmp.
bool run_guarded(const cpu::KernelCode& code, const cpu::engine::LaunchState& launch,
                 cpu::engine::WorkerState& worker, std::uint64_t blocks) {
  std::jmp_buf buffer;
  cpu::engine::landing = &buffer;
  const int trap = setjmp(buffer);
  if (trap == 0) {
    code.run(&launch, &worker, 0, blocks);
    cpu::engine::apply_all_pending(worker);
  }
  cpu::engine::landing = nullptr;
  return trap == 0;
}

void open_memory(std::byte* begin, std::size_t bytes) {
  if (mprotect(begin, bytes, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
}

std::uint64_t value_of(const ptx::Module& module, const ptx::Initializer& initializer) {
  const ptx::Function* function =
      initializer.symbol.empty() ? nullptr : module.find_function(initializer.symbol);
  if (function == nullptr) return initializer.bits;
  const auto index = static_cast<std::uint32_t>(function - module.functions.data());
  return cpu::ir::function_address(module.definition_of(index));
}

}  // namespace

BareDevice::BareDevice() : frames_(nullptr, std::free) {
  void* memory = mmap(nullptr, kReservedBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  reservation_ = static_cast<std::byte*>(memory);
  window_ = reservation_ + cpu::engine::kGapBytes;
  shared_ = window_ + kArenaBytes;
  local_ = shared_ + cpu::engine::kSharedReservationBytes;
  open_memory(window_, kArenaBytes);
  open_memory(shared_, kSharedBytes);
  open_memory(local_, kLocalBytes);
}

BareDevice::~BareDevice() { munmap(reservation_, kReservedBytes); }

std::byte* BareDevice::allocate(std::size_t bytes) {
  std::byte* const at = window_ + used_;
  used_ += (bytes + 255) / 256 * 256;
  if (used_ > kArenaBytes) throw std::bad_alloc();
  return at;
}

void BareDevice::load(const ptx::Module& module) {
  used_ = 0;
  variables_.clear();
  for (const ptx::Variable& variable : module.variables) {
    if (variable.space != ptx::Space::global && variable.space != ptx::Space::const_) continue;
    std::byte* to = allocate(variable.size_bytes());
    variables_[variable.name] = to;
    std::memset(to, 0, variable.size_bytes());
    const std::uint64_t element_bytes = ptx::byte_size(variable.type);
    for (const ptx::Initializer& initializer : variable.initializer) {
      const std::uint64_t bits = value_of(module, initializer);
      std::memcpy(to, &bits, std::min<std::uint64_t>(element_bytes, sizeof bits));
      to += element_bytes;
    }
  }
}

bool BareDevice::launch(const cpu::KernelCode& code, const cpu::Specialisation& specialisation,
                        const Extents& grid, const std::vector<std::byte>& params,
                        std::uint64_t local_bytes) {
  alignas(16) std::array<std::byte, 4096> buffer{};
  std::ranges::copy(params, buffer.begin());
  std::vector<std::uint64_t> symbols;
  for (const cpu::SymbolUse& use : code.symbols)
    symbols.push_back(use.space == cpu::ir::Space::shared
                          ? use.shared_offset
                          : reinterpret_cast<std::uint64_t>(variables_.at(use.name)));
  cpu::engine::LaunchState launch;
  launch.params = buffer.data();
  launch.symbols = symbols.data();
  launch.window_base = window_;
  cpu::engine::memory_begin = reinterpret_cast<std::uint64_t>(window_);
  cpu::engine::memory_end = cpu::engine::memory_begin + kArenaBytes;
  launch.window_bytes = kArenaBytes + cpu::engine::kSharedReservationBytes + kLocalBytes;
  std::ranges::copy(grid, launch.grid);
  std::ranges::copy(specialisation.block, launch.block);
  cpu::engine::WorkerState worker;
  worker.shared_base = shared_;
  worker.local_base = local_;
  worker.local_stride = (local_bytes + 15) / 16 * 16;
  const std::size_t frames = std::max<std::size_t>(code.frame_bytes * specialisation.warps(), 64);
  if (frames > frame_bytes_) {
    frame_bytes_ = frames;
    frames_.reset(static_cast<std::byte*>(std::aligned_alloc(64, (frames + 63) / 64 * 64)));
  }
  std::memset(frames_.get(), 0xa5, frames);
  worker.frames = frames_.get();
  return run_guarded(code, launch, worker, std::uint64_t{grid[0]} * grid[1] * grid[2]);
}

std::vector<cpu::Specialisation> configurations(std::uint64_t seed, const Extents& block, unsigned count,
                                                unsigned dispatched_percent) {
  Random random(seed * 3 + 1);
  const cpu::Isa host = cpu::host_isa();
  const std::uint32_t full_warps = block[0] * block[1] * block[2] / 32;
  std::vector<cpu::Specialisation> result;
  while (result.size() < count) {
    cpu::Specialisation one;
    one.block = block;
    one.isa = static_cast<cpu::Isa>(random.below(10) < 5   ? static_cast<unsigned>(host)
                                    : random.below(10) < 8 ? std::min(1u, static_cast<unsigned>(host))
                                                           : 0u);
    one.opt_level = random.chance(60)   ? cpu::kGoodLevel
                    : random.chance(60) ? cpu::kQuickLevel
                                        : cpu::kDebugLevel;
    one.small_grid = !random.chance(15);
    constexpr std::uint8_t kWidths[] = {0, 2, 4, 8};
    if (random.chance(40)) one.gang = random.pick(kWidths);
    if (one.gang != 0 && (full_warps == 0 || full_warps % one.gang != 0)) one.gang = 0;
    one.lanes_in_turn = random.chance(30);
    one.eager_loops = !one.lanes_in_turn && random.chance(40);
    one.dispatch = dispatched_percent != 0 && random.chance(dispatched_percent);
    if (std::ranges::find(result, one) == result.end()) result.push_back(one);
  }
  return result;
}

std::string name_of(const cpu::Specialisation& specialisation) {
  constexpr const char* kIsaNames[] = {"baseline", "avx2", "avx512"};
  const Extents& block = specialisation.block;
  return fmt::format("{}, level {}, gang {}{}{}{}{}, block {}x{}x{}",
                     kIsaNames[static_cast<std::size_t>(specialisation.isa)], specialisation.opt_level,
                     specialisation.gang, specialisation.small_grid ? "" : ", any grid",
                     specialisation.lanes_in_turn ? ", lanes in turn" : "",
                     specialisation.eager_loops ? ", eager loops" : "",
                     specialisation.dispatch ? ", dispatched" : "", block[0], block[1], block[2]);
}

}  // namespace quern::oracle
