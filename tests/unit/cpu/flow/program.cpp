// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"

namespace quern::cpu::test {
namespace {

using EKind = Expression::Kind;
using SKind = Statement::Kind;

class Generator {
 public:
  Generator(std::mt19937& random, bool shares) : random_(random), shares_(shares) {}
  std::vector<Statement> top() {
    std::vector<Statement> list = statements(0, 0, true, false, 3 + pick(4));
    return list;
  }

 private:
  std::uint32_t pick(std::uint32_t limit) { return static_cast<std::uint32_t>(random_() % limit); }

  Expression leaf() {
    Expression e;
    constexpr EKind kLeaves[] = {EKind::constant, EKind::variable,   EKind::variable, EKind::variable,
                                 EKind::tid,      EKind::linear_tid, EKind::ctaid,    EKind::parameter};
    e.kind = kLeaves[pick(8)];
    constexpr std::uint32_t kEdges[] = {0x7ffffff0, 0x80000000, 0xffffffe9, 0xffffffff};  // indices wrap here
    e.number = e.kind == EKind::constant   ? (pick(8) == 0 ? kEdges[pick(4)] : pick(40))
               : e.kind == EKind::variable ? pick(kVariables)
                                           : pick(2);
    return e;
  }
  Expression expression(unsigned depth) {
    if (depth == 0 || pick(4) == 0) return leaf();
    Expression e;
    constexpr EKind kKinds[] = {EKind::add,           EKind::add,          EKind::sub,
                                EKind::mul,           EKind::and_,         EKind::xor_,
                                EKind::shift,         EKind::choose,       EKind::element,
                                EKind::block_element, EKind::widen_signed, EKind::widen_unsigned};
    e.kind = kKinds[pick(12)];
    e.number = pick(kFlags);
    const bool unary = e.kind == EKind::element || e.kind == EKind::block_element || e.kind == EKind::shift ||
                       e.kind == EKind::widen_signed || e.kind == EKind::widen_unsigned;
    const unsigned count = unary ? 1 : 2;
    for (unsigned i = 0; i < count; ++i) e.operands.push_back(expression(depth - 1));
    return e;
  }

  std::vector<Statement> statements(unsigned depth, unsigned loops, bool together, bool leavable,
                                    std::uint32_t count) {
    std::vector<Statement> list;
    for (std::uint32_t i = 0; i < count; ++i) list.push_back(statement(depth, loops, together, leavable));
    return list;
  }
  Statement statement(unsigned depth, unsigned loops, bool together, bool leavable) {
    Statement s;
    const std::uint32_t roll = pick(20);
    s.number = pick(kVariables);
    s.expression = expression(2);
    s.other = expression(1);
    if (together && shares_ && roll < 6) {
      s.kind = roll < 3 ? SKind::exchange : roll < 5 ? SKind::count : SKind::uniform_loop;
      if (s.kind == SKind::exchange) s.other = {EKind::constant, pick(70), {}};
      if (s.kind == SKind::uniform_loop) {
        if (loops > 1) return {SKind::assign, s.number, s.expression, s.other, {}, {}};
        s.expression = {EKind::constant, 1 + pick(4), {}};
        s.body = statements(depth + 1, loops + 1, true, false, 1 + pick(3));
      }
      return s;
    }
    if (roll < 9 || depth > 3) {
      s.kind = roll % 4 == 0 ? SKind::compare : SKind::assign;
      if (s.kind == SKind::compare) s.number = pick(kFlags);
    } else if (roll < 14) {
      s.kind = roll == 13 ? SKind::pick : SKind::branch;
      s.body = statements(depth + 1, loops, false, leavable, 1 + pick(3));
      s.otherwise = statements(depth + 1, loops, false, leavable, pick(3));
    } else if (roll < 17 && loops < 2) {
      s.kind = SKind::loop;
      s.body = statements(depth + 1, loops + 1, false, true, 1 + pick(3));
    } else if (roll < 19 && leavable) {
      s.kind = SKind::leave;
    } else if (roll == 19) {
      s.kind = SKind::finish;
      s.other = {EKind::constant, pick(30), {}};
      Expression tid{EKind::linear_tid, 0, {}};
      s.expression = {EKind::xor_, 0, {tid, s.expression}};
    }
    return s;
  }

