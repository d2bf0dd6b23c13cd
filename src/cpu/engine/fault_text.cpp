// SPDX-License-Identifier: Apache-2.0
#include "cpu/engine/fault_text.hpp"

#include "cpu/abi/warp_size.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string_view>

namespace quern::cpu::engine {
namespace {

/// Details that the CUresult does not express.
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

Index3 coordinates(std::uint64_t index, const Index3& extent) {
  return {static_cast<std::uint32_t>(index % extent[0]),
          static_cast<std::uint32_t>(index / extent[0] % extent[1]),
          static_cast<std::uint32_t>(index / extent[0] / extent[1])};
}

std::string text_of(const Index3& at) { return fmt::format("({},{},{})", at[0], at[1], at[2]); }

void locate_threads(const Fault& fault, FaultReport& report) {
  const Index3& dim = report.block_dim;
  const std::uint64_t threads = std::uint64_t{dim[0]} * dim[1] * dim[2];
  const std::uint64_t first = std::uint64_t{fault.warp} * kWarpSize;
  const std::uint64_t end = std::min(first + std::uint64_t{fault.warp_count} * kWarpSize, threads);
  if (fault.warp_count == 0 || first >= end) return;
  const bool exact = fault.knows_lane && first + fault.lane < end;
  report.first_thread = coordinates(exact ? first + fault.lane : first, dim);
  report.last_thread = exact ? report.first_thread : coordinates(end - 1, dim);
}

void locate_line(const Fault& fault, const Grid& grid, FaultReport& report) {
  if (grid.locations == nullptr || fault.location >= grid.locations->size()) return;
  const ir::Location& at = ir::author_location(*grid.locations, (*grid.locations)[fault.location]);
  const bool authors = at.line != 0 && !at.file.empty();
  if (authors) report.file = at.file;
  report.line = authors ? at.line : at.ptx_line;
}

std::string thread_text(const FaultReport& report) {
  if (!report.first_thread) return {};
  if (report.first_thread == report.last_thread)
    return fmt::format(", thread {}", text_of(*report.first_thread));
  return fmt::format(", threads {} to {}", text_of(*report.first_thread), text_of(*report.last_thread));
}

std::string line_text(const FaultReport& report) {
  if (report.line == 0) return {};
  if (report.file.empty()) return fmt::format(", line {} of the PTX", report.line);
  const std::string_view file = report.file;
  return fmt::format(", line {} of {}", report.line, file.substr(file.rfind('/') + 1));
}

std::string access_text(const FaultReport& report) {
  constexpr std::string_view kWords[] = {"", "a load", "a store", "an atomic operation"};
  const std::string at = report.address ? fmt::format(" at address {:#x}", *report.address) : std::string();
  return fmt::format(": {} of {} byte{} in {} memory{}", kWords[static_cast<std::size_t>(report.access)],
                     report.access_bytes, report.access_bytes == 1 ? "" : "s", report.space, at);
}

std::string words(const FaultReport& report, FaultKind kind, std::chrono::nanoseconds limit) {
  std::string text;
  if (!report.kernel.empty())
    text = fmt::format("by kernel {} (grid {}, block {})", report.kernel, text_of(report.grid),
                       text_of(report.block_dim));
  if (report.block)
    text +=
        fmt::format("{}in block {}{}", text.empty() ? "" : " ", text_of(*report.block), thread_text(report));
  text += line_text(report);
  if (report.access != AccessKind::none) text += access_text(report);
  if (const std::string_view more = reason(kind); !more.empty()) text += fmt::format(": {}", more);
  if (kind == FaultKind::launch_timeout)
    text += fmt::format(": it ran for longer than {} s", std::chrono::duration<double>(limit).count());
  return text;
}

}  // namespace

FaultReport report(const Fault& fault, const LaunchJob& job) {
  FaultReport made;
  const Grid& grid = job.grid();
  if (grid.kernel != nullptr) made.kernel = *grid.kernel;
  std::copy_n(grid.state.grid, 3, made.grid.begin());
  std::copy_n(grid.state.block, 3, made.block_dim.begin());
  if (fault.block != kUnknownIndex) {
    made.block = coordinates(fault.block, made.grid);
    locate_threads(fault, made);
  }
  locate_line(fault, grid, made);
  made.access = fault.access;
  made.access_bytes = fault.access_bytes;
  made.space = fault.space;
  made.address = fault.kernel_address;
  made.text = words(made, fault.kind, job.limit);
  return made;
}

}  // namespace quern::cpu::engine
