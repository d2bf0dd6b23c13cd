// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdlib>

#include "cpu/analysis/analysis.hpp"
#include "program.hpp"

namespace quern::cpu::test {
namespace {

std::uint32_t from_environment(const char* name, std::uint32_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10));
}

/// Barriers behind an end that only some lanes reach in a loop are refused: such a program says nothing here.
bool refused(const ir::Module& module, const Extents& block) {
  Specialisation specialisation;
  specialisation.block = block;
  const auto facts = analysis::analyse(module, module.functions[0], specialisation, analysis::Assumption::safe);
  REQUIRE(facts.has_value());
  return !analysis::check_supported(module, module.functions[0], *facts).has_value();
}

void check_programs(TestDevice& device, bool shares, std::uint32_t first, std::uint32_t count) {
  const Extents blocks[] = {{32, 1, 1}, {64, 1, 1}, {7, 3, 2}, {16, 16, 1}, {1, 1, 1}, {70, 1, 1}};
  std::vector<std::uint32_t> table(kTableWords);
  std::mt19937 words(7);
  for (std::uint32_t& word : table) word = static_cast<std::uint32_t>(words()) >> (words() % 32);

  std::uint32_t refused_count = 0;
  for (std::uint32_t seed = first; seed < first + count; ++seed) {
    std::mt19937 random(seed);
    const Program program = random_program(random, shares);
    const Shape3 shape{blocks[seed % 6], {3, 2, 1}};
    const std::vector<std::uint32_t> expected = evaluate(program, shape, table, 11);
    const ir::Module module = to_ir(program, shape.block);
    if (refused(module, shape.block)) {
      ++refused_count;
      continue;
    }
    for (const Specialisation& variant : variants(shape.block)) {
      CAPTURE(seed);
      CAPTURE(name(variant));
      const auto code = compile_ir(module, variant);
      device.clear();
      auto out = device.allocate<std::uint32_t>(expected.size());
      auto input = device.allocate<std::uint32_t>(kTableWords);
      std::copy(table.begin(), table.end(), input.begin());
      device.symbols = {0};
      REQUIRE(!device.launch(*code, variant, shape.grid, Params().add(out.data()).add(input.data()).add(std::uint32_t{11})));
      std::size_t wrong = 0;
      while (wrong < expected.size() && out[wrong] == expected[wrong]) ++wrong;
      CAPTURE(wrong);
      INFO(to_text(program));
      REQUIRE(wrong == expected.size());
    }
  }
  CHECK(refused_count * 3 <= count);
}

TEST_CASE("random programs with divergent branches, loops and early ends give what each thread alone would give") {
  TestDevice device;
  check_programs(device, false, from_environment("QUERN_TEST_SEED", 1), from_environment("QUERN_TEST_COUNT", 60));
}

TEST_CASE("random programs with barriers between threads of the block give what the block together would give") {
  TestDevice device;
  check_programs(device, true, from_environment("QUERN_TEST_SEED", 1), from_environment("QUERN_TEST_COUNT", 60));
}

}  // namespace
}  // namespace quern::cpu::test
