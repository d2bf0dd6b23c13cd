// SPDX-License-Identifier: Apache-2.0
// if (a > b || (a == b && i < j)) { b = a; j = i; }
//
// becomes choices: all lanes compute both sides of a branch on data, if the sides are a few quick operations.
// Lanes that part cost more, and a branch that is mispredicted alone does.
//
// const int a = part[i], b = part[j];
// if (a > b) { part[i] = b; part[j] = a; }
//
// becomes part[i] = a > b ? b : a; part[j] = a > b ? a : b. Without the branch the warps of a gang stay in
// lockstep, and the stored values can remain in registers (emit/llvm/forward_shared.hpp).
//
// A thread whose condition is false stores what its address contained at the load. Nobody sees the
// difference: the addresses are known in each thread of the block and lie in its static shared memory, all of
// them are different, and between the load and the store there are no other stores, no barriers and no
// atomic operations.
#include <algorithm>
#include <optional>
#include <ranges>
#include <span>
#include <utility>
#include <vector>

#include "cpu/analysis/regular.hpp"
#include "cpu/cuts/passes.hpp"
#include "cpu/cuts/thread_values.hpp"

namespace quern::cpu::cuts {
namespace {

using ir::BlockId;
using ir::Op;
using ir::Value;

/// Limits for the instructions of both sides of a branch: threads whose condition is false run them too.
constexpr std::size_t kMaxPure = 8;
constexpr std::size_t kMaxStores = 4;
/// The same where there are no stores: the registers of each eight lanes that the sides and the choices
/// compute.
constexpr std::size_t kMaxWords = 12;
/// A longer block is not a side of few operations. Blocks are only appended to it when all is replaced, since
/// each of a long chain would be moved once for each one before it.
constexpr std::size_t kMaxSide = 64;

/// A conditional store, and the load of the same element before the branch.
struct Replaced {
  Value store = ir::kNone;
  Value loaded = ir::kNone;
  bool if_true = false;
};

class Merger {
 public:
  Merger(ir::Function& function, const Plan& plan, const Specialisation& specialisation)
      : function_(function),
        plan_(plan),
        specialisation_(specialisation),
        threads_(function, specialisation),
        bytes_(plan.module->static_shared_bytes) {}

  void run() {
    if (!find_data_branches()) return;
    bool replaced = false;
    // The last blocks first, so that a branch in a side is replaced before that around it.
    for (BlockId test = static_cast<BlockId>(function_.blocks.size()); test-- > 0;) {
      while (data_branch_[test] && ir::parts_and_joins(function_, test)) {
        std::vector<Replaced> stores;
        if (!is_quick(test)) {
          std::optional<std::vector<Replaced>> found = stores_of(test);
          if (!found) break;
          stores = std::move(*found);
        }
        replace(test, stores);
        replaced = true;
        if (function_.blocks[test].insts.size() > kMaxSide) break;
        append_next(test);
      }
    }
    if (!replaced) return;
    for (BlockId block = 0; block < function_.blocks.size(); ++block)
      while (append_next(block)) {
      }
    replace_phis();
    drop_empty_blocks();
  }

 private:
  ir::Inst& terminator(BlockId id) { return function_[function_.blocks[id].insts.back()]; }

  /// Marks the branches whose conditions depend on data, if there is one to replace. Where a condition is
  /// known, or the same in a warp, the warps that do not take part skip the side.
  bool find_data_branches() {
    const auto may_be_replaced = [&](BlockId test) {
      return ir::parts_and_joins(function_, test) && terminator(test).op == Op::cond_br &&
             (stores_to_shared(test) || is_quick(test));
    };
    const auto count = static_cast<BlockId>(function_.blocks.size());
    if (std::ranges::none_of(std::views::iota(BlockId{0}, count), may_be_replaced)) return false;
    auto facts =
        analysis::analyse(*plan_.module, function_, specialisation_, analysis::Assumption::optimistic);
    if (!facts) return false;  // analyse_uncut reports errors
    assumed_ = std::move(facts->assumed);
    data_branch_.resize(count);
    for (BlockId test = 0; test < count; ++test)
      data_branch_[test] = !function_.blocks[test].insts.empty() && terminator(test).op == Op::cond_br &&
                           analysis::depends_on_data(function_, facts->patterns, terminator(test).args[0]);
    return true;
  }

