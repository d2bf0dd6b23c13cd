// SPDX-License-Identifier: Apache-2.0
// Runs LLVM code of integer vectors without conditional branches, for tests of passes over it.
#pragma once

#include <doctest/doctest.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace quern::cpu::emit::test {

/// By lane; nullopt: poison.
using Lanes = std::vector<std::optional<std::uint64_t>>;

/// Loads are of arguments; lane l of argument n is a number that n and l determine.
class VectorInterpreter {
 public:
  /// The vectors that the function stores, in order.
  std::vector<Lanes> stored_by(const llvm::Function& function) {
    values_.clear();
    std::vector<Lanes> stored;
    for (const llvm::BasicBlock* block = &function.getEntryBlock(); block != nullptr;) {
      for (const llvm::Instruction& inst : *block) {
        if (const auto* const store = llvm::dyn_cast<llvm::StoreInst>(&inst))
          stored.push_back(lanes_of(store->getValueOperand()));
        else if (!inst.isTerminator())
          values_[&inst] = result(inst);
      }
      block = block->getSingleSuccessor();
    }
    return stored;
  }

 private:
  static unsigned width_of(const llvm::Value* value) { return value->getType()->getScalarSizeInBits(); }
  static std::uint64_t cut(std::uint64_t number, unsigned width) {
    return width == 64 ? number : number & ((std::uint64_t{1} << width) - 1);
  }

  /// 1 for a scalar.
  static unsigned lane_count(const llvm::Value* value) {
    const auto* const type = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
    return type == nullptr ? 1 : type->getNumElements();
  }

  Lanes lanes_of(const llvm::Value* value) {
    const auto* const constant = llvm::dyn_cast<llvm::Constant>(value);
    if (constant == nullptr) return values_.at(value);
    if (const auto* const scalar = llvm::dyn_cast<llvm::ConstantInt>(constant))
      return {scalar->getZExtValue()};
    Lanes lanes;
    for (unsigned lane = 0; lane < lane_count(value); ++lane) {
      const auto* const number = llvm::dyn_cast<llvm::ConstantInt>(constant->getAggregateElement(lane));
      lanes.push_back(number == nullptr ? std::nullopt : std::optional(number->getZExtValue()));
    }
    return lanes;
  }

  Lanes loaded(const llvm::Instruction& inst) {
    const std::uint64_t number = llvm::cast<llvm::Argument>(inst.getOperand(0))->getArgNo();
    Lanes lanes;
    for (std::uint64_t lane = 0; lane < lane_count(&inst); ++lane)
      lanes.emplace_back(cut((1000 * (number + 1) + lane) * 0x9e3779b97f4a7c15, width_of(&inst)));
    return lanes;
  }

  Lanes result(const llvm::Instruction& inst) {
    if (llvm::isa<llvm::LoadInst>(inst)) return loaded(inst);
    if (inst.getType()->isPointerTy()) return {};
    std::vector<Lanes> operands;
    for (const llvm::Value* const operand : inst.operand_values()) operands.push_back(lanes_of(operand));
    Lanes lanes;
    if (const auto* const shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(&inst)) {
      Lanes both = operands[0];
      both.insert(both.end(), operands[1].begin(), operands[1].end());
      for (const int from : shuffle->getShuffleMask())
        lanes.push_back(from < 0 ? std::nullopt : both[static_cast<std::size_t>(from)]);
      return lanes;
    }
    if (llvm::isa<llvm::InsertElementInst>(inst)) {
      lanes = operands[0];
      lanes[*operands[2][0]] = operands[1][0];
      return lanes;
    }
    if (llvm::isa<llvm::BitCastInst>(inst)) return cast(operands[0], width_of(inst.getOperand(0)), inst);
    for (std::size_t lane = 0; lane < operands[0].size(); ++lane) {
      std::vector<std::uint64_t> numbers;
      for (const Lanes& operand : operands)
        if (operand[lane]) numbers.push_back(*operand[lane]);
      lanes.push_back(numbers.size() == operands.size() ? std::optional(computed(inst, numbers))
                                                        : std::nullopt);
    }
    return lanes;
  }

  /// The same bits as elements of another width, the lowest first.
  static Lanes cast(const Lanes& from, unsigned width, const llvm::Instruction& inst) {
    const unsigned to = width_of(&inst);
    Lanes lanes(lane_count(&inst), 0);
    for (unsigned bit = 0; bit < to * lanes.size(); ++bit) {
      const std::optional<std::uint64_t>& source = from[bit / width];
      std::optional<std::uint64_t>& target = lanes[bit / to];
      if (!source)
        target = std::nullopt;
      else if (target)
        *target |= (*source >> bit % width & 1) << bit % to;
    }
    return lanes;
  }

  /// An operand with its sign.
  static std::uint64_t extended(const llvm::Instruction& inst, std::uint64_t number) {
    const std::uint64_t sign = std::uint64_t{1} << (width_of(inst.getOperand(0)) - 1);
    return (number ^ sign) - sign;
  }

  static std::uint64_t computed(const llvm::Instruction& inst, const std::vector<std::uint64_t>& of) {
    switch (inst.getOpcode()) {
      case llvm::Instruction::Add:
        return cut(of[0] + of[1], width_of(&inst));
      case llvm::Instruction::Mul:
        return cut(of[0] * of[1], width_of(&inst));
      case llvm::Instruction::And:
        return of[0] & of[1];
      case llvm::Instruction::Or:
        return of[0] | of[1];
      case llvm::Instruction::Xor:
        return of[0] ^ of[1];
      case llvm::Instruction::Shl:
        return cut(of[0] << of[1], width_of(&inst));
      case llvm::Instruction::LShr:
        return of[0] >> of[1];
      case llvm::Instruction::ZExt:
        return of[0];
      case llvm::Instruction::Trunc:
        return cut(of[0], width_of(&inst));
      case llvm::Instruction::SExt:
        return cut(extended(inst, of[0]), width_of(&inst));
      case llvm::Instruction::ICmp:  // tests compare by `ult` and `slt` only
        if (llvm::cast<llvm::ICmpInst>(inst).isSigned())
          return static_cast<std::int64_t>(extended(inst, of[0])) <
                         static_cast<std::int64_t>(extended(inst, of[1]))
                     ? 1
                     : 0;
        return of[0] < of[1] ? 1 : 0;
      case llvm::Instruction::Select:
        return of[0] != 0 ? of[1] : of[2];
      default:
        FAIL("the interpreter does not know this operation");
        return 0;
    }
  }

  std::map<const llvm::Value*, Lanes> values_;
};

/// True if every lane that `before` determines is the same in `after`.
inline bool agree(const std::vector<Lanes>& before, const std::vector<Lanes>& after) {
  if (before.size() != after.size()) return false;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i].size() != after[i].size()) return false;
    for (std::size_t lane = 0; lane < before[i].size(); ++lane)
      if (before[i][lane] && before[i][lane] != after[i][lane]) return false;
  }
  return true;
}

}  // namespace quern::cpu::emit::test
