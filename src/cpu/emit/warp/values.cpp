// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/warp/values.hpp"

namespace quern::cpu::emit {
namespace {

using analysis::LanePatternKind;

llvm::Constant* constant_vector(const analysis::LaneOffsets& lanes, llvm::Type* element) {
  std::vector<llvm::Constant*> constants;
  for (const std::int64_t lane : lanes)
    constants.push_back(llvm::ConstantInt::get(element, static_cast<std::uint64_t>(lane), /*IsSigned=*/true));
  return llvm::ConstantVector::get(constants);
}

}  // namespace

void Values::begin_block(Version version, ir::BlockId block, llvm::BasicBlock* at) {
  body_.version = version;
  body_.block = block;
  body_.first = at;
  body_.running = {};
  warps_.assign(body_.warps.size(), {});
  code_.SetInsertPoint(at);
}

llvm::Value* Values::kept(ir::Value value) {
  if (llvm::Constant* constant = slots_.known_constant(body_.version, value)) return constant;
  std::map<ir::Value, llvm::Value*>& values = of_warp(value).values;
  if (const auto found = values.find(value); found != values.end()) return found->second;
  const Slot& from = slots_.at(body_.version, value);
  // Insert at the start of the block, so that all of the block can use it: slots of other values do not
  // change within a block.
  const llvm::IRBuilder<>::InsertPointGuard guard(code_);
  code_.SetInsertPoint(body_.first, body_.first->getFirstInsertionPt());
  return values[value] = slots_.unpack_bits(slots_.load(from, body_.version), inst(value).type);
}

llvm::Value* Values::scalar(ir::Value value) {
  if (!kept_scalar(body_.version, value))
    throw Defect("the scalar of %" + std::to_string(value) + " is requested, but a vector is kept");
  return kept(value);
}

llvm::Value* Values::vector(ir::Value value) {
  if (!kept_scalar(body_.version, value)) return kept(value);
  llvm::BasicBlock* here = code_.GetInsertBlock();
  std::map<ir::Value, Expansion>& expansions = of_warp(value).expansions;
  if (const auto found = expansions.find(value); found != expansions.end())
    if (found->second.block == here || found->second.block == body_.first) return found->second.vector;
  llvm::Value* base = kept(value);
  llvm::Value* made = expand(pattern(value), inst(value).type, base,
                             [this](ir::Value coefficient) { return scalar(coefficient); });
  expansions[value] = {made, here};
  return made;
}

llvm::Value* Values::expand(const analysis::LanePattern& pattern, ir::Type type, llvm::Value* base,
                            const Coefficient& coefficient) {
  llvm::Type* element = type_of(type);
  llvm::Value* result = code_.CreateVectorSplat(kWarpSize, base);
  if (pattern.kind == LanePatternKind::affine)
    for (const analysis::Term& term : pattern.terms) {
      llvm::Value* part = constant_vector(term.offsets, element);
      if (term.coefficient != ir::kNone) {
        llvm::Value* factor = coefficient(term.coefficient);
        factor = term.sign_extend ? code_.CreateSExtOrTrunc(factor, element)
                                  : code_.CreateZExtOrTrunc(factor, element);
        part = code_.CreateMul(code_.CreateVectorSplat(kWarpSize, factor), part);
      }
      result = code_.CreateAdd(result, part);
    }
  if (pattern.kind == LanePatternKind::offset32) {
    llvm::Value* index = vector(pattern.index);
    llvm::Type* wide = vector_type_of(type);
    index = pattern.index_signed ? code_.CreateSExt(index, wide) : code_.CreateZExt(index, wide);
    llvm::Constant* scale =
        llvm::ConstantInt::get(wide, static_cast<std::uint64_t>(pattern.scale), /*IsSigned=*/true);
    result = code_.CreateAdd(result, code_.CreateMul(index, scale));
  }
  return result;
}

void Values::define(ir::Value value, llvm::Value* what) {
  if (what->getType() != slots_.kept_type(body_.version, value))
    throw Defect("%" + std::to_string(value) + " (" + std::string(ir::name(inst(value).op)) +
                 ") is not defined in the form that its pattern requires");
  of_warp(value).values[value] = what;
  slots_.write(body_.version, value, what);
}

void Values::define_element(ir::Value value, unsigned index, llvm::Value* what) {
  of_warp(value).elements[{value, index}] = what;
}

void Values::emit_extract(ir::Value value) {
  const ir::Inst& extract = inst(value);
  const auto& elements = of_warp(extract.args[0]).elements;
  const auto found = elements.find({extract.args[0], static_cast<unsigned>(extract.imm)});
  if (found == elements.end()) throw Defect("an extract reads an element that its operation does not make");
  llvm::Value* what = found->second;
  if (!kept_scalar(body_.version, value) && !what->getType()->isVectorTy())
    what = code_.CreateVectorSplat(kWarpSize, what);
  if (slots_.known_constant(body_.version, value) == nullptr) define(value, what);
}

llvm::Value* Values::as_kept(ir::Value value, bool want_scalar) {
  if (pattern(value).kind == LanePatternKind::undefined) {
    const ir::Type type = inst(value).type;
    return llvm::Constant::getNullValue(want_scalar ? type_of(type) : vector_type_of(type));
  }
  return want_scalar ? scalar(value) : vector(value);
}

}  // namespace quern::cpu::emit
