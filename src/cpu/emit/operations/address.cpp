// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/operations/address.hpp"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Metadata.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <numeric>

#include "cpu/abi/state.hpp"
#include "cpu/analysis/algebra.hpp"
#include "cpu/emit/operations/alignment.hpp"
#include "cpu/emit/operations/operands.hpp"
#include "cpu/emit/operations/vectors.hpp"

namespace quern::cpu::emit {
namespace {

using analysis::LanePatternKind;
using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

bool fits_int32(std::int64_t value) { return value >= INT32_MIN && value <= INT32_MAX; }

/// The part of the instruction's own offset that is added after the check; the gaps limit it. 0 for
/// parameters.
std::int64_t added_after_check(const Access& access) {
  constexpr std::int64_t kMost = engine::kCompactReachBytes / 2;
  const std::int64_t wanted = access.displacement;
  if (access.space == ir::Space::param || access.space == ir::Space::local) return 0;
  const bool fits = access.compact() ? wanted >= -kMost && wanted <= kMost : fits_int32(wanted);
  return fits ? wanted : 0;
}

std::uint64_t param_bytes(const Context& context) {
  std::uint64_t end = 0;
  for (const ir::Parameter& param : context.module().functions[0].params)
    end = std::max<std::uint64_t>(end, std::uint64_t{param.offset} + param.size);
  return end;
}

Value* clamp(llvm::IRBuilder<>& b, Value* offset, Value* limit) {
  return b.CreateBinaryIntrinsic(Intrinsic::umin, offset, limit);
}

Value* displaced(Context& context, Value* address, std::int64_t displacement) {
  if (displacement == 0) return address;
  return context.builder().CreateAdd(address,
                                     bits(address->getType(), static_cast<std::uint64_t>(displacement)));
}

/// The pointer to `address` in shared memory of a compact window. kCompactReachBytes are added before the
/// check and subtracted after it, since the address of a lane that does not run may be before shared memory.
Value* checked_shared(const Access& access, Value* base, Value* address) {
  constexpr std::uint32_t kReach = engine::kCompactReachBytes;
  constexpr std::uint32_t kMost = engine::kCompactSharedBytes + 2 * kReach;
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  Value* const counted = b.CreateAdd(b.CreateTrunc(address, b.getInt32Ty()), b.getInt32(kReach));
  Value* const inside = clamp(b, counted, b.getInt32(kMost));
  Value* const start = b.CreateGEP(b.getInt8Ty(), aligned_start(access, c.shared_base(), base),
                                   b.CreateZExt(inside, b.getInt64Ty()));
  return advance(c, start, -static_cast<std::int64_t>(kReach));
}

/// The pointer to lane 0's element at `address` in interleaved local memory.
Value* checked_local(const Access& access, Value* base, Value* address) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  Value* const inside = clamp(b, address, c.local_stride());
  return b.CreateGEP(b.getInt8Ty(), aligned_start(access, c.local_base(), base),
                     b.CreateMul(inside, b.getInt64(kWarpSize)));
}

/// The checked pointer of a scalar address, which is at `offset` from `base`, the address of a lane without
/// displacement. Offsets added to the pointer later must stay within a gap.
Value* checked_pointer(const Access& access, Value* base, std::int64_t offset) {
  Context& context = access.context;
  llvm::IRBuilder<>& b = context.builder();
  Value* const address = displaced(context, base, offset);
  switch (access.space) {
    case ir::Space::shared:
      if (access.compact()) return checked_shared(access, base, address);
      return b.CreateGEP(b.getInt8Ty(), aligned_start(access, context.shared_base(), base),
                         b.CreateTrunc(address, b.getInt32Ty()));
    case ir::Space::param:
      return b.CreateGEP(b.getInt8Ty(), context.params(),
                         clamp(b, address, b.getInt64(param_bytes(context))));
    case ir::Space::local:
      assert(access.interleaved() && "local addresses differ between lanes");
      return checked_local(access, base, address);
    default:
      break;
  }
  Value* const limit = aligned_limit(access, base);
  Value* const inside = clamp(b, b.CreateSub(address, context.window_base()),
                              limit == nullptr ? context.window_bytes() : limit);
  return b.CreateIntToPtr(b.CreateAdd(context.window_base(), inside), b.getPtrTy());
}

Value* extended(Context& context, Value* number, bool sign) {
  llvm::IRBuilder<>& b = context.builder();
  return sign ? b.CreateSExt(number, b.getInt64Ty()) : b.CreateZExt(number, b.getInt64Ty());
}

Value* extended_coefficient(Context& context, const analysis::Term& term) {
  return extended(context, context.scalar(term.coefficient), term.sign_extend);
}

/// `base` plus the terms with runtime coefficients, in `lane`.
Value* with_runtime_terms(Context& context, Value* base, const analysis::LanePattern& pattern,
                          unsigned lane) {
  llvm::IRBuilder<>& b = context.builder();
  for (const analysis::Term& term : pattern.terms) {
    if (term.coefficient == ir::kNone || term.offsets[lane] == 0) continue;
    Value* const factor = b.getInt64(static_cast<std::uint64_t>(term.offsets[lane]));
    base = b.CreateAdd(base, b.CreateMul(extended_coefficient(context, term), factor));
  }
  return base;
}

/// The address, without displacement, of the lane Layout::base_lanes[which].
Value* runtime_base(const Access& access, std::size_t which) {
  if (!access.bases.empty()) return access.bases[which];
  Context& c = access.context;
  return with_runtime_terms(c, c.scalar(access.address), c.pattern(access.address),
                            access.layout.base_lanes[which]);
}

LanePointers local_pointers(const Access& access) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  // Areas are much smaller than 2^26 bytes (engine: local_stride), so 32-bit indices reach all 32 of them.
  Value* const stride = c.local_stride();
  Value* const apart = access.interleaved() ? static_cast<Value*>(b.getInt32(access.element_bytes))
                                            : b.CreateTrunc(stride, b.getInt32Ty());
  Value* const lane_starts = b.CreateMul(lane_numbers(c, 32), splat(c, apart));
  Value* offset = nullptr;
  Value* scalar = nullptr;
  if (c.pattern(access.address).kind == LanePatternKind::uniform) {
    scalar = c.scalar(access.address);
    Value* const inside = clamp(b, displaced(c, scalar, access.displacement), stride);
    offset = splat(c, b.CreateTrunc(inside, b.getInt32Ty()));
  } else {
    Value* const inside =
        clamp(b, displaced(c, c.vector(access.address), access.displacement), splat(c, stride));
    offset = b.CreateTrunc(inside, lane_starts->getType());
  }
  if (access.interleaved()) offset = b.CreateMul(offset, bits(offset->getType(), kWarpSize));
  return {aligned_start(access, c.local_base(), scalar), b.CreateAdd(lane_starts, offset), 1};
}

