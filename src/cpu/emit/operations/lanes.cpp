// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/operations/lanes.hpp"

#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <string>

#include "cpu/emit/operations/lane_by_lane.hpp"
#include "cpu/emit/operations/lane_loop.hpp"
#include "cpu/emit/operations/operands.hpp"
#include "cpu/emit/operations/packed_lanes.hpp"
#include "cpu/emit/operations/vectors.hpp"

namespace quern::cpu::emit {
namespace {

using llvm::Value;

unsigned lanes_of(const Value* vector) {
  return llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements();
}

llvm::Type* memory_vector(const Access& access) {
  return llvm::FixedVectorType::get(access.memory_type(), kWarpSize);
}

constexpr unsigned kWordBytes = 4;

/// AVX-512 has gathers and scatters of 4 and 8 bytes. On other processors a helper is called, because LLVM's
/// inline form triples the compile time.
bool gathers_natively(const Access& access, unsigned bytes) {
  return access.context.specialisation().isa == Isa::avx512 && bytes >= kWordBytes;
}

std::string sized(const char* stem, const Access& access, unsigned bytes) {
  // The helpers for AVX2 processors use its gathers; the other helpers run on any processor.
  const bool avx2 = access.context.specialisation().isa != Isa::baseline && bytes >= kWordBytes;
  return std::string(stem) + std::to_string(bytes * 8) + (avx2 && stem[10] == 'g' ? "_avx2" : "");
}

/// True if the processor gathers these elements by their 32-bit indices.
bool gathers_by_index(const Access& access, const LanePointers& pointers, unsigned bytes) {
  return access.context.specialisation().isa == Isa::avx2 && bytes >= kWordBytes &&
         pointers.scale == static_cast<std::int64_t>(bytes) &&
         pointers.index->getType()->getScalarSizeInBits() == 32;
}

Value* gather_by_helper(const Access& access, const LanePointers& pointers, std::int64_t displacement,
                        llvm::Type* type) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  const unsigned bytes = type->getScalarSizeInBits() / 8;
  const Touches touches = ir::is_ordered(access.inst.attr) ? Touches::anything : Touches::reads_memory;
  const bool by_index = gathers_by_index(access, pointers, bytes);
  Value* const places = spill(c, by_index ? pointers.index : absolute_addresses(c, pointers, displacement));
  Value* const out = scratch(c, type);
  Value* const running = c.mask_bits();
  if (by_index)
    call_helper(c, sized("quern_cpu_gather_indexed_", access, bytes), b.getVoidTy(),
                {out, advance(c, pointers.base, displacement), places, running}, touches);
  else
    call_helper(c, sized("quern_cpu_gather_", access, bytes), b.getVoidTy(), {out, places, running}, touches);
  Value* const values = b.CreateAlignedLoad(type, out, llvm::Align(64));
  release(c, {places, out});
  return values;
}

Value* gather_natively(const Access& access, Value* addresses, llvm::Type* type, llvm::Align align) {
  Context& c = access.context;
  llvm::CallInst* const call =
      c.builder().CreateMaskedGather(type, addresses, align, c.mask(), llvm::Constant::getNullValue(type));
  annotate(access, call);
  return call;
}

/// True if each element lies in one aligned word. Parameters of 2 bytes may have any alignment.
bool lie_in_words(const Access& access) {
  return access.context.specialisation().isa == Isa::avx512 && access.element_bytes < kWordBytes &&
         access.align() == llvm::Align(access.element_bytes) && access.space != ir::Space::param &&
         !ir::is_ordered(access.inst.attr);
}

/// Gathers the aligned words that hold the elements. A word lies in the page of its element, so that it can
/// be read wherever the element can.
Value* gather_from_words(const Access& access, const LanePointers& pointers, std::int64_t displacement) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  Value* const addresses = absolute_addresses(c, pointers, displacement);
  llvm::Type* const words = llvm::FixedVectorType::get(b.getInt32Ty(), kWarpSize);
  llvm::Type* const places = llvm::FixedVectorType::get(b.getPtrTy(), kWarpSize);
  Value* const starts = b.CreateAnd(addresses, bits(addresses->getType(), ~std::uint64_t{kWordBytes - 1}));
  Value* const word =
      gather_natively(access, b.CreateIntToPtr(starts, places), words, llvm::Align(kWordBytes));
  Value* const byte = b.CreateAnd(b.CreateTrunc(addresses, words), bits(words, kWordBytes - 1));
  Value* const element = b.CreateLShr(word, b.CreateShl(byte, bits(words, 3)));
  llvm::Type* const narrow = llvm::FixedVectorType::get(b.getIntNTy(access.element_bytes * 8), kWarpSize);
  return b.CreateBitCast(b.CreateTrunc(element, narrow), memory_vector(access));
}

