// SPDX-License-Identifier: Apache-2.0
// Chooses the atomic operations on global memory that a worker gathers (abi/pending.hpp), and finds the
// accesses before which their updates must be in memory. See docs/decisions/0045-gathered-atomics.md.
#include <algorithm>
#include <optional>
#include <tuple>

#include "cpu/abi/pending.hpp"
#include "cpu/analysis/block_step.hpp"
#include "cpu/cuts/accesses.hpp"
#include "cpu/cuts/passes.hpp"

namespace quern::cpu::cuts {
namespace {

using ir::Op;

bool commutes(ir::AtomicOp op) {
  switch (op) {
    case ir::AtomicOp::add:
    case ir::AtomicOp::and_:
    case ir::AtomicOp::or_:
    case ir::AtomicOp::xor_:
    case ir::AtomicOp::smin:
    case ir::AtomicOp::smax:
    case ir::AtomicOp::umin:
    case ir::AtomicOp::umax:
      return true;
    case ir::AtomicOp::fadd:
    case ir::AtomicOp::exch:
    case ir::AtomicOp::cas:
    case ir::AtomicOp::inc:
    case ir::AtomicOp::dec:
    case ir::AtomicOp::fmin:
    case ir::AtomicOp::fmax:
    case ir::AtomicOp::arrive:
    case ir::AtomicOp::arrive_drop:
      return false;
  }
  return false;
}

/// `facts`: those of masked code, which hold in full code, too.
bool can_gather(const ir::Function& function, const analysis::Analysis& facts, const ir::Inst& inst) {
  if (inst.op != Op::atomic || inst.attr.biased || !inst.attr.unused_result || !may_be_global(inst) ||
      !is_unordered(inst))
    return false;
  if (inst.attr.scope != ir::Scope::gpu && inst.attr.scope != ir::Scope::cluster) return false;
  const ir::Type type = function[inst.args[1]].type;
  // The sum of a warp is rounded before it is added to memory, and so may be that of several warps. At
  // different addresses each addition is rounded.
  if (inst.attr.atomic == ir::AtomicOp::fadd)
    return (type == ir::Type::f32 || type == ir::Type::f64) &&
           facts.patterns[inst.args[0]].kind == analysis::LanePatternKind::uniform;
  return commutes(inst.attr.atomic) && (type == ir::Type::i32 || type == ir::Type::i64);
}

/// The operation that an address is computed from, a parameter or a symbol, and its number.
using Root = std::pair<Op, std::uint64_t>;
constexpr Root kNoRoot{Op::undef, 0};

Root root_of(const ir::Function& function, ir::Value value) {
  const ir::Inst& inst = function[value];
  switch (inst.op) {
    case Op::param:
    case Op::symbol:
      return {inst.op, inst.imm};
    case Op::to_generic:
    case Op::from_generic:
      return root_of(function, inst.args[0]);
    case Op::iadd: {
      const Root left = root_of(function, inst.args[0]);
      return left != kNoRoot && function[inst.args[0]].type == ir::Type::i64
                 ? left
                 : root_of(function, inst.args[1]);
    }
    default:
      return kNoRoot;
  }
}

/// Operations with equal keys share a window.
struct Key {
  ir::AtomicOp op;
  ir::Type type;
  Root root;
  friend bool operator==(const Key&, const Key&) = default;
};

class Gathering {
 public:
  Gathering(ir::Function& function, const analysis::Analysis& facts)
      : function_(function), facts_(facts), in_(function.blocks.size()) {}

  void run() {
    choose_windows();
    if (keys_.empty()) return;
    while (propagate()) {
    }
    for (ir::BlockId block = 0; block < function_.blocks.size(); ++block) {
      std::uint32_t pending = in_[block];
      for (const ir::Value value : function_.blocks[block].insts) {
        mark(function_[value], pending);
        pending |= effect(function_[value], pending);
      }
    }
  }

