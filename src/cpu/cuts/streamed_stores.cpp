// SPDX-License-Identifier: Apache-2.0
// Finds the stores that may bypass the caches: the kernel writes whole lines and reads nothing of that array.
#include <algorithm>
#include <map>

#include "cpu/cuts/accesses.hpp"
#include "cpu/cuts/passes.hpp"

namespace quern::cpu::cuts {
namespace {

/// CodeFacts::streamed has a bit for each 8 bytes of parameters, up to here.
constexpr std::uint32_t kMostParameterBytes = 512;
/// Instructions between a parameter and an address.
constexpr unsigned kMaxDepth = 24;
/// Measured: kernels of up to 17 instructions a byte became faster or stayed as they were, one of 30 slower.
constexpr std::size_t kMostInstsPerByte = 20;

class Finder {
 public:
  explicit Finder(const ir::Function& function) : function_(function) {}

  /// The parameter that the address is relative to, as a byte offset; ir::kNone if there is no such one.
  std::uint32_t pointer_of(ir::Value address, unsigned depth = kMaxDepth) {
    const auto [known, is_new] = pointers_.try_emplace(address, ir::kNone);
    if (!is_new || depth == 0) return known->second;
    const std::uint32_t found = trace(address, depth - 1);
    return pointers_[address] = found;
  }

 private:
  std::uint32_t trace(ir::Value value, unsigned depth) {
    const ir::Inst& inst = function_[value];
    switch (inst.op) {
      case ir::Op::param:
        return inst.type == ir::Type::i64 && inst.imm % 8 == 0 && inst.imm < kMostParameterBytes
                   ? static_cast<std::uint32_t>(inst.imm)
                   : ir::kNone;
      case ir::Op::iadd:
        return one_of(value, inst.args, depth);
      case ir::Op::phi: {
        std::vector<ir::Value> args = inst.args;
        std::ranges::sort(
            args);  // the value before the loop comes first, and what the loop adds to it finds it
        return one_of(value, args, depth);
      }
      case ir::Op::isub:
      case ir::Op::to_generic:
      case ir::Op::from_generic:
        return pointer_of(inst.args[0], depth);
      default:
        return ir::kNone;
    }
  }
  /// The only parameter among the operands of `result`.
  std::uint32_t one_of(ir::Value result, const std::vector<ir::Value>& values, unsigned depth) {
    std::uint32_t found = ir::kNone;
    for (const ir::Value value : values) {
      const std::uint32_t other = pointer_of(value, depth);
      if (other == ir::kNone || other == found) continue;
      if (found != ir::kNone) return ir::kNone;
      pointers_[result] = found = other;
    }
    return found;
  }

  const ir::Function& function_;
  std::map<ir::Value, std::uint32_t> pointers_;
};

/// True if other workers may look for what the kernel has stored while it runs.
bool talks_to_others(const ir::Inst& inst) {
  switch (inst.op) {
    case ir::Op::load:
    case ir::Op::store:
      return ir::is_ordered(inst.attr);
    case ir::Op::atomic:
    case ir::Op::fence:
    case ir::Op::call:
    case ir::Op::host_call:
      return true;
    default:
      return false;
  }
}

/// True if the loop around `block`, or the kernel if there is none, does so little for each byte that it
/// stores that memory limits it. Elsewhere the caches write lines back in the background, while a core that
/// sends many lines past them has to wait.
bool waits_for_memory(const Plan& plan, ir::BlockId block) {
  const ir::Function& function = *plan.function;
  const std::uint32_t loop = plan.full.loop_of[block];
  std::size_t insts = 0, bytes = 0;
  for (const ir::BlockId id : plan.full.order) {
    if (loop != ir::kNone && plan.full.loop_of[id] != loop) continue;
    insts += function.blocks[id].insts.size();
    for (const ir::Value value : function.blocks[id].insts) {
      const ir::Inst& inst = function[value];
      if (inst.op == ir::Op::store && may_be_global(inst))
        bytes += inst.attr.count * std::size_t{ir::byte_size(function[inst.args[1]].type)};
    }
  }
  return insts <= kMostInstsPerByte * bytes;
}

}  // namespace

void find_streamed_stores(ir::Function& function, Plan& plan, const Specialisation&) {
  plan.streamed.assign(function.insts.size(), ir::kNone);
  if (!plan.has_full || plan.dispatched) return;
  Finder finder(function);
  std::vector<std::uint32_t> read;
  for (const ir::BlockId id : plan.full.order)
    for (const ir::Value value : function.blocks[id].insts) {
      const ir::Inst& inst = function[value];
      if (talks_to_others(inst)) return plan.streamed.assign(function.insts.size(), ir::kNone);
      if (inst.op == ir::Op::load && may_be_global(inst)) read.push_back(finder.pointer_of(inst.args[0]));
      if (inst.op == ir::Op::store && may_be_global(inst))
        plan.streamed[value] = finder.pointer_of(inst.args[0]);
    }
  for (ir::Value value = 0; value < plan.streamed.size(); ++value) {
    std::uint32_t& parameter = plan.streamed[value];
    if (parameter == ir::kNone) continue;
    const bool is_read = std::ranges::find(read, parameter) != read.end();
    if (is_read || !waits_for_memory(plan, function[value].block)) parameter = ir::kNone;
  }
}

}  // namespace quern::cpu::cuts