LanePointers shared_pointers(const Access& access) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  llvm::Type* const words = llvm::FixedVectorType::get(b.getInt32Ty(), kWarpSize);
  if (access.compact()) {
    Value* const counted = b.CreateTrunc(displaced(c, c.vector(access.address), access.displacement), words);
    return {aligned_start(access, c.shared_base(), nullptr),
            clamp(b, counted, bits(words, engine::kCompactSharedBytes)), 1};
  }
  Value* const offsets = b.CreateTrunc(c.vector(access.address), words);
  return {advance(c, aligned_start(access, c.shared_base(), nullptr), access.displacement), offsets, 1};
}

LanePointers param_pointers(const Access& access) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  Value* const address = displaced(c, c.vector(access.address), access.displacement);
  return {c.params(), clamp(b, address, bits(address->getType(), param_bytes(c))), 1};
}

/// True if the index of an offset32 is not negative as a signed number of 32 bits.
bool has_plain_index(const Context& context, const analysis::LanePattern& pattern) {
  const bool narrow = ir::bit_size(context.function()[pattern.index].type) < 32;
  return pattern.index_signed || narrow || context.pattern(pattern.index).min >= 0;
}

/// The index of an offset32, as extended, is at least - this and less than this.
std::uint64_t index_end(const Context& context, const analysis::LanePattern& pattern) {
  const analysis::LanePattern& index = context.pattern(pattern.index);
  const std::uint32_t width = ir::bit_size(context.function()[pattern.index].type);
  if (!pattern.index_signed && index.min < 0) return std::uint64_t{1} << width;
  const std::uint64_t most = static_cast<std::uint64_t>(std::max(index.max, -1 - index.min));
  return std::min(most, (std::uint64_t{1} << (width - 1)) - 1) + 1;
}

