// SPDX-License-Identifier: Apache-2.0
// The interface to the function under construction, for code that emits one operation. WarpBody implements
// it. The operations use only this interface and do not depend on blocks and versions.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <string_view>

#include "cpu/abi/specialisation.hpp"
#include "cpu/abi/warp_size.hpp"
#include "cpu/analysis/analysis.hpp"
#include "cpu/emit/llvm/defect.hpp"
#include "cpu/ir/ir.hpp"

namespace quern::cpu::emit {

/// The LLVM type of one lane's value. f16 and bf16 are kept as their bits: if the processor lacks a format,
/// LLVM converts even a `select` of it to float and back, with library functions that quiet NaNs.
llvm::Type* scalar_type(llvm::LLVMContext& context, ir::Type type);

class Context {
 public:
  virtual ~Context() = default;

  llvm::IRBuilder<>& builder() { return *builder_; }
  llvm::LLVMContext& llvm() { return builder_->getContext(); }
  const ir::Module& module() const { return *module_; }
  const ir::Function& function() const { return *function_; }
  const Specialisation& specialisation() const { return specialisation_; }
  /// The analysis of the version being emitted.
  virtual const analysis::Analysis& analysis() const = 0;
  const analysis::LanePattern& pattern(ir::Value value) const { return analysis().patterns[value]; }
  const analysis::Residue& residue(ir::Value value) const { return analysis().residues[value]; }

  /// The scalar that the emitter keeps: a uniform value, or the base of an affine or offset32 value
  /// (LanePattern::scalar()).
  virtual llvm::Value* scalar(ir::Value value) = 0;
  /// The value in all 32 lanes, <32 x T> (<32 x i1> for i1). It is computed from the scalar if only that is
  /// stored.
  virtual llvm::Value* vector(ir::Value value) = 0;
  /// Defines `value`: a scalar if its pattern is scalar(), otherwise a <32 x T>.
  virtual void define(ir::Value value, llvm::Value* what) = 0;
  /// The same for element `index` of an operation with several results; `extract` reads it. The pattern is
  /// that of the extract.
  virtual void define_element(ir::Value value, unsigned index, llvm::Value* what) = 0;

  /// True if all 32 lanes run (the full version of a block): no masking is needed.
  virtual bool full() const = 0;
  /// The running lanes, <32 x i1>; all ones if full(). Never empty while an operation with an effect is
  /// executed, nor a memory access, unless may_be_empty(). A short sequence of pure operations may be
  /// executed without any running lane.
  virtual llvm::Value* mask() = 0;
  /// The running lanes as an i32, bit l = lane l.
  virtual llvm::Value* mask_bits() = 0;

  /// True if loads of one element, without an order, may be executed without any running lane.
  virtual bool may_be_empty() const = 0;

  // Fields of LaunchState and WorkerState, loaded once and marked invariant.
  virtual llvm::Value* params() = 0;        ///< ptr
  virtual llvm::Value* window_base() = 0;   ///< i64
  virtual llvm::Value* window_bytes() = 0;  ///< i64
  virtual llvm::Value* shared_base() = 0;   ///< ptr
  virtual llvm::Value* local_base() = 0;    ///< ptr to lane 0's local memory in this warp
  virtual llvm::Value* local_stride() = 0;  ///< i64
  /// i64: offset in a lane's local memory at which the function's own part begins
  virtual llvm::Value* local_begin() = 0;
  /// i64: window_bytes() if the low bits `mask` of the parameter at byte `param` are `low`; otherwise 0.
  /// Computed once, not at each call.
  virtual llvm::Value* window_limit(std::uint32_t param, std::uint32_t mask, std::uint32_t low) = 0;
  /// i1: the launch lets the store bypass the caches; null if it never may. Computed once.
  virtual llvm::Value* streams(ir::Value store) = 0;
  virtual llvm::Value* launch() = 0;                   ///< ptr to LaunchState
  virtual llvm::Value* worker() = 0;                   ///< ptr to WorkerState
  virtual llvm::Value* ctaid(unsigned dimension) = 0;  ///< i32
  virtual llvm::Value* warp_index() = 0;               ///< i32, warp in the block
  virtual llvm::Value* live_bits() = 0;                ///< i32: lanes of the warp that have not exited

  /// A function of helpers.hpp, declared in the module under construction.
  virtual llvm::FunctionCallee helper(std::string_view name, llvm::FunctionType* type) = 0;
  /// Creates a new block of the function under construction and moves the builder to it, for operations that
  /// need control flow.
  virtual llvm::BasicBlock* new_block(const char* name) = 0;

  llvm::Type* type_of(ir::Type type);         ///< scalar_type
  llvm::Type* vector_type_of(ir::Type type);  ///< <32 x T>

 protected:
  llvm::IRBuilder<>* builder_ = nullptr;
  const ir::Module* module_ = nullptr;
  const ir::Function* function_ = nullptr;
  Specialisation specialisation_;
};

/// Emits one operation (no terminator, phi or barrier) at the builder's position. A table maps ir::Op to the
/// emitter of its family.
void emit_operation(Context& context, ir::Value value);

/// True for operations for which emit_operation has a row. Others are rejected at load time, with their name
/// in the message.
bool can_emit(ir::Op op) noexcept;
/// The same for an instruction: its attributes (space, rounding, ...) are supported too.
bool can_emit(const ir::Inst& inst) noexcept;

}  // namespace quern::cpu::emit
