// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/compose_shuffles.hpp"

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace quern::cpu::emit {
namespace {

using llvm::Value;

/// The element of a vector that is not a shuffle. null: poison.
struct Element {
  Value* vector = nullptr;
  unsigned lane = 0;
};
using Elements = std::vector<Element>;

const llvm::FixedVectorType* permuted_type(const Value* value) {
  const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  if (type == nullptr ||
      (!type->getElementType()->isIntegerTy() && !type->getElementType()->isFloatingPointTy()))
    return nullptr;
  const unsigned bits = type->getScalarSizeInBits();
  return bits == 32 || bits == 64 ? type : nullptr;
}

/// A part of a vector that a register contains.
struct Part {
  Value* vector = nullptr;
  unsigned first = 0;
  friend auto operator<=>(const Part&, const Part&) = default;
};

/// One register of a result: each lane is one of those of `parts`, which are numbered one after the other.
struct Chunk {
  std::vector<Part> parts;
  std::vector<int> lanes;
};

class Composer {
 public:
  explicit Composer(unsigned register_bits) : register_bits_(register_bits) {}

  void run(llvm::Function& function) {
    for (llvm::BasicBlock& block : function) {
      parts_.clear();
      for (llvm::Instruction& inst : llvm::make_early_inc_range(block)) visit(inst);
    }
    while (!replaced_.empty()) {  // users before what they use
      llvm::Instruction* const last = replaced_.back();
      replaced_.pop_back();
      if (last->use_empty()) last->eraseFromParent();
    }
  }

 private:
  void visit(llvm::Instruction& inst) {
    if (permuted_type(&inst) == nullptr) return;
    if (auto* const cast = llvm::dyn_cast<llvm::BitCastInst>(&inst)) {
      const llvm::FixedVectorType* const from = permuted_type(cast->getOperand(0));
      if (from == nullptr || from->getNumElements() != permuted_type(cast)->getNumElements()) return;
      if (!elements_.contains(cast->getOperand(0))) return;
      elements_[cast] = Elements(elements_[cast->getOperand(0)]);
      replaced_.push_back(cast);
    } else if (auto* const shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(&inst)) {
      const bool composes = std::ranges::any_of(shuffle->operands(),
                                                [&](Value* operand) { return elements_.contains(operand); });
      elements_[shuffle] = elements_of(*shuffle);
      replaced_.push_back(shuffle);
      if (composes && is_read(*shuffle)) rebuild(*shuffle);
    }
  }

  Elements elements_of(const llvm::ShuffleVectorInst& shuffle) {
    const unsigned count = permuted_type(shuffle.getOperand(0))->getNumElements();
    Elements result;
    for (const int from : shuffle.getShuffleMask())
      result.push_back(from < 0 ? Element{}
                                : element(shuffle.getOperand(static_cast<unsigned>(from) / count),
                                          static_cast<unsigned>(from) % count));
    return result;
  }

  Element element(Value* vector, unsigned lane) const {
    if (const auto known = elements_.find(vector); known != elements_.end()) return known->second[lane];
    if (llvm::isa<llvm::PoisonValue>(vector)) return {};
    return {vector, lane};
  }

  /// True if anything but further shuffles reads the value.
  static bool is_read(const llvm::Instruction& inst) {
    return std::ranges::any_of(inst.users(), [](const llvm::User* user) {
      if (llvm::isa<llvm::BitCastInst>(user)) return is_read(*llvm::cast<llvm::Instruction>(user));
      return !llvm::isa<llvm::ShuffleVectorInst>(user);
    });
  }

  void rebuild(llvm::ShuffleVectorInst& shuffle) {
    const Elements& elements = elements_[&shuffle];
    const unsigned lanes = register_bits_ / shuffle.getType()->getScalarSizeInBits();
    std::vector<Chunk> chunks;
    for (std::size_t first = 0; first < elements.size(); first += lanes) {
      const std::size_t count = std::min<std::size_t>(lanes, elements.size() - first);
      std::optional<Chunk> chunk = chunk_of({elements.data() + first, count}, lanes);
      if (!chunk) return;
      chunks.push_back(std::move(*chunk));
    }
    llvm::IRBuilder<> b(&shuffle);
    std::vector<Value*> made;
    for (const Chunk& chunk : chunks)
      made.push_back(b.CreateBitCast(register_of(b, chunk, lanes),
                                     llvm::FixedVectorType::get(shuffle.getType()->getElementType(),
                                                                static_cast<unsigned>(chunk.lanes.size()))));
    Value* const result = joined(b, std::move(made));
    shuffle.replaceAllUsesWith(result);
    if (!is_leaf(result, elements)) elements_.try_emplace(result, Elements(elements));
  }

  static bool is_leaf(const Value* value, const Elements& elements) {
    return std::ranges::any_of(elements, [&](const Element& each) { return each.vector == value; });
  }

  static std::optional<Chunk> chunk_of(llvm::ArrayRef<Element> elements, unsigned lanes) {
    Chunk chunk;
    for (const Element& each : elements) {
      if (each.vector == nullptr) {
        chunk.lanes.push_back(-1);
        continue;
      }
      const Part part{each.vector, each.lane / lanes * lanes};
      const auto found = std::ranges::find(chunk.parts, part);
      const auto number = static_cast<unsigned>(found - chunk.parts.begin());
      if (found == chunk.parts.end()) chunk.parts.push_back(part);
      chunk.lanes.push_back(static_cast<int>(number * lanes + each.lane % lanes));
    }
    if (chunk.parts.size() > 2) return std::nullopt;
    return chunk;
  }

  Value* register_of(llvm::IRBuilder<>& b, const Chunk& chunk, unsigned lanes) {
    if (chunk.parts.empty())
      return llvm::PoisonValue::get(llvm::FixedVectorType::get(b.getIntNTy(register_bits_ / lanes),
                                                               static_cast<unsigned>(chunk.lanes.size())));
    Value* const first = value_of(b, chunk.parts[0], lanes);
    if (chunk.parts.size() == 1) {
      if (chunk.lanes.size() == lanes && is_identity(chunk.lanes)) return first;
      return b.CreateShuffleVector(first, chunk.lanes);
    }
    Value* const second = b.CreateBitCast(value_of(b, chunk.parts[1], lanes), first->getType());
    return b.CreateShuffleVector(first, second, chunk.lanes);
  }

  static bool is_identity(const std::vector<int>& lanes) {
    for (std::size_t lane = 0; lane < lanes.size(); ++lane)
      if (lanes[lane] >= 0 && lanes[lane] != static_cast<int>(lane)) return false;
    return true;
  }

  /// The part as a vector of `lanes` elements.
  Value* value_of(llvm::IRBuilder<>& b, const Part& part, unsigned lanes) {
    Value*& value = parts_[part];
    if (value != nullptr) return value;
    const unsigned given = permuted_type(part.vector)->getNumElements();
    if (given == lanes) return value = part.vector;
    std::vector<int> taken;
    for (unsigned lane = part.first; lane < part.first + lanes; ++lane)
      taken.push_back(lane < given ? static_cast<int>(lane) : -1);
    return value = b.CreateShuffleVector(part.vector, taken);
  }

  static Value* joined(llvm::IRBuilder<>& b, std::vector<Value*> parts) {
    Value* result = parts[0];
    unsigned count = permuted_type(result)->getNumElements();
    for (std::size_t i = 1; i < parts.size(); ++i) {
      const unsigned more = permuted_type(parts[i])->getNumElements();
      std::vector<int> widened(count, -1), both;
      for (unsigned lane = 0; lane < more; ++lane) widened[lane] = static_cast<int>(lane);
      Value* const next = more == count ? parts[i] : b.CreateShuffleVector(parts[i], widened);
      for (unsigned lane = 0; lane < count + more; ++lane) both.push_back(static_cast<int>(lane));
      result = b.CreateShuffleVector(result, next, both);
      count += more;
    }
    return result;
  }

  const unsigned register_bits_;
  llvm::DenseMap<const Value*, Elements> elements_;  ///< of shuffles
  std::map<Part, Value*> parts_;                     ///< of the current block
  std::vector<llvm::Instruction*> replaced_;         ///< shuffles, which may have no users any more
};

}  // namespace

void compose_shuffles(llvm::Function& function, unsigned register_bits) {
  Composer(register_bits).run(function);
}

}  // namespace quern::cpu::emit
