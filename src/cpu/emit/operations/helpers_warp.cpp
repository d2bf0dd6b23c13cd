// SPDX-License-Identifier: Apache-2.0
// Operations across the lanes of a warp.
#include "cpu/emit/operations/helper_code.hpp"

namespace quern::cpu::emit {
extern "C" {

/// out[lane] = in[from[lane] mod 32]
static void quern_cpu_permute_32(std::uint32_t* out, const std::uint32_t* in, const std::uint32_t* from) {
  for (unsigned lane = 0; lane < kHelperLanes; ++lane) out[lane] = in[from[lane] & 31];
}

/// The running lanes in each lane's membermask that hold the lane's value.
static void quern_cpu_match_any(std::uint32_t* out, const std::uint64_t* values, const std::uint32_t* members,
                                std::uint32_t running) {
  for (unsigned lane = 0; lane < kHelperLanes; ++lane) {
    std::uint32_t same = 0;
    for_each_lane(running & members[lane], [&](unsigned other) {
      same |= static_cast<std::uint32_t>(values[other] == values[lane]) << other;
    });
    out[lane] = same;
  }
}

/// The running lanes in each lane's membermask, or 0 where they do not all hold one value.
static void quern_cpu_match_all(std::uint32_t* out, const std::uint64_t* values, const std::uint32_t* members,
                                std::uint32_t running) {
  for (unsigned lane = 0; lane < kHelperLanes; ++lane) {
    const std::uint32_t group = running & members[lane];
    bool all = group != 0;
    for_each_lane(group, [&](unsigned other) { all = all && values[other] == values[__builtin_ctz(group)]; });
    out[lane] = all ? group : 0;
  }
}

}  // extern "C"

std::span<const Helper> warp_helpers() {
  static const Helper rows[] = {QUERN_HELPER(quern_cpu_permute_32), QUERN_HELPER(quern_cpu_match_any),
                                QUERN_HELPER(quern_cpu_match_all)};
  return rows;
}

}  // namespace quern::cpu::emit
