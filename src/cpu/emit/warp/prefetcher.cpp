// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/warp/prefetcher.hpp"

#include <llvm/IR/Module.h>

#include <algorithm>

#include "cpu/analysis/block_step.hpp"
#include "cpu/analysis/counters.hpp"

namespace quern::cpu::emit {
namespace {

constexpr std::int64_t kLineBytes = 64;
/// Operations between a loop's variable and the address.
constexpr unsigned kMaxDepth = 8;
/// Additions to a loop's variable in one iteration.
constexpr unsigned kMaxAdditions = 16;
/// Lanes that access more lines than this, and not whole lines, are a gather: prefetching costs as much as
/// loading.
constexpr std::size_t kMaxLines = 4;

/// A kernel over one row of blocks prefetches that much: more than the latency of memory, since most
/// processors have more lines under way to the second cache, if they come early. Measured: 16 KiB is better
/// than 4 or 32.
constexpr std::uint64_t kBlocksAheadBytes = std::uint64_t{16} << 10;
constexpr std::uint64_t kMostBlocksAhead = 8;
/// Kernels with fewer loads, like a stencil of five points, gain nothing from prefetching pieces of rows.
constexpr std::size_t kManyLoads = 8;
/// Strides of a grid that are prefetched in a loop. Measured: 16 is better than 8 or 32.
constexpr std::uint64_t kStridesAhead = 16;
/// Bytes from one iteration to the next that the processor does not detect as a walk through the lines
/// between.
constexpr std::int64_t kLeastGappedStride = 512;
/// The code prefetches one iteration ahead where lanes have parted, since such an iteration takes long.
constexpr std::uint64_t kPartedRoundsAhead = 1;

/// The latency of memory, in iterations of the loop. Measured. `copies`: strides in an iteration.
std::uint64_t rounds_ahead(RoundLength length, std::uint32_t gang_width, std::uint64_t copies) {
  switch (length) {
    case RoundLength::barrier:
      return 2;
    case RoundLength::atomics:
      return std::max(2u, 8 / gang_width);
    case RoundLength::few:
      return 4;
    case RoundLength::none:
      break;
  }
  return std::max<std::uint64_t>(1, kStridesAhead / copies);
}

/// Returns one lane for each cache line that the lanes access, assuming that lanes with different
/// coefficients access different lines.
std::vector<unsigned> lane_of_each_line(const analysis::LanePattern& address) {
  const auto apart = [&](unsigned a, unsigned b) {
    return std::ranges::any_of(address.terms, [&](const analysis::Term& term) {
      const std::int64_t distance = term.offsets[a] - term.offsets[b];
      return term.coefficient == ir::kNone ? std::abs(distance) >= kLineBytes : distance != 0;
    });
  };
  std::vector<unsigned> lanes;
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    if (std::ranges::all_of(lanes, [&](unsigned other) { return apart(lane, other); })) lanes.push_back(lane);
  return lanes;
}

}  // namespace

/// Finds the operation that makes an iteration of the loop long.
RoundLength Prefetcher::round_length(std::uint32_t loop) {
  const auto [known, is_new] = round_lengths_.try_emplace({body_.version, loop}, RoundLength::none);
  if (!is_new) return known->second;
  const auto by_lane = [&](ir::Value value) {
    return inst(value).op == ir::Op::atomic &&
           pattern(inst(value).args[0]).kind != analysis::LanePatternKind::uniform;
  };
  RoundLength length = RoundLength::none;
  for (const ir::BlockId id : facts().loops[loop].blocks) {
    if (plan_.barrier[id] != ir::kNone) return known->second = RoundLength::barrier;
    if (std::ranges::any_of(function_->blocks[id].insts, by_lane)) length = RoundLength::atomics;
  }
  if (length == RoundLength::none && is_short(loop)) length = RoundLength::few;
  return known->second = length;
}

/// The sum of what additions, which NVRTC repeats in loops that it unrolls, add to `phi` up to `next`; none
/// if anything else leads to it.
template <class ConstantPart>
Prefetcher::Advance Prefetcher::sum_since(ir::Value next, ir::Value phi, const ConstantPart& constant_part) {
  Advance sum;
  for (unsigned additions = 0; next != phi; ++additions) {
    if (inst(next).op != ir::Op::iadd || additions == kMaxAdditions) return {};
    llvm::Value* step = nullptr;
    for (const std::size_t i : {0u, 1u})
      if (step == nullptr && (step = constant_part(inst(next).args[i])) != nullptr)
        next = inst(next).args[1 - i];
    if (step == nullptr) return {};
    sum = {sum.amount == nullptr ? step : code_.CreateAdd(sum.amount, step), additions + 1};
  }
  return sum;
}

/// True if the loop ends before what is prefetched in it is read, like a loop over a tile of a matrix: rows
/// below it belong to tiles that follow soon.
bool Prefetcher::is_short(std::uint32_t loop) {
  return std::ranges::any_of(function_->blocks[facts().loops[loop].header].insts, [&](ir::Value phi) {
    if (!is_phi(phi)) return false;
    const auto counter = analysis::find_counter(*function_, facts(), phi);
    if (!counter || counter->step <= 0) return false;
    const std::int64_t start = pattern(counter->start).min;
    return std::ranges::any_of(counter->tests, [&](const analysis::Counter::Test& test) {
      const analysis::LanePattern& limit = pattern(test.limit);
      return start >= 0 && limit.constant &&
             limit.max / counter->step < static_cast<std::int64_t>(kStridesAhead);
    });
  });
}

/// The amount that each iteration of the loop adds to `value`, as i64; empty if unknown. It is used for a
/// hint only, so it may wrap differently.
std::optional<Prefetcher::Advance> Prefetcher::advance_of(ir::Value value, std::uint32_t loop,
                                                          unsigned depth) {
  const auto inside = [&](ir::Value of) {
    std::uint32_t at = facts().loop_of[inst(of).block];
    while (at != ir::kNone && at != loop) at = facts().loops[at].parent;
    return at == loop;
  };
  const auto constant_part = [&](ir::Value of) -> llvm::Value* {
    const bool known = !inside(of) && pattern(of).kind == analysis::LanePatternKind::uniform &&
                       (slots_.known_constant(body_.version, of) != nullptr || slots_.has(body_.version, of));
    return known ? code_.CreateSExtOrTrunc(values_.scalar(of), code_.getInt64Ty()) : nullptr;
  };
  const ir::Inst& what = inst(value);
  if (!inside(value)) return Advance{};
  if (depth == 0) return std::nullopt;
  switch (what.op) {
    case ir::Op::phi:
      if (facts().loops[loop].header != what.block) return std::nullopt;
      for (const ir::Value next : what.args)
        if (next != value && inside(next))
          if (const Advance step = sum_since(next, value, constant_part); step.amount != nullptr) return step;
      return std::nullopt;
    case ir::Op::sext:
    case ir::Op::zext:
      return advance_of(what.args[0], loop, depth - 1);
    case ir::Op::iadd: {
      const auto a = advance_of(what.args[0], loop, depth - 1), b = advance_of(what.args[1], loop, depth - 1);
      if (!a || !b) return std::nullopt;
      if (a->amount == nullptr || b->amount == nullptr) return a->amount == nullptr ? b : a;
      return Advance{code_.CreateAdd(a->amount, b->amount), std::max(a->copies, b->copies)};
    }
    case ir::Op::imul: {
      const auto a = advance_of(what.args[0], loop, depth - 1);
      llvm::Value* const factor = constant_part(what.args[1]);
      if (!a || a->amount == nullptr || factor == nullptr) return std::nullopt;
      return Advance{code_.CreateMul(a->amount, factor), a->copies};
    }
    case ir::Op::shl: {
      const auto a = advance_of(what.args[0], loop, depth - 1);
      llvm::Value* const by = constant_part(what.args[1]);
      if (!a || a->amount == nullptr || by == nullptr) return std::nullopt;
      return Advance{code_.CreateShl(a->amount, by), a->copies};
    }
    default:
      return std::nullopt;
  }
}

/// Describes how the lanes of an access move through memory. Returns nothing if their distances are not
/// fixed.
std::optional<Prefetcher::Walk> Prefetcher::walk_of(ir::Value address) const {
  const analysis::LanePattern& where = pattern(address);
  if (where.kind == analysis::LanePatternKind::affine) return Walk{where, address, 1};
  if (where.kind != analysis::LanePatternKind::offset32) return std::nullopt;
  Walk walk{pattern(where.index), where.index, where.scale};  // as if the index did not wrap
  if (walk.lanes.kind != analysis::LanePatternKind::affine) return std::nullopt;
  for (analysis::Term& term : walk.lanes.terms)
    for (std::int64_t& offset : term.offsets) offset *= where.scale;
  return walk;
}

/// The address of the lanes' scalar, as i64.
llvm::Value* Prefetcher::base_of(ir::Value address) {
  llvm::Value* const base = values_.scalar(address);
  const analysis::LanePattern& where = pattern(address);
  if (where.kind != analysis::LanePatternKind::offset32) return base;
  llvm::Value* index = values_.scalar(where.index);
  index = where.index_signed ? code_.CreateSExt(index, code_.getInt64Ty())
                             : code_.CreateZExt(index, code_.getInt64Ty());
  return code_.CreateAdd(base,
                         code_.CreateMul(index, code_.getInt64(static_cast<std::uint64_t>(where.scale))));
}

/// Stores are prefetched in rounds with barriers only: the stores of other loops wait for nothing, and to
/// prefetch them, too, takes up to twice the time. Measured on Zen 4.
void Prefetcher::emit(ir::Value access) {
  const bool stores = inst(access).op == ir::Op::store;
  if ((inst(access).op != ir::Op::load && !stores) || inst(access).attr.space != ir::Space::global) return;
  const ir::Value address = inst(access).args[0];
  const std::optional<Walk> walk = walk_of(address);
  if (!walk) return;
  const std::vector<unsigned> lanes = lane_of_each_line(walk->lanes);
  if (lanes.size() > std::max(kMaxLines, whole_lines(access))) return;
  const std::uint32_t loop = facts().loop_of[inst(access).block];
  if (loop == ir::kNone) {
    if (full() && !body_.serial && !stores) emit_for_next_block(access, *walk, lanes);
    return;
  }
  RoundLength length = round_length(loop);
  if (stores && length != RoundLength::barrier) return;
  const std::optional<Advance> stride = advance_of(walk->moving, loop, kMaxDepth);
  if (!stride || stride->amount == nullptr) return;
  // The processor detects short strides itself if iterations are short, too, and nothing lies between them.
  const bool no_long_operation = length == RoundLength::none || length == RoundLength::few;
  if (const auto* const known = llvm::dyn_cast<llvm::ConstantInt>(stride->amount);
      no_long_operation && known != nullptr) {
    if (!leaves_gaps(access, loop, known->getSExtValue() * walk->scale)) return;
    length = RoundLength::few;  // the next warps, which read what lies between, need that soon
  }
  const bool parted = !full() || body_.serial;
  const std::uint64_t rounds =
      parted ? kPartedRoundsAhead : rounds_ahead(length, body_.gang.width, stride->copies);
  llvm::Value* ahead =
      code_.CreateMul(stride->amount, code_.getInt64(rounds * static_cast<std::uint64_t>(walk->scale)));
  ahead = code_.CreateAdd(code_.CreateAdd(base_of(address), ahead), code_.getInt64(inst(access).imm));
  prefetch(ahead, walk->lanes, lanes,
           {length == RoundLength::none && !parted ? Cache::second : Cache::first,
            stores ? Purpose::store : Purpose::load});
}

/// True if the loads of an iteration of the loop, from the address of `load`, are no more than half of the
/// bytes that the iteration advances by: a row that the warps or gangs of a block read side by side, each of
/// them to its end.
bool Prefetcher::leaves_gaps(ir::Value load, std::uint32_t loop, std::int64_t stride) const {
  std::size_t lines = 0;
  for (const ir::BlockId id : facts().loops[loop].blocks)
    for (const ir::Value other : function_->blocks[id].insts)
      if (inst(other).op == ir::Op::load && inst(other).args[0] == inst(load).args[0])
        lines += whole_lines(other);
  const auto read = static_cast<std::int64_t>(lines * body_.gang.width) * kLineBytes;
  return std::abs(stride) >= std::max(kLeastGappedStride, 2 * read);
}

/// The lines of as many bytes as a warp loads or stores.
std::size_t Prefetcher::whole_lines(ir::Value access) const {
  const ir::Inst& what = inst(access);
  const ir::Type type = what.op == ir::Op::store ? inst(what.args[1]).type : what.type;
  return kWarpSize * what.attr.count * ir::byte_size(type) / kLineBytes;
}

/// True if a block's threads load consecutive memory, and so, one expects, do consecutive blocks: the
/// processor prefetches that by itself. Measured on Zen 4: to prefetch it here, too, takes up to twice the
/// time.
bool Prefetcher::is_dense(std::size_t lines, std::size_t whole_lines) {
  const std::array<std::uint32_t, 3>& block = specialisation_.block;
  return block[1] == 1 && block[2] == 1 && lines <= std::max<std::size_t>(1, whole_lines) && !has_rows();
}

/// True if the grid has more dimensions than one.
bool Prefetcher::has_rows() {
  if (!has_rows_)
    has_rows_ = std::ranges::any_of(function_->insts, [](const ir::Inst& what) {
      const auto special = static_cast<ir::Special>(what.imm);
      return what.op == ir::Op::special &&
             (special == ir::Special::ctaid_y || special == ir::Special::ctaid_z);
    });
  return *has_rows_;
}

/// The number of blocks after which the block that is prefetched runs.
std::uint64_t Prefetcher::blocks_ahead() {
  if (blocks_ahead_ != 0) return blocks_ahead_;
  std::uint64_t bytes = 0;
  for (const ir::BlockId id : plan_.full.order)
    for (const ir::Value value : function_->blocks[id].insts) {
      const ir::Inst& what = inst(value);
      if (what.op == ir::Op::load && what.attr.space == ir::Space::global &&
          !kept_scalar(Version::full, value))
        bytes += std::uint64_t{specialisation_.threads()} * what.attr.count * ir::byte_size(what.type);
    }
  // In a grid with rows, the addresses of blocks farther ahead are uncertain.
  const std::uint64_t fit = has_rows() ? 1 : kBlocksAheadBytes / std::max<std::uint64_t>(1, bytes);
  return blocks_ahead_ = std::clamp<std::uint64_t>(fit, 1, kMostBlocksAhead);
}

/// Short blocks with barriers: the processor does not look past the barriers' rounds to the loads of the next
/// blocks. The addresses are expected to move on by as much as they did since the block before.
void Prefetcher::emit_for_next_block(ir::Value load, const Walk& walk, const std::vector<unsigned>& lanes) {
  if (!plan_.has_barriers) {
    if (reads_many_rows()) emit_by_pieces(load, walk, lanes);
    return;
  }
  const ir::Value address = inst(load).args[0];
  if (!body_.gang.whole_block || inputs_.frame != nullptr) return emit_by_block_step(load, walk, lanes);
  if (walk.moving != address || is_dense(lanes.size(), whole_lines(load))) return;
  llvm::Value* const here = values_.scalar(address);
  const auto [known, is_first] = distances_.try_emplace(load, nullptr);
  if (is_first) {  // the first warp of the gang: the others are as far from the next block's
    llvm::IRBuilder<> at(inputs_.entry, inputs_.entry->begin());
    llvm::Value* const last = at.CreateAlloca(at.getInt64Ty());
    at.SetInsertPoint(inputs_.entry->getTerminator());
    at.CreateStore(at.getInt64(0), last);
    llvm::Value* const before = code_.CreateLoad(code_.getInt64Ty(), last);
    code_.CreateStore(here, last);
    known->second = code_.CreateMul(code_.CreateSub(here, before), code_.getInt64(blocks_ahead()));
  }
  prefetch(code_.CreateAdd(code_.CreateAdd(here, known->second), code_.getInt64(inst(load).imm)),
           pattern(address), lanes, {blocks_ahead() == 1 ? Cache::first : of_blocks_});
}

/// True if each block reads pieces of several rows at so many places of the data that the processor's
/// prefetchers lose them.
bool Prefetcher::reads_many_rows() {
  if (!reads_many_rows_) {
    std::size_t loads = 0;
    for (const ir::BlockId id : plan_.full.order)
      if (facts().loop_of[id] == ir::kNone)
        loads +=
            static_cast<std::size_t>(std::ranges::count_if(function_->blocks[id].insts, [&](ir::Value value) {
              return inst(value).op == ir::Op::load && inst(value).attr.space == ir::Space::global;
            }));
    reads_many_rows_ = specialisation_.block[1] > 1 && loads >= kManyLoads;
  }
  return *reads_many_rows_;
}

/// Blocks that are pieces of rows: the same of a block farther ahead, by the width of the blocks.
void Prefetcher::emit_by_pieces(ir::Value load, const Walk& walk, const std::vector<unsigned>& lanes) {
  const std::int64_t piece =
      std::int64_t{specialisation_.block[0]} * inst(load).attr.count * ir::byte_size(inst(load).type);
  if (piece < kLineBytes) return;
  const std::int64_t ahead = kPiecesAhead * piece + static_cast<std::int64_t>(inst(load).imm);
  prefetch(code_.CreateAdd(base_of(inst(load).args[0]), code_.getInt64(static_cast<std::uint64_t>(ahead))),
           walk.lanes, lanes, {Cache::second});
}

/// Blocks of several warps or gangs: the same, by the constant distance of the next block's address.
void Prefetcher::emit_by_block_step(ir::Value load, const Walk& walk, const std::vector<unsigned>& lanes) {
  const ir::Value address = inst(load).args[0];
  const std::optional<std::int64_t> step = analysis::block_step(*function_, facts(), address);
  if (!step || *step == 0) return;
  const std::int64_t ahead =
      *step * static_cast<std::int64_t>(blocks_ahead()) + static_cast<std::int64_t>(inst(load).imm);
  prefetch(code_.CreateAdd(base_of(address), code_.getInt64(static_cast<std::uint64_t>(ahead))), walk.lanes,
           lanes, {of_blocks_});
}

/// Prefetches the lines that the lanes access if the scalar of the address is `base`.
void Prefetcher::prefetch(llvm::Value* base, const analysis::LanePattern& where,
                          const std::vector<unsigned>& lanes, Prefetch how) {
  for (const unsigned lane : lanes) {
    llvm::Value* at = base;
    for (const analysis::Term& term : where.terms) {
      llvm::Value* part = code_.getInt64(static_cast<std::uint64_t>(term.offsets[lane]));
      if (term.coefficient != ir::kNone) {
        llvm::Value* factor = values_.scalar(term.coefficient);
        factor = term.sign_extend ? code_.CreateSExtOrTrunc(factor, code_.getInt64Ty())
                                  : code_.CreateZExtOrTrunc(factor, code_.getInt64Ty());
        part = code_.CreateMul(factor, part);
      }
      at = code_.CreateAdd(at, part);
    }
    prefetch_line(code_, code_.CreateIntToPtr(at, code_.getPtrTy()), how);
  }
}

}  // namespace quern::cpu::emit
