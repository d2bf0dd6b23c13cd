// SPDX-License-Identifier: Apache-2.0
// Builds SIMT IR by hand in tests: `b.at(block)`, then one call for each operation. finish() sets
// predecessors, successors and the order of phi operands.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "cpu/ir/ir.hpp"

namespace quern::cpu::test {

/// It has a method for each operation, and so more methods than the project's limit, so that a test reads
/// like the IR that it builds.
class IrBuilder {
 public:
  using Value = ir::Value;
  using BlockId = ir::BlockId;

  explicit IrBuilder(std::string name = "kernel") {
    function_.name = std::move(name);
    function_.kernel = true;
    block();
  }

  // --- places
  BlockId block() {
    function_.blocks.emplace_back();
    return static_cast<BlockId>(function_.blocks.size() - 1);
  }
  BlockId here() const { return block_; }
  IrBuilder& at(BlockId block) {
    block_ = block;
    return *this;
  }
  /// Sets the author's line of the following operations (file "kernel.cu"; the PTX line is 1000 more).
  IrBuilder& line(std::uint32_t number) {
    function_.locations.push_back({"kernel.cu", number, 1, 1000 + number, ir::kNone});
    location_ = static_cast<std::uint32_t>(function_.locations.size() - 1);
    return *this;
  }

  // --- any operation
  Value op(ir::Op which, ir::Type type, std::vector<Value> args, std::uint64_t imm = 0,
           const ir::Attributes& attributes = {}) {
    const auto value = static_cast<Value>(function_.insts.size());
    ir::Inst inst;
    inst.op = which;
    inst.type = type;
    inst.attr = attributes;
    inst.imm = imm;
    inst.args = std::move(args);
    inst.block = block_;
    inst.location = location_;
    function_.insts.push_back(std::move(inst));
    std::vector<Value>& list = function_.blocks[block_].insts;
    if (which != ir::Op::phi) {
      list.push_back(value);
    } else {  // phis stay first, even if they are added later
      const auto is_phi = [&](Value other) { return function_[other].op == ir::Op::phi; };
      list.insert(std::find_if_not(list.begin(), list.end(), is_phi), value);
    }
    return value;
  }
  ir::Inst& inst(Value value) { return function_[value]; }
  ir::Type type_of(Value value) const { return function_[value].type; }

  // --- values
  Value constant(ir::Type type, std::uint64_t bits) {
    return op(ir::Op::constant, type, {}, mask(type, bits));
  }
  Value i1(bool bit) { return constant(ir::Type::i1, bit ? 1 : 0); }
  Value i32(std::int64_t number) { return constant(ir::Type::i32, static_cast<std::uint64_t>(number)); }
  Value i64(std::int64_t number) { return constant(ir::Type::i64, static_cast<std::uint64_t>(number)); }
  Value undef(ir::Type type) { return op(ir::Op::undef, type, {}); }
  Value special(ir::Special which, ir::Type type = ir::Type::i32) {
    return op(ir::Op::special, type, {}, static_cast<std::uint64_t>(which));
  }
  Value tid(unsigned d = 0) {
    return special(static_cast<ir::Special>(static_cast<unsigned>(ir::Special::tid_x) + d));
  }
  Value ntid(unsigned d = 0) {
    return special(static_cast<ir::Special>(static_cast<unsigned>(ir::Special::ntid_x) + d));
  }
  Value ctaid(unsigned d = 0) {
    return special(static_cast<ir::Special>(static_cast<unsigned>(ir::Special::ctaid_x) + d));
  }
  Value nctaid(unsigned d = 0) {
    return special(static_cast<ir::Special>(static_cast<unsigned>(ir::Special::nctaid_x) + d));
  }
  /// ctaid.d * ntid.d + tid.d, as NVRTC emits it.
  Value global_index(unsigned d = 0) {
    const Value block_index = ctaid(d);
    const Value block_size = ntid(d);
    const Value start = mul(block_index, block_size);
    return add(start, tid(d));
  }
  /// Adds a parameter to the kernel.
  Value param(ir::Type type) {
    const std::uint32_t size = ir::byte_size(type);
    const std::uint32_t offset = (param_bytes_ + size - 1) / size * size;
    param_bytes_ = offset + size;
    function_.params.push_back({offset, size, size});
    return op(ir::Op::param, type, {}, offset);
  }
  /// A module symbol's index; `symbol` is its address.
  std::uint32_t declare(ir::Symbol what) {
    module_.symbols.push_back(std::move(what));
    return static_cast<std::uint32_t>(module_.symbols.size() - 1);
  }
  Value symbol(std::uint32_t index) { return op(ir::Op::symbol, ir::Type::i64, {}, index); }

