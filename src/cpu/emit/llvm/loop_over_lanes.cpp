// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/loop_over_lanes.hpp"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "cpu/abi/warp_size.hpp"

namespace quern::cpu::emit {
namespace {

using llvm::Instruction;
using llvm::Value;

/// Instructions of a loop besides those that compute.
constexpr unsigned kLoopInsts = 6;
/// Types of masks with fewer lanes have no registers.
constexpr unsigned kFewestLanes = 4;
/// In bytes.
constexpr unsigned kVariableAlign = 32;

unsigned scalar_bits(const Value* value) { return value->getType()->getScalarSizeInBits(); }

/// A vector with a lane for each of the warp's, of a type that has registers. Masks are vectors of bits.
bool is_wide(const Value* value) {
  const auto* const type = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  if (type == nullptr || type->getNumElements() != kWarpSize || type->isPtrOrPtrVectorTy()) return false;
  const unsigned bits = type->getScalarSizeInBits();
  return bits == 1 || bits == 8 || bits == 16 || bits == 32 || bits == 64;
}

bool has_word_lanes(const Value* value) { return is_wide(value) && scalar_bits(value) == 64; }

/// The mask that a word has as bits.
bool is_mask_of_word(const Instruction& inst) {
  return llvm::isa<llvm::BitCastInst>(inst) && inst.getOperand(0)->getType()->isIntegerTy(kWarpSize);
}

/// The number that all lanes of the value are; null: they may differ.
Value* splat_of(Value* value) {
  if (auto* const constant = llvm::dyn_cast<llvm::Constant>(value)) return constant->getSplatValue();
  const auto* const shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(value);
  if (shuffle == nullptr || !shuffle->isZeroEltSplat()) return nullptr;
  const auto* const insert = llvm::dyn_cast<llvm::InsertElementInst>(shuffle->getOperand(0));
  const auto* const at =
      insert == nullptr ? nullptr : llvm::dyn_cast<llvm::ConstantInt>(insert->getOperand(2));
  return at != nullptr && at->isZero() ? insert->getOperand(1) : nullptr;
}

/// True if each lane of the result depends on the same lane of the operands only, without side effects.
bool is_lanewise(const Instruction& inst) {
  if (!is_wide(&inst)) return false;
  if (is_mask_of_word(inst)) return true;
  const auto is_part = [](const Value* operand) {
    return is_wide(operand) || !operand->getType()->isVectorTy();
  };
  if (const auto* const call = llvm::dyn_cast<llvm::CallInst>(&inst)) {
    const llvm::Intrinsic::ID id = call->getIntrinsicID();
    return id != llvm::Intrinsic::not_intrinsic && llvm::isTriviallyVectorizable(id) &&
           std::ranges::all_of(call->args(), is_part);
  }
  if (llvm::isa<llvm::CastInst>(inst)) return is_wide(inst.getOperand(0));
  return llvm::isa<llvm::BinaryOperator, llvm::UnaryOperator, llvm::CmpInst, llvm::SelectInst,
                   llvm::FreezeInst>(inst) &&
         std::ranges::all_of(inst.operand_values(), is_part);
}

/// The store of a whole vector to a variable of its type: parts of it may be stored one after another.
bool stores_to_variable(const Instruction& inst) {
  const auto* const store = llvm::dyn_cast<llvm::StoreInst>(&inst);
  if (store == nullptr || !store->isSimple() || !is_wide(store->getValueOperand())) return false;
  const auto* const variable = llvm::dyn_cast<llvm::AllocaInst>(store->getPointerOperand());
  return variable != nullptr && variable->getAllocatedType() == store->getValueOperand()->getType() &&
         scalar_bits(store->getValueOperand()) > 1;
}

/// Operations that may be computed together before `end`, in the order of the block.
struct Stretch {
  std::vector<Instruction*> insts;
  Instruction* end = nullptr;
  unsigned lanes = 0;
};

class LoopOverLanes {
 public:
  LoopOverLanes(llvm::Function& function, unsigned register_bits)
      : function_(function), register_bits_(register_bits) {}

