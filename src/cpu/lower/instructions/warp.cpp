// SPDX-License-Identifier: Apache-2.0
// "Parallel Synchronization and Communication Instructions": operations on other lanes' values, and barriers.
#include <algorithm>
#include <iterator>

#include "cpu/lower/translate/translator.hpp"

#include "cpu/lower/instructions/rows.hpp"

namespace quern::cpu::lower {
namespace {

using In = const ptx::Instruction&;
using ir::Op;
using ir::Type;
using ir::Value;
using M = ptx::Modifier;

constexpr std::string_view kNoMask =
    "the form without .sync leaves it open which lanes take part; targets from sm_70 on do not have it";

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
  if (!in.has(M::sync)) return t.refuse(kNoMask);
  const std::uint64_t mode = mode_of(in, kShuffles);
  const std::vector<Value> operands{t.read(in, 1, ptx::Type::b32), t.read(in, 2, ptx::Type::b32),
                                    t.read(in, 3, ptx::Type::b32), t.read(in, 4, ptx::Type::b32)};
  const auto destinations = t.elements(t.operand(in, 0));
  const Value result = t.emit(Op::shuffle, Type::i32, operands, {}, mode);
  const Value valid =
      destinations.size() > 1 ? t.emit(Op::shuffle_valid, Type::i1, operands, {}, mode) : ir::kNone;
  t.write(destinations[0], result);
  if (valid != ir::kNone) t.write(destinations[1], valid);
}

constexpr ModeRow<ir::VoteMode> kVotes[] = {{M::all, ir::VoteMode::all},
                                            {M::any, ir::VoteMode::any},
                                            {M::uni, ir::VoteMode::uni},
                                            {M::ballot, ir::VoteMode::ballot}};

void vote(Translator& t, In in) {
  if (!in.has(M::sync)) return t.refuse(kNoMask);
  const Value predicate = t.read(in, 1, ptx::Type::pred);
  const Value mask = t.read(in, 2, ptx::Type::b32);
  t.write(in, t.emit(Op::vote, in.has(M::ballot) ? Type::i32 : Type::i1, {predicate, mask}, {},
                     mode_of(in, kVotes)));
}

void match(Translator& t, In in) {
  const Value value = t.read(in, 1, in.type());
  const Value mask = t.read(in, 2, ptx::Type::b32);
  const auto destinations = t.elements(t.operand(in, 0));
  const Value result = t.emit(in.has(M::all) ? Op::match_all : Op::match_any, Type::i32, {value, mask});
  t.write(destinations[0], result);
  // match.all's predicate: all agree. Its mask is 0 if they do not.
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

void redux(Translator& t, In in) {
  const auto row = std::find_if(std::begin(kWarpReductions), std::end(kWarpReductions),
                                [&](const ReduceRow& r) { return in.has(r.modifier); });
  if (row == std::end(kWarpReductions) || ptx::kind(in.type()) == ptx::TypeKind::floating)
    return t.refuse("reductions of floating-point numbers need a target above sm_89");
  const Value value = t.read(in, 1, in.type());
  const Value mask = t.read(in, 2, ptx::Type::b32);
  const auto mode = is_signed(in.type()) ? row->for_signed : row->for_unsigned;
  t.write(in, t.emit(Op::reduce, Type::i32, {value, mask}, {}, static_cast<std::uint64_t>(mode)));
}

void activemask(Translator& t, In in) { t.write(in, t.emit(Op::activemask, Type::i32, {})); }

constexpr ModeRow<ir::BarrierReduce> kReductions[] = {
    {M::popc, ir::BarrierReduce::popc}, {M::and_, ir::BarrierReduce::and_}, {M::or_, ir::BarrierReduce::or_}};

// bar.red d, a{, b}, c: c is last, so the number of operands shows whether there is a thread count b.
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
  if (in.has(M::cluster)) return t.refuse("thread block clusters are not implemented");
  if (!in.has(M::sync) && !in.has(M::arrive)) return t.refuse("this barrier operation is not implemented");
  std::vector<Value> operands;
  for (std::size_t i = 0; i < in.operands.size(); ++i) operands.push_back(t.read(in, i, ptx::Type::u32));
  t.emit(in.has(M::arrive) ? Op::barrier_arrive : Op::barrier, Type::none, std::move(operands), {}, 0);
}

using Opcode = ptx::Opcode;
constexpr Row kRows[] = {
    {Opcode::shfl, Kind::effect, shfl},
    {Opcode::vote, Kind::effect, vote},
    {Opcode::match, Kind::effect, match},
    {Opcode::redux, Kind::effect, redux},
    {Opcode::activemask, Kind::effect, activemask},
    {Opcode::bar, Kind::effect, barrier},
    {Opcode::barrier, Kind::effect, barrier},
};

}  // namespace

std::span<const Row> warp_rows() { return kRows; }

}  // namespace quern::cpu::lower
