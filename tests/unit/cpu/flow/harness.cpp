// SPDX-License-Identifier: Apache-2.0
#include "harness.hpp"

#include <doctest/doctest.h>
#include <sys/mman.h>

#include <algorithm>
#include <csetjmp>
#include <cstdlib>

#include "cpu/abi/warps.hpp"
#include "cpu/compiler/lowering.hpp"
#include "cpu/emit/emit.hpp"

namespace quern::cpu::engine {
namespace {
thread_local std::jmp_buf* landing = nullptr;
}

// In the device, the scheduler defines this function. Here a trap returns to TestDevice::launch.
extern "C" void quern_cpu_yield(WorkerState*) {}
PendingPlace place_pending(WorkerState&, std::uint32_t, std::uint64_t, std::uint64_t) noexcept { return {}; }
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

namespace quern::cpu::test {
namespace {
constexpr std::size_t kArenaBytes = std::size_t{256} << 20;
constexpr std::size_t kLocalBytes = std::size_t{64} << 20;
constexpr std::size_t kSharedBytes = std::size_t{1} << 20;
constexpr std::size_t kReservedBytes =
    2 * engine::kGapBytes + kArenaBytes + engine::kSharedReservationBytes + kLocalBytes;

/// A separate function, so that no local variable of the caller is live across the longjmp.
int run_guarded(const KernelCode& code, const engine::LaunchState& launch, engine::WorkerState& worker,
                std::uint64_t first, std::uint64_t count) {
  std::jmp_buf buffer;
  engine::landing = &buffer;
  const int trap = setjmp(buffer);
  if (trap == 0) code.run(&launch, &worker, first, count);
  engine::landing = nullptr;
  return trap;
}
}  // namespace

TestDevice::TestDevice() {
  void* memory = mmap(nullptr, kReservedBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  reservation_ = static_cast<std::byte*>(memory);
  window_ = reservation_ + engine::kGapBytes;
  shared_ = window_ + kArenaBytes;
  local_ = shared_ + engine::kSharedReservationBytes;
  REQUIRE(mprotect(window_, kArenaBytes, PROT_READ | PROT_WRITE) == 0);
  REQUIRE(mprotect(shared_, kSharedBytes, PROT_READ | PROT_WRITE) == 0);
  REQUIRE(mprotect(local_, kLocalBytes, PROT_READ | PROT_WRITE) == 0);
}

TestDevice::~TestDevice() { munmap(reservation_, kReservedBytes); }

std::byte* TestDevice::take(std::size_t bytes) {
  std::byte* at = window_ + used_;
  used_ += (bytes + 255) / 256 * 256;
  REQUIRE(used_ <= kArenaBytes);
  std::memset(at, 0, bytes);
  return at;
}

std::optional<ir::Trap> TestDevice::launch(const KernelCode& code, const Specialisation& specialisation,
                                           const Extents& grid, const Params& params) {
  alignas(16) std::array<std::byte, 4096> buffer{};
  std::ranges::copy(params.bytes(), buffer.begin());
  engine::LaunchState launch;
  launch.params = buffer.data();
  launch.symbols = symbols.data();
  launch.window_base = window_;
  launch.window_bytes = kArenaBytes + engine::kSharedReservationBytes + kLocalBytes;
  launch.streams = streams;
  std::ranges::copy(grid, launch.grid);
  std::ranges::copy(specialisation.block, launch.block);

  engine::WorkerState worker;
  worker.shared_base = shared_;
  worker.local_base = local_;
  worker.local_stride = (local_bytes + 15) / 16 * 16;
  const std::size_t frames = std::max<std::size_t>(code.frame_bytes * specialisation.warps(), 64);
  worker.frames = static_cast<std::byte*>(std::aligned_alloc(64, frames));
  std::memset(worker.frames, 0xa5, frames);

  const std::uint64_t blocks = std::uint64_t{grid[0]} * grid[1] * grid[2];
  int trap = 0;
  for (std::uint64_t first = 0; first < blocks && trap == 0; first += std::min(chunk, blocks - first))
    trap = run_guarded(code, launch, worker, first, std::min(chunk, blocks - first));
  std::free(worker.frames);
  if (trap == 0) return std::nullopt;
  return static_cast<ir::Trap>(trap - 1);
}

std::shared_ptr<const KernelCode> compile_ir(const ir::Module& module, const Specialisation& specialisation) {
  if (std::getenv("FLOW_DUMP") != nullptr) {
    auto text = stage_text(module, specialisation,
                           std::getenv("FLOW_DUMP")[0] == 'a' ? Stage::assembly : Stage::llvm);
    if (text) std::fputs(text->c_str(), stderr);
  }
  const auto image = compile_image(module, specialisation);
  if (!image) FAIL(to_string(image.errors()));
  const auto code = load_image(*image);
  if (!code) FAIL(to_string(code.errors()));
  return *code;
}

std::vector<Specialisation> variants(const Extents& block) {
  std::vector<Specialisation> result;
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512})
    for (const std::uint8_t level : {kDebugLevel, kQuickLevel, kGoodLevel})
      if (isa <= emit::processor_isa()) {
        Specialisation one;
        one.block = block;
        one.isa = isa;
        one.opt_level = level;
        result.push_back(one);
      }
  // Warps in lockstep although the compiler would not choose it: in pairs, and as the whole block.
  const std::uint32_t full_warps = block[0] * block[1] * block[2] / 32;
  for (const std::uint32_t width : {2u, full_warps})
    if (width >= 2 && width <= 8 && full_warps % width == 0) {
      const Specialisation last = result.back();
      result.push_back(last);
      result.back().gang = static_cast<std::uint8_t>(width);
      if (width == full_warps) break;
    }
  // Lanes one after another in loops although the compiler would not choose it.
  for (const Isa isa : {Isa::baseline, emit::processor_isa()})
    for (const std::uint8_t level : {kQuickLevel, kGoodLevel}) {
      result.push_back(result.front());
      result.back().isa = isa;
      result.back().opt_level = level;
      result.back().lanes_in_turn = true;
    }
  // Loops begun eagerly although the compiler would not choose it.
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512})
    for (const std::uint8_t level : {kDebugLevel, kGoodLevel})
      if (isa <= emit::processor_isa()) {
        result.push_back(result.front());
        result.back().isa = isa;
        result.back().opt_level = level;
        result.back().eager_loops = true;
      }
  // Code for a compact window: its checks are valid in any window.
  result.push_back(result.front());
  result.back().isa = emit::processor_isa();
  result.back().opt_level = 2;
  result.back().compact = true;
  // Run by the dispatcher.
  result.push_back(result.front());
  result.back().isa = emit::processor_isa();
  result.back().opt_level = 2;
  result.back().dispatch = true;
  return result;
}

std::string name(const Specialisation& specialisation) {
  constexpr const char* kIsaNames[] = {"baseline", "avx2", "avx512"};
  const auto& block = specialisation.block;
  return std::string(kIsaNames[static_cast<std::size_t>(specialisation.isa)]) + " level " +
         std::to_string(specialisation.opt_level) + " gang " + std::to_string(specialisation.gang) +
         (specialisation.lanes_in_turn ? " lanes in turn" : "") +
         (specialisation.eager_loops ? " eager loops" : "") + (specialisation.dispatch ? " dispatched" : "") +
         (specialisation.compact ? " compact" : "") + " block " + std::to_string(block[0]) + "x" +
         std::to_string(block[1]) + "x" + std::to_string(block[2]);
}

}  // namespace quern::cpu::test
