// SPDX-License-Identifier: Apache-2.0
// Occupancy: blocks of a function that a multiprocessor (a worker) holds at one time.
#include "cpu/device/cuda_api.hpp"

#include <algorithm>

#include "cpu/device/driver.hpp"
#include "cpu/device/library.hpp"
#include "cpu/device/limits.hpp"
#include "cpu/engine/resident.hpp"

using namespace quern::cpu::device;
namespace engine = quern::cpu::engine;

namespace {

constexpr int kWarp = 32;

void check_flags(unsigned flags) {
  require((flags & ~static_cast<unsigned>(CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)) == 0);
}

int active_blocks(const FunctionObject& function, int block_size, std::size_t shared_bytes) {
  const bool fits = static_cast<std::uint32_t>(block_size) <= function.info().max_threads &&
                    shared_bytes <= function.settings.max_dynamic_shared_bytes.load();
  if (!fits) return 0;
  return static_cast<int>(engine::resident_blocks(static_cast<std::uint32_t>(block_size),
                                                  function.info().static_shared_bytes + shared_bytes));
}

struct BestBlock {
  int size = 0;
  int blocks = 0;  ///< on a multiprocessor
};

/// The largest block size among those with the most threads on a multiprocessor.
BestBlock best_block(const FunctionObject& function, CUoccupancyB2DSize dynamic_bytes, std::size_t bytes,
                     int limit) {
  BestBlock best;
  const int most = static_cast<int>(function.info().max_threads);
  const int largest = limit == 0 ? most : std::min(most, limit);
  for (int rounded = (largest + kWarp - 1) / kWarp * kWarp; rounded > 0; rounded -= kWarp) {
    const int size = std::min(rounded, largest);
    const int blocks = active_blocks(function, size, dynamic_bytes == nullptr ? bytes : dynamic_bytes(size));
    if (size * blocks > best.size * best.blocks) best = {size, blocks};
  }
  return best;
}

}  // namespace

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int block_size,
                                                     std::size_t shared_bytes) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size, shared_bytes,
                                                              CU_OCCUPANCY_DEFAULT);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function,
                                                              int block_size, std::size_t shared_bytes,
                                                              unsigned flags) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.current();
    const auto object = find_function(driver, function);
    require(blocks != nullptr && block_size > 0);
    check_flags(flags);
    *blocks = active_blocks(*object, block_size, shared_bytes);
  });
}

CUresult cuOccupancyMaxPotentialBlockSize(int* grid_size, int* block_size, CUfunction function,
                                          CUoccupancyB2DSize dynamic_bytes, std::size_t bytes, int limit) {
  return cuOccupancyMaxPotentialBlockSizeWithFlags(grid_size, block_size, function, dynamic_bytes, bytes,
                                                   limit, CU_OCCUPANCY_DEFAULT);
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid_size, int* block_size, CUfunction function,
                                                   CUoccupancyB2DSize dynamic_bytes, std::size_t bytes,
                                                   int limit, unsigned flags) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.current();
    const auto object = find_function(driver, function);
    require(grid_size != nullptr && block_size != nullptr && limit >= 0);
    check_flags(flags);
    const BestBlock best = best_block(*object, dynamic_bytes, bytes, limit);
    *block_size = best.size;
    *grid_size = best.blocks * static_cast<int>(driver.scheduler().worker_count());
  });
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(std::size_t* bytes, CUfunction function, int blocks,
                                                 int block_size) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.current();
    require(bytes != nullptr && blocks > 0);
    const auto object = find_function(driver, function);
    require(block_size > 0);
    require(blocks <= active_blocks(*object, block_size, 0));
    const std::uint64_t each = kSharedPerSmBytes / static_cast<std::uint64_t>(blocks);
    const std::uint64_t taken = kReservedSharedBytes + object->info().static_shared_bytes;
    *bytes = std::min<std::uint64_t>(each - std::min(each, taken),
                                     object->settings.max_dynamic_shared_bytes.load());
  });
}
