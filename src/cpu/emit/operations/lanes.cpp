// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/operations/lanes.hpp"

#include <string>

#include "cpu/emit/operations/operands.hpp"
#include "cpu/emit/operations/vectors.hpp"

namespace quern::cpu::emit {
namespace {

using llvm::Value;

constexpr unsigned kVectorBytes = 64;

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

Value* gather_by_helper(const Access& access, const LanePointers& pointers, std::int64_t displacement,
                        llvm::Type* type) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  Value* const addresses = spill(c, absolute_addresses(c, pointers, displacement));
  Value* const out = scratch(c, type);
  call_helper(c, sized("quern_cpu_gather_", access, type->getScalarSizeInBits() / 8), b.getVoidTy(),
              {out, addresses, c.mask_bits()},
              ir::is_ordered(access.inst.attr) ? Touches::anything : Touches::reads_memory);
  Value* const values = b.CreateAlignedLoad(type, out, llvm::Align(64));
  release(c, {addresses, out});
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

}  // namespace

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

void scatter(const Access& access, const LanePointers& pointers, std::int64_t displacement, Value* values) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  if (gathers_natively(access, access.element_bytes)) {
    Value* const addresses = gather_pointers(c, pointers, displacement);
    annotate(access, b.CreateMaskedScatter(values, addresses, access.align(), c.mask()));
    return;
  }
  Value* const addresses = spill(c, absolute_addresses(c, pointers, displacement));
  Value* const in = spill(c, values);
  call_helper(c, sized("quern_cpu_scatter_", access, access.element_bytes), b.getVoidTy(),
              {in, addresses, c.mask_bits()}, Touches::anything);
  release(c, {addresses, in});
}

Windows access_windows(const Access& access) {
  // A gather or scatter takes about two cycles for each lane and element, a window about four.
  constexpr std::size_t kMostPerElement = 8;
  if (!gathers_natively(access, access.element_bytes)) return {};
  return windows_of(access.layout, access.element_bytes, access.count, kVectorBytes,
                    kMostPerElement * access.count);
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
