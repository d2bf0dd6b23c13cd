// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/operations/gathered_load.hpp"

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "cpu/analysis/regular.hpp"
#include "cpu/emit/operations/lanes.hpp"
#include "cpu/emit/operations/operands.hpp"
#include "cpu/emit/operations/vectors.hpp"

namespace quern::cpu::emit {
namespace {

using llvm::Value;
using Elements = std::vector<Value*>;

// --- gathers

/// Several elements of a lane that one gather of 4 or 8 bytes loads; 1 if each element needs its own.
unsigned elements_at_once(const Access& access) {
  if (ir::is_ordered(access.inst.attr) || access.interleaved()) return 1;
  for (const unsigned bytes : {8u, 4u}) {
    const unsigned elements = bytes / access.element_bytes;
    if (elements > 1 && elements <= access.count && access.inst.attr.alignment >= bytes) return elements;
  }
  return 1;
}

Elements load_scattered_lanes(const Access& access, const LanePointers& pointers) {
  Context& c = access.context;
  const unsigned at_once = elements_at_once(access);
  Elements elements;
  for (unsigned element = 0; element < access.count; element += at_once) {
    const std::int64_t displacement = element * access.element_step();
    if (at_once == 1) {
      elements.push_back(gather(access, pointers, displacement));
      continue;
    }
    Value* const words = gather_words(access, pointers, displacement, at_once * access.element_bytes);
    llvm::Type* const type = llvm::FixedVectorType::get(access.memory_type(), kWarpSize * at_once);
    for (Value* const each : deinterleave(c, c.builder().CreateBitCast(words, type), at_once))
      elements.push_back(each);
  }
  return elements;
}

// --- one load for all elements of a lane

constexpr unsigned kBlockBytes = 16;  ///< of the vectors inside which processors shuffle fastest
constexpr unsigned kBlocks = 4;       ///< that are assembled to a vector

/// True if the elements of a lane are loaded at once and then sorted. Processors gather an element of each of
/// 8 lanes in the time of about 8 such loads.
bool loads_lane_by_lane(const Access& access) {
  return access.count > 1 && access.element_bytes >= 4 &&
         (access.bytes() == kBlockBytes || access.bytes() == kBlockBytes / 2) && !access.interleaved() &&
         access.space != ir::Space::param && !ir::is_ordered(access.inst.attr);
}

/// The elements of each lane, one vector for a lane. A lane that does not run reads what the first one reads
/// that runs.
Elements load_each_lane(const Access& access, const LanePointers& pointers) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  Value* index = pointers.index;
  if (!c.full()) index = b.CreateSelect(c.mask(), index, splat(c, extract_lane(c, index, first_lane(c))));
  // Loads of scalars are faster than taking 32 lanes out of vectors, which LLVM would make of them.
  constexpr bool kVolatile = true;
  Value* const indices = spill(c, index);
  llvm::Type* const of_lane = llvm::FixedVectorType::get(access.memory_type(), access.count);
  llvm::Type* const number = index->getType()->getScalarType();
  Elements lanes;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    Value* const its = b.CreateLoad(number, b.CreateConstGEP1_32(number, indices, lane), kVolatile);
    Value* const offset = b.CreateMul(b.CreateSExt(its, b.getInt64Ty()),
                                      b.getInt64(static_cast<std::uint64_t>(pointers.scale)));
    lanes.push_back(load_one(access, of_lane, b.CreateGEP(b.getInt8Ty(), pointers.base, offset)));
  }
  release(c, {indices});
  return lanes;
}

/// Shuffles inside of each block: `from` has the places in a block of `low` followed by one of `high`.
Value* shuffle_blocks(Context& context, Value* low, Value* high, std::span<const int> from) {
  const int width = static_cast<int>(from.size());
  llvm::SmallVector<int, kWarpSize> places;
  for (int block = 0; block < static_cast<int>(kBlocks); ++block)
    for (const int place : from)
      places.push_back(block * width + place % width +
                       (place < width ? 0 : static_cast<int>(kBlocks) * width));
  return context.builder().CreateShuffleVector(low, high, places);
}

/// Vectors of blocks whose lanes are so far apart that shuffles inside of blocks leave the elements in the
/// order of the lanes.
Elements sort_blocks(Context& context, const Elements& vectors) {
  const auto pair = [&](Value* low, Value* high, std::initializer_list<int> first,
                        std::initializer_list<int> second) {
    return std::array{shuffle_blocks(context, low, high, first), shuffle_blocks(context, low, high, second)};
  };
  const auto in_block = llvm::cast<llvm::FixedVectorType>(vectors[0]->getType())->getNumElements() / kBlocks;
  if (vectors.size() == 4) {
    const auto [a, b] = pair(vectors[0], vectors[1], {0, 4, 1, 5}, {2, 6, 3, 7});
    const auto [c, d] = pair(vectors[2], vectors[3], {0, 4, 1, 5}, {2, 6, 3, 7});
    const auto [e0, e1] = pair(a, c, {0, 1, 4, 5}, {2, 3, 6, 7});
    const auto [e2, e3] = pair(b, d, {0, 1, 4, 5}, {2, 3, 6, 7});
    return {e0, e1, e2, e3};
  }
  const auto [e0, e1] = in_block == 2 ? pair(vectors[0], vectors[1], {0, 2}, {1, 3})
                                      : pair(vectors[0], vectors[1], {0, 2, 4, 6}, {1, 3, 5, 7});
  return {e0, e1};
}

Elements load_lane_by_lane(const Access& access, const LanePointers& pointers) {
  Context& c = access.context;
  const Elements lanes = load_each_lane(access, pointers);
  const unsigned in_block = kBlockBytes / access.bytes(), group = kBlocks * access.count * in_block;
  std::vector<Elements> sorted;
  for (unsigned first = 0; first < kWarpSize; first += group) {
    Elements vectors;
    for (unsigned vector = 0; vector < access.count; ++vector) {
      Elements parts;
      for (unsigned block = 0; block < kBlocks; ++block)
        for (unsigned lane = 0; lane < in_block; ++lane)
          parts.push_back(lanes[first + (block * access.count + vector) * in_block + lane]);
      vectors.push_back(concat(c, parts));
    }
    sorted.push_back(sort_blocks(c, vectors));
  }
  Elements elements;
  for (unsigned element = 0; element < access.count; ++element) {
    Elements parts;
    for (const Elements& of_group : sorted) parts.push_back(of_group[element]);
    Value* const all = concat(c, parts);
    elements.push_back(
        c.full() ? all
                 : c.builder().CreateSelect(c.mask(), all, llvm::Constant::getNullValue(all->getType())));
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
  constexpr std::int64_t kBlocksAhead = 2;  // measured: better than one block, and than four
  Context& c = access.context;
  const std::int64_t piece = std::int64_t{c.specialisation().block[0]} * access.bytes();
  prefetch_line(c.builder(), advance(c, pointer, kBlocksAhead * piece), Cache::second);
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
    return loads_lane_by_lane(access) ? load_lane_by_lane(access, pointers)
                                      : load_scattered_lanes(access, pointers);
  };
  if (!may_form_rows(access, pointers)) return load_apart();
  return choose_values(
      c, form_rows(access, pointers), [&] { return load_rows_of(access, pointers); }, load_apart);
}

}  // namespace quern::cpu::emit
