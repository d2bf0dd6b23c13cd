// SPDX-License-Identifier: Apache-2.0
#include "ptx/check/barrier_check.hpp"

#include <fmt/format.h>

namespace quern::ptx {
namespace {

constexpr std::uint64_t kBarriers = 16;
constexpr std::uint64_t kWarp = 32;

const IntegerOperand* constant_at(const Instruction& instruction, std::size_t operand) {
  return operand < instruction.operands.size() ? instruction.operands[operand].as<IntegerOperand>() : nullptr;
}

}  // namespace

std::optional<std::string> check_barrier(const Instruction& instruction) {
  if (instruction.has(Modifier::warp) || instruction.has(Modifier::cluster)) return std::nullopt;
  const bool reduces = instruction.has(Modifier::red);  // destination first, predicate last
  const std::size_t first = reduces ? 1 : 0;
  const std::size_t end = instruction.operands.size() - (reduces ? 1 : 0);
  if (const IntegerOperand* id = constant_at(instruction, first); id != nullptr && id->bits >= kBarriers)
    return fmt::format("there is no barrier {}: they are 0 to {}", static_cast<std::int64_t>(id->bits),
                       kBarriers - 1);
  const IntegerOperand* count = first + 1 < end ? constant_at(instruction, first + 1) : nullptr;
  if (count == nullptr) return std::nullopt;
  if (count->bits % kWarp != 0)
    return fmt::format("{} threads cannot meet at a barrier: it must be a multiple of {}",
                       static_cast<std::int64_t>(count->bits), kWarp);
  if (count->bits == 0 && instruction.has(Modifier::arrive))
    return "'arrive' needs the number of threads that meet, which cannot be 0";
  return std::nullopt;
}

}  // namespace quern::ptx