 private:
  void choose_windows() {
    for (const ir::Block& block : function_.blocks)
      for (const ir::Value value : block.insts) {
        ir::Inst& inst = function_[value];
        if (!can_gather(function_, facts_, inst)) continue;
        const Key key{inst.attr.atomic, function_[inst.args[1]].type, root_of(function_, inst.args[0])};
        auto found = std::ranges::find(keys_, key);
        if (found == keys_.end()) {
          if (keys_.size() == engine::kPendingWindows) continue;
          found = keys_.insert(keys_.end(), key);
        }
        inst.attr.gathers = static_cast<std::uint8_t>(1 + (found - keys_.begin()));
        inst.attr.same_places = analysis::same_in_all_blocks(function_, inst.args[0]);
      }
  }

  /// Threads of the block may continue, in other code, after the threads that arrive here.
  static bool synchronises(const ir::Inst& inst) {
    return ir::is_barrier(inst.op) || inst.op == Op::warp_sync;
  }

  /// The windows that may have pending updates after the instruction, in addition to those before it.
  std::uint32_t effect(const ir::Inst& inst, std::uint32_t pending) {
    if (inst.attr.gathers != 0) return 1u << (inst.attr.gathers - 1u);
    if (!synchronises(inst)) return 0;
    before_synchronisation_ |= pending;
    return before_synchronisation_;
  }

  /// Returns true if a set has grown.
  bool propagate() {
    bool grown = false;
    const std::uint32_t synchronised = before_synchronisation_;
    for (ir::BlockId block = 0; block < function_.blocks.size(); ++block) {
      std::uint32_t pending = in_[block];
      for (const ir::Value value : function_.blocks[block].insts)
        pending |= effect(function_[value], pending);
      for (const ir::BlockId to : function_.blocks[block].succs) {
        grown = grown || (pending & ~in_[to]) != 0;
        in_[to] |= pending;
      }
    }
    return grown || before_synchronisation_ != synchronised;
  }

  /// The windows whose operation commutes with that of the instruction.
  std::uint32_t same_operation(const ir::Inst& inst) const {
    std::uint32_t windows = 0;
    for (std::size_t i = 0; i < keys_.size(); ++i)
      if (keys_[i].op == inst.attr.atomic && keys_[i].type == function_[inst.args[1]].type)
        windows |= 1u << i;
    return windows;
  }

  void mark(ir::Inst& inst, std::uint32_t pending) {
    const auto settle = [&](std::uint32_t windows, bool all) {
      inst.attr.settles = static_cast<std::uint8_t>(windows);
      inst.attr.settles_all = all && windows != 0;
    };
    const bool accesses = inst.op == Op::load || inst.op == Op::store || inst.op == Op::atomic;
    if (inst.op == Op::fence || inst.op == Op::host_call) return settle(pending, true);
    if (!accesses || inst.attr.invariant) return;
    if (!is_unordered(inst)) return settle(pending, true);
    if (!may_be_global(inst)) return;
    if (inst.op != Op::atomic) return settle(pending, ir::is_ordered(inst.attr));
    if (!inst.attr.unused_result) return settle(pending, true);
    settle(pending & ~same_operation(inst), false);
  }

  ir::Function& function_;
  const analysis::Analysis& facts_;
  std::vector<Key> keys_;          ///< by window
  std::vector<std::uint32_t> in_;  ///< by block: the windows with pending updates at its beginning
  std::uint32_t before_synchronisation_ = 0;
};

/// True if the kernel may free memory, or calls functions, whose accesses are not marked.
bool is_excluded(const ir::Module& module) {
  const auto frees = [](const ir::Inst& inst) {
    return inst.op == Op::host_call && static_cast<ir::HostCall>(inst.imm) == ir::HostCall::free;
  };
  return module.functions.size() > 1 || std::ranges::any_of(module.functions[0].insts, frees);
}

}  // namespace

void gather_updates(ir::Function& function, Plan& plan, const Specialisation& specialisation) {
  if (plan.dispatched || specialisation.alone || is_excluded(*plan.module)) return;
  Gathering(function, plan.masked).run();
}

}  // namespace quern::cpu::cuts
