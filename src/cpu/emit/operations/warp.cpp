// SPDX-License-Identifier: Apache-2.0
// Operations across lanes (PTX ISA: "Data Movement and Conversion Instructions: shfl.sync", "Parallel
// Synchronization and Communication Instructions: vote.sync, match.sync, activemask"). Lanes that do not run
// do not take part. PTX leaves a value read from such a lane undefined; here it is the contents of its
// register.
#include <llvm/IR/IntrinsicsX86.h>

#include <array>
#include <optional>

#include "cpu/emit/operations/address.hpp"
#include "cpu/emit/operations/operands.hpp"
#include "cpu/emit/operations/vectors.hpp"

namespace quern::cpu::emit {
namespace {

using analysis::LanePatternKind;
using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

// --- shuffle

struct Source {
  unsigned lane;
  bool valid;
};

/// The source of the shuffle for one lane, as PTX defines it; b and c are operands of the instruction.
Source source_of(ir::ShuffleMode mode, unsigned lane, std::uint32_t b, std::uint32_t c) {
  const int self = static_cast<int>(lane);
  const int delta = static_cast<int>(b & 31);
  const int segment = static_cast<int>((c >> 8) & 31);
  const int clamp = static_cast<int>(c & 31);
  const int greatest = (self & segment) | (clamp & ~segment);
  int from = 0;
  switch (mode) {
    case ir::ShuffleMode::up:
      from = self - delta;
      break;
    case ir::ShuffleMode::down:
      from = self + delta;
      break;
    case ir::ShuffleMode::bfly:
      from = self ^ delta;
      break;
    case ir::ShuffleMode::idx:
      from = (self & segment) | (delta & ~segment);
      break;
  }
  const bool valid = mode == ir::ShuffleMode::up ? from >= greatest : from <= greatest;
  return {valid ? static_cast<unsigned>(from) & (kWarpSize - 1) : lane, valid};
}

std::optional<std::uint32_t> uniform_constant(Context& context, ir::Value value) {
  const analysis::LanePattern& pattern = context.pattern(value);
  if (pattern.kind != LanePatternKind::uniform || !pattern.constant) return std::nullopt;
  return static_cast<std::uint32_t>(*pattern.constant);
}

struct Sources {
  Value* lanes;  ///< <32 x i32>
  Value* valid;  ///< <32 x i1>
};

/// The same in vector code, for b and c that are not known at compile time.
Sources sources_of(Context& context, const ir::Inst& inst) {
  llvm::IRBuilder<>& b = context.builder();
  const auto mode = static_cast<ir::ShuffleMode>(inst.imm);
  Value* const self = lane_numbers(context, 32);
  llvm::Type* const type = self->getType();
  Value* const thirty_one = bits(type, 31);
  Value* const delta = b.CreateAnd(context.vector(inst.args[1]), thirty_one);
  Value* const c = context.vector(inst.args[2]);
  Value* const segment = b.CreateAnd(b.CreateLShr(c, bits(type, 8)), thirty_one);
  Value* const outside = b.CreateNot(segment);
  Value* const greatest =
      b.CreateOr(b.CreateAnd(self, segment), b.CreateAnd(b.CreateAnd(c, thirty_one), outside));
  Value* from = nullptr;
  switch (mode) {
    case ir::ShuffleMode::up:
      from = b.CreateSub(self, delta);
      break;
    case ir::ShuffleMode::down:
      from = b.CreateAdd(self, delta);
      break;
    case ir::ShuffleMode::bfly:
      from = b.CreateXor(self, delta);
      break;
    case ir::ShuffleMode::idx:
      from = b.CreateOr(b.CreateAnd(self, segment), b.CreateAnd(delta, outside));
      break;
  }
  Value* const valid =
      mode == ir::ShuffleMode::up ? b.CreateICmpSGE(from, greatest) : b.CreateICmpSLE(from, greatest);
  return {b.CreateSelect(valid, from, self), valid};
}

/// permute() with AVX2: each of four registers is permuted by the low three bits of a lane's number, and the
/// upper two bits choose between them.
Value* permute_registers(Context& context, Value* value, Value* from) {
  constexpr unsigned kLanes = 8, kRegisters = kWarpSize / kLanes;
  llvm::IRBuilder<>& b = context.builder();
  std::array<Value*, kRegisters> result{};
  for (unsigned at = 0; at < kRegisters; ++at) {
    Value* const lanes = slice(context, from, at * kLanes, kLanes);
    std::array<Value*, kRegisters> permuted{};
    for (unsigned of = 0; of < kRegisters; ++of)
      permuted[of] = b.CreateIntrinsic(Intrinsic::x86_avx2_permd, {},
                                       {slice(context, value, of * kLanes, kLanes), lanes});
    // A blend tests the sign.
    const auto bit = [&](unsigned which) {
      llvm::Type* const type = lanes->getType();
      return b.CreateICmpSLT(b.CreateShl(lanes, bits(type, 31 - which)), bits(type, 0));
    };
    result[at] = b.CreateSelect(bit(4), b.CreateSelect(bit(3), permuted[3], permuted[2]),
                                b.CreateSelect(bit(3), permuted[1], permuted[0]));
  }
  return concat(context, result);
}

/// Lane l of the result is lane from[l] of `value`.
Value* permute(Context& context, Value* value, Value* from) {
  llvm::IRBuilder<>& b = context.builder();
  if (context.specialisation().isa == Isa::avx512) {
    Value* const low = slice(context, value, 0, 16);
    Value* const high = slice(context, value, 16, 16);
    Value* const halves[] = {b.CreateIntrinsic(Intrinsic::x86_avx512_vpermi2var_d_512, {},
                                               {low, slice(context, from, 0, 16), high}),
                             b.CreateIntrinsic(Intrinsic::x86_avx512_vpermi2var_d_512, {},
                                               {low, slice(context, from, 16, 16), high})};
    return concat(context, halves);
  }
  if (context.specialisation().isa == Isa::avx2) return permute_registers(context, value, from);
  Value* const in = spill(context, value);
  Value* const lanes = spill(context, from);
  Value* const out = scratch(context, value->getType());
  call_helper(context, "quern_cpu_permute_32", b.getVoidTy(), {out, in, lanes}, Touches::arguments_only);
  Value* const result = b.CreateAlignedLoad(value->getType(), out, llvm::Align(64));
  release(context, {in, lanes, out});
  return result;
}

/// True for a shfl.idx in which the whole warp reads one lane: a broadcast.
bool is_broadcast(Context& context, const ir::Inst& inst) {
  return static_cast<ir::ShuffleMode>(inst.imm) == ir::ShuffleMode::idx &&
         context.pattern(inst.args[1]).kind == LanePatternKind::uniform &&
         uniform_constant(context, inst.args[2]) == 31u;
}

Value* shuffled(Context& context, const ir::Inst& inst) {
  llvm::IRBuilder<>& b = context.builder();
  Value* const value = context.vector(inst.args[0]);
  const auto delta = uniform_constant(context, inst.args[1]);
  const auto c = uniform_constant(context, inst.args[2]);
  if (delta && c) {
    llvm::SmallVector<int, kWarpSize> from;
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      from.push_back(
          static_cast<int>(source_of(static_cast<ir::ShuffleMode>(inst.imm), lane, *delta, *c).lane));
    return b.CreateShuffleVector(value, from);
  }
  if (is_broadcast(context, inst))
    return splat(context, extract_lane(context, value, context.scalar(inst.args[1])));
  return permute(context, value, sources_of(context, inst).lanes);
}

void emit_shuffle(Context& context, ir::Value value) {
  const ir::Inst& inst = context.function()[value];
  if (context.pattern(inst.args[0]).kind == LanePatternKind::uniform)
    return define_scalar(context, value, context.scalar(inst.args[0]));
  define_vector(context, value, shuffled(context, inst));
}

void emit_shuffle_valid(Context& context, ir::Value value) {
  const ir::Inst& inst = context.function()[value];
  const auto delta = uniform_constant(context, inst.args[1]);
  const auto c = uniform_constant(context, inst.args[2]);
  if (!delta || !c) return define_vector(context, value, sources_of(context, inst).valid);
  std::uint32_t valid = 0;
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    valid |=
        static_cast<std::uint32_t>(source_of(static_cast<ir::ShuffleMode>(inst.imm), lane, *delta, *c).valid)
        << lane;
  define_vector(context, value, lane_mask(context, valid));
}

// --- vote

/// The running lanes whose predicate is true, as a scalar.
Value* yes_bits(Context& context, ir::Value predicate) {
  llvm::IRBuilder<>& b = context.builder();
  if (context.pattern(predicate).kind == LanePatternKind::uniform)
    return b.CreateSelect(context.scalar(predicate), context.mask_bits(), b.getInt32(0));
  Value* const votes = context.vector(predicate);
  return mask_to_bits(context, context.full() ? votes : b.CreateAnd(votes, context.mask()));
}

/// `yes`, `voters`: bits of one group of lanes, as scalars or vectors.
Value* vote_result(llvm::IRBuilder<>& b, ir::VoteMode mode, Value* yes, Value* voters) {
  Value* const none = bits(yes->getType(), 0);
  switch (mode) {
    case ir::VoteMode::all:
      return b.CreateICmpEQ(yes, voters);
    case ir::VoteMode::any:
      return b.CreateICmpNE(yes, none);
    case ir::VoteMode::uni:
      return b.CreateOr(b.CreateICmpEQ(yes, voters), b.CreateICmpEQ(yes, none));
    case ir::VoteMode::ballot:
      break;
  }
  return yes;
}

void emit_vote(Context& context, ir::Value value) {
  const ir::Inst& inst = context.function()[value];
  llvm::IRBuilder<>& b = context.builder();
  const auto mode = static_cast<ir::VoteMode>(inst.imm);
  Value* const yes = yes_bits(context, inst.args[0]);
  if (context.pattern(inst.args[1]).kind == LanePatternKind::uniform) {
    Value* const members = context.scalar(inst.args[1]);
    Value* const result =
        vote_result(b, mode, b.CreateAnd(yes, members), b.CreateAnd(context.mask_bits(), members));
    return define_scalar(context, value, result);
  }
  // Groups of lanes with different membermasks vote separately.
  Value* const members = context.vector(inst.args[1]);
  Value* const group_yes = b.CreateAnd(splat(context, yes), members);
  Value* const voters = b.CreateAnd(splat(context, context.mask_bits()), members);
  define_vector(context, value, vote_result(b, mode, group_yes, voters));
}

// --- match

void emit_match(Context& context, ir::Value value) {
  const ir::Inst& inst = context.function()[value];
  llvm::IRBuilder<>& b = context.builder();
  Value* const words = context.vector(inst.args[0]);
  Value* const values =
      spill(context, b.CreateZExt(words, llvm::FixedVectorType::get(b.getInt64Ty(), kWarpSize)));
  Value* const members = spill(context, context.vector(inst.args[1]));
  llvm::Type* const type = context.vector_type_of(ir::Type::i32);
  Value* const out = scratch(context, type);
  call_helper(context, inst.op == ir::Op::match_any ? "quern_cpu_match_any" : "quern_cpu_match_all",
              b.getVoidTy(), {out, values, members, context.mask_bits()}, Touches::arguments_only);
  define_vector(context, value, b.CreateAlignedLoad(type, out, llvm::Align(64)));
  release(context, {values, members, out});
}

// --- reduce

struct WarpReduction {
  ir::ReduceMode mode;
  Intrinsic::ID over_lanes;
  std::uint32_t identity;
};
constexpr WarpReduction kReductions[] = {
    {ir::ReduceMode::add, Intrinsic::vector_reduce_add, 0},
    {ir::ReduceMode::smin, Intrinsic::vector_reduce_smin, 0x7fffffff},
    {ir::ReduceMode::smax, Intrinsic::vector_reduce_smax, 0x80000000},
    {ir::ReduceMode::umin, Intrinsic::vector_reduce_umin, 0xffffffff},
    {ir::ReduceMode::umax, Intrinsic::vector_reduce_umax, 0},
    {ir::ReduceMode::and_, Intrinsic::vector_reduce_and, 0xffffffff},
    {ir::ReduceMode::or_, Intrinsic::vector_reduce_or, 0},
    {ir::ReduceMode::xor_, Intrinsic::vector_reduce_xor, 0},
};

/// For one membermask in the whole warp: reduces the values of all its members to one.
Value* reduced(Context& context, const WarpReduction& row, Value* values, Value* members) {
  llvm::IRBuilder<>& b = context.builder();
  Value* const lanes = b.CreateBitCast(b.CreateAnd(members, context.mask_bits()),
                                       llvm::FixedVectorType::get(b.getInt1Ty(), kWarpSize));
  Value* const kept = b.CreateSelect(lanes, values, bits(values->getType(), row.identity));
  return b.CreateIntrinsic(row.over_lanes, {values->getType()}, {kept});
}

void emit_reduce(Context& context, ir::Value value) {
  const ir::Inst& inst = context.function()[value];
  llvm::IRBuilder<>& b = context.builder();
  const auto mode = static_cast<ir::ReduceMode>(inst.imm);
  Value* const values = context.vector(inst.args[0]);
  if (context.pattern(inst.args[1]).kind == LanePatternKind::uniform) {
    for (const WarpReduction& row : kReductions)
      if (row.mode == mode)
        define_scalar(context, value, reduced(context, row, values, context.scalar(inst.args[1])));
    return;
  }
  // The lanes form groups with different membermasks.
  Value* const in = spill(context, values);
  Value* const members = spill(context, context.vector(inst.args[1]));
  Value* const out = scratch(context, values->getType());
  call_helper(context, "quern_cpu_reduce", b.getVoidTy(),
              {b.getInt32(static_cast<std::uint32_t>(inst.imm)), out, in, members, context.mask_bits()},
              Touches::arguments_only);
  define_vector(context, value, b.CreateAlignedLoad(values->getType(), out, llvm::Align(64)));
  release(context, {in, members, out});
}

void emit_activemask(Context& context, ir::Value value) {
  define_scalar(context, value, context.mask_bits());
}

/// The lanes of a warp run together, so only the order of memory accesses must be kept.
void emit_warp_sync(Context& context, ir::Value) { compiler_barrier(context); }

constexpr Row kRows[] = {
    {ir::Op::shuffle, nullptr, emit_shuffle},
    {ir::Op::shuffle_valid, nullptr, emit_shuffle_valid},
    {ir::Op::vote, nullptr, emit_vote},
    {ir::Op::match_any, nullptr, emit_match},
    {ir::Op::match_all, nullptr, emit_match},
    {ir::Op::reduce, nullptr, emit_reduce},
    {ir::Op::activemask, nullptr, emit_activemask},
    {ir::Op::warp_sync, nullptr, emit_warp_sync},
};

}  // namespace

std::span<const Row> warp_rows() { return kRows; }

}  // namespace quern::cpu::emit
