// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/context.hpp"

namespace quern::cpu::emit {

llvm::Type* Context::type_of(ir::Type type) {
  switch (type) {
    case ir::Type::none:
      return builder_->getVoidTy();
    case ir::Type::f32:
      return builder_->getFloatTy();
    case ir::Type::f64:
      return builder_->getDoubleTy();
    default:
      return builder_->getIntNTy(ir::bit_size(type));
  }
}

llvm::Type* Context::vector_type_of(ir::Type type) {
  return llvm::FixedVectorType::get(type_of(type), kLanes);
}

}  // namespace quern::cpu::emit