  std::mt19937& random_;
  bool shares_;
};

// --- evaluation

struct Thread {
  std::uint32_t variables[kVariables]{};
  bool flags[kFlags]{};
  std::uint32_t tid[3]{};
  std::uint32_t linear = 0;
  bool ended = false;
};

class Evaluator {
 public:
  Evaluator(const Shape3& shape, const std::vector<std::uint32_t>& table, std::uint32_t number,
            std::uint32_t block)
      : shape_(shape), table_(table), parameter_(number), block_(block) {
    const Extents& size = shape.block;
    for (std::uint32_t z = 0; z < size[2]; ++z)
      for (std::uint32_t y = 0; y < size[1]; ++y)
        for (std::uint32_t x = 0; x < size[0]; ++x) {
          Thread t;
          t.tid[0] = x;
          t.tid[1] = y;
          t.tid[2] = z;
          t.linear = static_cast<std::uint32_t>(threads.size());
          threads.push_back(t);
        }
    shared_.resize(threads.size());
  }

  void run_together(const std::vector<Statement>& list) {
    for (const Statement& s : list) together(s);
  }
  static std::uint32_t hash(const Thread& t) {
    std::uint32_t h = 1;
    for (const std::uint32_t v : t.variables) h = h * 31 + v;
    for (const bool f : t.flags) h = h * 2 + (f ? 1 : 0);
    return h;
  }
  std::vector<Thread> threads;

 private:
  std::uint32_t value(const Expression& e, const Thread& t) const {
    const auto at = [&](std::size_t i) { return value(e.operands[i], t); };
    switch (e.kind) {
      case EKind::constant:
        return e.number;
      case EKind::variable:
        return t.variables[e.number];
      case EKind::flag:
        return t.flags[e.number] ? 1 : 0;
      case EKind::tid:
        return t.tid[e.number];
      case EKind::linear_tid:
        return t.linear;
      case EKind::ctaid:
        return e.number == 0 ? block_ % shape_.grid[0] : block_ / shape_.grid[0] % shape_.grid[1];
      case EKind::parameter:
        return parameter_;
      case EKind::add:
        return at(0) + at(1);
      case EKind::sub:
        return at(0) - at(1);
      case EKind::mul:
        return at(0) * at(1);
      case EKind::and_:
        return at(0) & at(1);
      case EKind::xor_:
        return at(0) ^ at(1);
      case EKind::shift:
        return at(0) << 2;
      case EKind::choose:
        return t.flags[e.number] ? at(0) : at(1);
      case EKind::element:
        return table_[at(0) & 1023];
      case EKind::widen_signed:
        return static_cast<std::uint32_t>(
            static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(at(0))} * 5) >> 3);
      case EKind::widen_unsigned:
        return static_cast<std::uint32_t>((std::uint64_t{at(0)} * 5) >> 3);
      case EKind::block_element:
        return table_[t.linear + (at(0) & 255)];
    }
    return 0;
  }
  enum class Next { on, leave };
  bool holds(const Statement& s, const Thread& t) const { return value(s.expression, t) < value(s.other, t); }

  Next run(const std::vector<Statement>& list, Thread& t) const {
    for (const Statement& s : list) {
      if (run(s, t) == Next::leave) return Next::leave;
      if (t.ended) break;
    }
    return Next::on;
  }
  Next run(const Statement& s, Thread& t) const {
    switch (s.kind) {
      case SKind::assign:
        t.variables[s.number] = value(s.expression, t);
        break;
      case SKind::compare:
        t.flags[s.number] = holds(s, t);
        break;
      case SKind::branch:
        return holds(s, t) ? run(s.body, t) : run(s.otherwise, t);
      case SKind::pick: {
        const std::uint32_t which = value(s.expression, t) % 3;
        return which == 0 ? run(s.body, t) : which == 1 ? run(s.otherwise, t) : Next::on;
      }
      case SKind::loop: {
        const std::uint32_t limit = value(s.expression, t) % 8;
        t.variables[s.number] = 0;
        for (std::uint32_t i = 0; i < limit && !t.ended; ++i) {
          t.variables[s.number] = i;
          if (run(s.body, t) == Next::leave) break;
        }
        break;
      }
      case SKind::leave:
        return holds(s, t) ? Next::leave : Next::on;
      case SKind::finish:
        t.ended = holds(s, t);
        break;
      default:
        break;
    }
    return Next::on;
  }
  void together(const Statement& s) {
    if (s.kind == SKind::exchange) {
      for (Thread& t : threads)
        if (!t.ended) shared_[t.linear] = value(s.expression, t);
      for (Thread& t : threads)
        if (!t.ended) t.variables[s.number] = shared_[(t.linear + s.other.number) % threads.size()];
    } else if (s.kind == SKind::count) {
      std::uint32_t count = 0;
      for (Thread& t : threads) count += !t.ended && holds(s, t) ? 1 : 0;
      for (Thread& t : threads) t.variables[s.number] = t.ended ? t.variables[s.number] : count;
    } else if (s.kind == SKind::uniform_loop) {
      for (std::uint32_t i = 0; i < s.expression.number; ++i) {
        for (Thread& t : threads) t.variables[s.number] = t.ended ? t.variables[s.number] : i;
        run_together(s.body);
      }
    } else {
      for (Thread& t : threads)
        if (!t.ended) run(s, t);
    }
  }

