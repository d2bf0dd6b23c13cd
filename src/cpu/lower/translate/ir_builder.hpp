// SPDX-License-Identifier: Apache-2.0
// Appends instructions to a function during SSA construction, with a current block, guard and source
// location.
#pragma once

#include <initializer_list>
#include <vector>

#include "cpu/lower/ssa/function_builder.hpp"

namespace quern::cpu::lower {

/// The integer type of that width, or ir::Type::none if there is none.
ir::Type integer_type(std::uint32_t bits) noexcept;

class IrBuilder {
 public:
  explicit IrBuilder(FunctionBuilder& builder) : builder_(builder) {}
  IrBuilder(const IrBuilder&) = delete;
  IrBuilder& operator=(const IrBuilder&) = delete;

  FunctionBuilder& builder() { return builder_; }
  /// kNone: the code that follows is unreachable.
  ir::BlockId block() const { return block_; }
  void set_block(ir::BlockId block) { block_ = block; }
  /// Index into ir::Function::locations.
  std::uint32_t location() const { return location_; }
  void set_location(std::uint32_t location) { location_ = location; }
  /// Writes of variables keep the old value where `guard` is false; kNone: no guard.
  void set_guard(ir::Value guard) { guard_ = guard; }

  // --- values; constant operands are folded
  ir::Value emit(ir::Op op, ir::Type type, std::initializer_list<ir::Value> args, ir::Attributes attr = {},
                 std::uint64_t imm = 0);
  ir::Value emit(ir::Op op, ir::Type type, std::vector<ir::Value> args, ir::Attributes attr,
                 std::uint64_t imm);
  ir::Value constant(ir::Type type, std::uint64_t bits) { return builder_.constant(type, bits); }
  ir::Type type_of(ir::Value value) const { return builder_.function[value].type; }
  /// Reinterprets the bits as another type of the same width.
  ir::Value as(ir::Value value, ir::Type type);
  /// Extends or truncates to an integer type; reinterprets the bits of floats.
  ir::Value resize(ir::Value value, ir::Type type, bool sign_extended);
  ir::Value logical_not(ir::Value value);
  ir::Value compare(ir::Icmp how, ir::Value a, ir::Value b);
  ir::Value select(ir::Value condition, ir::Value yes, ir::Value no);

  // --- variables
  ir::Value read_variable(Variable variable) { return builder_.read(variable, block_); }
  void write_variable(Variable variable, ir::Value value);
  ir::Type variable_type(Variable variable) const { return builder_.variable_types[variable]; }

  // --- control; a branch ends the block
  ir::BlockId new_block() { return builder_.new_block(); }
  void branch(ir::BlockId to);
  void branch_if(ir::Value condition, ir::BlockId yes, ir::BlockId no);
  void switch_to(ir::Value index, const std::vector<ir::BlockId>& targets);
  /// Ends the block with a terminator that has no successor.
  void end(ir::Op op, std::uint64_t imm = 0);
  /// Ends the launch with a fault if lanes execute this. Does not end the block: for the analysis the lanes
  /// continue, so that the code after it does not count as divergent.
  void fault(ir::Trap kind);

 private:
  FunctionBuilder& builder_;
  ir::BlockId block_ = ir::kNone;
  std::uint32_t location_ = ir::kNone;
  ir::Value guard_ = ir::kNone;
};

}  // namespace quern::cpu::lower
