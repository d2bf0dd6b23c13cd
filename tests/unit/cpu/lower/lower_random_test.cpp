// SPDX-License-Identifier: Apache-2.0
// Random programs: the same list of steps is interpreted after lowering from PTX text, and executed directly.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <random>
#include <string>
#include <vector>

#include "ir_interpreter.hpp"
#include "support.hpp"

using namespace quern;

namespace {

constexpr std::uint32_t kRegisters = 6;
constexpr std::uint32_t kPredicates = 3;
constexpr std::uint32_t kFuel = 200;

enum class Kind { add, multiply, exclusive_or, compare, store, negate };

struct Step {
  Kind kind;
  std::uint32_t to, a, b, constant;
  int guard;  // -1: none; 2 * predicate + negated
};

struct Block {
  std::vector<Step> steps;
  std::uint32_t predicate = 0;
  std::uint32_t taken = 0;
  std::uint32_t otherwise = 0;
};

struct State {
  std::array<std::uint32_t, kRegisters> r{};
  std::array<bool, kPredicates> p{};
  std::array<std::uint32_t, 16> memory{};
};

using Program = std::vector<Block>;

Program random_program(std::mt19937& random) {
  const auto below = [&](std::uint32_t limit) { return static_cast<std::uint32_t>(random() % limit); };
  Program program(2 + below(9));
  const auto blocks = static_cast<std::uint32_t>(program.size());
  for (Block& block : program) {
    for (std::uint32_t steps = below(6); steps > 0; --steps) {
      const int guard = below(3) == 0 ? static_cast<int>(below(2 * kPredicates)) : -1;
      block.steps.push_back({static_cast<Kind>(below(6)), below(kRegisters), below(kRegisters),
                             below(kRegisters), below(10), guard});
    }
    block.predicate = below(kPredicates);
    block.taken = below(blocks);
    block.otherwise = below(blocks);
  }
  return program;
}

std::string text_of(const Step& step) {
  std::string text;
  if (step.guard >= 0) text = fmt::format("@{}%p{} ", step.guard % 2 != 0 ? "!" : "", step.guard / 2);
  switch (step.kind) {
    case Kind::add:
      return text + fmt::format("add.u32 %r{}, %r{}, {};\n", step.to, step.a, step.constant);
    case Kind::multiply:
      return text + fmt::format("mad.lo.u32 %r{}, %r{}, %r{}, {};\n", step.to, step.a, step.b, step.constant);
    case Kind::exclusive_or:
      return text + fmt::format("xor.b32 %r{}, %r{}, %r{};\n", step.to, step.a, step.b);
    case Kind::compare:
      return text + fmt::format("setp.lt.u32 %p{}, %r{}, %r{};\n", step.to % kPredicates, step.a, step.b);
    case Kind::store:
      return text + fmt::format("st.global.u32 [%rd1+{}], %r{};\n", (step.constant + 4) * 4, step.a);
    case Kind::negate:
      return text + fmt::format("not.pred %p{}, %p{};\n", step.to % kPredicates, step.a % kPredicates);
  }
  return text;
}

std::string text_of(const Program& program) {
  std::string body = "mov.u32 %r70, 0;\n";
  for (std::uint32_t i = 0; i < kRegisters; ++i) body += fmt::format("mov.u32 %r{0}, {0};\n", i);
  for (std::uint32_t i = 0; i < kPredicates; ++i) body += fmt::format("setp.ne.u32 %p{}, 0, 0;\n", i);
  for (std::size_t i = 0; i < program.size(); ++i) {
    const Block& block = program[i];
    body +=
        fmt::format("B{}:\nadd.u32 %r70, %r70, 1;\nsetp.ge.u32 %p9, %r70, {};\n@%p9 bra END;\n", i, kFuel);
    for (const Step& step : block.steps) body += text_of(step);
    body += fmt::format("@%p{} bra B{};\n", block.predicate, block.taken);
    if (block.otherwise != (i + 1) % program.size() || i + 1 == program.size())
      body += fmt::format("bra B{};\n", block.otherwise);
  }
  body += "END:\n";
  for (std::uint32_t i = 0; i < kRegisters; ++i)
    body += fmt::format("st.global.u32 [%rd1+{}], %r{};\n", 100 + i * 4, i);
  return test::kernel_text(body);
}

void execute(const Step& step, State& state) {
  if (step.guard >= 0 && state.p[static_cast<std::size_t>(step.guard / 2)] == (step.guard % 2 != 0)) return;
  switch (step.kind) {
    case Kind::add:
      state.r[step.to] = state.r[step.a] + step.constant;
      break;
    case Kind::multiply:
      state.r[step.to] = state.r[step.a] * state.r[step.b] + step.constant;
      break;
    case Kind::exclusive_or:
      state.r[step.to] = state.r[step.a] ^ state.r[step.b];
      break;
    case Kind::compare:
      state.p[step.to % kPredicates] = state.r[step.a] < state.r[step.b];
      break;
    case Kind::store:
      state.memory[step.constant + 4] = state.r[step.a];
      break;
    case Kind::negate:
      state.p[step.to % kPredicates] = !state.p[step.a % kPredicates];
      break;
  }
}

State run(const Program& program) {
  State state;
  for (std::uint32_t i = 0; i < kRegisters; ++i) state.r[i] = i;
  std::uint32_t block = 0;
  for (std::uint32_t round = 1; round < kFuel; ++round) {
    for (const Step& step : program[block].steps) execute(step, state);
    block = state.p[program[block].predicate] ? program[block].taken : program[block].otherwise;
  }
  return state;
}

}  // namespace

TEST_CASE("random control flow, guards included, computes the same in SSA form") {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const Program program = random_program(random);
    const std::string text = text_of(program);
    CAPTURE(seed);
    CAPTURE(text);
    const cpu::ir::Module module = test::lowered(text);
    test::IrInterpreter machine(module);
    machine.run();
    const State expected = run(program);
    for (std::uint32_t i = 0; i < kRegisters; ++i) CHECK(machine.word(25 + i) == expected.r[i]);
    for (std::uint32_t i = 4; i < 14; ++i) CHECK(machine.word(i) == expected.memory[i]);
  }
}
