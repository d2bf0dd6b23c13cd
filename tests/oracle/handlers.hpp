// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cfenv>
#include <cmath>

#include "thread.hpp"

namespace quern::oracle {

Handler find_integer_handler(const Instruction& instruction);
Handler find_float_handler(const Instruction& instruction);
Handler find_memory_handler(const Instruction& instruction);
Handler find_wide_handler(const Instruction& instruction);
Handler find_video_handler(const Instruction& instruction);
Handler find_half_handler(const Instruction& instruction);
Handler find_control_handler(const Instruction& instruction);

/// The sum of two f16 numbers, to nearest.
std::uint64_t sum_of_f16(std::uint64_t a, std::uint64_t b);

/// .ftz: a subnormal becomes a zero of its sign.
inline float flush(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value;
}

/// The rounding mode among the words: rn, rz, rm, rp and their integer forms.
class RoundingScope {
 public:
  explicit RoundingScope(const Instruction& instruction) : old_(std::fegetround()) {
    int mode = FE_TONEAREST;
    if (instruction.has("rz") || instruction.has("rzi")) mode = FE_TOWARDZERO;
    if (instruction.has("rm") || instruction.has("rmi")) mode = FE_DOWNWARD;
    if (instruction.has("rp") || instruction.has("rpi")) mode = FE_UPWARD;
    std::fesetround(mode);
  }
  ~RoundingScope() { std::fesetround(old_); }
  RoundingScope(const RoundingScope&) = delete;
  RoundingScope& operator=(const RoundingScope&) = delete;

 private:
  int old_;
};

}  // namespace quern::oracle
