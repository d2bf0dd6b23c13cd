// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdint>
#include <cstdio>

#include "command.hpp"
#include "commands.hpp"

namespace quern::cli {
namespace {

Json to_json(const Device& device) {
  return {{"name", device.label()},
          {"kind", device.kind() == DeviceKind::cpu ? "cpu" : "cuda"},
          {"description", device.name()},
          {"compute_capability", device.compute_capability()},
          {"driver_version", device.driver_version()},
          {"driver", device.driver_path()},
          {"memory_bytes", device.total_memory_bytes()},
          {"multiprocessors", device.multiprocessor_count()},
          {"warp_size", device.warp_size()},
          {"max_threads_per_block", device.max_threads_per_block()},
          {"max_block", device.max_block()},
          {"max_grid", device.max_grid()},
          {"shared_bytes_per_block", device.shared_bytes_per_block()},
          {"max_shared_bytes_per_block", device.max_shared_bytes_per_block()},
          {"cooperative_launch", device.cooperative_launch()}};
}

std::string size_text(std::uint64_t bytes) {
  const bool small = bytes < std::uint64_t{1} << 30;
  return fmt::format("{:.1f} {}", static_cast<double>(bytes) / (small ? 1 << 20 : 1 << 30),
                     small ? "MiB" : "GiB");
}

std::string to_text(const Device& device) {
  return fmt::format(
      "{:8} {}, compute capability {}.{}, {}, {} multiprocessors, {} threads a block, {} KiB shared memory a "
      "block\n",
      device.label(), device.name(), device.compute_capability() / 10, device.compute_capability() % 10,
      size_text(device.total_memory_bytes()), device.multiprocessor_count(), device.max_threads_per_block(),
      device.max_shared_bytes_per_block() / 1024);
}

}  // namespace

int devices_command(bool json) {
  const std::vector<Device> found = devices();
  if (json) {
    Json rows = Json::array();
    for (const Device& device : found) rows.push_back(to_json(device));
    print_json({{"devices", rows}});
    return kDone;
  }
  for (const Device& device : found) std::fputs(to_text(device).c_str(), stdout);
  if (!found.empty()) return kDone;
  fail_without_device();
}

}  // namespace quern::cli
