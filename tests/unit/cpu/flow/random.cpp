// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "program.hpp"

namespace quern::cpu::test {
namespace {

std::uint32_t from_environment(const char* name, std::uint32_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10));
}

class Runner {
 public:
  Runner() : table_(kTableWords) {
    std::mt19937 words(7);
    for (std::uint32_t& word : table_) word = static_cast<std::uint32_t>(words()) >> (words() % 32);
  }

  /// True if the emitted code does the same as the separate threads.
  bool agrees(const Program& program, const Shape3& shape, const Specialisation& variant) {
    const std::vector<std::uint32_t> expected = evaluate(program, shape, table_, kNumber);
    const auto code = compile_ir(to_ir(program, shape.block), variant);
    device_.clear();
    auto out = device_.allocate<std::uint32_t>(expected.size());
    auto input = device_.allocate<std::uint32_t>(kTableWords);
    std::copy(table_.begin(), table_.end(), input.begin());
    device_.symbols = {0};
    const auto trap =
        device_.launch(*code, variant, shape.grid, Params().add(out.data()).add(input.data()).add(kNumber));
    return !trap && std::equal(expected.begin(), expected.end(), out.begin());
  }

 private:
  static constexpr std::uint32_t kNumber = 11;
  TestDevice device_;
  std::vector<std::uint32_t> table_;
};

/// Removes statements from `list`, and operands from expressions, as long as the program still fails.
void shrink(std::vector<Statement>& list, const std::function<bool()>& fails) {
  for (std::size_t i = 0; i < list.size();) {
    const Statement removed = list[i];
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
    if (fails()) continue;
    list.insert(list.begin() + static_cast<std::ptrdiff_t>(i), removed);
    shrink(list[i].body, fails);
    shrink(list[i].otherwise, fails);
    ++i;
  }
}

void check_programs(bool shares) {
  Runner runner;
  const Extents blocks[] = {{32, 1, 1}, {64, 1, 1}, {7, 3, 2}, {16, 16, 1}, {1, 1, 1}, {70, 1, 1}};
  const std::uint32_t first = from_environment("QUERN_TEST_SEED", 1);
  const std::uint32_t part = std::max(from_environment("QUERN_TEST_FRACTION", 1), 1U);
  const std::uint32_t count = from_environment("QUERN_TEST_COUNT", std::max(16 / part, 1U));
  std::vector<std::uint32_t> seeds{1005};  // failed once
  for (std::uint32_t i = 0; i < count; ++i) seeds.push_back(first + i);
  for (const std::uint32_t seed : seeds) {
    std::mt19937 random(seed);
    Program program = random_program(random, shares);
    const Shape3 shape{blocks[seed % 6], {3, 2, 1}};
    for (const Specialisation& variant : variants(shape.block)) {
      if (variant.isa == Isa::baseline && seed % 4 != 0) continue;  // LLVM takes long there
      if (runner.agrees(program, shape, variant)) continue;
      shrink(program.statements, [&] { return !runner.agrees(program, shape, variant); });
      FAIL("seed ", seed, ", ", name(variant), "\n", to_text(program));
    }
  }
}

TEST_CASE(
    "random programs with divergent branches, loops and early ends give what each thread alone would give") {
  check_programs(false);
}

TEST_CASE(
    "random programs with barriers between threads of the block give what the block together would give") {
  check_programs(true);
}

}  // namespace
}  // namespace quern::cpu::test
