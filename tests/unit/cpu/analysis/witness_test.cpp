// SPDX-License-Identifier: Apache-2.0
// Compares every fact of the analysis with lanes that run separately.
#include <doctest/doctest.h>

#include "random_program.hpp"
#include "witness.hpp"

using namespace quern::cpu;
using analysis::Assumption;

namespace {

test::Witnessed run_programs(std::uint64_t first, std::uint64_t count, unsigned control,
                             Assumption assumption) {
  test::Witnessed witnessed;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const test::RandomProgram program = test::random_program(seed, control);
    const ir::Function& function = program.module.functions[0];
    const auto analysis = analysis::analyse(program.module, function, program.specialisation, assumption);
    REQUIRE_MESSAGE(analysis.has_value(), "seed ", seed, ": ", quern::to_string(analysis.errors()));
    for (std::uint64_t launch_seed = 0; launch_seed < 3; ++launch_seed) {
      const test::Launch launch = test::random_launch(program, test::mix(seed, launch_seed));
      const auto warp =
          static_cast<std::uint32_t>(test::mix(seed, launch_seed + 9) % program.specialisation.warps());
      const std::string wrong = test::contradiction(function, *analysis, launch, warp, witnessed);
      REQUIRE_MESSAGE(wrong.empty(), "seed ", seed, ", control ", control, ", launch ", launch_seed,
                      ", warp ", warp, ": ", wrong);
    }
  }
  return witnessed;
}

}  // namespace

TEST_CASE("claims about straight-line address arithmetic hold in every lane") {
  for (const Assumption assumption : {Assumption::safe, Assumption::optimistic}) {
    test::Witnessed seen = run_programs(1, test::scaled(600), 0, assumption);
    for (const char* kind : {"uniform", "affine", "offset32", "varying", "constant"})
      CHECK(seen.counts.at(kind) > test::scaled(500));
    if (assumption != Assumption::optimistic) continue;
    CHECK(seen.counts["divides together"] > test::scaled(20));
    for (const char* assumed : {"rest of a division", "natural", "within edges", "not at an edge"})
      CHECK(seen.counts[assumed] > test::scaled(10));
  }
}

TEST_CASE("claims about control flow and values that pass through it hold in every lane") {
  for (const Assumption assumption : {Assumption::safe, Assumption::optimistic}) {
    test::Witnessed seen = run_programs(300000, test::scaled(400), 3, assumption);
    for (const char* kind : {"uniform", "affine", "offset32", "varying", "constant", "uniform branch",
                             "divergent branch", "block with all live lanes"})
      CHECK(seen.counts.at(kind) > test::scaled(500));
    if (assumption == Assumption::optimistic) CHECK(seen.counts["together"] > test::scaled(100));
  }
}
