// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/forward_shared.hpp"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/SmallBitVector.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "cpu/emit/llvm/spaces.hpp"

namespace quern::cpu::emit {
namespace {

using llvm::Value;

/// Limit for the number of stored vectors that each register of a load reads.
constexpr std::size_t kMaxSources = 4;
/// Registers of AVX2 and AVX-512.
constexpr std::uint64_t kLeastRegisterBits = 256;
constexpr std::uint64_t kMostRegisterBits = 512;
/// Elements that loads read more often, on average over a stored vector, stay in memory, where a load costs
/// no permutation.
constexpr unsigned kMaxReaders = 4;
constexpr std::int64_t kWordBytes = 4;
/// Shorter accesses are not worth permutations.
constexpr std::uint64_t kLeastBits = 128;

bool lists_shared(const llvm::Instruction& inst, unsigned kind) { return lists_space(inst, kind, "shared"); }

/// A load or store of shared memory at base + offset. Accesses of other forms are none.
struct SharedAccess {
  Value* base = nullptr;
  std::int64_t offset = 0;
  llvm::Type* type = nullptr;
  Value* stored = nullptr;  ///< null: a load
  Value* rest = nullptr;    ///< of a masked load: the value of the other lanes
  llvm::SmallBitVector lanes;

  llvm::Type* element() const { return type->getScalarType(); }
  std::int64_t element_bytes() const { return type->getScalarSizeInBits() / 8; }
  /// The words of lane `lane` are those from this one on.
  std::int64_t word_of(unsigned lane) const { return (offset + lane * element_bytes()) / kWordBytes; }
  std::int64_t words_each() const { return element_bytes() / kWordBytes; }
  bool has_whole_words() const { return offset % kWordBytes == 0 && element_bytes() % kWordBytes == 0; }
  /// Includes words of which only a part is accessed.
  template <class Visit>
  void each_word(Visit visit) const {
    for (const unsigned lane : lanes.set_bits()) {
      const std::int64_t begin = offset + lane * element_bytes();
      for (std::int64_t word = begin >> 2; word <= (begin + element_bytes() - 1) >> 2; ++word) visit(word);
    }
  }
};

std::optional<llvm::SmallBitVector> lanes_of(const Value* mask) {
  const auto* constant = llvm::dyn_cast<llvm::Constant>(mask);
  const unsigned count = llvm::cast<llvm::FixedVectorType>(mask->getType())->getNumElements();
  llvm::SmallBitVector lanes(count);
  for (unsigned lane = 0; lane < count; ++lane) {
    const auto* bit = constant == nullptr
                          ? nullptr
                          : llvm::dyn_cast_or_null<llvm::ConstantInt>(constant->getAggregateElement(lane));
    if (bit == nullptr) return std::nullopt;
    if (bit->isOne()) lanes.set(lane);
  }
  return lanes;
}

std::optional<SharedAccess> access_of(llvm::Instruction& inst) {
  if (!lists_shared(inst, llvm::LLVMContext::MD_alias_scope)) return std::nullopt;
  SharedAccess access;
  const Value* pointer = nullptr;
  const Value* mask = nullptr;
  if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&inst); load != nullptr && load->isSimple()) {
    access.type = load->getType();
    pointer = load->getPointerOperand();
  } else if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&inst); store != nullptr && store->isSimple()) {
    access.stored = store->getValueOperand();
    pointer = store->getPointerOperand();
  } else if (auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&inst)) {
    const bool loads = call->getIntrinsicID() == llvm::Intrinsic::masked_load;
    if (!loads && call->getIntrinsicID() != llvm::Intrinsic::masked_store) return std::nullopt;
    if (loads) {
      access.type = call->getType();
      access.rest = call->getArgOperand(3);
    } else {
      access.stored = call->getArgOperand(0);
    }
    pointer = call->getArgOperand(loads ? 0 : 1);
    mask = call->getArgOperand(loads ? 2 : 3);
  } else {
    return std::nullopt;
  }
  if (access.stored != nullptr) access.type = access.stored->getType();
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(access.type);
  if (!access.element()->isIntegerTy() && !access.element()->isFloatingPointTy()) return std::nullopt;
  const unsigned bits = access.type->getScalarSizeInBits();
  if (bits == 0 || bits % 8 != 0) return std::nullopt;
  access.lanes.resize(vector == nullptr ? 1 : vector->getNumElements(), true);
  if (mask != nullptr) {
    const std::optional<llvm::SmallBitVector> lanes = lanes_of(mask);
    if (!lanes) return std::nullopt;
    access.lanes = *lanes;
  }
  llvm::APInt offset(64, 0);
  const llvm::DataLayout& layout = inst.getModule()->getDataLayout();
  access.base = const_cast<Value*>(pointer->stripAndAccumulateConstantOffsets(layout, offset, true));
  access.offset = offset.getSExtValue();
  return access;
}