  bool is_assumed(Value value) const { return value < assumed_.size() && assumed_[value]; }

  /// The registers of eight lanes that an operation computes.
  std::size_t words(const ir::Inst& inst) const {
    const ir::Type type = ir::bit_size(inst.type) > 1 ? inst.type : function_[inst.args.back()].type;
    const std::size_t registers = (ir::bit_size(type) + 31) / 32;
    return inst.op == Op::imul ? registers * registers : registers;
  }

  /// True for comparisons with constants, and decisions that have one, but for tests of single bits. Most are
  /// tests for rare cases, as of logf(x) for infinity, on which the lanes agree and which processors foresee.
  /// Without the branch, all around it becomes one block, in which LLVM's scheduler lengthens live ranges.
  bool tests_for_constant(Value condition) const {
    const ir::Inst& inst = function_[condition];
    const auto is = [&](Op op) {
      return std::ranges::any_of(inst.args, [&](Value value) { return function_[value].op == op; });
    };
    if (inst.op == Op::icmp || inst.op == Op::fcmp) return is(Op::constant) && !is(Op::and_);
    return (inst.op == Op::and_ || inst.op == Op::or_ || inst.op == Op::xor_) &&
           std::ranges::any_of(inst.args, [&](Value part) { return tests_for_constant(part); });
  }

  /// True if the sides contain few operations, all of them quick, and nothing that full code assumes.
  bool is_quick(BlockId test) {
    if (tests_for_constant(terminator(test).args[0])) return false;
    const std::vector<BlockId>& sides = function_.blocks[test].succs;
    std::size_t sum = 0;
    for (const BlockId side : sides) {
      const std::vector<Value>& insts = function_.blocks[side].insts;
      for (const Value value : std::span(insts).first(insts.size() - 1)) {
        const ir::Inst& inst = function_[value];
        if (inst.op == Op::constant) continue;
        if (!ir::has_trait(inst.op, 'q') || is_assumed(value)) return false;
        sum += words(inst);
      }
    }
    for (const Value value : function_.blocks[function_.blocks[sides[0]].succs[0]].insts) {
      if (function_[value].op != Op::phi) break;
      sum += words(function_[value]);
    }
    return sum <= kMaxWords;
  }

  bool stores_to_shared(BlockId test) {
    return std::ranges::any_of(function_.blocks[test].succs, [&](BlockId side) {
      return std::ranges::any_of(function_.blocks[side].insts, [&](Value value) {
        return function_[value].op == Op::store && function_[value].attr.space == ir::Space::shared;
      });
    });
  }

  /// The stores of both sides, if these contain nothing else that has an effect, and all of them can be
  /// unconditional.
  std::optional<std::vector<Replaced>> stores_of(BlockId test) {
    std::vector<Replaced> stores;
    std::size_t pure = 0;
    for (const unsigned side : {0u, 1u}) {
      const std::vector<Value>& insts = function_.blocks[function_.blocks[test].succs[side]].insts;
      for (const Value value : std::span(insts).first(insts.size() - 1)) {
        if (function_[value].op == Op::store)
          stores.push_back({.store = value, .if_true = side == 0});
        else if (function_[value].op == Op::phi || !ir::has_trait(function_[value].op, 'p') ||
                 is_assumed(value))
          return std::nullopt;
        else
          ++pure;
      }
    }
    if (pure > kMaxPure || stores.empty() || stores.size() > kMaxStores) return std::nullopt;
    std::vector<bool> stored(bytes_, false);
    for (Replaced& each : stores)
      if ((each.loaded = load_before(test, function_[each.store])) == ir::kNone ||
          !mark(stored, function_[each.store]))
        return std::nullopt;
    return stores;
  }

