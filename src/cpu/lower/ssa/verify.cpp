// SPDX-License-Identifier: Apache-2.0
// Checks the invariants of the IR. For tests and debug builds.
#include <fmt/format.h>

#include <algorithm>

#include "cpu/lower/ssa/passes.hpp"
#include "cpu/lower/ssa/verify.hpp"

namespace quern::cpu::lower {
namespace {

using ir::BlockId;
using ir::Op;
using ir::Type;
using ir::Value;

class Verifier {
 public:
  Verifier(const ir::Module& module, const ir::Function& function, Diagnostics& errors)
      : module_(module), function_(function), errors_(errors) {}

  void run() {
    if (function_.blocks.empty()) return fail("the function has no blocks");
    if (!function_.blocks[0].preds.empty()) fail("the entry has predecessors");
    place_values();
    for (BlockId block = 0; block < function_.blocks.size(); ++block) check_edges(block);
    if (!errors_.empty()) return;
    order_ = order_blocks(function_);
    nest_ = find_loops(function_, order_);
    for (BlockId block = 0; block < function_.blocks.size(); ++block) check_block(block);
  }

 private:
  void fail(const std::string& what) {
    errors_.push_back(
        {.code = "ir-invalid", .message = fmt::format("function '{}': {}", function_.name, what)});
  }
  void fail(Value value, const std::string& what) {
    fail(fmt::format("%{} ({}): {}", value, ir::name(function_[value].op), what));
  }

  void place_values() {
    position_.assign(function_.insts.size(), ir::kNone);
    for (BlockId block = 0; block < function_.blocks.size(); ++block) {
      const auto& insts = function_.blocks[block].insts;
      for (std::uint32_t i = 0; i < insts.size(); ++i) {
        if (insts[i] >= function_.insts.size())
          return fail(fmt::format("block{} lists a value that does not exist", block));
        if (position_[insts[i]] != ir::kNone) fail(insts[i], "stands in two places");
        position_[insts[i]] = i;
        if (function_[insts[i]].block != block) fail(insts[i], "says that it is in another block");
      }
    }
  }

  void check_edges(BlockId block) {
    const ir::Block& b = function_.blocks[block];
    const auto count = [](const std::vector<BlockId>& list, BlockId wanted) {
      return std::count(list.begin(), list.end(), wanted);
    };
    for (const BlockId succ : b.succs) {
      if (succ >= function_.blocks.size())
        return fail(fmt::format("block{} has a successor that does not exist", block));
      if (count(b.succs, succ) != count(function_.blocks[succ].preds, block)) {
        fail(fmt::format("block{} and its successor block{} disagree", block, succ));
      }
      if (b.succs.size() > 1 && function_.blocks[succ].preds.size() > 1) {
        fail(fmt::format("the edge from block{} to block{} is critical", block, succ));
      }
    }
    for (const BlockId pred : b.preds) {
      if (pred >= function_.blocks.size() || count(function_.blocks[pred].succs, block) == 0) {
        fail(fmt::format("block{} has a predecessor that does not lead to it", block));
      }
    }
  }

  void check_block(BlockId block) {
    const ir::Block& b = function_.blocks[block];
    if (order_.position[block] == ir::kNone) return fail(fmt::format("block{} is not reachable", block));
    if (b.insts.empty() || !ir::has_trait(function_[b.insts.back()].op, 't'))
      return fail(fmt::format("block{} has no terminator", block));
    bool phis = true;
    for (const Value value : b.insts) {
      const ir::Inst& inst = function_[value];
      if (inst.op == Op::phi && !phis) fail(value, "a phi stands behind other instructions");
      phis = phis && inst.op == Op::phi;
      if (ir::has_trait(inst.op, 't') && value != b.insts.back())
        fail(value, "a terminator stands inside its block");
      check_operands(value, block);
      check_types(value);
    }
    check_successor_count(b);
    check_loop(block);
  }

