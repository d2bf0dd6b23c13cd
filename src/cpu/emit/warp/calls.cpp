// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/warp/calls.hpp"

#include "cpu/abi/state.hpp"

namespace quern::cpu::emit {

void Calls::create_results(llvm::IRBuilder<>& at) {
  for (const ir::Type type : function_->result_types)
    results_.push_back(at.CreateAlloca(vector_type_of(type)));
}

void Calls::clear_results() {
  for (llvm::AllocaInst* result : results_)
    code_.CreateStore(llvm::Constant::getNullValue(result->getAllocatedType()), result);
}

llvm::Value* Calls::result(unsigned index, llvm::IRBuilder<>& at) const {
  return at.CreateLoad(results_[index]->getAllocatedType(), results_[index]);
}

void Calls::emit_set_result(ir::Value value) {
  llvm::AllocaInst* to = results_.at(static_cast<std::size_t>(inst(value).imm));
  llvm::Value* old = code_.CreateLoad(to->getAllocatedType(), to);
  code_.CreateStore(code_.CreateSelect(body_.mask(), values_.vector(inst(value).args[0]), old), to);
}

void Calls::emit(ir::Value value) {
  const ir::Inst& call = inst(value);
  llvm::Function* callee = callees_.at(static_cast<std::uint32_t>(call.imm));
  std::vector<llvm::Value*> arguments{inputs_.launch,    inputs_.worker,        inputs_.ctaid[0],
                                      inputs_.ctaid[1],  inputs_.ctaid[2],      body_.warp_index(),
                                      body_.mask_bits(), begin_activation(call)};
  for (const ir::Value argument : call.args) arguments.push_back(values_.vector(argument));
  llvm::Value* results = code_.CreateCall(callee, arguments);
  const auto count = llvm::cast<llvm::StructType>(results->getType())->getNumElements();
  for (unsigned i = 0; i < count; ++i) values_.define_element(value, i, code_.CreateExtractValue(results, i));
}

/// Returns the start of the callee's local memory, which follows the caller's. Ends the launch if there is
/// not enough.
llvm::Value* Calls::begin_activation(const ir::Inst& call) {
  const std::uint64_t own = llvm::alignTo(function_->local_bytes, engine::kLocalAlignment);
  const std::uint64_t needed = plan_.module->functions.at(call.imm).local_bytes;
  llvm::Value* begin = code_.CreateAdd(constants_.local_begin(), code_.getInt64(own));
  if (needed == 0) return begin;
  llvm::Value* end = code_.CreateAdd(begin, code_.getInt64(needed));
  llvm::Value* overflows = code_.CreateICmpUGT(end, constants_.local_stride());
  llvm::BasicBlock* room = make_block("room");
  llvm::BasicBlock* overflow = make_block("overflow");
  code_.CreateCondBr(overflows, overflow, room);
  code_.SetInsertPoint(overflow);
  engine_.trap(static_cast<std::uint64_t>(ir::Trap::stack_overflow), call.location);
  code_.SetInsertPoint(room);
  return begin;
}

}  // namespace quern::cpu::emit