  // --- integers (the type is that of the first operand)
  Value binary(ir::Op which, Value a, Value b) { return op(which, type_of(a), {a, b}); }
  Value add(Value a, Value b) { return binary(ir::Op::iadd, a, b); }
  Value sub(Value a, Value b) { return binary(ir::Op::isub, a, b); }
  Value mul(Value a, Value b) { return binary(ir::Op::imul, a, b); }
  Value and_(Value a, Value b) { return binary(ir::Op::and_, a, b); }
  Value or_(Value a, Value b) { return binary(ir::Op::or_, a, b); }
  Value xor_(Value a, Value b) { return binary(ir::Op::xor_, a, b); }
  Value shl(Value a, Value by) { return binary(ir::Op::shl, a, by); }
  Value lshr(Value a, Value by) { return binary(ir::Op::lshr, a, by); }
  Value ashr(Value a, Value by) { return binary(ir::Op::ashr, a, by); }
  Value shl(Value a, int by) { return shl(a, i32(by)); }
  Value lshr(Value a, int by) { return lshr(a, i32(by)); }
  Value ashr(Value a, int by) { return ashr(a, i32(by)); }
  Value trunc(ir::Type to, Value a) { return op(ir::Op::trunc, to, {a}); }
  Value zext(ir::Type to, Value a) { return op(ir::Op::zext, to, {a}); }
  Value sext(ir::Type to, Value a) { return op(ir::Op::sext, to, {a}); }
  Value icmp(ir::Icmp how, Value a, Value b) {
    ir::Attributes attributes;
    attributes.icmp = how;
    return op(ir::Op::icmp, ir::Type::i1, {a, b}, 0, attributes);
  }
  Value select(Value condition, Value a, Value b) {
    return op(ir::Op::select, type_of(a), {condition, a, b});
  }

  // --- floating point
  Value fadd(Value a, Value b) { return binary(ir::Op::fadd, a, b); }
  Value fmul(Value a, Value b) { return binary(ir::Op::fmul, a, b); }
  Value ffma(Value a, Value b, Value c) { return op(ir::Op::ffma, type_of(a), {a, b, c}); }
  Value fcmp(ir::Fcmp how, Value a, Value b) {
    ir::Attributes attributes;
    attributes.fcmp = how;
    return op(ir::Op::fcmp, ir::Type::i1, {a, b}, 0, attributes);
  }

  // --- memory
  Value load(ir::Type type, Value address, ir::Space space = ir::Space::global, std::int64_t offset = 0) {
    return op(ir::Op::load, type, {address}, static_cast<std::uint64_t>(offset), access(type, space));
  }
  Value store(Value address, Value what, ir::Space space = ir::Space::global, std::int64_t offset = 0) {
    return op(ir::Op::store, ir::Type::none, {address, what}, static_cast<std::uint64_t>(offset),
              access(type_of(what), space));
  }
  Value atomic(ir::AtomicOp how, Value address, Value what, ir::Space space = ir::Space::global) {
    ir::Attributes attributes = access(type_of(what), space);
    attributes.atomic = how;
    attributes.semantics = ir::Semantics::relaxed;
    return op(ir::Op::atomic, type_of(what), {address, what}, 0, attributes);
  }
  Value atomic_cas(Value address, Value expected, Value desired, ir::Space space = ir::Space::global) {
    ir::Attributes attributes = access(type_of(desired), space);
    attributes.atomic = ir::AtomicOp::cas;
    attributes.semantics = ir::Semantics::relaxed;
    return op(ir::Op::atomic, type_of(desired), {address, expected, desired}, 0, attributes);
  }

