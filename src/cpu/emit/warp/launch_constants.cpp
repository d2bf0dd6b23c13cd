// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/warp/launch_constants.hpp"

#include <algorithm>

#include "cpu/abi/state.hpp"

namespace quern::cpu::emit {
namespace {

enum CacheIndex : unsigned {
  kParams,
  kWindowBase,
  kWindowBytes,
  kSharedBase,
  kLocalRoot,
  kLocalStride,
  kStreams
};

}  // namespace

llvm::Value* LaunchConstants::load(llvm::Value* base, std::uint64_t offset, llvm::Type* type,
                                   std::uint64_t pointee_bytes) {
  llvm::IRBuilder<> at(inputs_.entry->getTerminator());
  llvm::Value* address = at.CreateConstInBoundsGEP1_64(at.getInt8Ty(), base, offset);
  llvm::LoadInst* load = at.CreateAlignedLoad(type, address, llvm::Align(type->isIntegerTy(32) ? 4 : 8));
  llvm::MDNode* nothing = llvm::MDNode::get(code_.getContext(), {});
  load->setMetadata(llvm::LLVMContext::MD_invariant_load, nothing);
  load->setMetadata(llvm::LLVMContext::MD_noundef, nothing);
  if (pointee_bytes != 0) {
    const auto number = [&](std::uint64_t value) {
      return llvm::MDNode::get(code_.getContext(), llvm::ConstantAsMetadata::get(at.getInt64(value)));
    };
    load->setMetadata(llvm::LLVMContext::MD_nonnull, nothing);
    load->setMetadata(llvm::LLVMContext::MD_dereferenceable, number(pointee_bytes));
    load->setMetadata(llvm::LLVMContext::MD_align, number(16));
  }
  return load;
}

llvm::Value* LaunchConstants::cached(unsigned which, llvm::Value* base, std::uint64_t offset,
                                     llvm::Type* type, std::uint64_t bytes) {
  if (cache_[which] == nullptr) cache_[which] = load(base, offset, type, bytes);
  return cache_[which];
}

llvm::Value* LaunchConstants::params() {
  std::uint64_t bytes = 64;  // the padding that LaunchState promises
  for (const ir::Parameter& parameter : plan_.module->functions[0].params)
    bytes = std::max<std::uint64_t>(bytes, parameter.offset + parameter.size + 64);
  return cached(kParams, inputs_.launch, offsetof(engine::LaunchState, params), code_.getPtrTy(), bytes);
}

llvm::Value* LaunchConstants::window_base() {
  return cached(kWindowBase, inputs_.launch, offsetof(engine::LaunchState, window_base), code_.getInt64Ty());
}

llvm::Value* LaunchConstants::window_bytes() {
  return cached(kWindowBytes, inputs_.launch, offsetof(engine::LaunchState, window_bytes),
                code_.getInt64Ty());
}

llvm::Value* LaunchConstants::window_limit(std::uint32_t param, std::uint32_t mask, std::uint32_t low) {
  llvm::Value* const base = params();
  llvm::Value* const bytes = window_bytes();
  llvm::Value*& made = limits_[{param, mask, low}];
  if (made != nullptr) return made;
  llvm::IRBuilder<> at(inputs_.entry->getTerminator());
  llvm::LoadInst* const byte = at.CreateAlignedLoad(
      at.getInt8Ty(), at.CreateConstInBoundsGEP1_64(at.getInt8Ty(), base, param), llvm::Align(1));
  byte->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(code_.getContext(), {}));
  llvm::Value* const is_low = at.CreateICmpEQ(at.CreateAnd(byte, at.getInt8(static_cast<std::uint8_t>(mask))),
                                              at.getInt8(static_cast<std::uint8_t>(low)));
  return made = at.CreateSelect(is_low, bytes, at.getInt64(0));
}

llvm::Value* LaunchConstants::streams(ir::Value store) {
  const std::uint32_t param = body_.plan.streamed[store];
  if (param == ir::kNone) return nullptr;
  llvm::Value*& made = streams_[param];
  if (made != nullptr) return made;
  llvm::Value* const bits =
      cached(kStreams, inputs_.launch, offsetof(engine::LaunchState, streams), code_.getInt64Ty());
  llvm::IRBuilder<> at(inputs_.entry->getTerminator());
  return made = at.CreateICmpNE(at.CreateAnd(bits, at.getInt64(std::uint64_t{1} << (param / 8))),
                                at.getInt64(0));
}

llvm::Value* LaunchConstants::shared_base() {
  return cached(kSharedBase, inputs_.worker, offsetof(engine::WorkerState, shared_base), code_.getPtrTy(),
                plan_.module->static_shared_bytes);
}

llvm::Value* LaunchConstants::local_stride() {
  return cached(kLocalStride, inputs_.worker, offsetof(engine::WorkerState, local_stride),
                code_.getInt64Ty());
}

llvm::Value* LaunchConstants::local_begin() {
  return inputs_.local_begin == nullptr ? code_.getInt64(0) : inputs_.local_begin;
}

llvm::Value* LaunchConstants::local_base() {
  llvm::Value*& made = local_bases_[body_.current];
  if (made == nullptr) {
    llvm::Value* root =
        cached(kLocalRoot, inputs_.worker, offsetof(engine::WorkerState, local_base), code_.getPtrTy());
    llvm::Value* stride = local_stride();
    llvm::IRBuilder<> at(inputs_.begin, inputs_.begin->getFirstInsertionPt());
    llvm::Value* first =
        at.CreateMul(at.CreateZExt(body_.warp_index(), at.getInt64Ty()), at.getInt64(kWarpSize));
    made = at.CreateGEP(at.getInt8Ty(), root, at.CreateMul(first, stride));
  }
  return made;
}

llvm::Value* LaunchConstants::grid(unsigned dimension) {
  return load(inputs_.launch, offsetof(engine::LaunchState, grid) + 4 * dimension, code_.getInt32Ty());
}

}  // namespace quern::cpu::emit