  void run() {
    std::vector<Stretch> found;
    for (llvm::BasicBlock& block : function_) find_stretches(block, found);
    number(found);
    std::erase_if(found, [&](const Stretch& stretch) { return !pays_off(stretch); });
    number(found);
    // Backwards: making a loop moves what is behind it to another block.
    for (const Stretch& stretch : llvm::reverse(found)) make_loop(stretch);
    for (const Stretch& stretch : found) load_for_others(stretch);
    for (const Stretch& stretch : llvm::reverse(found))
      for (Instruction* const inst : llvm::reverse(stretch.insts)) inst->eraseFromParent();
  }

 private:
  /// Operations wait for the first instruction that needs one of them: they move behind all others, since
  /// nothing depends on when they are computed. Stores do not move behind other accesses.
  void find_stretches(llvm::BasicBlock& block, std::vector<Stretch>& found) {
    Stretch open;
    llvm::SmallPtrSet<const Value*, 32> waiting;
    bool stores = false;
    const auto close = [&](Instruction& end) {
      open.end = &end;
      if (!open.insts.empty()) found.push_back(std::move(open));
      open = {};
      waiting.clear();
      stores = false;
    };
    const auto waits = [&](const Value* value) { return waiting.contains(value); };
    for (Instruction& inst : block) {
      if (llvm::isa<llvm::PHINode>(inst)) continue;
      const bool joins = is_lanewise(inst);
      if (joins || (stores_to_variable(inst) && waits(inst.getOperand(0)))) {
        open.insts.push_back(&inst);
        waiting.insert(&inst);
        stores |= !joins;
        continue;
      }
      if (inst.isTerminator() || (stores && inst.mayReadOrWriteMemory()) ||
          std::ranges::any_of(inst.operand_values(), waits))
        close(inst);
    }
  }

  void number(const std::vector<Stretch>& stretches) {
    stretch_of_.clear();
    for (unsigned i = 0; i < stretches.size(); ++i)
      for (const Instruction* const inst : stretches[i].insts) stretch_of_[inst] = i + 1;
  }

  /// The registers that `lanes` lanes of the value take.
  unsigned registers(const Value* value, unsigned lanes) const {
    const unsigned bits = scalar_bits(value) == 1 ? 32 : scalar_bits(value);
    return std::max(bits * lanes / register_bits_, 1u);
  }

  /// As many as one register has for the widest values: conversions between widths would need several.
  unsigned lanes_of(const Stretch& stretch) const {
    const auto has_words = [](const Instruction* inst) {
      return has_word_lanes(inst) || std::ranges::any_of(inst->operand_values(), &has_word_lanes);
    };
    return std::max(register_bits_ / (std::ranges::any_of(stretch.insts, has_words) ? 64 : 32), kFewestLanes);
  }

  bool is_used_outside(const Instruction& inst) const {
    const unsigned own = stretch_of_.lookup(&inst);
    return std::ranges::any_of(inst.users(),
                               [&](const Value* user) { return stretch_of_.lookup(user) != own; });
  }

  /// Compares the numbers of instructions.
  bool pays_off(const Stretch& stretch) const {
    const unsigned own = stretch_of_.lookup(stretch.insts.front());
    const unsigned lanes = lanes_of(stretch);
    unsigned whole = 0, loop = kLoopInsts;
    llvm::SmallPtrSet<const Value*, 32> inputs;
    for (Instruction* const inst : stretch.insts) {
      const Value* const value = inst->getType()->isVoidTy() ? inst->getOperand(0) : inst;
      whole += registers(value, kWarpSize);
      loop += registers(value, lanes);
      for (Value* const operand : inst->operand_values()) {
        if (!is_wide(operand) || splat_of(operand) != nullptr || stretch_of_.lookup(operand) == own ||
            !inputs.insert(operand).second)
          continue;
        loop += registers(operand, lanes);
        if (stretch_of_.lookup(operand) == 0) loop += registers(operand, kWarpSize);
      }
      if (!is_used_outside(*inst)) continue;
      loop += registers(inst, lanes);
      for (const Value* const user : inst->users())
        if (stretch_of_.lookup(user) == 0) loop += registers(inst, kWarpSize);
    }
    return 4 * loop < 3 * whole;
  }