/// The same addresses with a scale that processors have, if indices for it fit into 32 bits.
LanePointers with_native_scale(Context& context, const LanePointers& pointers, std::uint64_t end) {
  constexpr std::int64_t kNative = 8;
  const std::int64_t most = std::gcd(pointers.scale, kNative), factor = pointers.scale / most;
  if (factor <= 1 || end > (std::uint64_t{1} << 31) / static_cast<std::uint64_t>(factor)) return pointers;
  Value* const index = context.builder().CreateMul(
      pointers.index, bits(pointers.index->getType(), static_cast<std::uint64_t>(factor)));
  return {pointers.base, index, most};
}

LanePointers offset_pointers(const Access& access) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  const analysis::LanePattern& pattern = c.pattern(access.address);
  Value* base = checked_pointer(access, c.scalar(access.address), 0);
  Value* index = c.vector(pattern.index);
  llvm::Type* const words = llvm::FixedVectorType::get(b.getInt32Ty(), kWarpSize);
  if (width_of(index->getType()) < 32) {
    index = pattern.index_signed ? b.CreateSExt(index, words) : b.CreateZExt(index, words);
  } else if (!has_plain_index(c, pattern)) {
    // Gathers take signed indices, so an unsigned index is relative to the middle of its range.
    index = b.CreateXor(index, bits(words, 0x80000000u));
    base = advance(c, base, pattern.scale << 31);
    return {advance(c, base, access.displacement), index, pattern.scale};
  }
  return with_native_scale(c, {advance(c, base, access.displacement), index, pattern.scale},
                           index_end(c, pattern));
}

LanePointers affine_pointers(const Access& access) {
  Context& c = access.context;
  const std::int64_t after = added_after_check(access);
  Value* const base = checked_pointer(access, runtime_base(access, 0), access.displacement - after);
  return {advance(c, base, after), lane_constant(c, 32, access.layout.distances), 1};
}

LanePointers window_pointers(const Access& access) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  const std::int64_t after = added_after_check(access);
  Value* const limit = aligned_limit(access, nullptr);
  Value* const addresses = displaced(c, c.vector(access.address), access.displacement - after);
  Value* const offset = clamp(b, b.CreateSub(addresses, splat(c, c.window_base())),
                              splat(c, limit == nullptr ? c.window_bytes() : limit));
  Value* const base = b.CreateIntToPtr(c.window_base(), b.getPtrTy());
  return {advance(c, base, after), offset, 1};
}

/// The distances of the lanes' elements in interleaved local memory.
analysis::LanePattern side_by_side(unsigned element_bytes) {
  analysis::LanePattern pattern{.kind = LanePatternKind::affine};
  analysis::Term& term = pattern.terms.emplace_back();
  for (unsigned lane = 0; lane < kWarpSize; ++lane) term.offsets[lane] = std::int64_t{lane} * element_bytes;
  return pattern;
}

/// i1: the number is the same after it was truncated to `narrow` and extended.
Value* survives(Context& context, Value* number, llvm::Type* narrow, bool sign) {
  llvm::IRBuilder<>& b = context.builder();
  return b.CreateICmpEQ(number, extended(context, b.CreateTrunc(number, narrow), sign));
}

/// True if the index of an offset32 is a scalar plus terms whose exact sum 64 bits can hold.
bool has_testable_sum(const Context& context, ir::Value index) {
  const auto bits = [&](ir::Value value) { return ir::bit_size(context.function()[value].type); };
  const analysis::LanePattern& pattern = context.pattern(index);
  return pattern.kind == LanePatternKind::affine && bits(index) <= 32 &&
         std::ranges::all_of(pattern.terms, [&](const analysis::Term& term) {
           return term.coefficient == ir::kNone ||
                  (bits(term.coefficient) <= 32 && analysis::has_small_offsets(term));
         });
}

/// The least and largest distance of lanes from the address of the lane Layout::base_lanes[which] and its
/// terms with coefficients.
std::pair<std::int64_t, std::int64_t> distances_from(const Layout& layout, std::size_t which) {
  std::int64_t least = INT64_MAX, most = INT64_MIN;
  for (const Segment& segment : layout.segments)
    for (unsigned lane = segment.first; segment.base == which && lane < segment.first + segment.count;
         ++lane) {
      least = std::min(least, layout.distances[lane]);
      most = std::max(most, layout.distances[lane]);
    }
  return {least, most};
}