/// The lanes of the vector registers that hold `lanes` elements. LLVM 19 itself would extend shorter vectors,
/// and sometimes takes the mask of the lanes that follow for the new lanes, as for the first 8 of 32 bytes.
unsigned lanes_in_register(const Access& access, unsigned lanes) {
  constexpr unsigned kLeastBytes = 16;
  if (access.context.specialisation().isa != Isa::avx512) return lanes;
  return std::max(std::bit_ceil(lanes * access.element_bytes), kLeastBytes) / access.element_bytes;
}

/// True if a vector of this type has four bytes for each lane.
bool are_bytes_of_words(llvm::Type* type, unsigned count) {
  return count == kWordBytes && type->getScalarType()->isIntegerTy(8);
}

/// The bytes of each word, one vector for each place in a word. Kernels mostly compute with them in 32 bits,
/// for which they need not be packed to vectors of bytes first.
std::vector<Value*> bytes_of_words(Context& context, Value* wide) {
  llvm::IRBuilder<>& b = context.builder();
  const unsigned lanes = lanes_of(wide) / kWordBytes;
  llvm::Type* const bytes = llvm::FixedVectorType::get(b.getInt8Ty(), lanes);
  Value* const words = b.CreateBitCast(wide, llvm::FixedVectorType::get(b.getInt32Ty(), lanes));
  std::vector<Value*> elements;
  for (unsigned byte = 0; byte < kWordBytes; ++byte)
    elements.push_back(b.CreateTrunc(b.CreateLShr(words, std::uint64_t{8} * byte), bytes));
  return elements;
}

/// The low bytes of each lane's words, one behind the other.
Value* packed_words(Context& context, std::span<Value* const> words) {
  llvm::IRBuilder<>& b = context.builder();
  Value* packed = b.CreateAnd(words[0], bits(words[0]->getType(), 0xff));
  for (unsigned byte = 1; byte < kWordBytes; ++byte) {
    Value* const kept =
        byte + 1 == kWordBytes ? words[byte] : b.CreateAnd(words[byte], bits(words[byte]->getType(), 0xff));
    packed = b.CreateOr(packed, b.CreateShl(kept, std::uint64_t{8} * byte));
  }
  return b.CreateBitCast(packed, llvm::FixedVectorType::get(b.getInt8Ty(), lanes_of(words[0]) * kWordBytes));
}

/// Returns the bytes as words if all are the low bytes of words, or constants.
std::vector<Value*> words_of_bytes(std::span<Value* const> bytes) {
  std::vector<Value*> words;
  for (Value* const byte : bytes) {
    auto* const narrowed = llvm::dyn_cast<llvm::TruncInst>(byte);
    llvm::Type* const words_type = bytes[0]->getType()->getWithNewBitWidth(8 * kWordBytes);
    if (auto* const constant = llvm::dyn_cast<llvm::Constant>(byte))
      words.push_back(llvm::ConstantFoldCastInstruction(llvm::Instruction::ZExt, constant, words_type));
    else if (narrowed != nullptr && narrowed->getSrcTy() == words_type)
      words.push_back(narrowed->getOperand(0));
    else
      return {};
  }
  return words;
}