  /// The load of the stored element in `test`, with nothing between it and the branch that has an effect, and
  /// nothing that full code assumes: there, warps of a gang may part.
  Value load_before(BlockId test, const ir::Inst& store) {
    const auto is_plain = [](const ir::Inst& access) {
      return access.attr.space == ir::Space::shared && access.attr.count == 1 && !ir::is_ordered(access.attr);
    };
    if (!is_plain(store)) return ir::kNone;
    const std::vector<Value>& insts = function_.blocks[test].insts;
    for (auto value = insts.rbegin() + 1; value != insts.rend(); ++value) {
      const ir::Inst& inst = function_[*value];
      if (is_assumed(*value)) break;
      if (inst.op == Op::load && is_plain(inst) && inst.type == function_[store.args[1]].type &&
          inst.imm == store.imm && threads_.are_equal(inst.args[0], store.args[0]))
        return *value;
      if (!ir::has_trait(inst.op, 'p') && (inst.op != Op::load || ir::is_ordered(inst.attr))) break;
    }
    return ir::kNone;
  }

  /// Marks the bytes that the threads store. Returns false if they are not known, outside of the block's
  /// static shared memory, misaligned, or marked already.
  bool mark(std::vector<bool>& stored, const ir::Inst& store) {
    const std::vector<std::uint64_t>* addresses = threads_.find(store.args[0]);
    if (addresses == nullptr) return false;
    const std::uint64_t size = ir::byte_size(function_[store.args[1]].type);
    for (const std::uint64_t address : *addresses) {
      const std::uint64_t begin = address + store.imm;
      if (begin % size != 0 || begin >= bytes_ || size > bytes_ - begin) return false;
      for (std::uint64_t byte = begin; byte < begin + size; ++byte) {
        if (stored[byte]) return false;
        stored[byte] = true;
      }
    }
    return true;
  }

  Value append(ir::Inst inst) {
    function_.insts.push_back(std::move(inst));
    return static_cast<Value>(function_.insts.size() - 1);
  }

  Value choice(BlockId test, Value if_true, Value if_false, std::uint32_t location) {
    if (if_true == if_false) return if_true;
    const Value condition = terminator(test).args[0];
    ir::Inst inst{.op = Op::select,
                  .type = function_[if_true].type,
                  .args = {condition, if_true, if_false},
                  .block = test,
                  .location = location};
    const auto is_bit = [&](Value value, std::uint64_t bit) {
      return inst.type == ir::Type::i1 && function_[value].op == Op::constant && function_[value].imm == bit;
    };
    if (is_bit(if_true, 1)) {
      inst.op = Op::or_;
      inst.args = {condition, if_false};
    } else if (is_bit(if_false, 0)) {
      inst.op = Op::and_;
      inst.args = {condition, if_true};
    }
    const Value made = append(std::move(inst));
    std::vector<Value>& insts = function_.blocks[test].insts;
    insts.insert(insts.end() - 1, made);
    return made;
  }

  void replace(BlockId test, const std::vector<Replaced>& stores) {
    const std::vector<BlockId> sides = function_.blocks[test].succs;
    const BlockId join = function_.blocks[sides[0]].succs[0];
    for (const BlockId side : sides)
      for (const Value value : function_.blocks[side].insts) take(test, value, stores);
    choose_phis(test, sides, join);
    ir::Inst& branch = terminator(test);
    branch.op = Op::br;
    branch.args.clear();
    function_.blocks[test].succs = {join};
    for (const BlockId side : sides) function_.blocks[side] = {};
  }

  /// Moves an instruction of a side before the branch.
  void take(BlockId test, Value value, const std::vector<Replaced>& stores) {
    if (ir::has_trait(function_[value].op, 't')) {  // no block contains it any more
      function_[value].op = Op::undef;
      return;
    }
    if (const auto found = std::ranges::find(stores, value, &Replaced::store); found != stores.end()) {
      const Value given = function_[value].args[1];
      const Value stored = choice(test, found->if_true ? given : found->loaded,
                                  found->if_true ? found->loaded : given, function_[value].location);
      function_[value].args[1] = stored;
    }
    function_[value].block = test;
    std::vector<Value>& insts = function_.blocks[test].insts;
    insts.insert(insts.end() - 1, value);
  }

