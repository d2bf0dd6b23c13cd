// SPDX-License-Identifier: Apache-2.0
// WarpBody: the stored form of each value, its place, and the conversion to other forms.
#include <llvm/IR/Module.h>

#include "cpu/emit/warp_body.hpp"

namespace quern::cpu::emit {
namespace {

using analysis::ShapeKind;

llvm::Constant* constant_of(llvm::Type* type, std::uint64_t bits) {
  if (type->isIntegerTy()) return llvm::ConstantInt::get(type, bits);
  const llvm::APInt word(static_cast<unsigned>(type->getPrimitiveSizeInBits()), bits);
  return llvm::ConstantFP::get(type->getContext(), llvm::APFloat(type->getFltSemantics(), word));
}

}  // namespace

// --- slots

llvm::Type* WarpBody::kept_type(Version version, ir::Value value) {
  const ir::Type type = inst(value).type;
  return kept_scalar(version, value) ? type_of(type) : vector_type_of(type);
}

bool WarpBody::has_slot(Version version, ir::Value value) const {
  return warp_of(value).slots[static_cast<std::size_t>(version)][value].memory != nullptr;
}

WarpBody::Slot& WarpBody::slot(Version version, ir::Value value) {
  Slot& found = warp_of(value).slots[static_cast<std::size_t>(version)][value];
  if (found.memory == nullptr)
    throw Defect("value %" + std::to_string(value) + " (" + std::string(ir::name(inst(value).op)) +
                 ") is read before it is defined");
  return found;
}

// A vector of i1 crosses blocks in the form that masks have.
llvm::Value* WarpBody::pack_bits(llvm::Value* what) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(what->getType());
  return vector != nullptr && vector->getElementType()->isIntegerTy(1) ? masks_.lanes_of(what) : what;
}

llvm::Value* WarpBody::unpack_bits(llvm::Value* what, ir::Type type) {
  return type == ir::Type::i1 && what->getType()->isVectorTy() ? masks_.bits_of(what) : what;
}

void WarpBody::write_slot(Version version, ir::Value value, llvm::Value* what) {
  if (!has_slot(version, value)) return;
  const Slot& to = slot(version, value);
  llvm::Value* packed = pack_bits(what);
  if (!plan_.dispatched || version == Version::full) {
    code_.CreateStore(packed, to.memory);
    return store_to_frame(to, packed);
  }
  // Other lanes may still need the values that they defined.
  if (!full() && packed->getType()->isVectorTy())
    packed =
        code_.CreateSelect(mask_, packed, code_.CreateAlignedLoad(to.type, to.memory, frame_align(to.type)));
  code_.CreateAlignedStore(packed, to.memory, frame_align(to.type));
}

void WarpBody::store_to_frame(const Slot& slot, llvm::Value* what) {
  if (slot.framed) code_.CreateAlignedStore(what, frame_address(slot.frame), frame_align(what->getType()));
}

void WarpBody::load_from_frame(std::uint32_t offset, const Slot& to) {
  code_.CreateStore(code_.CreateAlignedLoad(to.type, frame_address(offset), frame_align(to.type)), to.memory);
}

// --- values

llvm::Constant* WarpBody::known_constant(Version version, ir::Value value) {
  const analysis::Shape& shape = shape_in(version, value);
  const bool has_base = shape.kind == ShapeKind::uniform || shape.kind == ShapeKind::affine;
  if (!has_base || !shape.constant) return nullptr;
  return constant_of(type_of(inst(value).type), *shape.constant);
}

/// The stored form of `value` in the version being emitted: its scalar or its vector.
llvm::Value* WarpBody::kept(ir::Value value) {
  if (llvm::Constant* constant = known_constant(version_, value)) return constant;
  std::map<ir::Value, llvm::Value*>& values = warp_of(value).values;
  if (const auto found = values.find(value); found != values.end()) return found->second;
  const Slot& from = slot(version_, value);
  // At the start of the block, so that it serves all of it: slots of other values do not change within a
  // block.
  const llvm::IRBuilder<>::InsertPointGuard guard(code_);
  code_.SetInsertPoint(first_, first_->getFirstInsertionPt());
  llvm::Value* loaded = plan_.dispatched && version_ == Version::masked
                            ? code_.CreateAlignedLoad(from.type, from.memory, frame_align(from.type))
                            : code_.CreateLoad(from.type, from.memory);
  return values[value] = unpack_bits(loaded, inst(value).type);
}