bool indexed_by_constants(const Layout& layout) {
  return !layout.base_lanes.empty() && layout.base_lanes.size() == 1;
}

}  // namespace

Access::Access(Context& context_, ir::Value value, ir::Type element_)
    : context(context_),
      inst(context_.function()[value]),
      address(inst.args[0]),
      space(inst.attr.space),
      element(element_),
      element_bytes(ir::byte_size(element_)),
      count(inst.attr.count),
      displacement(static_cast<std::int64_t>(inst.imm)) {
  // Each lane has separate local memory, whatever the offsets are. Parameters are checked last.
  const analysis::LanePattern& pattern = context.pattern(address);
  const bool uniform = pattern.kind == LanePatternKind::uniform;
  if (interleaved() && uniform && count == 1) layout = layout_of(side_by_side(element_bytes), element_bytes);
  if (space == ir::Space::local || (space == ir::Space::param && !uniform)) return;
  const bool has_index = pattern.kind == LanePatternKind::offset32;
  layout = layout_of(pattern, element_bytes * count, compact() ? kCompactReach : kWideReach,
                     has_index ? index_end(context, pattern) : kAnyIndex);
}

bool Access::interleaved() const {
  return space == ir::Space::local && context.function().interleaved_bytes != 0;
}

std::int64_t Access::element_step() const {
  return std::int64_t{element_bytes} * (interleaved() ? kWarpSize : 1);
}

llvm::Type* Access::memory_type() const {
  return element == ir::Type::i1 ? context.builder().getIntNTy(element_bytes * 8) : context.type_of(element);
}

llvm::Align Access::align() const {
  const std::uint32_t promised = inst.attr.alignment == 0 ? element_bytes : inst.attr.alignment;
  return llvm::Align(std::min(promised, element_bytes));
}

bool Access::masks_natively() const {
  const Isa isa = context.specialisation().isa;
  return isa == Isa::avx512 || (isa == Isa::avx2 && element_bytes >= 4);
}

void prefetch_line(llvm::IRBuilder<>& builder, Value* pointer, Prefetch how) {
  const unsigned writes = how.purpose == Purpose::store ? 1 : 0;
  const unsigned locality = how.cache == Cache::first ? 3 : 2;
  builder.CreateIntrinsic(
      llvm::Intrinsic::prefetch, {builder.getPtrTy()},
      {pointer, builder.getInt32(writes), builder.getInt32(locality), builder.getInt32(1)});
}

Value* advance(Context& context, Value* pointer, std::int64_t bytes) {
  if (bytes == 0) return pointer;
  return context.builder().CreateConstGEP1_64(context.builder().getInt8Ty(), pointer,
                                              static_cast<std::uint64_t>(bytes));
}

bool chooses_at_run_time(const ir::Function& function) {
  constexpr std::size_t kFew = 3000, kMany = 20'000;
  constexpr std::ptrdiff_t kMostAccesses = 512;
  if (function.insts.size() <= kFew) return true;
  const auto accesses = [](const ir::Inst& inst) {
    return inst.op == ir::Op::load || inst.op == ir::Op::store;
  };
  return function.insts.size() <= kMany && std::ranges::count_if(function.insts, accesses) <= kMostAccesses;
}

std::optional<NearAccess> near_access(const Access& access) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  const analysis::LanePattern& pattern = c.pattern(access.address);
  if (pattern.kind != LanePatternKind::offset32 || access.space == ir::Space::local ||
      !chooses_at_run_time(c.function()))
    return std::nullopt;
  const analysis::LanePattern& index = c.pattern(pattern.index);
  if (!has_testable_sum(c, pattern.index)) return std::nullopt;
  analysis::LanePattern near;
  near.kind = LanePatternKind::affine;
  near.terms = index.terms;
  for (analysis::Term& term : near.terms)
    if (term.coefficient == ir::kNone)
      for (std::int64_t& offset : term.offsets) offset *= pattern.scale;
  NearAccess result{access, b.getTrue()};
  result.access.layout = layout_of(near, access.bytes(), access.compact() ? kCompactReach : kWideReach);
  if (result.access.layout.kind != LayoutKind::segments) return std::nullopt;

  Value* const scale = b.getInt64(static_cast<std::uint64_t>(pattern.scale));
  Value* const first = extended(c, c.scalar(pattern.index), pattern.index_signed);
  for (std::size_t which = 0; which < result.access.layout.base_lanes.size(); ++which) {
    Value* const there = with_runtime_terms(c, first, index, result.access.layout.base_lanes[which]);
    const auto [least, most] = distances_from(result.access.layout, which);
    for (const std::int64_t distance : {least, most})
      result.near = b.CreateAnd(
          result.near,
          survives(c, b.CreateAdd(there, b.getInt64(static_cast<std::uint64_t>(distance / pattern.scale))),
                   c.scalar(pattern.index)->getType(), pattern.index_signed));
    result.access.bases.push_back(b.CreateAdd(c.scalar(access.address), b.CreateMul(there, scale)));
  }
  return result;
}