  // --- other lanes
  Value shuffle(ir::ShuffleMode mode, Value a, Value lane, Value clamp, Value members) {
    return op(ir::Op::shuffle, ir::Type::i32, {a, lane, clamp, members}, static_cast<std::uint64_t>(mode));
  }
  Value vote(ir::VoteMode mode, Value predicate, Value members) {
    const ir::Type type = mode == ir::VoteMode::ballot ? ir::Type::i32 : ir::Type::i1;
    return op(ir::Op::vote, type, {predicate, members}, static_cast<std::uint64_t>(mode));
  }
  Value barrier() { return op(ir::Op::barrier, ir::Type::none, {i32(0)}); }

  // --- control
  Value phi(ir::Type type) { return op(ir::Op::phi, type, {}); }
  /// Sets the value of `phi` on the edge from `from`. If one block has two edges, call it once for each in
  /// order, or once for both.
  void incoming(Value phi, BlockId from, Value value) { incoming_.push_back({phi, from, value}); }
  Value phi(ir::Type type, std::initializer_list<std::pair<BlockId, Value>> edges) {
    const Value value = phi(type);
    for (const auto& [from, what] : edges) incoming(value, from, what);
    return value;
  }
  void br(BlockId to) { terminate(ir::Op::br, {}, {to}); }
  void cond_br(Value condition, BlockId taken, BlockId not_taken) {
    terminate(ir::Op::cond_br, {condition}, {taken, not_taken});
  }
  void switch_br(Value index, std::vector<BlockId> to) {
    terminate(ir::Op::switch_br, {index}, std::move(to));
  }
  void ret() { terminate(ir::Op::ret, {}, {}); }
  void exit() { terminate(ir::Op::exit, {}, {}); }
  void trap(ir::Trap which) {
    op(ir::Op::trap, ir::Type::none, {}, static_cast<std::uint64_t>(which));
    function_.blocks[block_].succs.clear();
  }

  /// Completes the function: predecessors in the order of (block, successor), and phi operands in the same
  /// order.
  ir::Function finish() const {
    ir::Function function = function_;
    for (BlockId from = 0; from < function.blocks.size(); ++from)
      for (const BlockId to : function.blocks[from].succs) function.blocks[to].preds.push_back(from);
    for (ir::Block& block : function.blocks)
      for (const Value value : block.insts)
        if (function[value].op == ir::Op::phi) function[value].args = operands(value, block.preds);
    return function;
  }
  /// Returns a module with only this function and the declared symbols.
  ir::Module module() const {
    ir::Module module = module_;
    module.functions.insert(module.functions.begin(), finish());
    return module;
  }

 private:
  struct Incoming {
    Value phi;
    BlockId from;
    Value value;
  };

  static std::uint64_t mask(ir::Type type, std::uint64_t bits) {
    return ir::bit_size(type) >= 64 ? bits : bits & ((std::uint64_t{1} << ir::bit_size(type)) - 1);
  }
  static ir::Attributes access(ir::Type type, ir::Space space) {
    ir::Attributes attributes;
    attributes.space = space;
    attributes.alignment = ir::byte_size(type);
    return attributes;
  }
  void terminate(ir::Op which, std::vector<Value> args, std::vector<BlockId> to) {
    op(which, ir::Type::none, std::move(args));
    function_.blocks[block_].succs = std::move(to);
  }
  std::vector<Value> operands(Value phi, const std::vector<BlockId>& preds) const {
    std::vector<Value> result;
    for (std::size_t i = 0; i < preds.size(); ++i) {
      auto occurrence = std::count(preds.begin(), preds.begin() + static_cast<std::ptrdiff_t>(i), preds[i]);
      Value found = ir::kNone;
      for (const Incoming& edge : incoming_)
        if (edge.phi == phi && edge.from == preds[i] && (found == ir::kNone || occurrence-- > 0))
          found = edge.value;
      if (found == ir::kNone) std::abort();  // the test forgot an edge
      result.push_back(found);
    }
    return result;
  }

  ir::Module module_;
  ir::Function function_;
  std::vector<Incoming> incoming_;
  std::uint32_t param_bytes_ = 0;
  std::uint32_t location_ = ir::kNone;
  BlockId block_ = 0;
};

}  // namespace quern::cpu::test
