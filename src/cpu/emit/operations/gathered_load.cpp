// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/operations/gathered_load.hpp"

#include <array>
#include <cstdint>

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

Elements load_rows_of(const Access& access, const LanePointers& pointers) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  llvm::Type* const type = llvm::FixedVectorType::get(access.memory_type(), kRowLanes * access.count);
  std::vector<Elements> rows;
  for (unsigned row = 0; row < kRows; ++row) {
    Value* const first = b.CreateExtractElement(pointers.index, std::uint64_t{row * kRowLanes});
    Value* const offset = b.CreateMul(b.CreateSExt(first, b.getInt64Ty()),
                                      b.getInt64(static_cast<std::uint64_t>(pointers.scale)));
    rows.push_back(deinterleave(c, load_one(access, type, b.CreateGEP(b.getInt8Ty(), pointers.base, offset)),
                                access.count));
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
  if (!may_form_rows(access, pointers)) return load_scattered_lanes(access, pointers);
  return choose_values(
      c, form_rows(access, pointers), [&] { return load_rows_of(access, pointers); },
      [&] { return load_scattered_lanes(access, pointers); });
}

}  // namespace quern::cpu::emit
