// SPDX-License-Identifier: Apache-2.0
// Instructions -> IR, one at a time. The families of instructions (integer.cpp, memory.cpp, ...) are
// functions over this class.
#pragma once

#include <array>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cpu/lower/activations.hpp"
#include "cpu/lower/draft.hpp"
#include "cpu/lower/frame.hpp"
#include "cpu/lower/lower.hpp"
#include "cpu/lower/program.hpp"
#include "quern/diagnostic.hpp"

namespace quern::cpu::lower {

/// The IR type that holds a PTX value; ir::Type::none if there is none (128 bits, opaque).
ir::Type ir_type(ptx::Type type) noexcept;
ir::Type integer_type(std::uint32_t bits) noexcept;
bool is_signed(ptx::Type type) noexcept;

class Translator {
 public:
  Translator(Program& program, Draft& draft, std::string_view file_name, Diagnostics& diagnostics,
             CallForm calls = CallForm::functions);

  /// Translates `function` (a kernel or a recursive function) as the whole of the draft.
  void translate(std::uint32_t function);

  // --- operands
  const ptx::Operand& operand(const ptx::Instruction& instruction, std::size_t index);
  /// The operand as a value of `type`: a wider register gives its low bits, another type of the same width
  /// its bits.
  ir::Value read(const ptx::Operand& operand, ptx::Type type);
  ir::Value read(const ptx::Instruction& instruction, std::size_t index, ptx::Type type) {
    return read(operand(instruction, index), type);
  }
  /// Writes a destination; a wider register is filled by sign or zero extension.
  void write(const ptx::Operand& operand, ir::Value value, bool sign_extended = false);
  void write(const ptx::Instruction& instruction, ir::Value value, bool sign_extended = false) {
    write(operand(instruction, 0), value, sign_extended);
  }
  /// A .b128 value as two words, the low one first: its register is two variables.
  using Wide = std::array<ir::Value, 2>;
  Wide read_wide(const ptx::Operand& operand);
  void write_wide(const ptx::Operand& operand, const Wide& value);
  /// The elements of `{a, b}`, of a vector register, or the operand itself.
  std::vector<ptx::Operand> elements(const ptx::Operand& operand);
  bool is_sink(const ptx::Operand& operand) const { return operand.as<ptx::SinkOperand>() != nullptr; }
  ptx::Type register_type(const ptx::Operand& operand) const;
  /// The address of `offset` in the function's local memory, in local space.
  ir::Value local_address(std::uint64_t offset);
  /// A symbol's address in its own space, as i64.
  ir::Value symbol_address(const ptx::SymbolRef& symbol, std::int64_t offset);

  // --- building
  ir::Value emit(ir::Op op, ir::Type type, std::initializer_list<ir::Value> args, ir::Attributes attr = {},
                 std::uint64_t imm = 0);
  ir::Value emit(ir::Op op, ir::Type type, std::vector<ir::Value> args, ir::Attributes attr,
                 std::uint64_t imm);
  ir::Value constant(ir::Type type, std::uint64_t bits) { return draft_.constant(type, bits); }
  ir::Type type_of(ir::Value value) const { return draft_.function[value].type; }
  /// The same bits as another type of the same width.
  ir::Value as(ir::Value value, ir::Type type);
  /// Widened or cut to an integer type; floats by their bits.
  ir::Value resize(ir::Value value, ir::Type type, bool sign_extended);
  ir::Value logical_not(ir::Value value);
  ir::Value compare(ir::Icmp how, ir::Value a, ir::Value b);
  ir::Value select(ir::Value condition, ir::Value yes, ir::Value no);

  // --- variables
  ir::Value read_variable(Variable variable) { return draft_.read(variable, block_); }
  void write_variable(Variable variable, ir::Value value);
  ir::Value read_carry() { return read_variable(frame_->carry); }
  void write_carry(ir::Value value) { write_variable(frame_->carry, value); }

  // --- .param arrays (calls.cpp)
  ParamArray* param_array(const ptx::SymbolRef& symbol);
  ir::Value read_param(const ParamArray& array, std::uint32_t offset, ir::Type type);
  void write_param(ParamArray& array, std::uint32_t offset, ir::Value value);
  void call(const ptx::Instruction& instruction);

  // --- control (flow.cpp)
  ir::BlockId new_block() { return draft_.new_block(); }
  void branch(ir::BlockId to);
  void branch_if(ir::Value condition, ir::BlockId yes, ir::BlockId no);
  void switch_to(ir::Value index, const std::vector<ir::BlockId>& targets);
  void set_block(ir::BlockId block) { block_ = block; }
  /// Ends the block with a terminator that leads nowhere.
  void end(ir::Op op, std::uint64_t imm = 0);
  /// Ends the launch with a fault if lanes arrive here. Does not end the block: for the analysis the lanes
  /// continue, so that the code behind it does not count as divergent.
  void fault(ir::Trap kind);
  /// `ret` of the current PTX function; `exit` of the thread.
  void end_function();
  void end_thread();
  ir::BlockId label_block(const ptx::SymbolRef& label);

  // --- facts
  Frame& frame() { return *frame_; }
  Draft& draft() { return draft_; }
  Program& program() { return program_; }
  bool in_kernel() const { return frame_->function->entry; }
  /// The offset of the parameter buffer's copy in local memory, for generic addresses of a kernel's
  /// parameters.
  std::uint32_t parameter_copy() const { return parameter_copy_; }
  /// 0 if no instruction takes a generic address of a parameter: there is no copy.
  std::uint32_t parameter_copy_bytes() const { return parameter_copy_bytes_; }
  /// Says that the current instruction is not supported, and why.
  void refuse(std::string_view reason);

