// SPDX-License-Identifier: Apache-2.0
// Translates operands of PTX instructions to values of the IR: registers, numbers, special registers,
// addresses.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "cpu/lower/translate/ir_builder.hpp"
#include "cpu/lower/translate/source_locations.hpp"

namespace quern::cpu::lower {

/// The IR type that holds a PTX value; ir::Type::none if there is none (128 bits, opaque).
ir::Type ir_type(ptx::Type type) noexcept;
bool is_signed(ptx::Type type) noexcept;
/// The type of each half of a packed type: f16 for f16x2; Type::none if the type is no pair.
ptx::Type half_of(ptx::Type type) noexcept;

class Operands : public IrBuilder {
 public:
  Operands(Program& program, FunctionBuilder& builder, std::string_view file_name, Diagnostics& diagnostics)
      : IrBuilder(builder),
        program_(program),
        locations_(program, builder),
        refusals_(program, file_name, diagnostics) {}

  Program& program() { return program_; }
  /// The frame of the function that is being translated.
  Frame& frame() { return *frame_; }
  void set_frame(Frame* frame) { frame_ = frame; }
  bool in_kernel() const { return frame_->function->entry; }
  /// Begins the translation of `instruction`, which is in the frame's function: finds its source location.
  void begin(const ptx::Instruction& instruction);
  /// The same for an instruction that continues after inlined code, at its previous location.
  void resume(const ptx::Instruction& instruction, std::uint32_t location);
  /// Reports that the current instruction is not supported, with the reason.
  void refuse(std::string_view reason);
  bool refused_any() const { return refusals_.any(); }

  const ptx::Operand& operand(const ptx::Instruction& instruction, std::size_t index);
  /// Returns the operand as a value of `type`. Of a wider register it takes the low bits; another type of the
  /// same width is reinterpreted.
  ir::Value read(const ptx::Operand& operand, ptx::Type type);
  ir::Value read(const ptx::Instruction& instruction, std::size_t index, ptx::Type type) {
    return read(operand(instruction, index), type);
  }
  /// Writes a destination. A wider register is filled by sign or zero extension.
  void write(const ptx::Operand& operand, ir::Value value, bool sign_extended = false);
  void write(const ptx::Instruction& instruction, ir::Value value, bool sign_extended = false) {
    write(operand(instruction, 0), value, sign_extended);
  }
  /// A .b128 value as two words, the low one first. Its register is two variables.
  using Wide = std::array<ir::Value, 2>;
  Wide read_wide(const ptx::Operand& operand);
  void write_wide(const ptx::Operand& operand, const Wide& value);
  /// Returns the elements of `{a, b}` or of a vector register, or the operand itself.
  std::vector<ptx::Operand> elements(const ptx::Operand& operand);
  bool is_sink(const ptx::Operand& operand) const { return operand.as<ptx::SinkOperand>() != nullptr; }
  ptx::Type register_type(const ptx::Operand& operand) const;
  ir::Value read_carry() { return read_variable(frame_->carry); }
  void write_carry(ir::Value value) { write_variable(frame_->carry, value); }

  /// Returns the address of `offset` in the function's local memory, as an address in local space.
  ir::Value local_address(std::uint64_t offset);
  /// Returns the address of `offset` in the record of the current activation (activations.hpp).
  ir::Value record_field(std::uint64_t offset);
  void set_record(Variable record) { record_ = record; }
  /// Returns a symbol's address in its own space, as i64.
  ir::Value symbol_address(const ptx::SymbolRef& symbol, std::int64_t offset);

 private:
  ir::Value read_register(const ptx::RegisterOperand& reg);
  ir::Value read_special(ptx::SpecialRegister which);
  ir::Value function_value(std::uint32_t function);
  ir::Value read_float(const ptx::FloatOperand& number, ptx::Type type);

  Program& program_;
  SourceLocations locations_;
  Refusals refusals_;
  Frame* frame_ = nullptr;
  const ptx::Instruction* instruction_ = nullptr;
  Variable record_ = 0;
};

}  // namespace quern::cpu::lower
