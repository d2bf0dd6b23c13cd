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

/// The number of random programs in a test with `count` of them. QUERN_TEST_ROUNDS multiplies it,
/// QUERN_TEST_FRACTION divides it (for slow builds).
std::uint64_t scaled(std::uint64_t count);

/// `control`: the nesting depth of statements; 0 means straight-line code.
RandomProgram random_program(std::uint64_t seed, unsigned control);

/// A launch of the kernel: grid, block and parameters.
Launch random_launch(const RandomProgram& program, std::uint64_t seed);

}  // namespace quern::cpu::test
