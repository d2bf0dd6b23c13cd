// SPDX-License-Identifier: Apache-2.0
// "Parallel Synchronization and Communication Instructions": operations on other lanes' values, and barriers.
#include <algorithm>
#include <iterator>
#include <optional>

#include "cpu/lower/translate/translator.hpp"

#include "cpu/lower/instructions/rows.hpp"

namespace quern::cpu::lower {
namespace {

using In = const ptx::Instruction&;
using ir::Op;
using ir::Type;
using ir::Value;
using M = ptx::Modifier;

constexpr std::uint32_t kFirstWithoutLockstep = 70;

/// The lanes that take part. The form without .sync names no lanes: on targets below sm_70, these are the
/// lanes that run the instruction together. From sm_70 on, PTX does not define them.
std::optional<Value> members(Translator& t, In in, std::size_t operand) {
  if (in.has(M::sync)) return t.read(in, operand, ptx::Type::b32);
  if (t.program().ptx().sm < kFirstWithoutLockstep) return t.emit(Op::activemask, Type::i32, {});
  t.refuse(
      "without .sync it is not defined which lanes take part on targets from sm_70 on; name them in the form "
      "with .sync, or compile for an older target");
  return std::nullopt;
}

template <class Mode>
struct ModeRow {
  M modifier;
  Mode mode;
};

template <class Mode, std::size_t Count>
std::uint64_t mode_of(In in, const ModeRow<Mode> (&rows)[Count]) {
  const auto row = std::find_if(std::begin(rows), std::end(rows),
                                [&](const ModeRow<Mode>& r) { return in.has(r.modifier); });
  return static_cast<std::uint64_t>(row == std::end(rows) ? rows[0].mode : row->mode);
}

constexpr ModeRow<ir::ShuffleMode> kShuffles[] = {{M::up, ir::ShuffleMode::up},
                                                  {M::down, ir::ShuffleMode::down},
                                                  {M::bfly, ir::ShuffleMode::bfly},
                                                  {M::idx, ir::ShuffleMode::idx}};

void shfl(Translator& t, In in) {
  const std::uint64_t mode = mode_of(in, kShuffles);
  std::vector<Value> operands{t.read(in, 1, ptx::Type::b32), t.read(in, 2, ptx::Type::b32),
                              t.read(in, 3, ptx::Type::b32)};
  const std::optional<Value> mask = members(t, in, 4);
  if (!mask) return;
  operands.push_back(*mask);
  const auto destinations = t.elements(t.operand(in, 0));
  const ir::Attributes attr{.together = !in.has(M::sync)};
  const Value result = t.emit(Op::shuffle, Type::i32, operands, attr, mode);
  const Value valid =
      destinations.size() > 1 ? t.emit(Op::shuffle_valid, Type::i1, operands, attr, mode) : ir::kNone;
  t.write(destinations[0], result);
  if (valid != ir::kNone) t.write(destinations[1], valid);
}

constexpr ModeRow<ir::VoteMode> kVotes[] = {{M::all, ir::VoteMode::all},
                                            {M::any, ir::VoteMode::any},
                                            {M::uni, ir::VoteMode::uni},
                                            {M::ballot, ir::VoteMode::ballot}};

void vote(Translator& t, In in) {
  const Value predicate = t.read(in, 1, ptx::Type::pred);
  const std::optional<Value> mask = members(t, in, 2);
  if (!mask) return;
  t.write(in, t.emit(Op::vote, in.has(M::ballot) ? Type::i32 : Type::i1, {predicate, *mask},
                     {.together = !in.has(M::sync)}, mode_of(in, kVotes)));
}

void match(Translator& t, In in) {
  const Value value = t.read(in, 1, in.type());
  const Value mask = t.read(in, 2, ptx::Type::b32);
  const auto destinations = t.elements(t.operand(in, 0));
  const Value result = t.emit(in.has(M::all) ? Op::match_all : Op::match_any, Type::i32, {value, mask});
  t.write(destinations[0], result);
  // The predicate of match.all is true if all values are equal. Otherwise the mask is 0.
  if (destinations.size() > 1)
    t.write(destinations[1], t.compare(ir::Icmp::ne, result, t.constant(Type::i32, 0)));
}

struct ReduceRow {
  M modifier;
  ir::ReduceMode for_signed;
  ir::ReduceMode for_unsigned;
};
constexpr ReduceRow kWarpReductions[] = {{M::add, ir::ReduceMode::add, ir::ReduceMode::add},
                                         {M::min, ir::ReduceMode::smin, ir::ReduceMode::umin},
                                         {M::max, ir::ReduceMode::smax, ir::ReduceMode::umax},
                                         {M::and_, ir::ReduceMode::and_, ir::ReduceMode::and_},
                                         {M::or_, ir::ReduceMode::or_, ir::ReduceMode::or_},
                                         {M::xor_, ir::ReduceMode::xor_, ir::ReduceMode::xor_}};

/// Lowers redux.sync.min.f32 as a reduction of integers that have the same order. A NaN becomes the integer
/// that loses against all others or, with .NaN, the one that wins. If it remains, the result is the canonical
/// NaN.
void redux_float(Translator& t, In in) {
  constexpr std::uint32_t kMagnitude = 0x7fffffff, kInfinity = 0x7f800000;
  const auto number = [&](std::uint64_t bits) { return t.constant(Type::i32, bits); };
  const Value bits = t.as(t.read(in, 1, ptx::Type::f32), Type::i32);
  const Value magnitude = t.emit(Op::and_, Type::i32, {bits, number(kMagnitude)});
  const bool least = in.has(M::min);
  // Reverses the order of negative numbers. No number maps to the largest or the least integer.
  const auto mirrored = [&](Value value) {
    const Value flipped = t.emit(Op::xor_, Type::i32, {value, number(kMagnitude)});
    return t.select(t.compare(ir::Icmp::slt, value, number(0)), flipped, value);
  };
  Value place = in.has(M::abs) ? magnitude : mirrored(bits);
  const Value nan_place = number(least != in.has(M::NaN) ? kMagnitude : kMagnitude + 1);
  place = t.select(t.compare(ir::Icmp::ugt, magnitude, number(kInfinity)), nan_place, place);
  const auto mode = least ? ir::ReduceMode::smin : ir::ReduceMode::smax;
  const Value mask = t.read(in, 2, ptx::Type::b32);
  const Value found = t.emit(Op::reduce, Type::i32, {place, mask}, {}, static_cast<std::uint64_t>(mode));
  const Value is_nan = t.compare(ir::Icmp::eq, found, nan_place);
  t.write(in, t.as(t.select(is_nan, number(kMagnitude), mirrored(found)), Type::f32));
}

void redux(Translator& t, In in) {
  if (ptx::kind(in.type()) == ptx::TypeKind::floating) return redux_float(t, in);
  const auto row = std::find_if(std::begin(kWarpReductions), std::end(kWarpReductions),
                                [&](const ReduceRow& r) { return in.has(r.modifier); });
  if (row == std::end(kWarpReductions)) return t.refuse("this reduction is not implemented");
  const Value value = t.read(in, 1, in.type());
  const Value mask = t.read(in, 2, ptx::Type::b32);
  const auto mode = is_signed(in.type()) ? row->for_signed : row->for_unsigned;
  t.write(in, t.emit(Op::reduce, Type::i32, {value, mask}, {}, static_cast<std::uint64_t>(mode)));
}

// elect.sync d|p, membermask: elects the lowest running lane of the members.
void elect(Translator& t, In in) {
  const auto destinations = t.elements(t.operand(in, 0));
  if (destinations.size() != 2) return t.refuse("the destination is not a pair");
  const Value mask = t.read(in, 1, ptx::Type::b32);
  const Value here = t.emit(Op::vote, Type::i32, {t.constant(Type::i1, 1), mask}, {},
                            static_cast<std::uint64_t>(ir::VoteMode::ballot));
  const Value leader = t.emit(Op::clz, Type::i32, {t.emit(Op::brev, Type::i32, {here})});
  const Value lane =
      t.builder().nullary(Op::special, Type::i32, static_cast<std::uint64_t>(ir::Special::laneid));
  t.write(destinations[0], leader);
  t.write(destinations[1], t.compare(ir::Icmp::eq, lane, leader));
}

void activemask(Translator& t, In in) { t.write(in, t.emit(Op::activemask, Type::i32, {})); }

constexpr ModeRow<ir::BarrierReduce> kReductions[] = {
    {M::popc, ir::BarrierReduce::popc}, {M::and_, ir::BarrierReduce::and_}, {M::or_, ir::BarrierReduce::or_}};

// bar.red d, a{, b}, c: c is the last operand, so the number of operands shows whether there is a thread
// count b.
void barrier_reduce(Translator& t, In in) {
  if (in.operands.size() < 3) return t.refuse("operands are missing");
  std::vector<Value> operands{t.read(in, in.operands.size() - 1, ptx::Type::pred),
                              t.read(in, 1, ptx::Type::u32)};
  if (in.operands.size() > 3) operands.push_back(t.read(in, 2, ptx::Type::u32));
  const Type type = in.has(M::popc) ? Type::i32 : Type::i1;
  t.write(in, t.emit(Op::barrier_reduce, type, std::move(operands), {}, mode_of(in, kReductions)));
}

void barrier(Translator& t, In in) {
  if (in.has(M::warp)) {
    t.emit(Op::warp_sync, Type::none, {t.read(in, 0, ptx::Type::b32)});
    return;
  }
  if (in.has(M::red)) return barrier_reduce(t, in);
  if (!in.has(M::sync) && !in.has(M::arrive)) return t.refuse("this barrier operation is not implemented");
  std::vector<Value> operands;
  for (std::size_t i = 0; i < in.operands.size(); ++i) operands.push_back(t.read(in, i, ptx::Type::u32));
  t.emit(in.has(M::arrive) ? Op::barrier_arrive : Op::barrier, Type::none, std::move(operands), {}, 0);
}

using Opcode = ptx::Opcode;
constexpr Row kRows[] = {
    {Opcode::shfl, Kind::effect, shfl},   {Opcode::vote, Kind::effect, vote},
    {Opcode::match, Kind::effect, match}, {Opcode::redux, Kind::effect, redux},
    {Opcode::elect, Kind::effect, elect}, {Opcode::activemask, Kind::effect, activemask},
    {Opcode::bar, Kind::effect, barrier}, {Opcode::barrier, Kind::effect, barrier},
};

}  // namespace

std::span<const Row> warp_rows() { return kRows; }

}  // namespace quern::cpu::lower
