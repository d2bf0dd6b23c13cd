// SPDX-License-Identifier: Apache-2.0
// Operations across the lanes of a warp.
#include "cpu/emit/helpers/helper_code.hpp"
#include "cpu/ir/ir.hpp"

namespace quern::cpu::emit {
namespace {

std::uint32_t combine(ir::ReduceMode mode, std::uint32_t a, std::uint32_t b) {
  const auto sa = static_cast<std::int32_t>(a);
  const auto sb = static_cast<std::int32_t>(b);
  switch (mode) {
    case ir::ReduceMode::add:
      return a + b;
    case ir::ReduceMode::smin:
      return sa < sb ? a : b;
    case ir::ReduceMode::smax:
      return sa > sb ? a : b;
    case ir::ReduceMode::umin:
      return a < b ? a : b;
    case ir::ReduceMode::umax:
      return a > b ? a : b;
    case ir::ReduceMode::and_:
      return a & b;
    case ir::ReduceMode::or_:
      return a | b;
    case ir::ReduceMode::xor_:
      return a ^ b;
  }
  return a;
}

}  // namespace
extern "C" {

/// out[lane] = in[from[lane] mod 32]
static void quern_cpu_permute_32(std::uint32_t* out, const std::uint32_t* in, const std::uint32_t* from) {
  for (unsigned lane = 0; lane < kWarpSize; ++lane) out[lane] = in[from[lane] & (kWarpSize - 1)];
}

/// For each lane, the running lanes in its membermask that have the same value.
static void quern_cpu_match_any(std::uint32_t* out, const std::uint64_t* values, const std::uint32_t* members,
                                std::uint32_t running) {
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    std::uint32_t same = 0;
    for_each_lane(running & members[lane], [&](unsigned other) {
      same |= static_cast<std::uint32_t>(values[other] == values[lane]) << other;
    });
    out[lane] = same;
  }
}

/// For each lane, the running lanes in its membermask, or 0 if their values are not all equal.
static void quern_cpu_match_all(std::uint32_t* out, const std::uint64_t* values, const std::uint32_t* members,
                                std::uint32_t running) {
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    const std::uint32_t group = running & members[lane];
    bool all = group != 0;
    for_each_lane(group, [&](unsigned other) { all = all && values[other] == values[__builtin_ctz(group)]; });
    out[lane] = all ? group : 0;
  }
}

/// For each lane, reduces the values of the running lanes in its membermask; 0 if there are none.
static void quern_cpu_reduce(std::uint32_t mode, std::uint32_t* out, const std::uint32_t* values,
                             const std::uint32_t* members, std::uint32_t running) {
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    const std::uint32_t group = running & members[lane];
    std::uint32_t result = group == 0 ? 0 : values[__builtin_ctz(group)];
    for_each_lane(group & (group - 1), [&](unsigned other) {
      result = combine(static_cast<ir::ReduceMode>(mode), result, values[other]);
    });
    out[lane] = result;
  }
}

}  // extern "C"

std::span<const Helper> warp_helpers() {
  static const Helper rows[] = {QUERN_HELPER(quern_cpu_permute_32), QUERN_HELPER(quern_cpu_match_any),
                                QUERN_HELPER(quern_cpu_match_all), QUERN_HELPER(quern_cpu_reduce)};
  return rows;
}

}  // namespace quern::cpu::emit
