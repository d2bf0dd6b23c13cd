// SPDX-License-Identifier: Apache-2.0
// Runs the witness on kernels that NVRTC compiled.
#include <array>
#include <fstream>
#include <iterator>

#include "cpu/compiler/lowering.hpp"
#include "cpu/lower/lower.hpp"
#include "ptx/ptx.hpp"
#include "random_program.hpp"
#include "testing.hpp"
#include "witness.hpp"

using namespace quern;
using namespace quern::cpu;
using analysis::Assumption;

namespace {

test::RandomProgram kernel_of(const char* file) {
  std::ifstream stream(std::string(QUERN_TEST_DATA "/") + file);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  Expected<ptx::Module> parsed = ptx::parse(text);
  REQUIRE(parsed.has_value());
  REQUIRE(ptx::verify(*parsed).has_value());
  for (const ptx::Function& function : parsed->functions) {
    if (!function.entry) continue;
    Expected<ir::Module> lowered = cpu::lower_kernel(*parsed, function.name);
    REQUIRE(lowered.has_value());
    test::RandomProgram program;
    program.module = *std::move(lowered);
    return program;
  }
  FAIL("no kernel in ", file);
  return {};
}

}  // namespace

TEST_CASE("claims about saxpy, matmul, mandelbrot and a reduction hold in every lane, and none is refused") {
  for (const char* file : {"saxpy.ptx", "matmul.ptx", "mandelbrot.ptx", "reduce.ptx"}) {
    CAPTURE(file);
    test::RandomProgram program = kernel_of(file);
    const ir::Function& function = program.module.functions[0];
    for (const auto& block :
         {std::array<std::uint32_t, 3>{256, 1, 1}, {16, 16, 1}, {100, 1, 1}, {7, 5, 3}, {32, 32, 1}})
      for (const Assumption assumption : {Assumption::safe, Assumption::optimistic}) {
        program.specialisation.block = block;
        const auto a = analysis::analyse(program.module, function, program.specialisation, assumption);
        REQUIRE(a.has_value());
        CHECK(analysis::check_lockstep(program.module, function, *a).has_value());
        test::Witnessed witnessed;
        for (std::uint64_t seed = 0; seed < 4; ++seed) {
          test::Launch launch = test::random_launch(program, seed);
          launch.params.clear();  // small values, so that loops are short
          const auto warp = static_cast<std::uint32_t>(seed % program.specialisation.warps());
          const std::string wrong = test::contradiction(function, *a, launch, warp, witnessed);
          CHECK_MESSAGE(wrong.empty(), wrong);
        }
        CHECK(witnessed.counts["ended"] > 0);
      }
  }
}
