// SPDX-License-Identifier: Apache-2.0
// The SIMT IR of a random program, in the form that `lower` produces: critical edges are split, there is one
// return block, loops are simplified, and every value that leaves a loop passes through a phi.
#include "ir_builder.hpp"
#include "program.hpp"

namespace quern::cpu::test {
namespace {

using EKind = Expression::Kind;
using SKind = Statement::Kind;
using ir::BlockId;
using ir::Type;
using ir::Value;

/// The values of all variables and flags at one point.
struct State {
  std::vector<Value> values;
};
constexpr std::uint32_t kStateSize = kVariables + kFlags;
Type type_at(std::uint32_t index) { return index < kVariables ? Type::i32 : Type::i1; }

/// An edge to a point that several edges reach.
struct Edge {
  BlockId from = 0;
  State state;
};

class Translator {
 public:
  Translator(const Program& program, const Extents& block) {
    out_ = b_.param(Type::i64);
    table_ = b_.param(Type::i64);
    parameter_ = b_.param(Type::i32);
    threads_ = block[0] * block[1] * block[2];
    linear_ =
        b_.add(b_.tid(0), b_.mul(b_.i32(block[0]), b_.add(b_.tid(1), b_.mul(b_.i32(block[1]), b_.tid(2)))));
    for (std::uint32_t i = 0; i < kStateSize; ++i) now_.values.push_back(b_.constant(type_at(i), 0));
    if (program.shares) {
      ir::Symbol symbol;
      symbol.name = "exchange";
      symbol.space = ir::Space::shared;
      symbol.size = std::uint64_t{4} * threads_;
      symbol.align = 4;
      shared_ = b_.symbol(b_.declare(symbol));
      b_.store(b_.add(shared_, b_.zext(Type::i64, b_.shl(linear_, 2))), b_.i32(0), ir::Space::shared);
      b_.barrier();
    }
    run(program.statements);
    finish();
    end_ = b_.block();
    for (const BlockId from : returns_) {
      b_.at(from);
      b_.br(end_);
    }
    b_.at(end_);
    b_.ret();
  }
  ir::Module module() const { return b_.module(); }

 private:
  // --- expressions
  Value value(const Expression& e) {
    const auto at = [&](std::size_t i) { return value(e.operands[i]); };
    switch (e.kind) {
      case EKind::constant:
        return b_.i32(e.number);
      case EKind::variable:
        return now_.values[e.number];
      case EKind::flag:
        return now_.values[kVariables + e.number];
      case EKind::tid:
        return b_.tid(e.number);
      case EKind::linear_tid:
        return linear_;
      case EKind::ctaid:
        return b_.ctaid(e.number);
      case EKind::parameter:
        return parameter_;
      case EKind::add: {
        const Value a = at(0);
        return b_.add(a, at(1));
      }
      case EKind::sub: {
        const Value a = at(0);
        return b_.sub(a, at(1));
      }
      case EKind::mul: {
        const Value a = at(0);
        return b_.mul(a, at(1));
      }
      case EKind::and_: {
        const Value a = at(0);
        return b_.and_(a, at(1));
      }
      case EKind::xor_: {
        const Value a = at(0);
        return b_.xor_(a, at(1));
      }
      case EKind::shift:
        return b_.shl(at(0), 2);
      case EKind::choose: {
        const Value a = at(0);
        return b_.select(now_.values[kVariables + e.number], a, at(1));
      }
      case EKind::widen_signed:
        return widened(b_.sext(Type::i64, at(0)));
      case EKind::widen_unsigned:
        return widened(b_.zext(Type::i64, at(0)));
      case EKind::element:
        return element(b_.and_(at(0), b_.i32(1023)));
      case EKind::block_element:
        return element(b_.add(linear_, b_.and_(at(0), b_.i32(255))));
    }
    return ir::kNone;
  }
  Value element(Value index) {
    return b_.load(Type::i32, b_.add(table_, b_.shl(b_.sext(Type::i64, index), 2)));
  }
  Value widened(Value wide) { return b_.trunc(Type::i32, b_.lshr(b_.mul(wide, b_.i64(5)), 3)); }
  Value holds(const Statement& s) {
    const Value a = value(s.expression);
    return b_.icmp(ir::Icmp::ult, a, value(s.other));
  }

  // --- points
  /// A separate block on an edge. Its phis close the loops that the edge leaves.
  Edge edge_block(BlockId at, BlockId from, bool close) {
    b_.at(at);
    State state = now_;
    if (close)
      for (std::uint32_t i = 0; i < kStateSize; ++i)
        state.values[i] = b_.phi(type_at(i), {{from, state.values[i]}});
    return {at, state};
  }
  void join(BlockId to, const std::vector<Edge>& edges) {
    for (const Edge& edge : edges) {
      b_.at(edge.from);
      b_.br(to);
    }
    b_.at(to);
    for (std::uint32_t i = 0; i < kStateSize; ++i) {
      now_.values[i] = b_.phi(type_at(i));
      for (const Edge& edge : edges) b_.incoming(now_.values[i], edge.from, edge.state.values[i]);
    }
  }

