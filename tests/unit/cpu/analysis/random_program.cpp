// SPDX-License-Identifier: Apache-2.0
#include "random_program.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <utility>
#include <vector>

#include "ir_builder.hpp"
#include "lcssa.hpp"

namespace quern::cpu::test {
namespace {

using ir::Op;
using ir::Type;
using ir::Value;

constexpr std::array<Type, 12> kVariables = {Type::i32, Type::i32, Type::i32, Type::i32, Type::i32, Type::i64,
                                             Type::i64, Type::i64, Type::i16, Type::i16, Type::i1,  Type::i1};
using Environment = std::array<Value, kVariables.size()>;

class Generator {
 public:
  Generator(std::uint64_t seed, unsigned control) : random_(seed), deepest_(control) {}

  ir::Module run() {
    symbol_ = b_.declare({"tile", ir::Space::shared, 1024, 16, 0});
    start();
    end_ = new_label();
    if (deepest_ == 0) {
      for (int i = 0; i < 25; ++i) assign();
    } else {
      statements(0, 8);
    }
    if (alive_) jump(end_);
    b_.at(labels_[end_].block).ret();
    return b_.module();
  }

 private:
  struct Edge {
    ir::BlockId from;
    Environment environment;
  };
  struct Label {
    ir::BlockId block;
    std::vector<Edge> edges;
  };

  // --- chance
  std::uint64_t below(std::uint64_t limit) {
    return std::uniform_int_distribution<std::uint64_t>(0, limit - 1)(random_);
  }
  bool chance(unsigned percent) { return below(100) < percent; }
  template <class T>
  T one_of(std::initializer_list<T> choices) {
    return choices.begin()[below(choices.size())];
  }
  std::int64_t number() {
    switch (below(6)) {
      case 0:
        return static_cast<std::int64_t>(below(8));
      case 1:
        return std::int64_t{1} << below(12);
      case 2:
        return (std::int64_t{1} << below(12)) - 1;
      case 3:
        return -static_cast<std::int64_t>(below(40));
      case 4:
        return static_cast<std::int64_t>(below(5000));
      default:
        return static_cast<std::int64_t>(random_());
    }
  }

  // --- variables
  std::size_t variable(Type type) {
    for (;;) {
      const std::size_t which = below(kVariables.size());
      if (kVariables[which] == type) return which;
    }
  }
  Value get(Type type) { return environment_[variable(type)]; }
  Value constant(Type type) { return b_.constant(type, static_cast<std::uint64_t>(number())); }
  Value get_or_constant(Type type) { return chance(35) ? constant(type) : get(type); }
  void set(Type type, Value value) {
    const std::size_t which = variable(type);
    if (frozen_[which]) return;
    environment_[which] = value;
    defined_in_[value] = path_;
  }

  void start() {
    const Value small = b_.param(Type::i32);
    const Value any = b_.param(Type::i32);
    const Value pointer = b_.param(Type::i64);
    const Value stride = b_.param(Type::i64);
    const Value narrow = b_.param(Type::i16);
    const Value x = b_.tid(0);
    const Value index = index_ = b_.global_index(0);
    const Value row = chance(50) ? b_.global_index(1) : b_.tid(1);
    environment_ = {x,
                    index,
                    row,
                    small,
                    any,
                    pointer,
                    b_.sext(Type::i64, index),
                    stride,
                    narrow,
                    b_.trunc(Type::i16, x)};
    environment_[10] = b_.icmp(ir::Icmp::slt, index, any);
    environment_[11] = b_.icmp(ir::Icmp::ult, small, b_.i32(100));
  }

  // --- operations
  ir::Icmp comparison() { return static_cast<ir::Icmp>(below(10)); }
  Value shift_amount(unsigned most) {
    return chance(85) ? b_.i32(static_cast<std::int64_t>(below(most))) : get(Type::i32);
  }

