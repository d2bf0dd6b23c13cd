// SPDX-License-Identifier: Apache-2.0
// A function during SSA construction: the IR so far, and the value of each PTX variable at the end of each
// block.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "cpu/ir/ir.hpp"

namespace quern::cpu::lower {

/// One component of a PTX register of one inlined instance, a piece of a .param array, or a condition code.
using Variable = std::uint32_t;

/// (block or any number, variable or value) -> value. Open addressing; never shrinks.
class ValueMap {
 public:
  /// ir::kNone if no value was set.
  ir::Value find(std::uint32_t block, std::uint32_t variable) const noexcept;
  void set(std::uint32_t block, std::uint32_t variable, ir::Value value);

 private:
  struct Slot {
    std::uint64_t key = kEmpty;
    ir::Value value = ir::kNone;
  };
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};
  std::size_t slot_of(std::uint64_t key) const noexcept;
  void grow();

  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

/// A variable read in a block before it is written there: `value` is a phi without operands until build_ssa.
struct LiveIn {
  Variable variable = 0;
  ir::Value value = ir::kNone;
};

class FunctionBuilder {
 public:
  ir::Function function;
  std::vector<ir::Type> variable_types;
  std::vector<std::vector<LiveIn>> live_ins;  ///< by block
  ValueMap definitions;                       ///< the value of a variable at the end of a block
  std::vector<ir::Value>
      /// values without operands, shared by the function; they are placed at the start of the entry
      /// block
      prologue;

  ir::BlockId new_block();
  void connect(ir::BlockId from, ir::BlockId to);
  /// Makes the edge from.succs[successor] lead to `to`.
  void redirect(ir::BlockId from, std::size_t successor, ir::BlockId to);
  /// Appends an instruction to a block without folding. For block kNone, only creates the instruction and
  /// does not change Inst::block.
  ir::Value append(ir::BlockId block, ir::Inst inst);

  Variable new_variable(ir::Type type);
  ir::Value read(Variable variable, ir::BlockId block);
  void write(Variable variable, ir::BlockId block, ir::Value value) {
    definitions.set(block, variable, value);
  }

  /// Returns the only value of a pure operation without operands.
  ir::Value nullary(ir::Op op, ir::Type type, std::uint64_t imm);
  /// The constant with these low bits.
  ir::Value constant(ir::Type type, std::uint64_t bits);
  bool is_constant(ir::Value value) const { return function[value].op == ir::Op::constant; }

 private:
  ValueMap nullary_by_type_;  ///< (op and type, imm) for imm < 2^32
  std::vector<ir::Value> wide_nullaries_;
};

/// The bits of `type` set in a 64-bit word.
constexpr std::uint64_t low_mask(std::uint32_t bits) {
  return bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
}

/// Returns the result of `inst` if it is known without executing it: one of its operands or a constant; kNone
/// otherwise.
ir::Value fold(FunctionBuilder& builder, const ir::Inst& inst);

}  // namespace quern::cpu::lower
