// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/operations/context.hpp"

namespace quern::cpu::emit {

llvm::Type* scalar_type(llvm::LLVMContext& context, ir::Type type) {
  switch (type) {
    case ir::Type::none:
      return llvm::Type::getVoidTy(context);
    case ir::Type::f32:
      return llvm::Type::getFloatTy(context);
    case ir::Type::f64:
      return llvm::Type::getDoubleTy(context);
    default:
      return llvm::IntegerType::get(context, ir::bit_size(type));
  }
}

llvm::Type* Context::type_of(ir::Type type) { return scalar_type(builder_->getContext(), type); }

llvm::Type* Context::vector_type_of(ir::Type type) {
  return llvm::FixedVectorType::get(type_of(type), kWarpSize);
}

}  // namespace quern::cpu::emit