/// True if the instruction is no access of shared memory.
bool is_elsewhere(const llvm::Instruction& inst) {
  if (const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&inst))
    if (call->getIntrinsicID() == llvm::Intrinsic::prefetch || call->isAssumeLikeIntrinsic()) return true;
  return !inst.mayReadOrWriteMemory() || lists_shared(inst, llvm::LLVMContext::MD_noalias);
}

// --- loads

class Forwarder {
 public:
  void run(llvm::BasicBlock& block) {
    for (llvm::Instruction& inst : llvm::make_early_inc_range(block)) {
      std::optional<SharedAccess> access = access_of(inst);
      if (access && access->stored != nullptr)
        remember(*access);
      else if (access)
        forward(inst, *access);
      else if (!is_elsewhere(inst) && inst.mayWriteToMemory())
        words_.clear();
    }
  }

 private:
  /// The place in a register of the last value stored to a word.
  struct Word {
    Value* value = nullptr;
    unsigned lane = 0;
    std::int64_t part = 0;  ///< number of the word in the lane
  };

  void remember(const SharedAccess& access) {
    if (access.base != base_) words_.clear();
    base_ = access.base;
    if (!access.has_whole_words() || !access.type->isVectorTy())
      return access.each_word([&](std::int64_t word) { words_.erase(word); });
    for (const unsigned lane : access.lanes.set_bits())
      for (std::int64_t part = 0; part < access.words_each(); ++part)
        words_[access.word_of(lane) + part] = {access.stored, lane, part};
  }

  void forward(llvm::Instruction& load, const SharedAccess& access) {
    const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(access.type);
    if (type == nullptr || access.base != base_ || !access.has_whole_words() || access.lanes.none()) return;
    if (type->getPrimitiveSizeInBits().getFixedValue() < kLeastBits) return;
    std::vector<Value*> sources;
    std::vector<int> from(type->getNumElements(), -1), lane_of(type->getNumElements(), -1);
    for (const unsigned lane : access.lanes.set_bits()) {
      const std::optional<Word> word = element_at(access, lane);
      if (!word) return;
      auto found = std::ranges::find(sources, word->value);
      if (found == sources.end()) found = sources.insert(sources.end(), word->value);
      from[lane] = static_cast<int>(found - sources.begin());
      lane_of[lane] = static_cast<int>(word->lane);
    }
    if (sources.size() > kMaxSources * registers_of(*type, sources)) return;
    for (std::size_t source = 0; source < sources.size(); ++source) {
      const auto lanes = llvm::cast<llvm::FixedVectorType>(sources[source]->getType())->getNumElements();
      readers_[sources[source]] += static_cast<unsigned>(std::ranges::count(from, static_cast<int>(source)));
      if (readers_[sources[source]] > kMaxReaders * lanes) return;
    }
    load.replaceAllUsesWith(assembled(load, access, sources, from, lane_of));
    load.eraseFromParent();
  }

  /// The stored element that the lane reads, if it was stored as a whole.
  std::optional<Word> element_at(const SharedAccess& access, unsigned lane) const {
    const auto first = words_.find(access.word_of(lane));
    if (first == words_.end() || first->second.part != 0) return std::nullopt;
    const Word& word = first->second;
    if (word.value->getType()->getScalarSizeInBits() != access.type->getScalarSizeInBits())
      return std::nullopt;
    for (std::int64_t part = 1; part < access.words_each(); ++part) {
      const auto next = words_.find(access.word_of(lane) + part);
      if (next == words_.end() || next->second.value != word.value || next->second.lane != word.lane ||
          next->second.part != part)
        return std::nullopt;
    }
    return word;
  }

