// SPDX-License-Identifier: Apache-2.0
#include "cpu/engine/fault_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace quern::cpu::engine {
namespace {

constexpr std::uint64_t kWarpLanes = 32;

/// What the CUresult does not say.
std::string_view reason(FaultKind kind) {
  switch (kind) {
    case FaultKind::divergent_barrier:
      return "threads wait at a barrier, or for each other, that not all of them come to";
    case FaultKind::no_such_barrier:
      return "there is no such barrier: they are 0 to 15";
    case FaultKind::barrier_of_part:
      return "the number of threads that meet at a barrier must be a multiple of 32";
    case FaultKind::trap:
      return "a trap";
    default:
      return {};
  }
}

std::string coordinates(std::uint64_t index, const std::uint32_t (&extent)[3]) {
  return fmt::format("({},{},{})", index % extent[0], index / extent[0] % extent[1],
                     index / extent[0] / extent[1]);
}

std::string block_text(const Fault& fault, const LaunchState& launch) {
  return fmt::format("in block {}", coordinates(fault.block, launch.grid));
}

std::string thread_text(const Fault& fault, const LaunchState& launch) {
  const std::uint64_t threads = std::uint64_t{launch.block[0]} * launch.block[1] * launch.block[2];
  const std::uint64_t first = fault.warp * kWarpLanes;
  const std::uint64_t end = std::min(first + fault.warp_count * kWarpLanes, threads);
  if (fault.warp_count == 0 || first >= end) return {};
  if (fault.knows_lane && first + fault.lane < end)
    return fmt::format(", thread {}", coordinates(first + fault.lane, launch.block));
  if (end - first == 1) return fmt::format(", thread {}", coordinates(first, launch.block));
  return fmt::format(", threads {} to {}", coordinates(first, launch.block),
                     coordinates(end - 1, launch.block));
}

std::string line_text(const Fault& fault, const LaunchJob& job) {
  if (job.locations == nullptr || fault.location >= job.locations->size()) return {};
  const ir::Location& at = ir::author_location(*job.locations, (*job.locations)[fault.location]);
  const std::string_view file = at.file;
  if (at.line != 0 && !file.empty())
    return fmt::format(", line {} of {}", at.line, file.substr(file.rfind('/') + 1));
  return at.ptx_line == 0 ? std::string() : fmt::format(", line {} of the PTX", at.ptx_line);
}

}  // namespace

std::string describe(const Fault& fault, const LaunchJob& job) {
  if (fault.block == kUnknownIndex) return {};
  std::string text = block_text(fault, job.state) + thread_text(fault, job.state) + line_text(fault, job);
  if (const std::string_view more = reason(fault.kind); !more.empty()) text += fmt::format(": {}", more);
  return text;
}

}  // namespace quern::cpu::engine