/// With more lanes, which are unspecified.
Value* padded(Context& context, Value* vector, unsigned lanes) {
  const unsigned given = lanes_of(vector);
  if (given == lanes) return vector;
  llvm::SmallVector<int, kWarpSize * 4> from(lanes, -1);
  std::iota(from.begin(), from.begin() + given, 0);
  return context.builder().CreateShuffleVector(vector, from);
}

/// With more lanes, at most 128, which are off. BZHI turns them off, since LLVM does not look into it.
Value* padded_mask(Context& context, Value* mask, unsigned lanes) {
  constexpr unsigned kWord = 64;
  llvm::IRBuilder<>& b = context.builder();
  const unsigned given = lanes_of(mask);
  if (given == lanes) return mask;
  llvm::Type* const word = b.getInt64Ty();
  llvm::Type* const words = b.getInt128Ty();
  const auto cleared = [&](Value* bits, unsigned count) {
    return b.CreateIntrinsic(llvm::Intrinsic::x86_bmi_bzhi_64, {}, {bits, b.getInt64(count)});
  };
  Value* const all = b.CreateBitCast(b.CreateFreeze(padded(context, mask, 2 * kWord)), words);
  Value* const low = b.CreateTrunc(all, word);
  Value* kept = b.CreateZExt(given < kWord ? cleared(low, given) : low, words);
  if (given > kWord) {
    Value* const high = cleared(b.CreateTrunc(b.CreateLShr(all, kWord), word), given - kWord);
    kept = b.CreateOr(kept, b.CreateShl(b.CreateZExt(high, words), kWord));
  }
  return b.CreateBitCast(b.CreateTrunc(kept, b.getIntNTy(lanes)),
                         llvm::FixedVectorType::get(b.getInt1Ty(), lanes));
}

void scatter_natively(const Access& access, const LanePointers& pointers, std::int64_t displacement,
                      Value* values) {
  Context& c = access.context;
  Value* const addresses = gather_pointers(c, pointers, displacement);
  annotate(access, c.builder().CreateMaskedScatter(values, addresses, access.align(), c.mask()));
}

/// i1: so few lanes run that storing one after the other takes less time than a scatter, which always takes
/// about as long as if all lanes ran. Measured on Zen 4: with a number of lanes that is known early, 24 take
/// as long; otherwise the end of the loop is a branch that the processor does not foresee.
Value* few_lanes_run(Context& context) {
  constexpr std::uint32_t kFew = 12;
  llvm::IRBuilder<>& b = context.builder();
  return b.CreateICmpULE(b.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, context.mask_bits()),
                         b.getInt32(kFew));
}

void store_running_lanes(const Access& access, const LanePointers& pointers, std::int64_t displacement,
                         Value* values) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  LanePlaces places(c, {advance(c, pointers.base, displacement), pointers.index, pointers.scale});
  LaneArray elements(c, values);
  for_lanes(c, [&](Value* lane) { store_one(access, elements.at(b, lane), places.at(b, lane)); });
  places.release(c);
  elements.release(c);
}

/// The size of a register that accesses memory under a mask; 0: gathers and scatters are better. With AVX2
/// only for shared memory, since masked stores are slow, and most of these remain in registers.
unsigned window_bytes_of(const Access& access) {
  if (gathers_natively(access, access.element_bytes)) return 64;
  const bool masks = access.context.specialisation().isa == Isa::avx2 && access.masks_natively();
  return masks && access.space == ir::Space::shared && access.context.full() ? 32 : 0;
}

}  // namespace

unsigned elements_of_word(const Access& access) {
  if (ir::is_ordered(access.inst.attr) || access.interleaved()) return 1;
  for (const unsigned bytes : {8u, 4u}) {
    const unsigned elements = bytes / access.element_bytes;
    if (elements > 1 && elements <= access.count && access.inst.attr.alignment >= bytes) return elements;
  }
  return 1;
}