  const Shape3& shape_;
  const std::vector<std::uint32_t>& table_;
  std::uint32_t parameter_;
  std::uint32_t block_;
  std::vector<std::uint32_t> shared_;
};

}  // namespace

namespace {

std::string text(const Expression& e) {
  constexpr const char* kNames[] = {"",          "v",        "f",     "tid.",        "thread",  "ctaid.",
                                    "parameter", "add",      "sub",   "mul",         "and",     "xor",
                                    "shl2",      "choose f", "table", "block_table", "widen_s", "widen_u"};
  std::string result = kNames[static_cast<std::size_t>(e.kind)];
  if (e.operands.empty() || e.kind == EKind::choose) {
    if (e.kind != EKind::linear_tid && e.kind != EKind::parameter) result += std::to_string(e.number);
    if (e.operands.empty()) return result;
  }
  result += "(";
  for (const Expression& operand : e.operands)
    result += text(operand) + (&operand == &e.operands.back() ? ")" : ", ");
  return result;
}

void add_text(std::string& out, const std::vector<Statement>& list, const std::string& indent) {
  for (const Statement& s : list) {
    const std::string left = text(s.expression);
    const std::string both = left + " < " + text(s.other);
    const std::string v = "v" + std::to_string(s.number);
    out += indent;
    switch (s.kind) {
      case SKind::assign:
        out += v + " = " + left;
        break;
      case SKind::compare:
        out += "f" + std::to_string(s.number) + " = " + both;
        break;
      case SKind::branch:
        out += "if " + both;
        break;
      case SKind::loop:
        out += "for " + v + " below " + left + " % 8";
        break;
      case SKind::pick:
        out += "pick " + left + " % 3";
        break;
      case SKind::leave:
        out += "break if " + both;
        break;
      case SKind::finish:
        out += "return if " + both;
        break;
      case SKind::exchange:
        out += v + " = exchange " + left + " by " + std::to_string(s.other.number);
        break;
      case SKind::count:
        out += v + " = count " + both;
        break;
      case SKind::uniform_loop:
        out += "together for " + v + " below " + left;
        break;
    }
    out += "\n";
    add_text(out, s.body, indent + "  ");
    if (!s.otherwise.empty()) {
      out += indent + "else\n";
      add_text(out, s.otherwise, indent + "  ");
    }
  }
}

}  // namespace

std::string to_text(const Program& program) {
  std::string out;
  add_text(out, program.statements, "");
  return out;
}

Program random_program(std::mt19937& random, bool shares) {
  return {Generator(random, shares).top(), shares};
}

std::vector<std::uint32_t> evaluate(const Program& program, const Shape3& shape,
                                    const std::vector<std::uint32_t>& table, std::uint32_t number) {
  std::vector<std::uint32_t> out;
  for (std::uint32_t block = 0; block < shape.grid[0] * shape.grid[1]; ++block) {
    Evaluator evaluator(shape, table, number, block);
    evaluator.run_together(program.statements);
    for (const Thread& t : evaluator.threads) out.push_back(t.ended ? 0 : Evaluator::hash(t));
  }
  return out;
}

}  // namespace quern::cpu::test
