// SPDX-License-Identifier: Apache-2.0
// Engine functions that dispatched code calls.
#include "cpu/abi/warps.hpp"
#include "cpu/emit/helpers/helper_code.hpp"

namespace quern::cpu::emit {

std::span<const Helper> dispatch_helpers() {
  static const Helper rows[] = {
      {"quern_cpu_run_warps", reinterpret_cast<void*>(&engine::quern_cpu_run_warps)},
      {"quern_cpu_choose_pc", reinterpret_cast<void*>(&engine::quern_cpu_choose_pc)},
      {"quern_cpu_sync_lanes", reinterpret_cast<void*>(&engine::quern_cpu_sync_lanes)},
      {"quern_cpu_end_lanes", reinterpret_cast<void*>(&engine::quern_cpu_end_lanes)},
      {"quern_cpu_arrive_at_barrier", reinterpret_cast<void*>(&engine::quern_cpu_arrive_at_barrier)},
  };
  return rows;
}

}  // namespace quern::cpu::emit
