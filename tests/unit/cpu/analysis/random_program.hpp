// SPDX-License-Identifier: Apache-2.0
// Random kernels: address arithmetic and structured control flow with breaks, early exits and several
// latches, in LCSSA form.
#pragma once

#include <cstdint>
#include <random>

#include "cpu/abi/specialisation.hpp"
#include "cpu/ir/ir.hpp"
#include "lane_interpreter.hpp"

namespace quern::cpu::test {

struct RandomProgram {
  ir::Module module;
  Specialisation specialisation;
};

/// The number of random programs in a test of `count` of them: QUERN_TEST_ROUNDS multiplies,
/// QUERN_TEST_FRACTION divides (for slow builds).
std::uint64_t scaled(std::uint64_t count);

/// `control`: how deep statements nest; 0 for straight lines.
RandomProgram random_program(std::uint64_t seed, unsigned control);

/// A launch of it: grid, block and parameters.
Launch random_launch(const RandomProgram& program, std::uint64_t seed);

}  // namespace quern::cpu::test
