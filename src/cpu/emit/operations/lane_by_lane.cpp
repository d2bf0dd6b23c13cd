// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/operations/lane_by_lane.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <initializer_list>
#include <optional>
#include <span>

#include "cpu/analysis/block_step.hpp"
#include "cpu/emit/operations/gathered_load.hpp"
#include "cpu/emit/operations/lanes.hpp"
#include "cpu/emit/operations/operands.hpp"
#include "cpu/emit/operations/vectors.hpp"

namespace quern::cpu::emit {
namespace {

using llvm::Value;
using Elements = std::vector<Value*>;

constexpr unsigned kBlockBytes = 16;  ///< of the vectors inside which processors shuffle fastest
constexpr unsigned kBlocks = 4;       ///< that are assembled to a vector

/// Loads of scalars are faster than taking 32 lanes out of vectors, which LLVM would make of them.
constexpr bool kVolatile = true;

/// The distance from a lane's elements to those that the next block reads in their place, or nothing if that
/// is unknown or the processor's prefetchers are likely to follow. Lanes that are apart by constants read
/// rows of the data as a rule, by several accesses, of which the first one of each line prefetches it.
std::optional<std::int64_t> next_row(const Access& access) {
  constexpr std::int64_t kLineBytes = 64;
  const Context& c = access.context;
  const auto displacement = static_cast<std::int64_t>(access.inst.imm);
  if (!c.full() || access.space == ir::Space::shared || access.address == ir::kNone ||
      displacement % kLineBytes >= access.bytes())
    return std::nullopt;
  const std::optional<std::int64_t> step = analysis::block_step(c.function(), c.analysis(), access.address);
  if (!step || *step == 0 || c.analysis().loop_of[access.inst.block] != ir::kNone) return std::nullopt;
  return step;
}

/// The elements of one lane; three are the first of four.
Value* load_elements(const Access& access, Value* pointer) {
  llvm::IRBuilder<>& b = access.context.builder();
  auto* const type = llvm::FixedVectorType::get(access.memory_type(), std::bit_ceil(access.count));
  if (access.count == type->getNumElements()) return load_one(access, type, pointer);
  llvm::SmallVector<llvm::Constant*, 4> present(type->getNumElements(), b.getFalse());
  std::fill_n(present.begin(), access.count, b.getTrue());
  llvm::CallInst* const load = b.CreateMaskedLoad(
      type, pointer, access.align(), llvm::ConstantVector::get(present), llvm::Constant::getNullValue(type));
  annotate(access, load);
  return load;
}

/// The elements of each lane, one vector for a lane. A lane that does not run reads what the first one reads
/// that runs.
Elements load_each_lane(const Access& access, const LanePointers& pointers) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  Value* index = pointers.index;
  if (!c.full()) index = b.CreateSelect(c.mask(), index, splat(c, extract_lane(c, index, first_lane(c))));
  // Not for memory farther away, whose loads LLVM would put into another order.
  auto* const known = access.space == ir::Space::shared ? llvm::dyn_cast<llvm::Constant>(index) : nullptr;
  Value* const indices = known != nullptr ? nullptr : spill(c, index);
  llvm::Type* const number = index->getType()->getScalarType();
  const std::optional<std::int64_t> next = next_row(access);
  Elements lanes;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    Value* const its = known != nullptr
                           ? static_cast<Value*>(known->getAggregateElement(lane))
                           : b.CreateLoad(number, b.CreateConstGEP1_32(number, indices, lane), kVolatile);
    Value* const offset = b.CreateMul(b.CreateSExt(its, b.getInt64Ty()),
                                      b.getInt64(static_cast<std::uint64_t>(pointers.scale)));
    Value* const pointer = b.CreateGEP(b.getInt8Ty(), pointers.base, offset);
    lanes.push_back(load_elements(access, pointer));
    if (next) prefetch_line(b, advance(c, pointer, *next), {Cache::second});
  }
  if (known == nullptr) release(c, {indices});
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

/// The same for the way back: vectors of the elements, in the order of the lanes, become vectors of blocks.
Elements unsort_blocks(Context& context, const Elements& elements) {
  const auto in_block = llvm::cast<llvm::FixedVectorType>(elements[0]->getType())->getNumElements() / kBlocks;
  if (elements.size() == 4 || in_block == 2) return sort_blocks(context, elements);  // transpositions
  return {shuffle_blocks(context, elements[0], elements[1], std::array{0, 4, 1, 5}),
          shuffle_blocks(context, elements[0], elements[1], std::array{2, 6, 3, 7})};
}

/// The addresses of the lanes' elements, in memory. Those of lanes that do not run are `nowhere`.
Value* spill_addresses(const Access& access, const LanePointers& pointers, Value* nowhere) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  Value* addresses = absolute_addresses(c, pointers, 0);
  if (!c.full())
    addresses = b.CreateSelect(c.mask(), addresses, splat(c, b.CreatePtrToInt(nowhere, b.getInt64Ty())));
  return spill(c, addresses);
}

}  // namespace

bool moves_lane_by_lane(const Access& access) {
  const unsigned bytes = std::bit_ceil(access.count) * access.element_bytes;
  return access.count > 1 && access.element_bytes >= 4 &&
         (bytes == kBlockBytes || bytes == kBlockBytes / 2) && !access.interleaved() &&
         access.space != ir::Space::param && !ir::is_ordered(access.inst.attr);
}

std::vector<Value*> load_lane_by_lane(const Access& access, const LanePointers& pointers) {
  Context& c = access.context;
  const Elements lanes = load_each_lane(access, pointers);
  const unsigned count = std::bit_ceil(access.count);
  const unsigned in_block = kBlockBytes / (count * access.element_bytes), group = kBlocks * count * in_block;
  std::vector<Elements> sorted;
  for (unsigned first = 0; first < kWarpSize; first += group) {
    Elements vectors;
    for (unsigned vector = 0; vector < count; ++vector) {
      Elements parts;
      for (unsigned block = 0; block < kBlocks; ++block)
        for (unsigned lane = 0; lane < in_block; ++lane)
          parts.push_back(lanes[first + (block * count + vector) * in_block + lane]);
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

void store_lane_by_lane(const Access& access, const LanePointers& pointers,
                        std::span<Value* const> elements) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  const unsigned in_block = kBlockBytes / access.bytes(), group = kBlocks * access.count * in_block;
  Value* const nowhere = scratch(c, llvm::FixedVectorType::get(access.memory_type(), access.count));
  Value* const addresses = spill_addresses(access, pointers, nowhere);
  for (unsigned first = 0; first < kWarpSize; first += group) {
    Elements of_group;
    for (Value* const element : elements) of_group.push_back(slice(c, element, first, group));
    const Elements vectors = unsort_blocks(c, of_group);
    for (unsigned at = 0; at < group; ++at) {  // in the order of the lanes: the highest one's elements remain
      const unsigned block = at / in_block / access.count, vector = at / in_block % access.count;
      const unsigned slot = block * in_block + at % in_block;
      Value* const place =
          b.CreateLoad(b.getPtrTy(), b.CreateConstGEP1_32(b.getInt64Ty(), addresses, first + at), kVolatile);
      llvm::StoreInst* const store = b.CreateAlignedStore(
          slice(c, vectors[vector], slot * access.count, access.count), place, access.align());
      annotate(access, store);
    }
  }
  release(c, {addresses, nowhere});
}

}  // namespace quern::cpu::emit