Value* gather(const Access& access, const LanePointers& pointers, std::int64_t displacement) {
  if (lie_in_words(access)) return gather_from_words(access, pointers, displacement);
  llvm::Type* const type = memory_vector(access);
  if (!gathers_natively(access, access.element_bytes))
    return gather_by_helper(access, pointers, displacement, type);
  return gather_natively(access, gather_pointers(access.context, pointers, displacement), type,
                         access.align());
}

Value* gather_words(const Access& access, const LanePointers& pointers, std::int64_t displacement,
                    unsigned bytes) {
  llvm::IRBuilder<>& b = access.context.builder();
  llvm::Type* const type = llvm::FixedVectorType::get(b.getIntNTy(bytes * 8), kWarpSize);
  if (!gathers_natively(access, bytes)) return gather_by_helper(access, pointers, displacement, type);
  return gather_natively(access, gather_pointers(access.context, pointers, displacement), type,
                         llvm::Align(bytes));
}

void store_one(const Access& access, Value* value, Value* pointer) {
  llvm::StoreInst* const store = access.context.builder().CreateAlignedStore(value, pointer, access.align());
  if (ir::is_ordered(access.inst.attr) && !value->getType()->isVectorTy()) {
    const bool weak = access.inst.attr.semantics == ir::Semantics::weak ||
                      access.inst.attr.semantics == ir::Semantics::relaxed;
    store->setAlignment(llvm::Align(access.element_bytes));
    store->setVolatile(access.inst.attr.is_volatile);
    store->setAtomic(weak ? llvm::AtomicOrdering::Monotonic : llvm::AtomicOrdering::Release);
  }
  annotate(access, store);
}

void scatter(const Access& access, const LanePointers& pointers, std::int64_t displacement, Value* values,
             Often often) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  const bool natively = gathers_natively(access, access.element_bytes);
  const auto one_by_one = [&] { store_running_lanes(access, pointers, displacement, values); };
  const auto at_once = [&] { scatter_natively(access, pointers, displacement, values); };
  if (often == Often::yes && !c.full() && chooses_at_run_time(c.function()))
    return store_packed_or(access, pointers, displacement, values, [&] {
      if (natively)
        choose(c, few_lanes_run(c), one_by_one, at_once);
      else
        one_by_one();
    });
  if (natively) return at_once();
  Value* const addresses = spill(c, absolute_addresses(c, pointers, displacement));
  Value* const in = spill(c, values);
  call_helper(c, sized("quern_cpu_scatter_", access, access.element_bytes), b.getVoidTy(),
              {in, addresses, c.mask_bits()}, Touches::anything);
  release(c, {addresses, in});
}

Value* load_masked(const Access& access, llvm::Type* type, Value* pointer, Value* mask) {
  Context& c = access.context;
  const unsigned lanes = lanes_of(mask), in_register = lanes_in_register(access, lanes);
  llvm::Type* const whole = llvm::FixedVectorType::get(type->getScalarType(), in_register);
  llvm::CallInst* const call = c.builder().CreateMaskedLoad(
      whole, pointer, access.align(), padded_mask(c, mask, in_register), llvm::Constant::getNullValue(whole));
  annotate(access, call);
  return slice(c, call, 0, lanes);
}

bool stores_rows(const Access& access) {
  return access.masks_natively() ||
         (access.element_bytes < kWordBytes && access.count == 1 && !ir::is_ordered(access.inst.attr));
}