  /// The phis of `join` get choices for both sides, from `test`.
  void choose_phis(BlockId test, const std::vector<BlockId>& sides, BlockId join) {
    std::vector<BlockId>& preds = function_.blocks[join].preds;
    const auto place_of = [&](BlockId side) { return std::ranges::find(preds, side) - preds.begin(); };
    const std::ptrdiff_t first = place_of(sides[0]), second = place_of(sides[1]);
    for (const Value phi : std::vector<Value>(function_.blocks[join].insts)) {
      if (function_[phi].op != Op::phi) continue;
      const std::vector<Value> args = function_[phi].args;
      const Value chosen = choice(test, args[static_cast<std::size_t>(first)],
                                  args[static_cast<std::size_t>(second)], function_[phi].location);
      function_[phi].args[static_cast<std::size_t>(first)] = chosen;
      function_[phi].args.erase(function_[phi].args.begin() + second);
    }
    preds[static_cast<std::size_t>(first)] = test;
    preds.erase(preds.begin() + second);
  }

  /// Appends the next block to `block`, if each is the other's only neighbour there.
  bool append_next(BlockId block) {
    if (function_.blocks[block].succs.size() != 1) return false;
    const BlockId next = function_.blocks[block].succs[0];
    if (next == block || function_.blocks[next].preds.size() != 1) return false;
    ir::Block &into = function_.blocks[block], &from = function_.blocks[next];
    function_[into.insts.back()].op = Op::undef;
    into.insts.pop_back();
    for (const Value value : from.insts) {
      function_[value].block = block;
      if (function_[value].op == Op::phi)
        replaced_.emplace_back(value, function_[value].args[0]);
      else
        into.insts.push_back(value);
    }
    into.succs = std::move(from.succs);
    for (const BlockId after : into.succs) std::ranges::replace(function_.blocks[after].preds, next, block);
    data_branch_[block] = data_branch_[next];
    from = {};
    return true;
  }

  /// Replaces the phis of one operand that append_next found.
  void replace_phis() {
    std::vector<Value> by(function_.insts.size(), ir::kNone);
    for (const auto& [phi, value] : replaced_) by[phi] = value;
    for (ir::Inst& inst : function_.insts)
      for (Value& arg : inst.args)
        while (by[arg] != ir::kNone) arg = by[arg];
    for (const auto& [phi, value] : replaced_) {  // no block contains it any more
      function_[phi].op = Op::undef;
      function_[phi].args.clear();
    }
  }

  void drop_empty_blocks() {
    std::vector<BlockId> number(function_.blocks.size(), ir::kNone);
    std::vector<ir::Block> kept;
    for (BlockId id = 0; id < function_.blocks.size(); ++id) {
      if (function_.blocks[id].insts.empty()) continue;
      number[id] = static_cast<BlockId>(kept.size());
      kept.push_back(std::move(function_.blocks[id]));
    }
    for (ir::Block& block : kept) {
      for (BlockId& pred : block.preds) pred = number[pred];
      for (BlockId& succ : block.succs) succ = number[succ];
    }
    for (ir::Inst& inst : function_.insts)
      if (inst.block != ir::kNone) inst.block = number[inst.block];
    function_.blocks = std::move(kept);
  }

  ir::Function& function_;
  const Plan& plan_;
  const Specialisation& specialisation_;
  ThreadValues threads_;
  const std::uint64_t bytes_;                      ///< of the block's static shared memory
  std::vector<bool> data_branch_;                  ///< by BlockId: it ends in a branch on data
  std::vector<std::pair<Value, Value>> replaced_;  ///< phis of one operand, and the operand
  std::vector<bool> assumed_;  ///< by Value of the function before any change (analysis::Analysis)
};

}  // namespace

void join_sides(ir::Function& function, Plan& plan, const Specialisation& specialisation) {
  if (plan.dispatched || !plan.has_full) return;
  Merger(function, plan, specialisation).run();
}

}  // namespace quern::cpu::cuts