  /// The type of the lanes on the stack. Masks are words whose signs are the bits, as the processor's selects
  /// want them.
  static llvm::Type* stored_type(const Value* value) {
    llvm::Type* const type = value->getType()->getScalarType();
    return type->isIntegerTy(1) ? llvm::Type::getInt32Ty(type->getContext()) : type;
  }

  /// Variables are aligned for whole registers.
  static llvm::Align alignment(const llvm::Type* type) {
    const unsigned bytes = static_cast<unsigned>(type->getPrimitiveSizeInBits().getFixedValue()) / 8;
    return llvm::Align(std::min(bytes, kVariableAlign));
  }

  static void store(llvm::IRBuilder<>& b, Value* value, Value* address, unsigned lanes) {
    llvm::Type* const type = llvm::FixedVectorType::get(stored_type(value), lanes);
    if (value->getType() != type) value = b.CreateSExt(value, type);
    b.CreateAlignedStore(value, address, alignment(type));
  }

  static Value* load(llvm::IRBuilder<>& b, const Value* like, Value* address, unsigned lanes) {
    llvm::Type* const type = llvm::FixedVectorType::get(stored_type(like), lanes);
    Value* const read = b.CreateAlignedLoad(type, address, alignment(type));
    return scalar_bits(like) == 1 ? b.CreateICmpSLT(read, llvm::Constant::getNullValue(type)) : read;
  }

  llvm::AllocaInst* new_variable(const Value* value) {
    llvm::IRBuilder<> b(&function_.getEntryBlock(), function_.getEntryBlock().begin());
    auto* const made = b.CreateAlloca(llvm::FixedVectorType::get(stored_type(value), kWarpSize));
    made->setAlignment(llvm::Align(kVariableAlign));
    return made;
  }

  /// Where the value is on the stack. Values that no loop computes are stored when they are defined,
  /// constants before each loop.
  Value* variable_of(Value* value) {
    llvm::AllocaInst*& known = variables_[value];
    if (known != nullptr) return known;
    llvm::AllocaInst* const made = known = new_variable(value);
    if (stretch_of_.lookup(value) != 0) return made;
    if (auto* const inst = llvm::dyn_cast<Instruction>(value)) {
      llvm::IRBuilder<> b(&*inst->getInsertionPointAfterDef().value());
      store(b, value, made, kWarpSize);
    } else if (llvm::isa<llvm::Argument>(value)) {
      llvm::IRBuilder<> b(made->getNextNode());
      store(b, value, made, kWarpSize);
    }
    return made;
  }

  struct Loop {
    unsigned lanes;
    Value* index;  ///< of the first lane
    llvm::IRBuilder<>& before;
    llvm::IRBuilder<>& inside;
    llvm::DenseMap<Value*, Value*> parts;
  };

  static Value* address(Loop& loop, Value* variable, llvm::Type* type) {
    return loop.inside.CreateInBoundsGEP(type, variable, loop.index);
  }

  Value* make_part(Value* value, Loop& loop) {
    if (Value* const number = splat_of(value)) return loop.before.CreateVectorSplat(loop.lanes, number);
    Value* const variable = variable_of(value);
    if (llvm::isa<llvm::Constant>(value)) store(loop.before, value, variable, kWarpSize);
    return load(loop.inside, value, address(loop, variable, stored_type(value)), loop.lanes);
  }

  /// The loop's lanes of an operand.
  Value* part(Value* value, Loop& loop) {
    if (!is_wide(value)) return value;
    if (const auto known = loop.parts.find(value); known != loop.parts.end()) return known->second;
    Value* const made = make_part(value, loop);
    return loop.parts[value] = made;
  }

  Value* part_of_call(llvm::CallInst& call, Loop& loop) {
    llvm::SmallVector<Value*, 4> args;
    for (Value* const arg : call.args()) args.push_back(part(arg, loop));
    return loop.inside.CreateIntrinsic(
        llvm::FixedVectorType::get(call.getType()->getScalarType(), loop.lanes), call.getIntrinsicID(), args,
        llvm::isa<llvm::FPMathOperator>(call) ? &call : nullptr);
  }