  // --- statements; false: nothing comes after it here
  void run(const std::vector<Statement>& list) {
    for (const Statement& s : list) run(s);
  }
  void run(const Statement& s) {
    switch (s.kind) {
      case SKind::assign:
        now_.values[s.number] = value(s.expression);
        break;
      case SKind::compare:
        now_.values[kVariables + s.number] = holds(s);
        break;
      case SKind::branch:
        branch(s);
        break;
      case SKind::pick:
        pick(s);
        break;
      case SKind::loop:
        loop(s, value(s.expression), true);
        break;
      case SKind::uniform_loop:
        loop(s, b_.i32(s.expression.number), false);
        break;
      case SKind::leave:
        split_off(s, *leaves_);
        break;
      case SKind::finish:
        finish_some(s);
        break;
      case SKind::exchange:
        exchange(s);
        break;
      case SKind::count:
        count(s);
        break;
    }
  }
  void branch(const Statement& s) {
    const Value condition = holds(s);
    const BlockId yes = b_.block();
    const BlockId no = b_.block();
    b_.cond_br(condition, yes, no);
    const State before = now_;
    b_.at(yes);
    run(s.body);
    const Edge first{b_.here(), now_};
    now_ = before;
    b_.at(no);
    run(s.otherwise);
    const Edge second{b_.here(), now_};
    join(b_.block(), {first, second});
  }
  void pick(const Statement& s) {
    const Value which = b_.op(ir::Op::urem, Type::i32, {value(s.expression), b_.i32(3)});
    const BlockId ways[] = {b_.block(), b_.block(), b_.block()};
    b_.switch_br(which, {ways[0], ways[1], ways[2]});
    const State before = now_;
    std::vector<Edge> edges;
    for (unsigned i = 0; i < 3; ++i) {
      b_.at(ways[i]);
      now_ = before;
      if (i < 2) run(i == 0 ? s.body : s.otherwise);
      edges.push_back({b_.here(), now_});
    }
    join(b_.block(), edges);
  }
  void loop(const Statement& s, Value limit, bool masked_limit) {
    if (masked_limit) {
      limit = b_.and_(limit, b_.i32(7));
      now_.values[s.number] = b_.i32(0);
    }
    const Value start = b_.i32(0);
    const BlockId before = b_.here();
    const BlockId header = b_.block();
    const BlockId body = b_.block();
    const BlockId out = b_.block();
    b_.br(header);
    b_.at(header);
    const State entry = now_;
    for (std::uint32_t i = 0; i < kStateSize; ++i)
      now_.values[i] = b_.phi(type_at(i), {{before, entry.values[i]}});
    const State phis = now_;
    const Value counter = b_.phi(Type::i32);
    b_.incoming(counter, before, start);
    b_.cond_br(b_.icmp(ir::Icmp::ult, counter, limit), body, out);

    std::vector<Edge> exits;
    exits.push_back(edge_block(out, header, true));
    std::vector<Edge>* const outer = leaves_;
    leaves_ = &exits;
    b_.at(body);
    now_ = phis;
    now_.values[s.number] = counter;
    run(s.body);
    leaves_ = outer;
    const BlockId latch = b_.block();
    b_.br(latch);
    b_.at(latch);
    const Value next = b_.add(counter, b_.i32(1));
    for (std::uint32_t i = 0; i < kStateSize; ++i) b_.incoming(phis.values[i], latch, now_.values[i]);
    b_.incoming(counter, latch, next);
    b_.br(header);
    join(b_.block(), exits);
  }
  /// Lanes for which the comparison is true go to `to`; the others continue.
  void split_off(const Statement& s, std::vector<Edge>& to) {
    const Value condition = holds(s);
    const BlockId from = b_.here();
    const BlockId yes = b_.block();
    const BlockId no = b_.block();
    b_.cond_br(condition, yes, no);
    to.push_back(edge_block(yes, from, true));
    b_.at(no);
  }
  void finish_some(const Statement& s) {
    std::vector<Edge> edges;
    split_off(s, edges);
    returns_.push_back(edges[0].from);
  }
  void exchange(const Statement& s) {
    b_.store(b_.add(shared_, b_.zext(Type::i64, b_.shl(linear_, 2))), value(s.expression), ir::Space::shared);
    b_.barrier();
    const Value other =
        b_.op(ir::Op::urem, Type::i32, {b_.add(linear_, b_.i32(s.other.number)), b_.i32(threads_)});
    now_.values[s.number] =
        b_.load(Type::i32, b_.add(shared_, b_.zext(Type::i64, b_.shl(other, 2))), ir::Space::shared);
    b_.barrier();
  }
  void count(const Statement& s) {
    const Value condition = holds(s);
    now_.values[s.number] = b_.op(ir::Op::barrier_reduce, Type::i32, {condition, b_.i32(0)},
                                  static_cast<std::uint64_t>(ir::BarrierReduce::popc));
  }
  /// out[block * threads + thread] = hash.
  void finish() {
    Value hash = b_.i32(1);
    for (std::uint32_t i = 0; i < kVariables; ++i) hash = b_.add(b_.mul(hash, b_.i32(31)), now_.values[i]);
    for (std::uint32_t i = 0; i < kFlags; ++i) {
      const Value bit = b_.zext(Type::i32, now_.values[kVariables + i]);
      hash = b_.add(b_.mul(hash, b_.i32(2)), bit);
    }
    const Value block = b_.add(b_.ctaid(0), b_.mul(b_.nctaid(0), b_.ctaid(1)));
    const Value index = b_.add(b_.mul(block, b_.i32(threads_)), linear_);
    b_.store(b_.add(out_, b_.shl(b_.sext(Type::i64, index), 2)), hash);
    returns_.push_back(b_.here());
  }

  IrBuilder b_;
  std::uint32_t threads_ = 0;
  Value out_ = 0, table_ = 0, parameter_ = 0, linear_ = 0, shared_ = 0;
  BlockId end_ = 0;
  State now_;
  std::vector<Edge>* leaves_ = nullptr;
  std::vector<BlockId> returns_;
};

}  // namespace

ir::Module to_ir(const Program& program, const Extents& block) { return Translator(program, block).module(); }

}  // namespace quern::cpu::test
