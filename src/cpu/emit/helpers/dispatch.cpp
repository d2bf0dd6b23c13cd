// SPDX-License-Identifier: Apache-2.0
// Engine functions that dispatched code calls.
#include "cpu/abi/warps.hpp"
#include "cpu/emit/helpers/helper_code.hpp"

namespace quern::cpu::emit {

std::span<const Helper> dispatch_helpers() {
  static const Helper rows[] = {
      {"quern_cpu_run_warps", reinterpret_cast<void*>(&engine::quern_cpu_run_warps)},
      {"quern_cpu_choose_place", reinterpret_cast<void*>(&engine::quern_cpu_choose_place)},
      {"quern_cpu_meet_lanes", reinterpret_cast<void*>(&engine::quern_cpu_meet_lanes)},
      {"quern_cpu_end_lanes", reinterpret_cast<void*>(&engine::quern_cpu_end_lanes)},
      {"quern_cpu_meet_block", reinterpret_cast<void*>(&engine::quern_cpu_meet_block)},
  };
  return rows;
}

}  // namespace quern::cpu::emit