  void assign() {
    const Type type = kVariables[below(kVariables.size())];
    switch (type) {
      case Type::i1:
        set(type, condition());
        break;
      case Type::i16:
        set(type, narrow());
        break;
      default:
        set(type, chance(25) ? source(type) : arithmetic(type));
    }
  }
  Value condition() {
    const Type type = one_of({Type::i32, Type::i32, Type::i64, Type::i16});
    switch (below(10)) {
      case 8: {
        const Value a = get(type);
        return b_.icmp(comparison(), a, b_.add(a, constant(type)));
      }
      case 0:
        return b_.op(Op::and_, Type::i1, {get(Type::i1), get(Type::i1)});
      case 1:
        return b_.xor_(get(Type::i1), b_.i1(true));
      case 2:
        return b_.vote(one_of({ir::VoteMode::any, ir::VoteMode::all}), get(Type::i1),
                       get_or_constant(Type::i32));
      default:
        return b_.icmp(comparison(), get(type), get_or_constant(type));
    }
  }
  Value narrow() {
    switch (below(4)) {
      case 0:
        return b_.trunc(Type::i16, get(one_of({Type::i32, Type::i64})));
      case 1:
        return b_.constant(Type::i16, static_cast<std::uint64_t>(number()));
      default:
        return arithmetic(Type::i16);
    }
  }
  Value arithmetic(Type type) {
    const Value a = get(type);
    switch (below(16)) {
      case 0:
      case 1:
      case 2:
        return b_.add(a, get_or_constant(type));
      case 3:
        return b_.sub(get_or_constant(type), a);
      case 4:
        return b_.sub(a, get(type));
      case 5:
      case 6:
        return b_.mul(a, get_or_constant(type));
      case 7:
        return b_.mul(a, b_.constant(type, below(20)));
      case 8:
        return b_.shl(a, shift_amount(6));
      case 9:
        return b_.op(one_of({Op::lshr, Op::ashr}), type, {a, shift_amount(8)});
      case 10:
        return b_.and_(a, b_.constant(type, (std::uint64_t{1} << below(8)) - 1));
      case 11:
        return b_.op(one_of({Op::and_, Op::or_, Op::xor_}), type, {a, get_or_constant(type)});
      case 12:
        return b_.op(one_of({Op::smin, Op::smax, Op::umin, Op::umax}), type, {a, get_or_constant(type)});
      case 13:
        if (chance(50)) return rounded_down(type, a);
        return b_.op(one_of({Op::udiv, Op::urem, Op::sdiv, Op::srem}), type, {a, divisor(type)});
      case 14:
        return b_.select(get(Type::i1), a, get_or_constant(type));
      default:
        return b_.op(Op::iabs, type, {a});
    }
  }
  /// A remainder that is computed from the quotient and adjusted where a number is negative.
  Value rounded_down(Type type, Value a) {
    const Value by = divisor(type);
    const Value quotient = b_.op(one_of({Op::udiv, Op::sdiv}), type, {a, by});
    const Value rest = b_.sub(a, b_.mul(quotient, by));
    const bool below_zero = chance(70);
    const Value bound = b_.constant(type, below_zero ? 0 : ~std::uint64_t{0});
    const ir::Icmp how = below_zero ? one_of({ir::Icmp::slt, ir::Icmp::sge, ir::Icmp::sgt})
                                    : one_of({ir::Icmp::sgt, ir::Icmp::sle, ir::Icmp::slt});
    const Value of = one_of({a, by, rest, b_.op(Op::xor_, type, {one_of({a, rest}), by})});
    if (chance(30)) {
      const auto last = static_cast<std::int64_t>(ir::bit_size(type)) - 1;
      return b_.add(rest, b_.and_(by, b_.op(one_of({Op::ashr, Op::lshr}), type, {of, b_.i32(last)})));
    }
    const Value sign = b_.icmp(how, of, bound);
    return b_.select(sign, chance(50) ? b_.add(rest, by) : quotient, rest);
  }
  /// An index of 64 bits that stops at an edge, goes around it or is reflected.
  Value at_edge() {
    const Type type = one_of({Type::i32, Type::i64});
    const Value thread = type == Type::i32 ? index_ : b_.sext(type, index_);
    const Value index =
        chance(70) ? b_.add(thread, b_.constant(type, below(9) - 4)) : b_.add(get(type), constant(type));
    const Value bound = get_or_constant(type);
    const auto to_address = [&](Value value) {
      return type == Type::i64 ? value : b_.op(chance(70) ? Op::sext : Op::zext, Type::i64, {value});
    };
    if (chance(20)) return to_address(b_.op(Op::iabs, type, {index}));
    if (chance(40)) {
      const Value clamped = b_.op(one_of({Op::smin, Op::smax, Op::umin, Op::umax}), type, {index, bound});
      return to_address(
          chance(50) ? b_.op(one_of({Op::smin, Op::smax}), type, {clamped, get_or_constant(type)}) : clamped);
    }
    const Value other = one_of({b_.sub(bound, index), b_.add(index, bound), bound, b_.constant(type, 0)});
    const Value beyond = b_.icmp(comparison(), index, bound);
    return to_address(chance(50) ? b_.select(beyond, other, index) : b_.select(beyond, index, other));
  }
  Value divisor(Type type) {
    return chance(70) ? b_.constant(type, std::uint64_t{1} << below(7)) : get_or_constant(type);
  }