void store_masked(const Access& access, Value* values, Value* pointer, Value* mask) {
  Context& c = access.context;
  if (!access.masks_natively()) {
    llvm::IRBuilder<>& b = c.builder();
    Value* const row = spill(c, padded(c, values, kWarpSize));  // the helper reads groups of eight
    Value* const running = b.CreateZExt(b.CreateBitCast(mask, b.getIntNTy(lanes_of(mask))), b.getInt32Ty());
    call_helper(c, "quern_cpu_store_row_" + std::to_string(access.element_bytes * 8), b.getVoidTy(),
                {pointer, row, running}, Touches::anything);
    return release(c, {row});
  }
  const unsigned in_register = lanes_in_register(access, lanes_of(mask));
  annotate(access, c.builder().CreateMaskedStore(padded(c, values, in_register), pointer, access.align(),
                                                 padded_mask(c, mask, in_register)));
}

Windows access_windows(const Access& access) {
  // A gather or scatter takes about two cycles for each lane and element, a window about four.
  constexpr std::size_t kMostPerElement = 8;
  const unsigned window_bytes = window_bytes_of(access);
  if (window_bytes == 0) return {};
  // Several elements of a lane are moved together otherwise.
  const std::size_t most = moves_lane_by_lane(access) ? kMostPerElement : kMostPerElement * access.count;
  return windows_of(access.layout, access.element_bytes, access.count, window_bytes, most);
}

Value* window_mask(const Access& access, const Windows& windows, unsigned window) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  std::vector<int> lane_of(windows.slots, -1);
  for (unsigned at = 0; at < windows.places.size(); ++at)
    if (windows.places[at].window == window)
      lane_of[windows.places[at].slot] = static_cast<int>(at / access.count);
  llvm::SmallVector<llvm::Constant*, 16> used;
  for (int& lane : lane_of) {
    used.push_back(b.getInt1(lane >= 0));
    if (lane < 0) lane = static_cast<int>(kWarpSize);  // a lane of the second operand
  }
  if (c.full()) return llvm::ConstantVector::get(used);
  return b.CreateShuffleVector(c.mask(), llvm::Constant::getNullValue(c.mask()->getType()), lane_of);
}

std::vector<Value*> deinterleave(Context& context, Value* wide, unsigned count) {
  if (count == 1) return {wide};
  std::vector<Value*> elements;
  if (are_bytes_of_words(wide->getType(), count)) return bytes_of_words(context, wide);
  for (unsigned element = 0; element < count; ++element) {
    llvm::SmallVector<int, kWarpSize> lanes;
    for (unsigned lane = 0; lane < lanes_of(wide) / count; ++lane)
      lanes.push_back(static_cast<int>(lane * count + element));
    elements.push_back(context.builder().CreateShuffleVector(wide, lanes));
  }
  return elements;
}

Value* interleave(Context& context, std::span<Value* const> elements) {
  const unsigned count = static_cast<unsigned>(elements.size());
  if (count == 1) return elements[0];
  const unsigned lanes = lanes_of(elements[0]);
  if (are_bytes_of_words(elements[0]->getType(), count))
    if (const std::vector<Value*> words = words_of_bytes(elements); !words.empty())
      return packed_words(context, words);
  llvm::SmallVector<int, kWarpSize * 4> order;
  for (unsigned at = 0; at < lanes * count; ++at)
    order.push_back(static_cast<int>(at % count * lanes + at / count));
  return context.builder().CreateShuffleVector(concat(context, elements), order);
}

Value* repeat_lanes(Context& context, Value* mask, unsigned count) {
  if (count == 1) return mask;
  llvm::SmallVector<int, kWarpSize * 4> order;
  for (unsigned at = 0; at < lanes_of(mask) * count; ++at) order.push_back(static_cast<int>(at / count));
  return context.builder().CreateShuffleVector(mask, order);
}

Value* reverse(Context& context, Value* vector) {
  llvm::SmallVector<int, kWarpSize> order;
  for (unsigned lane = lanes_of(vector); lane > 0; --lane) order.push_back(static_cast<int>(lane - 1));
  return context.builder().CreateShuffleVector(vector, order);
}

}  // namespace quern::cpu::emit
