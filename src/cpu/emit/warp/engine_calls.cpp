// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/warp/engine_calls.hpp"

#include <llvm/IR/Module.h>

#include "cpu/abi/state.hpp"

namespace quern::cpu::emit {

llvm::FunctionCallee EngineCalls::function(std::string_view name, llvm::FunctionType* type) {
  llvm::Module& into = *inputs_.function->getParent();
  llvm::FunctionCallee callee = into.getOrInsertFunction(llvm::StringRef(name.data(), name.size()), type);
  llvm::cast<llvm::Function>(callee.getCallee())->addFnAttr(llvm::Attribute::NoUnwind);
  return callee;
}

llvm::Value* EngineCalls::call(const char* name, llvm::Type* result, llvm::ArrayRef<llvm::Value*> args) {
  std::vector<llvm::Type*> types;
  for (const llvm::Value* arg : args) types.push_back(arg->getType());
  return code_.CreateCall(function(name, llvm::FunctionType::get(result, types, false)), args);
}

void EngineCalls::note(std::uint64_t offset, llvm::Value* what) {
  code_.CreateStore(what, code_.CreateConstInBoundsGEP1_64(code_.getInt8Ty(), inputs_.worker, offset));
}

void EngineCalls::note_block_and_warp() {
  llvm::Value* index = code_.getInt64(0);
  for (unsigned d = 3; d-- > 0;) {
    llvm::Value* extent = code_.getInt64(1);
    if (d < 2) extent = code_.CreateZExt(constants_.grid(d), code_.getInt64Ty());
    index = code_.CreateAdd(code_.CreateMul(index, extent),
                            code_.CreateZExt(inputs_.ctaid[d], code_.getInt64Ty()));
  }
  note(offsetof(engine::WorkerState, block_index), index);
  note(offsetof(engine::WorkerState, warp_index), body_.warp_index());
}

void EngineCalls::trap(std::uint64_t which, std::uint32_t location) {
  note(offsetof(engine::WorkerState, fault_location), code_.getInt32(location));
  note(offsetof(engine::WorkerState, warp_index), body_.warp_index());
  note(offsetof(engine::WorkerState, fault_lane),
       code_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, body_.mask_bits(), code_.getFalse()));
  llvm::FunctionType* type =
      llvm::FunctionType::get(code_.getVoidTy(), {code_.getPtrTy(), code_.getInt32Ty()}, false);
  llvm::CallInst* call = code_.CreateCall(
      function("quern_cpu_trap", type), {inputs_.worker, code_.getInt32(static_cast<std::uint32_t>(which))});
  call->setDoesNotReturn();
  code_.CreateUnreachable();
}

}  // namespace quern::cpu::emit