  Value source(Type type) {
    if (chance(20)) return b_.load(type, b_.add(get(Type::i64), b_.shl(at_edge(), b_.i32(3))));
    if (type == Type::i64) {
      switch (below(8)) {
        case 7:
          return there_and_back();
        case 0:
          return b_.symbol(symbol_);
        case 1:
          return space(get(type));
        case 2:
          return b_.load(type, get(type), one_of({ir::Space::global, ir::Space::shared, ir::Space::local}));
        case 3:
          return b_.zext(type, get(one_of({Type::i32, Type::i16})));
        case 4:
          return b_.op(Op::local_address, type, {}, below(16) * 4);
        default:
          return b_.op(chance(70) ? Op::sext : Op::zext, type, {get(Type::i32)});
      }
    }
    switch (below(10)) {
      case 0: {
        const Value loaded = b_.load(type, get(Type::i64));
        b_.inst(loaded).attr.is_volatile = chance(20);
        return loaded;
      }
      case 1:
        return b_.trunc(type, get(Type::i64));
      case 2:
        return b_.op(chance(50) ? Op::sext : Op::zext, type, {get(one_of({Type::i16, Type::i1}))});
      case 3:
        return b_.shuffle(ir::ShuffleMode::idx, get(type), get(type), b_.i32(31), b_.i32(-1));
      case 4:
        return b_.vote(ir::VoteMode::ballot, get(Type::i1), b_.i32(-1));
      case 5:
        return chance(50) ? b_.op(Op::popc, type, {get(Type::i64)}) : b_.op(Op::clz, type, {get(Type::i32)});
      case 6:
        return b_.atomic(ir::AtomicOp::add, get(Type::i64), get(type));
      case 7:
        return b_.op(Op::activemask, type, {});
      default:
        return b_.special(
            one_of({ir::Special::tid_x, ir::Special::tid_y, ir::Special::tid_z, ir::Special::ntid_x,
                    ir::Special::ctaid_y, ir::Special::nctaid_x, ir::Special::laneid, ir::Special::warpid,
                    ir::Special::nwarpid, ir::Special::lanemask_lt, ir::Special::clock}));
    }
  }
  /// A product, narrowed and widened again.
  Value there_and_back() {
    const Value narrow = get(one_of({Type::i16, Type::i32}));
    const Value wide = b_.op(one_of({Op::sext, Op::zext}), Type::i64, {narrow});
    const Value scaled = chance(50) ? b_.mul(wide, get_or_constant(Type::i64)) : b_.add(wide, get(Type::i64));
    const Value cut = b_.trunc(one_of({Type::i16, Type::i32}), scaled);
    const Value moved = chance(50) ? cut : b_.add(cut, constant(b_.type_of(cut)));
    if (b_.type_of(cut) == Type::i16 && chance(50))
      return b_.op(one_of({Op::sext, Op::zext}), Type::i64,
                   {b_.op(one_of({Op::sext, Op::zext}), Type::i32, {moved})});
    return b_.op(one_of({Op::sext, Op::zext}), Type::i64, {moved});
  }
  Value space(Value address) {
    ir::Attributes attributes;
    attributes.space = one_of({ir::Space::global, ir::Space::shared, ir::Space::local});
    return b_.op(one_of({Op::to_generic, Op::from_generic}), Type::i64, {address}, 0, attributes);
  }