  Value* compute_part(Instruction& inst, Loop& loop) {
    llvm::IRBuilder<>& b = loop.inside;
    llvm::Type* const type = llvm::FixedVectorType::get(inst.getType()->getScalarType(), loop.lanes);
    if (is_mask_of_word(inst)) {
      Value* const shifted = b.CreateLShr(inst.getOperand(0), b.CreateTrunc(loop.index, b.getInt32Ty()));
      return b.CreateBitCast(b.CreateTrunc(shifted, b.getIntNTy(loop.lanes)), type);
    }
    if (auto* const call = llvm::dyn_cast<llvm::CallInst>(&inst)) return part_of_call(*call, loop);
    llvm::SmallVector<Value*, 3> operands;
    for (Value* const operand : inst.operand_values()) operands.push_back(part(operand, loop));
    Instruction* const copy = inst.clone();
    for (unsigned i = 0; i < operands.size(); ++i) copy->setOperand(i, operands[i]);
    copy->mutateType(type);
    return b.Insert(copy);
  }

  void compute(Instruction& inst, Loop& loop) {
    if (auto* const whole = llvm::dyn_cast<llvm::StoreInst>(&inst)) {
      Value* const value = whole->getValueOperand();
      store(loop.inside, part(value, loop), address(loop, inst.getOperand(1), stored_type(value)),
            loop.lanes);
      return;
    }
    Value* const made = compute_part(inst, loop);
    loop.parts[&inst] = made;
    if (is_used_outside(inst))
      store(loop.inside, made, address(loop, variable_of(&inst), stored_type(&inst)), loop.lanes);
  }

  void make_loop(const Stretch& stretch) {
    llvm::BasicBlock* const head = stretch.end->getParent();
    llvm::BasicBlock* const behind = head->splitBasicBlock(stretch.end);
    auto* const body = llvm::BasicBlock::Create(function_.getContext(), "lanes", &function_, behind);
    head->getTerminator()->setSuccessor(0, body);
    llvm::IRBuilder<> before(head->getTerminator()), inside(body);
    llvm::PHINode* const index = inside.CreatePHI(inside.getInt64Ty(), 2);
    index->addIncoming(inside.getInt64(0), head);
    Loop loop{lanes_of(stretch), index, before, inside, llvm::DenseMap<Value*, Value*>()};
    for (Instruction* const inst : stretch.insts) compute(*inst, loop);
    Value* const next = inside.CreateAdd(index, inside.getInt64(loop.lanes));
    index->addIncoming(next, body);
    inside.CreateCondBr(inside.CreateICmpULT(next, inside.getInt64(kWarpSize)), body, behind);
  }

  /// Loads the values of the loop that other code reads, right before each reader.
  void load_for_others(const Stretch& stretch) {
    for (Instruction* const inst : stretch.insts) {
      std::vector<llvm::Use*> uses;
      for (llvm::Use& use : inst->uses())
        if (stretch_of_.lookup(use.getUser()) == 0) uses.push_back(&use);
      for (llvm::Use* const use : uses) {
        auto* const user = llvm::cast<Instruction>(use->getUser());
        auto* const phi = llvm::dyn_cast<llvm::PHINode>(user);
        llvm::IRBuilder<> b(phi == nullptr ? user : phi->getIncomingBlock(*use)->getTerminator());
        // A phi has one value for all edges from a block.
        if (use->get() != inst) continue;
        Value* const loaded = load(b, inst, variables_.lookup(inst), kWarpSize);
        if (phi == nullptr)
          use->set(loaded);
        else
          phi->setIncomingValueForBlock(phi->getIncomingBlock(*use), loaded);
      }
    }
  }

  llvm::Function& function_;
  unsigned register_bits_;
  llvm::DenseMap<const Value*, unsigned> stretch_of_;  ///< numbers from 1; 0: none
  llvm::DenseMap<const Value*, llvm::AllocaInst*> variables_;
};

}  // namespace

void loop_over_lanes(llvm::Function& function, unsigned register_bits) {
  LoopOverLanes(function, register_bits).run();
}

}  // namespace quern::cpu::emit