namespace {

/// As if neighbouring lanes, which `term` alone sets apart, were `elements` elements apart.
std::optional<SteppedAccess> stepped_by(const Access& access, const analysis::Term& term, unsigned elements) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  const std::int64_t wanted = std::int64_t{elements} * access.bytes(),
                     unit = term.offsets[1] - term.offsets[0];
  if (wanted % unit != 0) return std::nullopt;
  analysis::LanePattern pattern = c.pattern(access.address), apart = pattern;
  std::erase_if(apart.terms, [&](const analysis::Term& each) { return each == term; });
  for (analysis::Term& each : pattern.terms) {
    if (each != term) continue;
    each.coefficient = ir::kNone;
    for (std::int64_t& offset : each.offsets) offset *= wanted / unit;
  }
  SteppedAccess result{access, nullptr};
  result.access.layout = layout_of(pattern, access.bytes(), access.compact() ? kCompactReach : kWideReach);
  const LayoutKind kind = result.access.layout.kind;
  if (kind != LayoutKind::segments && kind != LayoutKind::strided) return std::nullopt;
  for (const unsigned lane : result.access.layout.base_lanes)
    result.access.bases.push_back(with_runtime_terms(c, c.scalar(access.address), apart, lane));
  result.stepped =
      b.CreateICmpEQ(extended_coefficient(c, term), b.getInt64(static_cast<std::uint64_t>(wanted / unit)));
  return result;
}

}  // namespace

std::vector<SteppedAccess> stepped_accesses(const Access& access) {
  const Context& c = access.context;
  const bool lies_apart = access.space != ir::Space::local && access.space != ir::Space::param;
  if (!c.full() || !lies_apart || access.address == ir::kNone || !access.bases.empty() ||
      ir::is_ordered(access.inst.attr) || !chooses_at_run_time(c.function()))
    return {};
  const analysis::LanePattern& pattern = c.pattern(access.address);
  if (pattern.kind != LanePatternKind::affine ||
      !std::ranges::all_of(pattern.terms, analysis::has_small_offsets))
    return {};
  const auto sets_apart = [](const analysis::Term& term) { return term.offsets[1] != term.offsets[0]; };
  const auto term = std::ranges::find_if(pattern.terms, sets_apart);
  if (std::ranges::count_if(pattern.terms, sets_apart) != 1 || term->coefficient == ir::kNone) return {};
  // Strides are in bytes, and numbers of channels in elements.
  const bool in_elements = std::abs(term->offsets[1] - term->offsets[0]) == access.bytes();
  std::vector<SteppedAccess> found;
  for (const unsigned elements : in_elements ? std::vector{3u, 4u} : std::vector{1u})
    if (std::optional<SteppedAccess> stepped = stepped_by(access, *term, elements))
      found.push_back(*std::move(stepped));
  return found;
}

Value* uniform_pointer(const Access& access) {
  Value* const address = access.context.scalar(access.address);
  const std::int64_t after = added_after_check(access);
  return advance(access.context, checked_pointer(access, address, access.displacement - after), after);
}

std::vector<Value*> base_pointers(const Access& access) {
  std::vector<Value*> pointers;
  const std::int64_t after = added_after_check(access);
  for (std::size_t which = 0; which < access.layout.base_lanes.size(); ++which)
    pointers.push_back(
        advance(access.context,
                checked_pointer(access, runtime_base(access, which), access.displacement - after), after));
  return pointers;
}