  // --- control flow
  std::size_t new_label() {
    labels_.push_back({b_.block(), {}});
    return labels_.size() - 1;
  }
  void jump(std::size_t label) {
    b_.br(labels_[label].block);
    labels_[label].edges.push_back({b_.here(), environment_});
    alive_ = false;
  }
  /// Jumps to `label` if the condition holds, otherwise continues in a new block.
  void jump_if(Value condition, std::size_t label) {
    const ir::BlockId on = b_.block();
    const bool through_block = chance(50);
    const ir::BlockId target = through_block ? b_.block() : labels_[label].block;
    if (!through_block) labels_[label].edges.push_back({b_.here(), environment_});
    if (chance(50))
      b_.cond_br(condition, target, on);
    else
      b_.cond_br(b_.xor_(condition, b_.i1(true)), on, target);
    if (through_block) {
      b_.at(target);
      jump(label);
    }
    b_.at(on);
    alive_ = true;
  }
  /// Continues at the label, if something jumps there.
  void place(std::size_t label) {
    const Label& at = labels_[label];
    alive_ = !at.edges.empty();
    if (!alive_) return;
    b_.at(at.block);
    for (std::size_t i = 0; i < kVariables.size(); ++i) {
      const Value first = at.edges[0].environment[i];
      const bool same = std::all_of(at.edges.begin(), at.edges.end(),
                                    [&](const Edge& edge) { return edge.environment[i] == first; });
      const std::vector<int>& path = defined_in_[first];
      const bool visible = path.size() <= path_.size() && std::equal(path.begin(), path.end(), path_.begin());
      if (same && visible && chance(80)) {
        environment_[i] = first;
        continue;
      }
      const Value phi = b_.phi(kVariables[i]);
      for (const Edge& edge : at.edges) b_.incoming(phi, edge.from, edge.environment[i]);
      environment_[i] = phi;
      defined_in_[phi] = path_;
    }
  }

