// SPDX-License-Identifier: Apache-2.0
// Device functions that are called rather than inlined (recursion): an LLVM function each, for the lanes of a
// mask, with vectors as arguments and results, on the worker's own stack.
#include "cpu/emit/calls.hpp"

#include "cpu/emit/llvm_target.hpp"
#include "cpu/emit/warp_body.hpp"

namespace quern::cpu::emit {
namespace {

// launch, worker, ctaid.x, .y, .z, warp, lanes; then the function's own arguments.
constexpr unsigned kFixedArguments = 7;

llvm::Type* lanes_of(llvm::LLVMContext& context, ir::Type type) {
  return llvm::FixedVectorType::get(scalar_type(context, type), kLanes);
}

llvm::FunctionType* type_of_callee(llvm::LLVMContext& context, const ir::Function& function) {
  llvm::Type* pointer = llvm::PointerType::getUnqual(context);
  llvm::Type* word = llvm::Type::getInt32Ty(context);
  std::vector<llvm::Type*> arguments{pointer, pointer, word, word, word, word, word};
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
  std::vector<llvm::Value*> arguments{launch(), worker(),     ctaid(0),   ctaid(1),
                                      ctaid(2), warp_index(), mask_bits()};
  for (const ir::Value argument : call.args) arguments.push_back(vector(argument));
  llvm::Value* results = code_.CreateCall(callee, arguments);
  const auto count = llvm::cast<llvm::StructType>(results->getType())->getNumElements();
  for (unsigned i = 0; i < count; ++i) define_element(value, i, code_.CreateExtractValue(results, i));
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
