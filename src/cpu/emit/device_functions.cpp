// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/device_functions.hpp"

#include "cpu/abi/warp_size.hpp"
#include "cpu/emit/llvm/llvm_target.hpp"

namespace quern::cpu::emit {
namespace {

// launch, worker, ctaid.x, .y, .z, warp, lanes, local begin; then the function's own arguments.
constexpr unsigned kFixedArguments = 8;

llvm::Type* lanes_of(llvm::LLVMContext& context, ir::Type type) {
  return llvm::FixedVectorType::get(scalar_type(context, type), kWarpSize);
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
  BodyInputs inputs;
  inputs.function = &function;
  inputs.entry = llvm::BasicBlock::Create(context, "entry", &function);
  inputs.begin = llvm::BasicBlock::Create(context, "begin", &function);
  inputs.done = llvm::BasicBlock::Create(context, "done", &function);
  llvm::IRBuilder<>(inputs.entry).CreateBr(inputs.begin);
  inputs.launch = function.getArg(0);
  inputs.worker = function.getArg(1);
  for (unsigned d = 0; d < 3; ++d) inputs.ctaid[d] = function.getArg(2 + d);
  inputs.warp = function.getArg(5);
  inputs.lanes = function.getArg(6);
  inputs.local_begin = function.getArg(7);

  WarpBody body(plan, specialisation, inputs, callees);
  std::vector<llvm::Value*> arguments;
  for (unsigned i = kFixedArguments; i < function.arg_size(); ++i) arguments.push_back(function.getArg(i));
  body.calls().set_arguments(std::move(arguments));
  body.emit();

  llvm::IRBuilder<> at(inputs.done);
  llvm::Value* results = llvm::PoisonValue::get(function.getReturnType());
  for (unsigned i = 0; i < plan.function->result_types.size(); ++i)
    results = at.CreateInsertValue(results, body.calls().result(i, at), i);
  at.CreateRet(results);
}

}  // namespace quern::cpu::emit