  void statements(unsigned depth, std::uint64_t most) {
    const std::uint64_t count = 1 + below(most);
    for (std::uint64_t i = 0; i < count && alive_; ++i) statement(depth);
  }
  void statement(unsigned depth) {
    const std::uint64_t kind = depth < deepest_ ? below(20) : below(10);
    if (kind < 9) return assign();
    if (kind == 9) return leave();
    if (kind < 14) return if_statement(depth);
    if (kind < 18) return loop(depth);
    if (kind == 18) return switch_statement(depth);
    const std::size_t out = new_label();
    targets_.push_back(out);
    statements(depth + 1, 5);
    targets_.pop_back();
    if (alive_) jump(out);
    place(out);
  }
  /// Emits a break, a continue, or a return.
  void leave() {
    const std::size_t target = targets_.empty() || chance(15) ? end_ : targets_[below(targets_.size())];
    if (target == end_ && chance(30)) {
      const Value gone = condition();
      const ir::BlockId stop = b_.block();
      const ir::BlockId on = b_.block();
      b_.cond_br(gone, stop, on);
      b_.at(stop).store(get(Type::i64), get(Type::i32));
      b_.ret();
      b_.at(on);
      return;
    }
    jump_if(condition(), target);
  }
  void if_statement(unsigned depth) {
    const std::size_t join = new_label();
    const ir::BlockId then = b_.block();
    const Value chosen = chance(50) ? get(Type::i1) : condition();
    const Environment before = environment_;
    if (chance(50)) {
      labels_[join].edges.push_back({b_.here(), environment_});
      b_.cond_br(chosen, then, labels_[join].block);
    } else {
      const ir::BlockId otherwise = b_.block();
      b_.cond_br(chosen, then, otherwise);
      b_.at(otherwise);
      statements(depth + 1, 4);
      if (alive_) jump(join);
    }
    b_.at(then);
    environment_ = before;
    alive_ = true;
    statements(depth + 1, 4);
    if (alive_) jump(join);
    place(join);
  }
  void switch_statement(unsigned depth) {
    const std::size_t join = new_label();
    const std::uint64_t count = 2 + below(3);
    std::vector<ir::BlockId> cases;
    for (std::uint64_t i = 0; i < count; ++i) cases.push_back(b_.block());
    b_.switch_br(b_.op(Op::urem, Type::i32, {get(Type::i32), b_.i32(static_cast<std::int64_t>(count))}),
                 cases);
    const Environment before = environment_;
    for (const ir::BlockId block : cases) {
      b_.at(block);
      environment_ = before;
      alive_ = true;
      statements(depth + 1, 3);
      if (alive_) jump(join);
    }
    place(join);
  }
  Value trip_count() {
    switch (below(4)) {
      case 0:
        return b_.and_(get(Type::i32), b_.i32(7));
      case 1:
        return b_.op(Op::smin, Type::i32, {get(Type::i32), b_.i32(6)});
      default:
        return b_.i32(static_cast<std::int64_t>(below(6)));
    }
  }

  void loop(unsigned depth) {
    const std::array<bool, kVariables.size()> frozen_before = frozen_;
    const std::size_t out = new_label();
    const std::size_t next = new_label();
    const Value limit = trip_count();
    const Value zero = b_.i32(0);
    const ir::BlockId before = b_.here();
    const ir::BlockId header = b_.block();
    b_.br(header);
    b_.at(header);
    path_.push_back(next_loop_++);
    for (bool& frozen : frozen_) frozen |= chance(40);
    const Environment outside = environment_;
    for (std::size_t i = 0; i < kVariables.size(); ++i)
      if (!frozen_[i]) defined_in_[environment_[i] = b_.phi(kVariables[i])] = path_;
    const Environment phis = environment_;
    const Value counter = b_.phi(Type::i32);
    const bool test_first = chance(60);
    const bool counted = chance(85);
    set(Type::i32, counter);
    targets_.push_back(out);
    targets_.push_back(next);
    if (test_first) jump_if(counted ? b_.icmp(ir::Icmp::sge, counter, limit) : condition(), out);
    statements(depth + 1, 5);
    targets_.resize(targets_.size() - 2);
    if (alive_) jump(next);
    place(next);
    if (alive_) close_loop(header, out, counter, limit, phis, test_first || !counted);
    const auto link = [&](Value phi, Value value) { b_.incoming(phi, before, value); };
    for (std::size_t i = 0; i < kVariables.size(); ++i)
      if (!frozen_[i]) link(phis[i], outside[i]);
    link(counter, zero);
    frozen_ = frozen_before;
    path_.pop_back();
    place(out);
  }
  /// One back edge, or two.
  void close_loop(ir::BlockId header, std::size_t out, Value counter, Value limit, const Environment& phis,
                  bool tested) {
    const Value counted = b_.add(counter, b_.i32(1));
    if (!tested) jump_if(b_.icmp(ir::Icmp::sge, counted, limit), out);
    const auto back = [&] {
      const ir::BlockId latch = b_.here();
      for (std::size_t i = 0; i < kVariables.size(); ++i)
        if (!frozen_[i]) b_.incoming(phis[i], latch, environment_[i]);
      b_.incoming(counter, latch, counted);
      b_.br(header);
    };
    if (chance(20)) {
      const ir::BlockId one = b_.block();
      const ir::BlockId other = b_.block();
      b_.cond_br(condition(), one, other);
      const Environment before = environment_;
      b_.at(one);
      assign();
      back();
      b_.at(other);
      environment_ = before;
    }
    back();
    alive_ = false;
  }