  void check_successor_count(const ir::Block& b) {
    const Value last = b.insts.back();
    const Op op = function_[last].op;
    const std::size_t count = b.succs.size();
    const bool fits = op == Op::br          ? count == 1
                      : op == Op::cond_br   ? count == 2
                      : op == Op::switch_br ? count > 0
                                            : count == 0;
    if (!fits) fail(last, fmt::format("has {} successors", count));
  }

  void check_loop(BlockId block) {
    const auto& preds = function_.blocks[block].preds;
    const auto latches = std::count_if(preds.begin(), preds.end(),
                                       [&](BlockId pred) { return order_.dominates(block, pred); });
    if (latches != 0 && (latches != 1 || preds.size() != 2))
      fail(fmt::format("the loop of block{} is not in simplified form", block));
  }

  void check_operands(Value value, BlockId block) {
    const ir::Inst& inst = function_[value];
    const bool phi = inst.op == Op::phi;
    const auto& preds = function_.blocks[block].preds;
    if (phi && inst.args.size() != preds.size())
      return fail(value, "has not one operand for each predecessor");
    if (const int arity = ir::arity(inst.op);
        arity >= 0 && static_cast<std::size_t>(arity) != inst.args.size()) {
      return fail(value, fmt::format("has {} operands instead of {}", inst.args.size(), arity));
    }
    for (std::size_t i = 0; i < inst.args.size(); ++i) {
      const Value arg = inst.args[i];
      if (arg >= function_.insts.size() || position_[arg] == ir::kNone)
        return fail(value, "has an operand that does not exist");
      const BlockId at = phi ? preds[i] : block;
      const BlockId definition = function_[arg].block;
      const bool before =
          definition != at ? order_.dominates(definition, at) : phi || position_[arg] < position_[value];
      if (!before) fail(value, fmt::format("is not dominated by its operand %{}", arg));
      const std::uint32_t loop = nest_.innermost[definition];
      if (loop != ir::kNone && !nest_.contains(loop, at))
        fail(value, fmt::format("reads %{} outside its loop", arg));
    }
  }

  Type type(const ir::Inst& inst, std::size_t index) const { return function_[inst.args[index]].type; }

  void check_types(Value value) {
    const ir::Inst& inst = function_[value];
    if (!types_fit(inst)) {
      std::string types;
      for (std::size_t i = 0; i < inst.args.size(); ++i) types += fmt::format(" {}", ir::name(type(inst, i)));
      fail(value, fmt::format("of type {} has operands of types{}", ir::name(inst.type), types));
    }
  }

  bool types_fit(const ir::Inst& inst) const {
    std::vector<Type> operands;
    for (std::size_t i = 0; i < inst.args.size(); ++i) operands.push_back(type(inst, i));
    if (!ir::types_fit(inst.op, inst.type, operands)) return false;
    switch (inst.op) {  // operations with further restrictions on types
      case Op::store:
        return inst.args.size() == std::size_t{inst.attr.count} + 1;
      case Op::call:
        return inst.imm < module_.functions.size() && call_fits(inst);
      case Op::symbol:
        return inst.imm < module_.symbols.size();
      default:
        return true;
    }
  }

  bool call_fits(const ir::Inst& inst) const {
    const auto& types = module_.functions[inst.imm].argument_types;
    if (types.size() != inst.args.size()) return false;
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (types[i] != type(inst, i)) return false;
    }
    return true;
  }

  const ir::Module& module_;
  const ir::Function& function_;
  Diagnostics& errors_;
  std::vector<std::uint32_t> position_;
  Order order_;
  LoopNest nest_;
};

}  // namespace

Expected<void> verify(const ir::Module& module) {
  Diagnostics errors;
  for (const ir::Function& function : module.functions) Verifier(module, function, errors).run();
  if (!errors.empty()) return errors;
  return {};
}

}  // namespace quern::cpu::lower
