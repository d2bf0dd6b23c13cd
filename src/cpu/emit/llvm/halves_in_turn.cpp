// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/halves_in_turn.hpp"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "cpu/abi/warp_size.hpp"

namespace quern::cpu::emit {
namespace {

using llvm::Instruction;
using llvm::Value;

constexpr unsigned kHalf = kWarpSize / 2;
constexpr unsigned kRegisterBits = 512;
/// Values that are live at once in code that is split: many more than there are registers.
constexpr unsigned kMostLive = 52;
/// Shorter stretches have no more values than registers.
constexpr std::size_t kLeastInsts = 64;
/// Pieces of code for one half have this many instructions, up to half as many more or less: the scheduler
/// would move all loads to the beginning of a longer block.
constexpr std::size_t kPieceInsts = 96;

using Insts = std::vector<Instruction*>;

const llvm::FixedVectorType* vector_type(const Value* value) {
  return llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
}

bool is_wide(const Value* value) {
  const llvm::FixedVectorType* const type = vector_type(value);
  return type != nullptr && type->getNumElements() == kWarpSize;
}

/// The registers that a value needs. Masks have registers of their own.
unsigned registers(const Value* value) {
  const llvm::FixedVectorType* const type = vector_type(value);
  if (type == nullptr || type->getScalarSizeInBits() == 1) return 0;
  return (type->getNumElements() * type->getScalarSizeInBits() + kRegisterBits - 1) / kRegisterBits;
}

bool leaves(const Instruction& inst) {
  return std::ranges::any_of(inst.users(), [&](const llvm::User* user) {
    return llvm::cast<Instruction>(user)->getParent() != inst.getParent() || llvm::isa<llvm::PHINode>(user);
  });
}

/// By place before an instruction, and behind the last one: the registers that are live there. The
/// instructions follow each other in a block.
std::vector<int> count_live(llvm::ArrayRef<Instruction*> insts) {
  llvm::DenseMap<const Value*, std::size_t> first, last;
  for (std::size_t i = 0; i < insts.size(); ++i) {
    for (const Value* operand : insts[i]->operands()) {
      if (registers(operand) == 0 || llvm::isa<llvm::Constant>(operand)) continue;
      first.try_emplace(operand, 0);  // from outside, unless it is one of these
      std::size_t& until = last[operand];
      until = std::max(until, i);
    }
    if (registers(insts[i]) == 0) continue;
    first[insts[i]] = i + 1;
    if (leaves(*insts[i])) last[insts[i]] = insts.size();
  }
  std::vector<int> live(insts.size() + 2);
  for (const auto& [value, from] : first) {
    const std::size_t until = last.lookup(value);
    if (until < from) continue;
    live[from] += static_cast<int>(registers(value));
    live[until + 1] -= static_cast<int>(registers(value));
  }
  for (std::size_t i = 1; i < live.size(); ++i) live[i] += live[i - 1];
  live.pop_back();
  return live;
}

/// The longest sequence of instructions of the block that may change places with each other.
Insts longest_stretch(llvm::BasicBlock& block) {
  Insts longest, current;
  for (Instruction& inst : block) {
    const auto* const load = llvm::dyn_cast<llvm::LoadInst>(&inst);
    const bool fixed = inst.isTerminator() || llvm::isa<llvm::PHINode, llvm::AllocaInst>(inst) ||
                       inst.mayHaveSideEffects() || (load != nullptr && !load->isSimple());
    if (!fixed) {
      current.push_back(&inst);
      continue;
    }
    if (current.size() > longest.size()) longest = current;
    current.clear();
  }
  return longest;
}

/// Cuts the block into pieces where few values are live.
void cut(llvm::BasicBlock& block) {
  Insts insts;
  for (Instruction& inst : block) insts.push_back(&inst);
  const std::vector<int> live = count_live(insts);
  Insts places;
  for (std::size_t from = 0; from + 2 * kPieceInsts < insts.size();) {
    const auto begin = live.begin() + static_cast<std::ptrdiff_t>(from + kPieceInsts / 2);
    from = static_cast<std::size_t>(std::min_element(begin, begin + kPieceInsts) - live.begin());
    places.push_back(insts[from]);
  }
  llvm::BasicBlock* rest = &block;
  for (Instruction* const place : places) rest = rest->splitBasicBlock(place);
}

unsigned most_live(llvm::ArrayRef<Instruction*> insts) {
  const std::vector<int> live = count_live(insts);
  return static_cast<unsigned>(*std::ranges::max_element(live));
}

std::vector<int> lanes_of(unsigned half) {
  std::vector<int> lanes(kHalf);
  std::iota(lanes.begin(), lanes.end(), static_cast<int>(half * kHalf));
  return lanes;
}

/// Splits a block whose instructions may change places, except for its terminator, and sorts it.
class Halver {
 public:
  explicit Halver(llvm::BasicBlock& block) : block_(block) {}

