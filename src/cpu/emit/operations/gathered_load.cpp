// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/operations/gathered_load.hpp"

#include <array>
#include <cstdint>

#include "cpu/analysis/regular.hpp"
#include "cpu/emit/operations/lane_by_lane.hpp"
#include "cpu/emit/operations/lanes.hpp"
#include "cpu/emit/operations/near_lanes.hpp"
#include "cpu/emit/operations/operands.hpp"
#include "cpu/emit/operations/vectors.hpp"

namespace quern::cpu::emit {
namespace {

using llvm::Value;
using Elements = std::vector<Value*>;

// --- gathers

/// The elements that are in one word of each lane.
Elements elements_of_words(const Access& access, Value* words, unsigned count) {
  Context& c = access.context;
  llvm::Type* const type = llvm::FixedVectorType::get(access.memory_type(), kWarpSize * count);
  return deinterleave(c, c.builder().CreateBitCast(words, type), count);
}

Elements load_scattered_lanes(const Access& access, const LanePointers& pointers) {
  const unsigned at_once = elements_of_word(access);
  Elements elements;
  for (unsigned element = 0; element < access.count; element += at_once) {
    const std::int64_t displacement = element * access.element_step();
    if (at_once == 1) {
      elements.push_back(gather(access, pointers, displacement));
      continue;
    }
    Value* const words = gather_words(access, pointers, displacement, at_once * access.element_bytes);
    for (Value* const each : elements_of_words(access, words, at_once)) elements.push_back(each);
  }
  return elements;
}

// --- rows

/// A block has at least so many threads in a row in most kernels with two-dimensional data.
constexpr unsigned kRowLanes = 16;
constexpr unsigned kRows = kWarpSize / kRowLanes;

/// True if the lanes' elements may follow each other although no analysis shows it: the indices are computed
/// from those of the threads and wrap or stop at an edge of the data, where few warps are.
bool may_form_rows(const Access& access, const LanePointers& pointers) {
  const Context& c = access.context;
  const bool divides = access.bytes() % pointers.scale == 0;
  return c.full() && divides && access.space != ir::Space::local && access.space != ir::Space::param &&
         access.address != ir::kNone && !ir::is_ordered(access.inst.attr) &&
         !analysis::depends_on_data(c.function(), c.analysis().patterns, access.address);
}

/// i1: in each half of the warp, the lanes' elements follow each other in memory.
Value* form_rows(const Access& access, const LanePointers& pointers) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  Value* const index = pointers.index;
  std::array<std::int64_t, kWarpSize> distances{};
  llvm::SmallVector<int, kWarpSize> firsts;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    distances[lane] = access.bytes() / pointers.scale * (lane % kRowLanes);
    firsts.push_back(static_cast<int>(lane - lane % kRowLanes));
  }
  const unsigned width = index->getType()->getScalarSizeInBits();
  Value* const expected =
      b.CreateAdd(b.CreateShuffleVector(index, firsts), lane_constant(c, width, distances));
  Value* holds = b.CreateICmpEQ(mask_to_bits(c, b.CreateICmpEQ(index, expected)), b.getInt32(kAllLanes));
  for (unsigned row = 0; row < kRows && width < 64; ++row) {  // an index must not wrap inside a row
    Value* const first = b.CreateExtractElement(index, std::uint64_t{row * kRowLanes});
    Value* const last = b.CreateExtractElement(index, std::uint64_t{(row + 1) * kRowLanes - 1});
    holds = b.CreateAnd(holds, b.CreateICmpSLE(first, last));
  }
  return holds;
}

/// True if each block reads a piece of several rows of the data, and the next block the next piece:
/// prefetchers of the processor lose the many rows.
bool reads_rows_by_pieces(const Access& access) {
  const Context& c = access.context;
  return c.specialisation().block[1] > 1 && access.space != ir::Space::shared &&
         c.analysis().loop_of[access.inst.block] == ir::kNone;
}

/// Prefetches what a block farther ahead reads there.
void prefetch_piece(const Access& access, Value* pointer) {
  Context& c = access.context;
  const std::int64_t piece = std::int64_t{c.specialisation().block[0]} * access.bytes();
  prefetch_line(c.builder(), advance(c, pointer, kPiecesAhead * piece), {Cache::second});
}

Elements load_rows_of(const Access& access, const LanePointers& pointers) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  llvm::Type* const type = llvm::FixedVectorType::get(access.memory_type(), kRowLanes * access.count);
  std::vector<Elements> rows;
  for (unsigned row = 0; row < kRows; ++row) {
    Value* const first = b.CreateExtractElement(pointers.index, std::uint64_t{row * kRowLanes});
    Value* const offset = b.CreateMul(b.CreateSExt(first, b.getInt64Ty()),
                                      b.getInt64(static_cast<std::uint64_t>(pointers.scale)));
    Value* const pointer = b.CreateGEP(b.getInt8Ty(), pointers.base, offset);
    rows.push_back(deinterleave(c, load_one(access, type, pointer), access.count));
    if (reads_rows_by_pieces(access)) prefetch_piece(access, pointer);
  }
  Elements elements;
  for (unsigned element = 0; element < access.count; ++element) {
    std::vector<Value*> parts;
    for (const Elements& row : rows) parts.push_back(row[element]);
    elements.push_back(concat(c, parts));
  }
  return elements;
}

}  // namespace

Elements load_gathered(const Access& access) {
  Context& c = access.context;
  const LanePointers pointers = lane_pointers(access);
  const auto load_apart = [&] {
    return moves_lane_by_lane(access) ? load_lane_by_lane(access, pointers)
                                      : load_scattered_lanes(access, pointers);
  };
  if (elements_of_word(access) == access.count)
    if (const std::optional<NearLanes> lanes = find_near_lanes(access, pointers, access.bytes())) {
      const Elements words = choose_values(
          c, lanes->near, [&] { return Elements{load_near_lanes(access, *lanes)}; },
          [&] { return Elements{gather_words(access, pointers, 0, access.bytes())}; });
      return elements_of_words(access, words[0], access.count);
    }
  if (!may_form_rows(access, pointers)) return load_apart();
  return choose_values(
      c, form_rows(access, pointers), [&] { return load_rows_of(access, pointers); }, load_apart);
}

}  // namespace quern::cpu::emit