llvm::Value* WarpBody::scalar(ir::Value value) {
  if (!kept_scalar(version_, value))
    throw Defect("a scalar is asked of %" + std::to_string(value) + ", which is kept as a vector");
  return kept(value);
}

llvm::Value* WarpBody::vector(ir::Value value) {
  if (!kept_scalar(version_, value)) return kept(value);
  llvm::BasicBlock* here = code_.GetInsertBlock();
  std::map<ir::Value, Expansion>& expansions = warp_of(value).expansions;
  if (const auto found = expansions.find(value); found != expansions.end())
    if (found->second.block == here || found->second.block == first_) return found->second.vector;
  llvm::Value* base = kept(value);
  llvm::Value* made = expand(shape(value), inst(value).type, base,
                             [this](ir::Value coefficient) { return scalar(coefficient); });
  expansions[value] = {made, here};
  return made;
}

llvm::Constant* WarpBody::pattern(const analysis::LanePattern& lanes, llvm::Type* element) {
  std::vector<llvm::Constant*> constants;
  for (const std::int64_t lane : lanes)
    constants.push_back(llvm::ConstantInt::get(element, static_cast<std::uint64_t>(lane), /*IsSigned=*/true));
  return llvm::ConstantVector::get(constants);
}

llvm::Value* WarpBody::expand(const analysis::Shape& shape, ir::Type type, llvm::Value* base,
                              const Coefficient& coefficient) {
  llvm::Type* element = type_of(type);
  llvm::Value* result = code_.CreateVectorSplat(kLanes, base);
  if (shape.kind == ShapeKind::affine)
    for (const analysis::Term& term : shape.terms) {
      llvm::Value* part = pattern(term.pattern, element);
      if (term.coefficient != ir::kNone) {
        llvm::Value* factor = coefficient(term.coefficient);
        factor = term.sign_extend ? code_.CreateSExtOrTrunc(factor, element)
                                  : code_.CreateZExtOrTrunc(factor, element);
        part = code_.CreateMul(code_.CreateVectorSplat(kLanes, factor), part);
      }
      result = code_.CreateAdd(result, part);
    }
  if (shape.kind == ShapeKind::offset32) {
    llvm::Value* index = vector(shape.index);
    llvm::Type* wide = vector_type_of(type);
    index = shape.index_signed ? code_.CreateSExt(index, wide) : code_.CreateZExt(index, wide);
    llvm::Constant* scale =
        llvm::ConstantInt::get(wide, static_cast<std::uint64_t>(shape.scale), /*IsSigned=*/true);
    result = code_.CreateAdd(result, code_.CreateMul(index, scale));
  }
  return result;
}

void WarpBody::define(ir::Value value, llvm::Value* what) {
  if (what->getType() != kept_type(version_, value))
    throw Defect("%" + std::to_string(value) + " (" + std::string(ir::name(inst(value).op)) +
                 ") is defined in another form than its shape's");
  warp_of(value).values[value] = what;
  write_slot(version_, value, what);
}

void WarpBody::define_element(ir::Value value, unsigned index, llvm::Value* what) {
  warp_of(value).elements[{value, index}] = what;
}

/// Extracts are right behind their operands (place_extracts in cuts/cut_blocks.cpp).
void WarpBody::emit_extract(ir::Value value) {
  const ir::Inst& extract = inst(value);
  const auto& elements = warp_of(extract.args[0]).elements;
  const auto found = elements.find({extract.args[0], static_cast<unsigned>(extract.imm)});
  if (found == elements.end()) throw Defect("an extract reads an element that its operation does not make");
  llvm::Value* what = found->second;
  if (!kept_scalar(version_, value) && !what->getType()->isVectorTy())
    what = code_.CreateVectorSplat(kLanes, what);
  if (known_constant(version_, value) == nullptr) define(value, what);
}

/// The operand of a phi in the form that the phi is kept in.
llvm::Value* WarpBody::as_kept(ir::Value value, bool want_scalar) {
  if (shape(value).kind == ShapeKind::undefined) {
    const ir::Type type = inst(value).type;
    return llvm::Constant::getNullValue(want_scalar ? type_of(type) : vector_type_of(type));
  }
  return want_scalar ? scalar(value) : vector(value);
}

}  // namespace quern::cpu::emit