  /// The number of registers of the loaded type, each as large as the smallest source.
  static std::uint64_t registers_of(const llvm::Type& type, const std::vector<Value*>& sources) {
    const auto bits_of = [](const llvm::Type& each) { return each.getPrimitiveSizeInBits().getFixedValue(); };
    std::uint64_t bits = kMostRegisterBits;
    for (const Value* const source : sources) bits = std::min(bits, bits_of(*source->getType()));
    return std::max<std::uint64_t>(1, bits_of(type) / std::max(bits, kLeastRegisterBits));
  }

  static Value* assembled(llvm::Instruction& load, const SharedAccess& access,
                          const std::vector<Value*>& sources, const std::vector<int>& from,
                          const std::vector<int>& lane_of) {
    llvm::IRBuilder<> b(&load);
    const std::size_t width = from.size();
    Value* result = access.rest;
    for (std::size_t source = 0; source < sources.size(); ++source) {
      Value* value = sources[source];
      value = b.CreateBitCast(value, value->getType()->getWithNewType(access.element()));
      llvm::SmallVector<int, 64> take(width, -1), blend;
      for (std::size_t lane = 0; lane < width; ++lane) {
        const bool taken = from[lane] == static_cast<int>(source);
        if (taken) take[lane] = lane_of[lane];
        blend.push_back(static_cast<int>(taken ? width + lane : lane));
      }
      Value* const placed = b.CreateShuffleVector(value, take);
      result = result == nullptr ? placed : b.CreateShuffleVector(result, placed, blend);
    }
    return result;
  }

  Value* base_ = nullptr;
  llvm::DenseMap<std::int64_t, Word> words_;
  llvm::DenseMap<Value*, unsigned> readers_;
};

// --- stores

/// The words of shared memory that nothing reads between an instruction and the next store to them, or the
/// end of the threads' block.
class UnreadWords {
 public:
  explicit UnreadWords(bool at_end) : all_(at_end) {}

  void forget() {
    all_ = false;
    stored_.clear();
  }
  void store(std::int64_t word) {
    stored_.insert(word);
    read_.erase(word);
  }
  void read(std::int64_t word) {
    stored_.erase(word);
    read_.insert(word);
  }
  bool contains(std::int64_t word) const { return stored_.contains(word) || (all_ && !read_.contains(word)); }

 private:
  bool all_;  ///< all words but those of `read_`
  llvm::DenseSet<std::int64_t> stored_, read_;
};

void remove_unread(llvm::BasicBlock& block) {
  Value* base = nullptr;
  UnreadWords unread(block.getTerminator()->hasMetadata(kBlockEnds));
  for (llvm::Instruction& inst : llvm::make_early_inc_range(llvm::reverse(block))) {
    const std::optional<SharedAccess> access = access_of(inst);
    if (!access) {
      if (!is_elsewhere(inst)) unread.forget();
      continue;
    }
    if (base != nullptr && access->base != base) unread.forget();
    base = access->base;
    if (access->stored == nullptr) {
      access->each_word([&](std::int64_t word) { unread.read(word); });
      continue;
    }
    // A store outside of the block's shared memory faults.
    bool can_fault = false, allowed = true;
    const std::uint64_t bytes =
        base->getPointerDereferenceableBytes(inst.getModule()->getDataLayout(), can_fault, allowed);
    bool dead = !can_fault;
    access->each_word([&](std::int64_t word) {
      dead &=
          unread.contains(word) && word >= 0 && static_cast<std::uint64_t>((word + 1) * kWordBytes) <= bytes;
    });
    if (dead)
      inst.eraseFromParent();
    else if (access->has_whole_words())
      access->each_word([&](std::int64_t word) { unread.store(word); });
  }
}

}  // namespace

void forward_shared(llvm::Function& function) {
  for (llvm::BasicBlock& block : function) {
    Forwarder().run(block);
    remove_unread(block);
  }
}

}  // namespace quern::cpu::emit
