// SPDX-License-Identifier: Apache-2.0
// Branches on data around few operations, and conditional stores to shared memory, that become choices.
#include <doctest/doctest.h>

#include <algorithm>

#include "cpu/cuts/passes.hpp"
#include "harness.hpp"
#include "ir_builder.hpp"

namespace quern::cpu::test {
namespace {

using ir::Icmp;
using ir::Op;
using ir::Space;
using ir::Type;
using ir::Value;

/// These variants of the kernel do something else than exchange the two elements of a thread.
enum class Case {
  exchange,
  choose_value,     ///< a value that both sides compute is used behind them
  same_address,     ///< two threads store to one address
  loaded_address,   ///< the addresses depend on data
  outside,          ///< the last thread's address is outside of the static shared memory
  no_load,          ///< one of the addresses was not loaded
  other_type,       ///< loaded as another type
  store_between,    ///< a store between the loads and the branch
  atomic_between,   ///< an atomic operation there
  barrier_between,  ///< a barrier there
  assumed_between,  ///< a widening there, of a number that full code assumes not to wrap
  volatile_store,
  known_condition,  ///< the threads that exchange are known
  side_load,        ///< one side loads
};
constexpr Case kAll[] = {Case::exchange,        Case::choose_value,    Case::same_address,
                         Case::loaded_address,  Case::outside,         Case::no_load,
                         Case::other_type,      Case::store_between,   Case::atomic_between,
                         Case::barrier_between, Case::assumed_between, Case::volatile_store,
                         Case::known_condition, Case::side_load};

std::uint32_t number(std::uint32_t place) { return place * 2654435761u >> 20; }

/// Each thread exchanges elements 2 t and 2 t + 1 of its block if the first one is greater. Then thread t
/// outputs elements t and t + 1 of the block, and the number of the thread that exchanged nothing.
ir::Module exchange(Case which, std::uint32_t threads) {
  IrBuilder b;
  const Value out = b.param(Type::i64), start = b.param(Type::i32);
  const auto swap = b.block(), keep = b.block(), join = b.block();
  const Value own = b.shl(b.zext(Type::i64, b.tid()), 3), zero = b.i64(0);
  const auto initial = [&](Value place) { return b.lshr(b.mul(place, b.i32(2654435761)), 20); };
  const Value first = b.shl(b.tid(), 1), second = b.add(first, b.i32(1));
  b.store(own, initial(first), Space::shared);
  b.store(own, initial(second), Space::shared, 4);
  b.barrier();
  Value low = own;
  if (which == Case::same_address) low = b.and_(own, b.i64(-16));
  if (which == Case::loaded_address)
    low = b.add(own, b.zext(Type::i64, b.lshr(b.load(Type::i32, own, Space::shared), 31)));
  const Type type = which == Case::other_type ? Type::f32 : Type::i32;
  const Value loaded = b.load(type, low, Space::shared);
  const Value a = which == Case::other_type ? b.op(Op::bitcast, Type::i32, {loaded}) : loaded;
  const Value c = b.load(Type::i32, which == Case::no_load ? zero : low, Space::shared, 4);
  if (which == Case::store_between) b.store(low, a, Space::shared);
  if (which == Case::atomic_between) b.atomic(ir::AtomicOp::add, zero, b.i32(0), Space::shared);
  if (which == Case::barrier_between) b.barrier();
  if (which == Case::assumed_between) b.sext(Type::i64, b.add(start, b.tid()));
  const Value greater = b.icmp(Icmp::ugt, a, c);
  b.cond_br(which == Case::known_condition ? b.icmp(Icmp::ult, b.tid(), b.i32(5)) : greater, swap, keep);
  b.at(swap);
  const Value stored =
      which == Case::side_load ? b.load(Type::i32, low, Space::shared, 4) : b.xor_(b.xor_(c, a), a);
  const Value store = b.store(low, stored, Space::shared);
  if (which == Case::volatile_store) b.inst(store).attr.is_volatile = true;
  b.store(low, a, Space::shared, 4);
  b.br(join);
  b.at(keep);
  const Value twice = b.add(b.tid(), b.tid());
  b.br(join);
  b.at(join);
  Value kept = zero;
  if (which == Case::choose_value) kept = b.phi(Type::i32, {{swap, a}, {keep, twice}});
  b.barrier();
  const Value place = b.shl(b.zext(Type::i64, b.tid()), 2);
  const Value to = b.add(out, b.mul(b.zext(Type::i64, b.global_index()), b.i64(12)));
  b.store(to, b.load(Type::i32, place, Space::shared));
  b.store(to, b.load(Type::i32, place, Space::shared, 4), Space::global, 4);
  if (which == Case::choose_value) b.store(to, kept, Space::global, 8);
  b.ret();
  ir::Module module = b.module();
  module.static_shared_bytes = threads * 8 - (which == Case::outside ? 4 : 0);
  return module;
}

std::size_t branches_left(ir::Module module, std::uint32_t threads) {
  Specialisation specialisation;
  specialisation.block = {threads, 1, 1};
  cuts::Plan plan;
  plan.module = &module;
  plan.function = &module.functions[0];
  plan.has_full = true;
  cuts::join_sides(module.functions[0], plan, specialisation);
  std::size_t count = 0;
  for (const ir::Block& block : module.functions[0].blocks)
    for (const Value value : block.insts) count += module.functions[0][value].op == Op::cond_br ? 1 : 0;
  return count;
}

TEST_CASE("a conditional exchange of elements that each thread has loaded needs no branch") {
  for (const std::uint32_t threads : {32u, 40u, 256u}) {
    CHECK(branches_left(exchange(Case::exchange, threads), threads) == 0);
    CHECK(branches_left(exchange(Case::choose_value, threads), threads) == 0);
  }
}

TEST_CASE("stores that another thread could notice stay conditional") {
  for (const Case which : kAll) {
    CAPTURE(static_cast<int>(which));
    if (which != Case::exchange && which != Case::choose_value)
      CHECK(branches_left(exchange(which, 256), 256) == 1);
  }
}

TEST_CASE("a conditional exchange in shared memory gives the same elements in every variant") {
  TestDevice device;
  for (const Case which : kAll) {
    if (which == Case::same_address || which == Case::no_load) continue;  // threads race
    for (const std::uint32_t threads : {32u, 40u, 64u, 256u, 512u})
      for (const Specialisation& variant : variants({threads, 1, 1})) {
        CAPTURE(name(variant));
        CAPTURE(static_cast<int>(which));
        device.clear();
        auto memory = device.allocate<std::uint32_t>(3 * 2 * 512 + 3);
        const auto code = compile_ir(exchange(which, threads), variant);
        REQUIRE(!device.launch(*code, variant, {2, 1, 1}, Params().add(memory.data()).add(INT32_MAX - 40)));
        const auto exchanges = [&](std::uint32_t thread) {
          return which == Case::known_condition ? thread < 5 : number(2 * thread) > number(2 * thread + 1);
        };
        const auto element = [&](std::uint32_t place) {
          return number(exchanges(place / 2) ? place ^ 1u : place);
        };
        for (std::uint32_t i = 0; i < 2 * threads; ++i) {
          const std::uint32_t thread = i % threads;
          REQUIRE(memory[3 * i] == element(thread));
          REQUIRE(memory[3 * i + 1] == element(thread + 1));
          if (which == Case::choose_value)
            REQUIRE(memory[3 * i + 2] == (exchanges(thread) ? number(2 * thread) : 2 * thread));
        }
      }
  }
}

/// Describes what the threads compute behind a branch on an element.
enum class Side {
  sum,           ///< a sum
  decision,      ///< whether a second comparison holds, as `a > b || (a == b && i < j)` has it
  both,          ///< as `a > b && c`
  nested,        ///< a branch on another element
  long_nested,   ///< the same, with too much around it
  three_ways,    ///< the sides of a branch in a side lead where the other side does
  many,          ///< more operations than a branch costs
  division,      ///< a division
  load,          ///< an element is loaded
  assumed,       ///< a widening, of a number that full code assumes not to wrap
  rare,          ///< a sum, behind a comparison with a constant
  known_branch,  ///< of a branch that follows from the thread's index
};
constexpr Side kSides[] = {Side::sum,         Side::decision,   Side::both, Side::nested,
                           Side::long_nested, Side::three_ways, Side::many, Side::division,
                           Side::load,        Side::assumed,    Side::rare, Side::known_branch};

std::uint32_t item(std::uint32_t i) { return i * 2654435761u >> 28; }

/// out[i] = what thread i computes from in[i] and in[i + 1], which it loads before all branches.
ir::Module branch_on_data(Side which) {
  IrBuilder b;
  const Value in = b.param(Type::i64), out = b.param(Type::i64), start = b.param(Type::i32);
  const auto taken = b.block(), other = b.block(), join = b.block();
  const Value own = b.zext(Type::i64, b.shl(b.global_index(), 2));
  const Value a = b.load(Type::i32, b.add(in, own)), c = b.load(Type::i32, b.add(in, own), Space::global, 4);
  const Value greater = b.icmp(Icmp::ugt, a, c);
  Value condition = greater;
  if (which == Side::known_branch) condition = b.icmp(Icmp::ult, b.tid(), b.i32(5));
  if (which == Side::rare) condition = b.icmp(Icmp::eq, a, b.i32(3));
  b.cond_br(condition, taken, other);
  b.at(taken);
  Value left = a;
  if (which == Side::decision) left = b.i1(true);
  if (which == Side::both) left = b.icmp(Icmp::ugt, a, b.i32(9));
  b.br(join);
  b.at(other);
  Value right = b.add(c, b.i32(100));
  auto from = other;
  Value third = ir::kNone;
  auto third_from = other;
  if (which == Side::decision) right = b.icmp(Icmp::eq, a, c);
  if (which == Side::both) right = b.i1(false);
  if (which == Side::many)
    for (int i = 0; i < 20; ++i) right = b.xor_(b.mul(right, b.i32(3)), a);
  if (which == Side::division) right = b.op(Op::udiv, Type::i32, {right, a});
  if (which == Side::load) right = b.load(Type::i32, b.add(in, own), Space::global, 8);
  if (which == Side::assumed)
    right = b.op(Op::trunc, Type::i32, {b.lshr(b.sext(Type::i64, b.add(start, b.tid())), 1)});
  if (which == Side::nested || which == Side::long_nested) {
    const auto inner = b.block(), empty = b.block(), end = b.block();
    for (int i = 0; which == Side::long_nested && i < 20; ++i) right = b.xor_(b.mul(right, b.i32(3)), a);
    b.cond_br(b.icmp(Icmp::ult, c, b.xor_(a, b.i32(5))), inner, empty);
    b.at(inner);
    const Value less = b.sub(right, b.i32(50));
    b.br(end);
    b.at(empty).br(end);
    b.at(end);
    right = b.phi(Type::i32, {{inner, less}, {empty, right}});
    from = end;
  }
  if (which == Side::three_ways) {
    const auto one = b.block(), two = b.block();
    b.cond_br(b.icmp(Icmp::ult, c, b.xor_(a, b.i32(5))), one, two);
    b.at(one);
    third = b.sub(right, b.i32(50));
    third_from = one;
    b.br(join);
    b.at(two);
    from = two;
  }
  b.br(join);
  b.at(join);
  const Type type = which == Side::decision || which == Side::both ? Type::i1 : Type::i32;
  Value result = third == ir::kNone ? b.phi(type, {{taken, left}, {from, right}})
                                    : b.phi(type, {{taken, left}, {from, right}, {third_from, third}});
  if (type == Type::i1) result = b.select(result, a, c);
  b.store(b.add(out, own), result);
  b.ret();
  return b.module();
}

std::uint32_t computed(Side which, std::uint32_t thread, std::uint32_t i, std::uint32_t start) {
  const std::uint32_t a = item(i), c = item(i + 1), sum = c + 100;
  const bool taken = which == Side::known_branch ? thread < 5 : which == Side::rare ? a == 3 : a > c;
  if (which == Side::decision) return a > c || a == c ? a : c;
  if (which == Side::both) return a > c && a > 9 ? a : c;
  if (taken) return a;
  std::uint32_t mixed = sum;
  for (int k = 0; k < 20; ++k) mixed = (mixed * 3) ^ a;
  switch (which) {
    case Side::nested:
    case Side::three_ways:
      return c < (a ^ 5) ? sum - 50 : sum;
    case Side::long_nested:
      return c < (a ^ 5) ? mixed - 50 : mixed;
    case Side::many:
      return mixed;
    case Side::division:
      return a == 0 ? ~0u : sum / a;
    case Side::load:
      return item(i + 2);
    case Side::assumed:
      return static_cast<std::uint32_t>(std::int64_t{static_cast<std::int32_t>(start + thread)} >> 1);
    case Side::sum:
    case Side::rare:
    case Side::known_branch:
    case Side::decision:
    case Side::both:
      break;
  }
  return sum;
}

TEST_CASE("branches on data around few quick operations are replaced, the inner ones first") {
  for (const Side which : kSides) {
    CAPTURE(static_cast<int>(which));
    const bool all = which == Side::sum || which == Side::decision || which == Side::both ||
                     which == Side::nested || which == Side::three_ways;
    CHECK(branches_left(branch_on_data(which), 64) == (all ? 0 : 1));
  }
}

TEST_CASE("threads compute the same whether their branches are replaced or not") {
  TestDevice device;
  constexpr std::uint32_t kStart = INT32_MAX - 40;
  for (const Side which : kSides)
    for (const std::uint32_t threads : {32u, 40u, 256u})
      for (const Specialisation& variant : variants({threads, 1, 1})) {
        CAPTURE(name(variant));
        CAPTURE(static_cast<int>(which));
        device.clear();
        auto in = device.allocate<std::uint32_t>(2 * 256 + 2), out = device.allocate<std::uint32_t>(2 * 256);
        for (std::uint32_t i = 0; i < 2 * 256 + 2; ++i) in[i] = item(i);
        const auto code = compile_ir(branch_on_data(which), variant);
        REQUIRE(
            !device.launch(*code, variant, {2, 1, 1}, Params().add(in.data()).add(out.data()).add(kStart)));
        for (std::uint32_t i = 0; i < 2 * threads; ++i)
          REQUIRE(out[i] == computed(which, i % threads, i, kStart));
      }
}

}  // namespace
}  // namespace quern::cpu::test
