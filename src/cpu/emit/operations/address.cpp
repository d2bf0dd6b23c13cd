// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/operations/address.hpp"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Metadata.h>

#include <algorithm>
#include <array>
#include <cassert>

#include "cpu/abi/state.hpp"
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

Value* extended_coefficient(Context& context, const analysis::Term& term) {
  llvm::IRBuilder<>& b = context.builder();
  Value* const coefficient = context.scalar(term.coefficient);
  return term.sign_extend ? b.CreateSExt(coefficient, b.getInt64Ty())
                          : b.CreateZExt(coefficient, b.getInt64Ty());
}

/// The pattern's base plus the terms with runtime coefficients, in `lane`.
Value* runtime_base(const Access& access, unsigned lane) {
  llvm::IRBuilder<>& b = access.context.builder();
  if (access.base != nullptr) return access.base;
  Value* base = access.context.scalar(access.address);
  for (const analysis::Term& term : access.context.pattern(access.address).terms) {
    if (term.coefficient == ir::kNone || term.offsets[lane] == 0) continue;
    Value* const factor = b.getInt64(static_cast<std::uint64_t>(term.offsets[lane]));
    base = b.CreateAdd(base, b.CreateMul(extended_coefficient(access.context, term), factor));
  }
  return base;
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

LanePointers offset_pointers(const Access& access) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  const analysis::LanePattern& pattern = c.pattern(access.address);
  Value* base = checked_pointer(access, c.scalar(access.address), 0);
  Value* index = c.vector(pattern.index);
  llvm::Type* const words = llvm::FixedVectorType::get(b.getInt32Ty(), kWarpSize);
  if (width_of(index->getType()) < 32) {
    index = pattern.index_signed ? b.CreateSExt(index, words) : b.CreateZExt(index, words);
  } else if (!pattern.index_signed) {
    // Gathers take signed indices, so an unsigned index is relative to the middle of its range.
    index = b.CreateXor(index, bits(words, 0x80000000u));
    base = advance(c, base, pattern.scale << 31);
  }
  return {advance(c, base, access.displacement), index, pattern.scale};
}

LanePointers affine_pointers(const Access& access) {
  Context& c = access.context;
  const std::int64_t after = added_after_check(access);
  Value* const base =
      checked_pointer(access, runtime_base(access, access.layout.base_lanes[0]), access.displacement - after);
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
  layout = layout_of(pattern, element_bytes * count, compact() ? kCompactReach : kWideReach);
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

Value* advance(Context& context, Value* pointer, std::int64_t bytes) {
  if (bytes == 0) return pointer;
  return context.builder().CreateConstGEP1_64(context.builder().getInt8Ty(), pointer,
                                              static_cast<std::uint64_t>(bytes));
}

std::optional<NearAccess> near_access(const Access& access) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  const analysis::LanePattern& pattern = c.pattern(access.address);
  if (pattern.kind != LanePatternKind::offset32 || access.space == ir::Space::local) return std::nullopt;
  const analysis::LanePattern& index = c.pattern(pattern.index);
  const std::uint32_t width = ir::bit_size(c.function()[pattern.index].type);
  if (index.kind != LanePatternKind::affine || index.terms.size() != 1 || width > 32 ||
      index.terms[0].coefficient != ir::kNone)
    return std::nullopt;
  analysis::LanePattern near;
  near.kind = LanePatternKind::affine;
  near.terms = index.terms;
  for (std::int64_t& offset : near.terms[0].offsets) offset *= pattern.scale;
  NearAccess result{access, nullptr};
  result.access.layout = layout_of(near, access.bytes(), access.compact() ? kCompactReach : kWideReach);
  if (result.access.layout.kind != LayoutKind::segments) return std::nullopt;

  const auto [least, most] = std::ranges::minmax(index.terms[0].offsets);
  Value* const first = c.scalar(pattern.index);
  Value* const wide =
      pattern.index_signed ? b.CreateSExt(first, b.getInt64Ty()) : b.CreateZExt(first, b.getInt64Ty());
  const auto holds = [&](std::int64_t offset) -> Value* {
    Value* const there = b.CreateAdd(wide, b.getInt64(static_cast<std::uint64_t>(offset)));
    Value* const narrow = b.CreateTrunc(there, first->getType());
    return b.CreateICmpEQ(there, pattern.index_signed ? b.CreateSExt(narrow, b.getInt64Ty())
                                                      : b.CreateZExt(narrow, b.getInt64Ty()));
  };
  result.near = b.CreateAnd(holds(least), holds(most));
  result.access.base = b.CreateAdd(c.scalar(access.address),
                                   b.CreateMul(wide, b.getInt64(static_cast<std::uint64_t>(pattern.scale))));
  return result;
}

Value* uniform_pointer(const Access& access) {
  Value* const address = access.context.scalar(access.address);
  const std::int64_t after = added_after_check(access);
  return advance(access.context, checked_pointer(access, address, access.displacement - after), after);
}

std::vector<Value*> base_pointers(const Access& access) {
  std::vector<Value*> pointers;
  const std::int64_t after = added_after_check(access);
  for (const unsigned lane : access.layout.base_lanes)
    pointers.push_back(
        advance(access.context,
                checked_pointer(access, runtime_base(access, lane), access.displacement - after), after));
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
