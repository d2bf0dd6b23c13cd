// SPDX-License-Identifier: Apache-2.0
// Device functions that are called rather than inlined (recursion): an LLVM function each, for the lanes of a
// mask, with vectors as arguments and results, on the worker's own stack. Their local memory is a stack, too:
// each activation has a piece of every lane's, behind its caller's (docs/decisions/0009-called-functions.md).
#include "cpu/emit/calls.hpp"

#include "cpu/abi/state.hpp"
#include "cpu/emit/llvm_target.hpp"
#include "cpu/emit/warp_body.hpp"

namespace quern::cpu::emit {
namespace {

// launch, worker, ctaid.x, .y, .z, warp, lanes, local begin; then the function's own arguments.
constexpr unsigned kFixedArguments = 8;

llvm::Type* lanes_of(llvm::LLVMContext& context, ir::Type type) {
  return llvm::FixedVectorType::get(scalar_type(context, type), kLanes);
}

llvm::FunctionType* type_of_callee(llvm::LLVMContext& context, const ir::Function& function) {
  llvm::Type* pointer = llvm::PointerType::getUnqual(context);
  llvm::Type* word = llvm::Type::getInt32Ty(context);
  llvm::Type* offset = llvm::Type::getInt64Ty(context);
  std::vector<llvm::Type*> arguments{pointer, pointer, word, word, word, word, word, offset};
  for (const ir::Type type : function.argument_types) arguments.push_back(lanes_of(context, type));
  std::vector<llvm::Type*> results;
  for (const ir::Type type : function.result_types) results.push_back(lanes_of(context, type));
  return llvm::FunctionType::get(llvm::StructType::get(context, results), arguments, false);
}

}  // namespace

llvm::Function* declare_device_function(llvm::Module& module, const ir::Function& function,
                                        std::uint32_t index, Isa isa) {
  llvm::Function* made =
      llvm::Function::Create(type_of_callee(module.getContext(), function), llvm::Function::InternalLinkage,
                             "device_" + std::to_string(index) + "_" + function.name, module);
  set_function_attributes(*made, isa);
  return made;
}

void emit_device_function(llvm::Function& function, const Plan& plan, const Specialisation& specialisation,
                          const DeviceFunctions& callees) {
  llvm::LLVMContext& context = function.getContext();
  WarpPlace place;
  place.function = &function;
  place.entry = llvm::BasicBlock::Create(context, "entry", &function);
  place.begin = llvm::BasicBlock::Create(context, "begin", &function);
  place.done = llvm::BasicBlock::Create(context, "done", &function);
  llvm::IRBuilder<>(place.entry).CreateBr(place.begin);
  place.launch = function.getArg(0);
  place.worker = function.getArg(1);
  for (unsigned d = 0; d < 3; ++d) place.ctaid[d] = function.getArg(2 + d);
  place.warp = function.getArg(5);
  place.lanes = function.getArg(6);
  place.local_begin = function.getArg(7);

  WarpBody body(plan, specialisation, place, callees);
  std::vector<llvm::Value*> arguments;
  for (unsigned i = kFixedArguments; i < function.arg_size(); ++i) arguments.push_back(function.getArg(i));
  body.set_arguments(std::move(arguments));
  body.emit();

  llvm::IRBuilder<> at(place.done);
  llvm::Value* results = llvm::PoisonValue::get(function.getReturnType());
  for (unsigned i = 0; i < plan.function->result_types.size(); ++i)
    results = at.CreateInsertValue(results, body.result(i, at), i);
  at.CreateRet(results);
}

void WarpBody::emit_call(ir::Value value) {
  const ir::Inst& call = inst(value);
  llvm::Function* callee = callees_.at(static_cast<std::uint32_t>(call.imm));
  std::vector<llvm::Value*> arguments{launch(), worker(),     ctaid(0),    ctaid(1),
                                      ctaid(2), warp_index(), mask_bits(), begin_activation(call)};
  for (const ir::Value argument : call.args) arguments.push_back(vector(argument));
  llvm::Value* results = code_.CreateCall(callee, arguments);
  const auto count = llvm::cast<llvm::StructType>(results->getType())->getNumElements();
  for (unsigned i = 0; i < count; ++i) define_element(value, i, code_.CreateExtractValue(results, i));
}

/// Returns the start of the callee's local memory, behind the caller's. Ends the launch if there is no room.
llvm::Value* WarpBody::begin_activation(const ir::Inst& call) {
  const std::uint64_t own = llvm::alignTo(function_->local_bytes, engine::kLocalAlignment);
  const std::uint64_t needed = module_->functions.at(call.imm).local_bytes;
  llvm::Value* begin = code_.CreateAdd(local_begin(), code_.getInt64(own));
  if (needed == 0) return begin;
  llvm::Value* end = code_.CreateAdd(begin, code_.getInt64(needed));
  llvm::Value* overflows = code_.CreateICmpUGT(end, local_stride());
  llvm::BasicBlock* room = make_block("room");
  llvm::BasicBlock* overflow = make_block("overflow");
  code_.CreateCondBr(overflows, overflow, room);
  code_.SetInsertPoint(overflow);
  emit_trap(static_cast<std::uint64_t>(ir::Trap::stack_overflow), call.location);
  code_.SetInsertPoint(room);
  return begin;
}

void WarpBody::emit_set_result(ir::Value value) {
  llvm::AllocaInst* to = results_.at(static_cast<std::size_t>(inst(value).imm));
  llvm::Value* old = code_.CreateLoad(to->getAllocatedType(), to);
  code_.CreateStore(code_.CreateSelect(mask(), vector(inst(value).args[0]), old), to);
}

llvm::Value* WarpBody::result(unsigned index, llvm::IRBuilder<>& at) {
  return at.CreateLoad(results_[index]->getAllocatedType(), results_[index]);
}

}  // namespace quern::cpu::emit