 private:
  void translate_body();
  std::size_t translate_at(std::size_t position);
  std::size_t guarded_run_end(std::size_t position) const;
  void translate_guarded(std::size_t begin, std::size_t end);
  void lower(const ptx::Instruction& instruction);
  ir::Value guard_value(const ptx::Guard& guard);

  using Operands = std::vector<ptx::Operand>;
  void set_up(Frame& frame);
  void set_up_params(Frame& frame, std::vector<ParamArray>& arrays,
                     const std::vector<ptx::Variable>& variables, const std::vector<ParamUse>& uses);
  std::uint32_t reserve_local(Frame& frame, std::uint64_t size, std::uint32_t align);
  void copy_parameter_buffer(Frame& frame);
  void lay_out_kernel_parameters(const ptx::Function& function);
  void declare_arguments(Frame& frame);
  void declare_end(Frame& frame);
  void emit_results(Frame& frame);
  void inline_call(const ptx::Instruction& instruction, std::uint32_t callee, const Operands& arguments,
                   const Operands& results);
  void call_through(const ptx::Instruction& instruction, const Operands& arguments, const Operands& results);
  void call_definition(const ptx::Instruction& instruction, std::uint32_t callee, const Operands& arguments,
                       const Operands& results);
  void call_function(std::uint32_t callee, const Operands& arguments, const Operands& results);
  std::vector<ir::Value> argument_values(std::uint32_t callee, const Operands& arguments);
  std::vector<ir::Value> emit_call(std::uint32_t callee, std::vector<ir::Value> values,
                                   const std::vector<ParamArray>& returned);
  void end_where(ir::Value ended);
  bool call_host(const ptx::Function& declared, const Operands& arguments, const Operands& results);
  ParamArray exchange_array(const ParamUse& use);
  void store_argument(ParamArray& to, const ptx::Variable& formal, const ptx::Operand& actual);
  void fetch_result(const ParamArray& from, const ptx::Variable& formal, const ptx::Operand& destination);

  // --- activations.cpp
  Region& region_of(std::uint32_t function);
  std::vector<ir::Value> activate(std::uint32_t callee, const std::vector<ir::Value>& values);
  void translate_region(Region& region);
  void translate_regions();
  void find_saved(Region& region);
  void emit_saves(const CallSite& site);
  void emit_return_to(const CallSite& site);
  void emit_return(Region& region);
  ir::Value record_field(std::uint64_t offset);

  ir::Value read_register(const ptx::RegisterOperand& reg);
  ir::Value read_special(ptx::SpecialRegister which);
  ir::Value function_value(std::uint32_t function);
  ir::Value read_float(const ptx::FloatOperand& number, ptx::Type type);

  std::uint32_t locate(const ptx::Instruction& instruction);
  std::uint32_t scope_location(Frame& frame, std::uint32_t index, std::uint32_t ptx_line);
  std::uint32_t add_location(const Frame& frame, std::uint32_t index, std::uint32_t ptx_line,
                             std::uint32_t inlined_at);

  Program& program_;
  Draft& draft_;
  const CallForm calls_;
  std::string_view file_name_;
  Diagnostics& diagnostics_;
  Frame* frame_ = nullptr;
  ir::BlockId block_ = ir::kNone;       ///< kNone: what follows is not reachable
  ir::BlockId exit_block_ = ir::kNone;  ///< the block in which threads end
  Variable ended_ = 0;  ///< of a function that is called and may end threads: 1 in those that have ended
  ir::Value guard_ = ir::kNone;  ///< writes keep the old value where this is false
  std::uint32_t location_ = ir::kNone;
  const ptx::Instruction* instruction_ = nullptr;
  std::uint32_t depth_ = 0;
  Regions regions_;
  Region* region_ = nullptr;  ///< under translation; null: the kernel
  std::uint32_t parameter_copy_ = 0;
  std::uint32_t parameter_copy_bytes_ = 0;
};

/// The way in which a guard on an instruction is implemented.
enum class Kind : std::uint8_t {
  pure,     ///< always done; its result is selected
  effect,   ///< in a block of its own
  control,  ///< does it itself
};

/// One opcode: the modifiers and types that it may carry (others are rejected), and the function that lowers
/// it.
struct Row {
  ptx::Opcode opcode;
  Kind kind;
  std::uint8_t types;
  void (*lower)(Translator&, const ptx::Instruction&);
  std::span<const ptx::Modifier> modifiers;
};
/// Rows of instructions on integers, on floating-point numbers, and those for which the type makes no
/// difference.
std::span<const Row> integer_rows();
std::span<const Row> floating_rows();
std::span<const Row> compare_rows();
std::span<const Row> convert_rows();
std::span<const Row> move_rows();
std::span<const Row> memory_rows();
std::span<const Row> atomic_rows();
std::span<const Row> warp_rows();
std::span<const Row> control_rows();
std::span<const Row> field_rows();
std::span<const Row> video_rows();
std::span<const Row> async_rows();
/// The row of an instruction by its opcode and first type, or null.
const Row* row_of(const ptx::Instruction& instruction);

/// One operand or result type for both halves of a packed type: f16 for f16x2; Type::none if it is not packed
/// in two.
ptx::Type half_of(ptx::Type type) noexcept;

}  // namespace quern::cpu::lower