  std::mt19937_64 random_;
  unsigned deepest_;
  IrBuilder b_;
  std::uint32_t symbol_ = 0;
  Value index_ = ir::kNone;  ///< of the thread in the grid
  Environment environment_{};
  std::array<bool, kVariables.size()> frozen_{};  ///< variables that the enclosing loops must not assign
  std::vector<Label> labels_;
  std::vector<std::size_t> targets_;  ///< the possible targets of jumps
  std::size_t end_ = 0;
  bool alive_ = true;                             ///< control reaches this point
  std::vector<int> path_;                         ///< enclosing loops
  std::map<Value, std::vector<int>> defined_in_;  ///< loops that contain a definition
  int next_loop_ = 0;
};

constexpr std::array<std::uint32_t, 3> kBlocks[] = {
    {256, 1, 1}, {32, 1, 1},   {16, 16, 1}, {8, 8, 4},  {100, 1, 1}, {7, 5, 3},
    {1, 64, 1},  {2, 3, 5},    {20, 1, 1},  {1, 1, 1},  {64, 2, 1},  {4, 4, 2},
    {48, 2, 1},  {1024, 1, 1}, {32, 8, 1},  {33, 1, 1}, {2, 2, 64},  {12, 12, 1}};

}  // namespace

RandomProgram random_program(std::uint64_t seed, unsigned control) {
  RandomProgram program;
  program.module = Generator(seed, control).run();
  close_loops(program.module.functions[0]);
  program.specialisation.block = kBlocks[mix(seed, 1) % std::size(kBlocks)];
  program.specialisation.small_grid = mix(seed, 2) % 4 != 0;
  return program;
}

Launch random_launch(const RandomProgram& program, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t limit) {
    return std::uniform_int_distribution<std::uint64_t>(0, limit - 1)(random);
  };
  Launch launch;
  launch.seed = seed;
  launch.specialisation = program.specialisation;
  for (std::size_t d = 0; d < 3; ++d) {
    const std::uint64_t threads = program.specialisation.small_grid ? program.specialisation.block[d] : 1;
    const std::uint64_t most = INT32_MAX / threads;
    launch.grid[d] =
        static_cast<std::uint32_t>(below(3) == 0 ? most : 1 + below(std::min<std::uint64_t>(most, 1000)));
    launch.block_index[d] =
        static_cast<std::uint32_t>(below(4) == 0 ? launch.grid[d] - 1 : below(launch.grid[d]));
  }
  const std::uint64_t params[] = {below(2000), below(2) == 0 ? below(5000) : random(), below(1 << 20) * 256,
                                  below(100) + (below(3) == 0 ? random() << 32 : 0), random()};
  const std::vector<ir::Parameter>& declared = program.module.functions[0].params;
  for (std::size_t i = 0; i < std::min(declared.size(), std::size(params)); ++i)
    launch.params[declared[i].offset] = masked(params[i], declared[i].size * 8);
  return launch;
}

std::uint64_t scaled(std::uint64_t count) {
  const auto number = [](const char* name) {
    const char* text = std::getenv(name);
    return text == nullptr ? 1 : std::max<std::uint64_t>(std::strtoull(text, nullptr, 10), 1);
  };
  return count * number("QUERN_TEST_ROUNDS") / number("QUERN_TEST_FRACTION");
}

}  // namespace quern::cpu::test
