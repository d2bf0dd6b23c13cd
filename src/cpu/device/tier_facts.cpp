// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/tier_facts.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

namespace quern::cpu::device {
namespace {

bool depends_on_order(const ptx::Instruction& instruction) {
  using ptx::Opcode, ptx::Type;
  if (instruction.opcode == Opcode::atom) return true;
  constexpr Type kReals[] = {Type::f32, Type::f64, Type::f16, Type::f16x2, Type::bf16, Type::bf16x2};
  return instruction.opcode == Opcode::red &&
         std::ranges::find(kReals, instruction.type()) != std::end(kReals);
}

/// The function of the module that the instruction calls by its name. ptx::kNoIndex: it calls through a
/// register, or a function that the device provides.
std::uint32_t called_function(const ptx::Module& module, const ptx::Instruction& call) {
  if (call.operands.size() < 2) return ptx::kNoIndex;
  const auto* callee = call.operands[1].as<ptx::SymbolOperand>();
  if (callee == nullptr || callee->symbol.kind != ptx::SymbolKind::function) return ptx::kNoIndex;
  return module.definition_of(callee->symbol.index);
}

}  // namespace

// Goes through the functions in the order of calls, each once, with an explicit stack, since the input
// determines the depth of the call graph. A call of a function that is on the stack is a recursion.
TierFacts find_tier_facts(const ptx::Module& module, const ptx::Function& kernel) {
  struct Step {
    std::uint32_t function;
    std::size_t next;  ///< index into its body
  };
  enum class Seen : std::uint8_t { no, open, done };
  std::vector<Seen> seen(module.functions.size(), Seen::no);
  std::vector<Step> steps;
  const auto enter = [&](std::uint32_t function) {
    seen[function] = Seen::open;
    steps.push_back({function, 0});
  };
  TierFacts facts;
  enter(static_cast<std::uint32_t>(&kernel - module.functions.data()));
  while (!steps.empty()) {
    Step& step = steps.back();
    const std::vector<ptx::Instruction>& body = module.functions[step.function].body;
    if (step.next == body.size()) {
      seen[step.function] = Seen::done;
      steps.pop_back();
      continue;
    }
    const ptx::Instruction& instruction = body[step.next++];
    ++facts.instruction_count;
    facts.shows_tier = depends_on_order(instruction);
    if (instruction.opcode == ptx::Opcode::call) {
      const std::uint32_t callee = called_function(module, instruction);
      facts.shows_tier = callee == ptx::kNoIndex || seen[callee] == Seen::open;
      if (!facts.shows_tier && seen[callee] == Seen::no) enter(callee);
    }
    if (facts.shows_tier) return facts;
  }
  return facts;
}

}  // namespace quern::cpu::device