  void run() {
    Insts insts;
    for (Instruction& inst : block_) insts.push_back(&inst);
    insts.pop_back();
    for (Instruction* const inst : insts) split(*inst);
    for (Instruction* const inst : split_) join(*inst);
    for (Instruction* const inst : llvm::reverse(split_)) inst->eraseFromParent();
    sort();
    cut(block_);
    if (second_ != nullptr) cut(*second_);
  }

 private:
  using Halves = std::array<Value*, 2>;

  void split(Instruction& inst) {
    if (replace_half(inst) || !is_wide(&inst)) return;
    Halves made{};
    for (const unsigned half : {0u, 1u})
      if ((made[half] = half_of(inst, half)) == nullptr) return;
    halves_[&inst] = made;
    split_.push_back(&inst);
    is_split_.insert(&inst);
  }

  /// A half of a vector that was split.
  bool replace_half(Instruction& inst) {
    const auto* const shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(&inst);
    if (shuffle == nullptr || shuffle->getShuffleMask().size() != kHalf) return false;
    const auto known = halves_.find(shuffle->getOperand(0));
    if (known == halves_.end()) return false;
    for (const unsigned half : {0u, 1u})
      if (std::ranges::equal(shuffle->getShuffleMask(), lanes_of(half)) && known->second[half] != nullptr) {
        inst.replaceAllUsesWith(known->second[half]);
        return true;
      }
    return false;
  }

  Value* half_of(Instruction& inst, unsigned half) {
    if (auto* const shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(&inst))
      return half_of_shuffle(*shuffle, half);
    if (auto* const call = llvm::dyn_cast<llvm::CallInst>(&inst)) return half_of_call(*call, half);
    const bool lanewise = llvm::isa<llvm::BinaryOperator, llvm::UnaryOperator, llvm::CmpInst,
                                    llvm::SelectInst, llvm::FreezeInst, llvm::CastInst>(inst);
    if (!lanewise || (llvm::isa<llvm::CastInst>(inst) && !is_wide(inst.getOperand(0)))) return nullptr;
    Instruction* const copy = inst.clone();
    copy->insertBefore(&inst);
    for (unsigned i = 0; i < copy->getNumOperands(); ++i)
      if (is_wide(inst.getOperand(i))) copy->setOperand(i, part(inst.getOperand(i), half));
    copy->mutateType(llvm::FixedVectorType::get(inst.getType()->getScalarType(), kHalf));
    return copy;
  }

  Value* half_of_call(llvm::CallInst& call, unsigned half) {
    const llvm::Intrinsic::ID id = call.getIntrinsicID();
    if (id == llvm::Intrinsic::not_intrinsic || !llvm::isTriviallyVectorizable(id)) return nullptr;
    llvm::SmallVector<Value*, 4> args;
    for (Value* const arg : call.args()) args.push_back(is_wide(arg) ? part(arg, half) : arg);
    llvm::IRBuilder<> b(&call);
    return b.CreateIntrinsic(llvm::FixedVectorType::get(call.getType()->getScalarType(), kHalf), id, args,
                             llvm::isa<llvm::FPMathOperator>(call) ? &call : nullptr);
  }

  /// Lanes that are taken from one or two vectors of 16 lanes.
  Value* half_of_shuffle(llvm::ShuffleVectorInst& shuffle, unsigned half) {
    const unsigned given = vector_type(shuffle.getOperand(0))->getNumElements();
    if (given != kHalf && given != kWarpSize) return nullptr;
    std::vector<unsigned> sources;  // vectors of 16 lanes, numbered over both operands
    std::vector<int> lanes;
    for (unsigned lane = 0; lane < kHalf; ++lane) {
      const int from = shuffle.getMaskValue(half * kHalf + lane);
      if (from < 0) {
        lanes.push_back(-1);
        continue;
      }
      const unsigned source = static_cast<unsigned>(from) / kHalf;
      const auto at = static_cast<std::size_t>(std::ranges::find(sources, source) - sources.begin());
      if (at == sources.size()) sources.push_back(source);
      lanes.push_back(static_cast<int>(at * kHalf + static_cast<unsigned>(from) % kHalf));
    }
    if (sources.size() > 2) return nullptr;
    if (sources.empty())
      return llvm::PoisonValue::get(llvm::FixedVectorType::get(shuffle.getType()->getScalarType(), kHalf));
    const auto vector = [&](unsigned source) {
      Value* const operand = shuffle.getOperand(source * kHalf / given);
      return given == kHalf ? operand : part(operand, source % 2);
    };
    Value* const first = vector(sources[0]);
    if (sources.size() == 1 && lanes == lanes_of(0)) return first;
    llvm::IRBuilder<> b(&shuffle);
    return sources.size() == 1 ? b.CreateShuffleVector(first, lanes)
                               : b.CreateShuffleVector(first, vector(sources[1]), lanes);
  }

  /// Half of a wide operand.
  Value* part(Value* value, unsigned half) {
    if (auto* const constant = llvm::dyn_cast<llvm::Constant>(value)) {
      llvm::SmallVector<llvm::Constant*, kHalf> lanes;
      for (unsigned lane = 0; lane < kHalf; ++lane)
        lanes.push_back(constant->getAggregateElement(half * kHalf + lane));
      return llvm::ConstantVector::get(lanes);
    }
    Value*& known = halves_[value][half];
    if (known != nullptr) return known;
    auto* const inst = llvm::dyn_cast<Instruction>(value);
    const bool here = inst != nullptr && inst->getParent() == &block_;
    llvm::IRBuilder<> b(&block_, here ? std::next(inst->getIterator()) : block_.begin());
    return known = b.CreateShuffleVector(value, lanes_of(half));
  }

