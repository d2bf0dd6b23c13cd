// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/warp/slots.hpp"

namespace quern::cpu::emit {
namespace {

using analysis::LanePatternKind;

llvm::Constant* constant_of(llvm::Type* type, std::uint64_t bits) {
  if (type->isIntegerTy()) return llvm::ConstantInt::get(type, bits);
  const llvm::APInt word(static_cast<unsigned>(type->getPrimitiveSizeInBits()), bits);
  return llvm::ConstantFP::get(type->getContext(), llvm::APFloat(type->getFltSemantics(), word));
}

}  // namespace

void Slots::create(llvm::IRBuilder<>& at) {
  warps_.resize(body_.warps.size());
  for (auto& versions : warps_)
    for (std::vector<Slot>& slots : versions) slots.resize(function_->insts.size());
  for (ir::Value value = 0; value < function_->insts.size(); ++value) {
    if (!plan_.crosses[value] || inst(value).type == ir::Type::none) continue;
    if (!is_gang() && !plan_.dispatched) add(at, Version::masked, value);
    if (plan_.has_full) add(at, Version::full, value);
  }
  for (const cuts::LaneLoop& loop : plan_.lane_loops) {
    for (const ir::Value value : loop.reads)
      if (!has(Version::lane, value)) add(at, Version::lane, value);
    for (const ir::BlockId block : loop.blocks)
      for (const ir::Value value : function_->blocks[block].insts)
        if (plan_.crosses[value]) add(at, Version::lane, value);
  }
}

void Slots::add(llvm::IRBuilder<>& at, Version version, ir::Value value) {
  if (known_constant(version, value) != nullptr) return;
  llvm::Type* type = slot_type(version, value);
  for_each_warp(value, [&] {
    Slot& made = warps_[warp_of(value)][static_cast<std::size_t>(version)][value];
    made.memory = at.CreateAlloca(type);
    made.type = type;
  });
}

bool Slots::has(Version version, ir::Value value) const {
  return warps_[warp_of(value)][static_cast<std::size_t>(version)][value].memory != nullptr;
}

Slot& Slots::at(Version version, ir::Value value) {
  Slot& found = warps_[warp_of(value)][static_cast<std::size_t>(version)][value];
  if (found.memory == nullptr)
    throw Defect("value %" + std::to_string(value) + " (" + std::string(ir::name(inst(value).op)) +
                 ") is read before it is defined");
  return found;
}

llvm::Value* Slots::load(const Slot& from, Version version) {
  if (plan_.dispatched && version == Version::masked)
    return code_.CreateAlignedLoad(from.type, from.memory, frame_align(from.type));
  return code_.CreateLoad(from.type, from.memory);
}

llvm::Type* Slots::kept_type(Version version, ir::Value value) const {
  const ir::Type type = inst(value).type;
  return kept_scalar(version, value) ? type_of(type) : vector_type_of(type);
}

llvm::Type* Slots::slot_type(Version version, ir::Value value) const {
  llvm::Type* type = kept_type(version, value);
  return type->isVectorTy() && inst(value).type == ir::Type::i1 ? masks_.type() : type;
}

llvm::Value* Slots::pack_bits(llvm::Value* what) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(what->getType());
  return vector != nullptr && vector->getElementType()->isIntegerTy(1) ? masks_.lanes_of(what) : what;
}

llvm::Value* Slots::unpack_bits(llvm::Value* what, ir::Type type) {
  return type == ir::Type::i1 && what->getType()->isVectorTy() ? masks_.bits_of(what) : what;
}

void Slots::write(Version version, ir::Value value, llvm::Value* what) {
  if (!has(version, value)) return;
  const Slot& to = at(version, value);
  llvm::Value* packed = pack_bits(what);
  if (!plan_.dispatched || version == Version::full) {
    code_.CreateStore(packed, to.memory);
    return store_to_frame(to, packed);
  }
  // Lanes that do not run may still need their values.
  if (!full() && packed->getType()->isVectorTy())
    packed = code_.CreateSelect(body_.running.bits, packed,
                                code_.CreateAlignedLoad(to.type, to.memory, frame_align(to.type)));
  code_.CreateAlignedStore(packed, to.memory, frame_align(to.type));
}

void Slots::store_to_frame(const Slot& slot, llvm::Value* what) {
  if (slot.framed) code_.CreateAlignedStore(what, frame_address(slot.frame), frame_align(what->getType()));
}

void Slots::load_from_frame(std::uint32_t offset, const Slot& to) {
  code_.CreateStore(code_.CreateAlignedLoad(to.type, frame_address(offset), frame_align(to.type)), to.memory);
}

llvm::Constant* Slots::known_constant(Version version, ir::Value value) const {
  const analysis::LanePattern& pattern = pattern_in(version, value);
  const bool has_base = pattern.kind == LanePatternKind::uniform || pattern.kind == LanePatternKind::affine;
  if (!has_base || !pattern.constant) return nullptr;
  return constant_of(type_of(inst(value).type), *pattern.constant);
}

llvm::Value* Slots::frame_address(std::uint32_t offset) {
  return code_.CreateConstInBoundsGEP1_32(code_.getInt8Ty(), body_.warps[body_.current].frame, offset);
}

}  // namespace quern::cpu::emit