LanePointers lane_pointers(const Access& access) {
  assert((fits_int32(access.displacement) || access.space == ir::Space::param) &&
         "refused at load: accepts_access");
  switch (access.space) {
    case ir::Space::local:
      return local_pointers(access);
    case ir::Space::shared:
      return shared_pointers(access);
    case ir::Space::param:
      return param_pointers(access);
    default:
      break;
  }
  const LanePatternKind kind = access.context.pattern(access.address).kind;
  if (kind == LanePatternKind::affine && indexed_by_constants(access.layout)) return affine_pointers(access);
  if (kind == LanePatternKind::offset32 && access.layout.kind == LayoutKind::indexed)
    return offset_pointers(access);
  return window_pointers(access);
}

Value* absolute_addresses(Context& context, const LanePointers& pointers, std::int64_t displacement) {
  llvm::IRBuilder<>& b = context.builder();
  llvm::Type* const wide = llvm::FixedVectorType::get(b.getInt64Ty(), kWarpSize);
  Value* index = b.CreateSExt(pointers.index, wide);
  if (pointers.scale != 1) index = b.CreateMul(index, bits(wide, static_cast<std::uint64_t>(pointers.scale)));
  Value* const base = b.CreatePtrToInt(advance(context, pointers.base, displacement), b.getInt64Ty());
  return b.CreateAdd(splat(context, base), index);
}

Value* gather_pointers(Context& context, const LanePointers& pointers, std::int64_t displacement) {
  llvm::IRBuilder<>& b = context.builder();
  Value* const base = advance(context, pointers.base, displacement);
  const std::int64_t scale = pointers.scale;
  if (scale == 1 || scale == 2 || scale == 4 || scale == 8)
    return b.CreateGEP(b.getIntNTy(static_cast<unsigned>(scale * 8)), base, pointers.index);
  llvm::Type* const wide = llvm::FixedVectorType::get(b.getInt64Ty(), kWarpSize);
  Value* const index =
      b.CreateMul(b.CreateSExt(pointers.index, wide), bits(wide, static_cast<std::uint64_t>(scale)));
  return b.CreateGEP(b.getInt8Ty(), base, index);
}

Value* load_invariant(Context& context, llvm::Type* type, Value* pointer) {
  // Parameters in packed structures may have any alignment.
  llvm::LoadInst* const load = context.builder().CreateAlignedLoad(type, pointer, llvm::Align(1));
  load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context.llvm(), {}));
  return load;
}

void annotate(const Access& access, llvm::Instruction* instruction) {
  if (access.space == ir::Space::generic) return;
  llvm::LLVMContext& llvm = access.context.llvm();
  const auto scope = [&](const char* name) -> llvm::Metadata* {
    llvm::Metadata* const domain[] = {llvm::MDString::get(llvm, "quern state spaces")};
    return llvm::MDNode::get(llvm, {llvm::MDString::get(llvm, name), llvm::MDNode::get(llvm, domain)});
  };
  static constexpr std::array<const char*, 6> kNames = {"generic", "global",   "shared",
                                                        "local",   "constant", "param"};
  llvm::SmallVector<llvm::Metadata*, 4> others;
  for (std::size_t at = 1; at < kNames.size(); ++at)
    if (at != static_cast<std::size_t>(access.space)) others.push_back(scope(kNames[at]));
  instruction->setMetadata(llvm::LLVMContext::MD_alias_scope,
                           llvm::MDNode::get(llvm, {scope(kNames[static_cast<std::size_t>(access.space)])}));
  instruction->setMetadata(llvm::LLVMContext::MD_noalias, llvm::MDNode::get(llvm, others));
  if (access.inst.attr.invariant && llvm::isa<llvm::LoadInst>(instruction))
    instruction->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(llvm, {}));
}

void compiler_barrier(Context& context) {
  context.builder().CreateFence(llvm::AtomicOrdering::SequentiallyConsistent, llvm::SyncScope::SingleThread);
}

Value* from_memory(const Access& access, Value* value) {
  llvm::IRBuilder<>& b = access.context.builder();
  if (access.element == ir::Type::i1) return b.CreateICmpNE(value, bits(value->getType(), 0));
  return b.CreateBitCast(value, with_element(value->getType(), access.context.type_of(access.element)));
}

Value* to_memory(const Access& access, Value* value) {
  llvm::IRBuilder<>& b = access.context.builder();
  llvm::Type* const type = with_element(value->getType(), access.memory_type());
  return access.element == ir::Type::i1 ? b.CreateZExt(value, type) : b.CreateBitCast(value, type);
}

}  // namespace quern::cpu::emit
