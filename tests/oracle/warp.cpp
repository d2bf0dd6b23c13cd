// SPDX-License-Identifier: Apache-2.0
// Warp operations: "Parallel Synchronization and Communication Instructions" in the PTX ISA.
#include <cmath>

#include "thread.hpp"

namespace quern::oracle {
namespace {

struct Shuffle {
  unsigned lane;  ///< the lane read from
  bool valid;
};

// Pseudocode of shfl.sync: bval selects, cval clamps and divides the warp into segments.
Shuffle shuffle_source(const Instruction& instruction, unsigned lane, unsigned b, unsigned c) {
  const unsigned bval = b & 31, cval = c & 31, segment_mask = (c >> 8) & 31;
  const unsigned max_lane = (lane & segment_mask) | (cval & ~segment_mask);
  const unsigned min_lane = lane & segment_mask;
  int j = 0;
  bool p = false;
  if (instruction.has("up")) {
    j = static_cast<int>(lane) - static_cast<int>(bval);
    p = j >= static_cast<int>(max_lane);
  } else if (instruction.has("down")) {
    j = static_cast<int>(lane + bval);
    p = j <= static_cast<int>(max_lane);
  } else if (instruction.has("bfly")) {
    j = static_cast<int>(lane ^ bval);
    p = j <= static_cast<int>(max_lane);
  } else {
    j = static_cast<int>(min_lane | (bval & ~segment_mask));
    p = j <= static_cast<int>(max_lane);
  }
  return {p ? static_cast<unsigned>(j) : lane, p};
}

}  // namespace

bool is_warp_operation(const Instruction& instruction) {
  if (instruction.opcode == "bar" && instruction.has("warp")) return true;
  return instruction.opcode == "shfl" || instruction.opcode == "vote" || instruction.opcode == "match" ||
         instruction.opcode == "redux" || instruction.opcode == "activemask" || instruction.opcode == "elect";
}

void Block::warp_operation(const std::vector<Thread*>& members, const Instruction& instruction,
                           std::uint32_t) {
  const auto& operands = instruction.operands;
  const Type b32{'b', 32};
  if (instruction.opcode == "bar") return;
  if (instruction.opcode == "activemask") throw Unsupported("oracle: activemask has no one right answer");
  if (instruction.opcode == "shfl") {
    std::array<std::uint64_t, 32> values{};
    std::uint32_t present = 0;
    for (Thread* member : members) {
      values[member->lane()] = member->get(operands[1], b32);
      present |= 1u << member->lane();
    }
    for (Thread* member : members) {
      const auto b = static_cast<unsigned>(member->get(operands[2], b32)),
                 c = static_cast<unsigned>(member->get(operands[3], b32));
      const Shuffle source = shuffle_source(instruction, member->lane(), b, c);
      const Operand& target = operands[0];
      const bool pair = target.kind == Operand::Kind::vector;
      if ((present >> source.lane & 1) == 0)
        throw Unsupported("oracle: shuffle from a lane that does not take part");
      member->set(pair ? target.parts[0] : target, values[source.lane]);
      if (pair) member->set(target.parts[1], source.valid ? 1 : 0);
    }
    return;
  }
  if (instruction.opcode == "vote") {
    std::uint32_t votes = 0, present = 0;
    for (Thread* member : members) {
      present |= 1u << member->lane();
      if (member->get_pred(operands[1])) votes |= 1u << member->lane();
    }
    std::uint32_t answer = votes;
    if (instruction.has("all"))
      answer = votes == present ? 1 : 0;
    else if (instruction.has("any"))
      answer = votes != 0 ? 1 : 0;
    else if (instruction.has("uni"))
      answer = votes == 0 || votes == present ? 1 : 0;
    for (Thread* member : members) member->set(operands[0], answer);
    return;
  }
  if (instruction.opcode == "elect") {
    // "Deterministically": the first one, here and on the device.
    for (Thread* member : members) {
      member->set(operands[0].parts.at(0), members.front()->lane());
      member->set(operands[0].parts.at(1), member == members.front() ? 1 : 0);
    }
    return;
  }
  if (instruction.opcode == "redux" && instruction.has("f32")) {
    std::optional<float> result;
    bool some_nan = false;
    for (Thread* member : members) {
      float value = member->get_f32(operands[1]);
      if (instruction.has("abs")) value = std::fabs(value);
      some_nan |= std::isnan(value);
      if (std::isnan(value)) continue;
      // "+0.0 > -0.0"
      const auto below = [](float x, float y) {
        return x < y || (x == y && std::signbit(x) && !std::signbit(y));
      };
      if (!result || (instruction.has("min") ? below(value, *result) : below(*result, value))) result = value;
    }
    const bool nan = !result || (some_nan && instruction.has("NaN"));
    for (Thread* member : members)
      member->set(operands[0], nan ? 0x7fffffffu : bits_as<std::uint32_t>(*result));
    return;
  }
  if (instruction.opcode == "redux") {
    const Type type = instruction.types.at(0);
    std::uint64_t result = members.front()->get(operands[1], b32);
    const auto less = [&](std::uint64_t x, std::uint64_t y) {
      return type.is_signed() ? sign_extend(x, 32) < sign_extend(y, 32) : x < y;
    };
    for (std::size_t k = 1; k < members.size(); ++k) {
      const std::uint64_t value = members[k]->get(operands[1], b32);
      if (instruction.has("add")) result += value;
      if (instruction.has("and")) result &= value;
      if (instruction.has("or")) result |= value;
      if (instruction.has("xor")) result ^= value;
      if (instruction.has("min") && less(value, result)) result = value;
      if (instruction.has("max") && less(result, value)) result = value;
    }
    for (Thread* member : members) member->set(operands[0], result);
    return;
  }
  if (instruction.opcode == "match") {
    const Type type = instruction.types.back();
    // Read all before writing any: the destination may be the source.
    std::array<std::uint64_t, 32> values{};
    std::uint32_t everyone = 0;
    for (Thread* member : members) {
      values[member->lane()] = member->get(operands[1], type);
      everyone |= 1u << member->lane();
    }
    for (Thread* member : members) {
      std::uint32_t same = 0;
      for (Thread* other : members)
        if (values[other->lane()] == values[member->lane()]) same |= 1u << other->lane();
      const bool pair = operands[0].kind == Operand::Kind::vector;
      const bool all = same == everyone;
      member->set(pair ? operands[0].parts[0] : operands[0], instruction.has("all") && !all ? 0 : same);
      if (pair) member->set(operands[0].parts[1], all ? 1 : 0);
    }
    return;
  }
  throw Unsupported("oracle: " + instruction.text);
}

}  // namespace quern::oracle