  /// Puts the halves together for users that were not split.
  void join(Instruction& inst) {
    if (std::ranges::all_of(inst.users(), [&](const llvm::User* user) { return is_split_.contains(user); }))
      return;
    llvm::IRBuilder<> b(&inst);
    std::vector<int> all(kWarpSize);
    std::iota(all.begin(), all.end(), 0);
    const Halves halves = halves_[&inst];
    inst.replaceAllUsesWith(b.CreateShuffleVector(halves[0], halves[1], all));
  }

  /// First what the first half needs, then the rest.
  void sort() {
    llvm::DenseSet<const Instruction*> sooner;
    Insts insts, open;
    const auto add = [&](Value* value) {
      auto* const inst = llvm::dyn_cast_or_null<Instruction>(value);
      if (inst != nullptr && inst->getParent() == &block_ && sooner.insert(inst).second) open.push_back(inst);
    };
    for (const auto& [whole, halves] : halves_) add(halves[0]);
    while (!open.empty()) {
      Instruction* const inst = open.back();
      open.pop_back();
      for (Value* const operand : inst->operand_values()) add(operand);
    }
    for (Instruction& inst : block_)
      if (!inst.isTerminator()) insts.push_back(&inst);
    Instruction* first = nullptr;
    for (Instruction* const inst : insts)
      if (!sooner.contains(inst)) {
        inst->moveBefore(block_.getTerminator());
        if (first == nullptr) first = inst;
      }
    if (first != nullptr) second_ = block_.splitBasicBlock(first);
  }

  llvm::BasicBlock& block_;
  llvm::DenseMap<const Value*, Halves> halves_;
  Insts split_;
  llvm::DenseSet<const Value*> is_split_;  ///< the same
  llvm::BasicBlock* second_ = nullptr;
};

/// Each half alone has enough independent work: in turn, one half does not wait for results while the other
/// one is computed, as it does if they are mixed.
bool has_parallel_work(llvm::ArrayRef<Instruction*> insts) {
  constexpr unsigned kLeastParallel = 8;
  llvm::DenseMap<const Value*, unsigned> depths;
  unsigned deepest = 1, work = 0;
  for (const Instruction* const inst : insts) {
    const bool computes = registers(inst) != 0 && !llvm::isa<llvm::LoadInst, llvm::ShuffleVectorInst>(inst);
    unsigned depth = 0;
    for (const Value* const operand : inst->operand_values()) depth = std::max(depth, depths.lookup(operand));
    depths[inst] = depth += computes ? 1 : 0;
    deepest = std::max(deepest, depth);
    work += computes ? registers(inst) : 0;
  }
  return work / 2 >= kLeastParallel * deepest;
}

/// Many results depend on lanes of both halves, so that all of the first half is live in the second one.
bool mixes_halves(llvm::ArrayRef<Instruction*> insts) {
  constexpr std::size_t kLeastOthers = 5;  // for each that mixes lanes
  const auto mixes = [](const Instruction* inst) {
    const auto* const shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(inst);
    return shuffle != nullptr && !shuffle->isZeroEltSplat() && !shuffle->isConcat() &&
           !shuffle->isIdentityWithExtract();
  };
  return static_cast<std::size_t>(std::ranges::count_if(insts, mixes)) * kLeastOthers > insts.size();
}

bool needs_halves(llvm::ArrayRef<Instruction*> stretch) {
  return stretch.size() >= kLeastInsts && most_live(stretch) > kMostLive && has_parallel_work(stretch) &&
         !mixes_halves(stretch);
}

void halve(llvm::BasicBlock& block, llvm::ArrayRef<Instruction*> stretch) {
  Instruction* const behind = stretch.back()->getNextNode();
  llvm::BasicBlock* const own = block.splitBasicBlock(stretch.front());
  own->splitBasicBlock(behind);
  Halver(*own).run();
}

struct TakeHalvesInTurn : llvm::FunctionPass {
  TakeHalvesInTurn() : FunctionPass(kId) {}
  bool runOnFunction(llvm::Function& function) override { return take_halves_in_turn(function); }
  static char kId;
};
char TakeHalvesInTurn::kId = 0;

}  // namespace

bool take_halves_in_turn(llvm::Function& function) {
  std::vector<std::pair<llvm::BasicBlock*, Insts>> found;
  for (llvm::BasicBlock& block : function)
    if (Insts stretch = longest_stretch(block); needs_halves(stretch))
      found.emplace_back(&block, std::move(stretch));
  for (const auto& [block, stretch] : found) halve(*block, stretch);
  return !found.empty();
}

llvm::Pass* make_halver() { return new TakeHalvesInTurn; }

}  // namespace quern::cpu::emit
