// SPDX-License-Identifier: Apache-2.0
// WarpBody: slots and values, and the frame around the two versions.
#include <algorithm>

#include <llvm/IR/Module.h>

#include "cpu/emit/warp_body.hpp"
#include "cpu/engine/abi.hpp"

namespace quern::cpu::emit {
namespace {

using analysis::ShapeKind;

enum CacheIndex : unsigned { kParams, kWindowBase, kWindowBytes, kSharedBase, kLocalRoot, kLocalStride, kLocalBase };

llvm::Constant* constant_of(llvm::Type* type, std::uint64_t bits) {
  if (type->isIntegerTy()) return llvm::ConstantInt::get(type, bits);
  const llvm::APInt word(static_cast<unsigned>(type->getPrimitiveSizeInBits()), bits);
  return llvm::ConstantFP::get(type->getContext(), llvm::APFloat(type->getFltSemantics(), word));
}

}  // namespace

WarpBody::WarpBody(const Plan& plan, const Specialisation& specialisation, const WarpPlace& place,
                   const DeviceFunctions& callees)
    : plan_(plan), place_(place), callees_(callees), code_(place.begin), masks_(code_, specialisation.isa) {
  builder_ = &code_;
  module_ = plan.module;
  function_ = plan.function;
  analysis_ = &plan.masked;
  specialisation_ = specialisation;
}

void WarpBody::emit() {
  create_blocks();
  find_frame();
  begin_warp();
  if (plan_.has_full) emit_full();
  emit_masked();
  emit_states();
}

// --- slots

llvm::Type* WarpBody::kept_type(Version version, ir::Value value) {
  const ir::Type type = inst(value).type;
  return kept_scalar(version, value) ? type_of(type) : vector_type_of(type);
}

bool WarpBody::has_slot(Version version, ir::Value value) const {
  return slots_[static_cast<std::size_t>(version)][value].memory != nullptr;
}

WarpBody::Slot& WarpBody::slot(Version version, ir::Value value) {
  Slot& found = slots_[static_cast<std::size_t>(version)][value];
  if (found.memory == nullptr)
    throw Defect("value %" + std::to_string(value) + " (" + std::string(ir::name(inst(value).op)) + ") is read before it is defined");
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
  code_.CreateStore(packed, to.memory);
  store_to_frame(to, packed);
}

void WarpBody::store_to_frame(const Slot& slot, llvm::Value* what) {
  if (slot.frame == 0) return;
  const llvm::Align align(what->getType()->isVectorTy() ? 64 : 8);
  code_.CreateAlignedStore(what, code_.CreateConstInBoundsGEP1_32(code_.getInt8Ty(), place_.frame, slot.frame), align);
}

// --- values

llvm::Constant* WarpBody::known_constant(Version version, ir::Value value) {
  const analysis::Shape& shape = shape_in(version, value);
  const bool has_base = shape.kind == ShapeKind::uniform || shape.kind == ShapeKind::affine;
  if (!has_base || !shape.constant) return nullptr;
  return constant_of(type_of(inst(value).type), *shape.constant);
}

/// What is kept of `value` in the version being emitted: its scalar or its vector.
llvm::Value* WarpBody::kept(ir::Value value) {
  if (llvm::Constant* constant = known_constant(version_, value)) return constant;
  if (const auto found = values_.find(value); found != values_.end()) return found->second;
  const Slot& from = slot(version_, value);
  // At the start of the block, where it serves all of it: slots of other values do not change within a block.
  const llvm::IRBuilder<>::InsertPointGuard guard(code_);
  code_.SetInsertPoint(first_, first_->getFirstInsertionPt());
  llvm::Value* loaded = code_.CreateLoad(from.memory->getAllocatedType(), from.memory);
  return values_[value] = unpack_bits(loaded, inst(value).type);
}

llvm::Value* WarpBody::scalar(ir::Value value) {
  if (!kept_scalar(version_, value)) throw Defect("a scalar is asked of %" + std::to_string(value) + ", which is kept as a vector");
  return kept(value);
}

llvm::Value* WarpBody::vector(ir::Value value) {
  if (!kept_scalar(version_, value)) return kept(value);
  llvm::BasicBlock* here = code_.GetInsertBlock();
  if (const auto found = expansions_.find(value); found != expansions_.end())
    if (found->second.block == here || found->second.block == first_) return found->second.vector;
  llvm::Value* base = kept(value);
  llvm::Value* made = expand(shape(value), inst(value).type, base, [this](ir::Value coefficient) { return scalar(coefficient); });
  expansions_[value] = {made, here};
  return made;
}

llvm::Constant* WarpBody::pattern(const analysis::LanePattern& lanes, llvm::Type* element) {
  std::vector<llvm::Constant*> constants;
  for (const std::int64_t lane : lanes)
    constants.push_back(llvm::ConstantInt::get(element, static_cast<std::uint64_t>(lane), /*IsSigned=*/true));
  return llvm::ConstantVector::get(constants);
}

llvm::Value* WarpBody::expand(const analysis::Shape& shape, ir::Type type, llvm::Value* base, const Coefficient& coefficient) {
  llvm::Type* element = type_of(type);
  llvm::Value* result = code_.CreateVectorSplat(kLanes, base);
  if (shape.kind == ShapeKind::affine)
    for (const analysis::Term& term : shape.terms) {
      llvm::Value* part = pattern(term.pattern, element);
      if (term.coefficient != ir::kNone) {
        llvm::Value* factor = coefficient(term.coefficient);
        factor = term.sign_extend ? code_.CreateSExtOrTrunc(factor, element) : code_.CreateZExtOrTrunc(factor, element);
        part = code_.CreateMul(code_.CreateVectorSplat(kLanes, factor), part);
      }
      result = code_.CreateAdd(result, part);
    }
  if (shape.kind == ShapeKind::offset32) {
    llvm::Value* index = vector(shape.index);
    llvm::Type* wide = vector_type_of(type);
    index = shape.index_signed ? code_.CreateSExt(index, wide) : code_.CreateZExt(index, wide);
    llvm::Constant* scale = llvm::ConstantInt::get(wide, static_cast<std::uint64_t>(shape.scale), /*IsSigned=*/true);
    result = code_.CreateAdd(result, code_.CreateMul(index, scale));
  }
  return result;
}

void WarpBody::define(ir::Value value, llvm::Value* what) {
  if (what->getType() != kept_type(version_, value))
    throw Defect("%" + std::to_string(value) + " (" + std::string(ir::name(inst(value).op)) + ") is defined in another form than its shape's");
  values_[value] = what;
  write_slot(version_, value, what);
}

void WarpBody::define_element(ir::Value value, unsigned index, llvm::Value* what) { elements_[{value, index}] = what; }

/// Extracts stand right behind what they read from (place_extracts in plan.cpp).
void WarpBody::emit_extract(ir::Value value) {
  const ir::Inst& extract = inst(value);
  const auto found = elements_.find({extract.args[0], static_cast<unsigned>(extract.imm)});
  if (found == elements_.end()) throw Defect("an extract reads an element that its operation does not make");
  llvm::Value* what = found->second;
  if (!kept_scalar(version_, value) && !what->getType()->isVectorTy()) what = code_.CreateVectorSplat(kLanes, what);
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

// --- launch constants

llvm::Value* WarpBody::launch_constant(llvm::Value* base, std::uint64_t offset, llvm::Type* type, std::uint64_t pointee_bytes) {
  llvm::IRBuilder<> at(place_.entry->getTerminator());
  llvm::Value* address = at.CreateConstInBoundsGEP1_64(at.getInt8Ty(), base, offset);
  llvm::LoadInst* load = at.CreateAlignedLoad(type, address, llvm::Align(type->isIntegerTy(32) ? 4 : 8));
  llvm::MDNode* nothing = llvm::MDNode::get(llvm(), {});
  load->setMetadata(llvm::LLVMContext::MD_invariant_load, nothing);
  load->setMetadata(llvm::LLVMContext::MD_noundef, nothing);
  if (pointee_bytes != 0) {
    const auto number = [&](std::uint64_t value) {
      return llvm::MDNode::get(llvm(), llvm::ConstantAsMetadata::get(at.getInt64(value)));
    };
    load->setMetadata(llvm::LLVMContext::MD_nonnull, nothing);
    load->setMetadata(llvm::LLVMContext::MD_dereferenceable, number(pointee_bytes));
    load->setMetadata(llvm::LLVMContext::MD_align, number(16));
  }
  return load;
}

llvm::Value* WarpBody::cached(unsigned which, llvm::Value* base, std::uint64_t offset, llvm::Type* type, std::uint64_t bytes) {
  if (cache_[which] == nullptr) cache_[which] = launch_constant(base, offset, type, bytes);
  return cache_[which];
}

llvm::Value* WarpBody::params() {
  std::uint64_t bytes = 64;  // the padding that LaunchState promises
  for (const ir::Parameter& parameter : module_->functions[0].params)
    bytes = std::max<std::uint64_t>(bytes, parameter.offset + parameter.size + 64);
  return cached(kParams, launch(), offsetof(engine::LaunchState, params), code_.getPtrTy(), bytes);
}
llvm::Value* WarpBody::window_base() {
  return cached(kWindowBase, launch(), offsetof(engine::LaunchState, window_base), code_.getInt64Ty());
}
llvm::Value* WarpBody::window_bytes() {
  return cached(kWindowBytes, launch(), offsetof(engine::LaunchState, window_bytes), code_.getInt64Ty());
}
llvm::Value* WarpBody::shared_base() {
  return cached(kSharedBase, worker(), offsetof(engine::WorkerState, shared_base), code_.getPtrTy());
}
llvm::Value* WarpBody::local_stride() {
  return cached(kLocalStride, worker(), offsetof(engine::WorkerState, local_stride), code_.getInt64Ty());
}
llvm::Value* WarpBody::local_base() {
  if (cache_[kLocalBase] == nullptr) {
    llvm::Value* root = cached(kLocalRoot, worker(), offsetof(engine::WorkerState, local_base), code_.getPtrTy());
    llvm::Value* stride = local_stride();
    llvm::IRBuilder<> at(place_.begin, place_.begin->getFirstInsertionPt());
    llvm::Value* first = at.CreateMul(at.CreateZExt(place_.warp, at.getInt64Ty()), at.getInt64(kLanes));
    cache_[kLocalBase] = at.CreateGEP(at.getInt8Ty(), root, at.CreateMul(first, stride));
  }
  return cache_[kLocalBase];
}

llvm::FunctionCallee WarpBody::helper(std::string_view name, llvm::FunctionType* type) {
  llvm::Module& into = *place_.function->getParent();
  llvm::FunctionCallee callee = into.getOrInsertFunction(llvm::StringRef(name.data(), name.size()), type);
  llvm::cast<llvm::Function>(callee.getCallee())->addFnAttr(llvm::Attribute::NoUnwind);
  return callee;
}

llvm::BasicBlock* WarpBody::new_block(const char* name) {
  llvm::BasicBlock* made = make_block(name);
  code_.SetInsertPoint(made);
  return made;
}

/// A new block behind the current one, without going there.
llvm::BasicBlock* WarpBody::make_block(const char* name) {
  return llvm::BasicBlock::Create(llvm(), name, place_.function, code_.GetInsertBlock()->getNextNode());
}

// --- lanes

llvm::Value* WarpBody::mask() { return full() ? masks_.bits_of(masks_.all()) : mask_; }
llvm::Value* WarpBody::mask_bits() { return full() ? code_.getInt32(0xffffffffu) : mask_word_; }
llvm::Value* WarpBody::live_bits() { return full() ? mask_bits() : code_.CreateLoad(code_.getInt32Ty(), live_); }

// --- the frame around the versions

void WarpBody::create_blocks() {
  llvm::IRBuilder<> at(place_.entry, place_.entry->begin());
  const auto add_slot = [&](Version version, ir::Value value) {
    if (known_constant(version, value) != nullptr) return;
    llvm::Type* type = kept_type(version, value);
    if (type->isVectorTy() && inst(value).type == ir::Type::i1) type = masks_.type();
    slots_[static_cast<std::size_t>(version)][value].memory = at.CreateAlloca(type);
  };
  for (auto& slots : slots_) slots.resize(function_->insts.size());
  for (ir::Value value = 0; value < function_->insts.size(); ++value) {
    if (!plan_.crosses[value] || inst(value).type == ir::Type::none) continue;
    add_slot(Version::masked, value);
    if (plan_.has_full) add_slot(Version::full, value);
  }
  full_.resize(function_->blocks.size());
  masked_.resize(function_->blocks.size());
  live_ = at.CreateAlloca(at.getInt32Ty());
  for (const ir::BlockId id : plan_.masked.order) {
    const auto make = [&](const char* name) {
      return llvm::BasicBlock::Create(llvm(), name + std::to_string(id), place_.function, place_.done);
    };
    if (plan_.has_full) full_[id] = make("full");
    if (plan_.masked_needed[id]) masked_[id] = {make("test"), make("masked"), at.CreateAlloca(masks_.type())};
  }
  for (const ir::Type type : function_->result_types) results_.push_back(at.CreateAlloca(vector_type_of(type)));
}

/// What every warp begins with: nobody waits, masked slots hold zeros; then to the first block (or where the state says).
void WarpBody::begin_warp() {
  code_.SetInsertPoint(place_.begin);
  clear_masked();
  for (llvm::AllocaInst* result : results_)
    code_.CreateStore(llvm::Constant::getNullValue(result->getAllocatedType()), result);
  llvm::BasicBlock* start = make_block("start");
  if (place_.state != nullptr)
    resume_ = code_.CreateSwitch(place_.state, start);
  else
    code_.CreateBr(start);
  code_.SetInsertPoint(start);
  if (plan_.has_full) {
    code_.CreateBr(full_[0]);
    return;
  }
  llvm::Value* lanes = place_.lanes == nullptr ? code_.getInt32(0xffffffffu) : place_.lanes;
  code_.CreateStore(lanes, live_);
  code_.CreateStore(masks_.lanes_of(masks_.bits_of_word(lanes)), masked_[0].waiting);
  code_.CreateBr(masked_[0].run);
}

void WarpBody::begin_block(Version version, ir::BlockId block, llvm::BasicBlock* at) {
  version_ = version;
  analysis_ = &plan_.facts(version);
  block_ = block;
  first_ = at;
  values_.clear();
  expansions_.clear();
  elements_.clear();
  lanes_ = mask_ = mask_word_ = nullptr;
  certain_ = true;
  code_.SetInsertPoint(at);
}

void WarpBody::emit_insts(ir::BlockId block) {
  for (const ir::Value value : function_->blocks[block].insts) {
    if (ir::has_trait(inst(value).op, 't') || value == plan_.barrier[block]) break;
    if (!is_phi(value))
      emit_inst(value);
    else if (has_slot(version_, value) && slot(version_, value).frame != 0)
      store_to_frame(slot(version_, value), pack_bits(kept(value)));
  }
}

void WarpBody::emit_inst(ir::Value value) {
  const ir::Inst& what = inst(value);
  switch (what.op) {
    case ir::Op::extract: return emit_extract(value);
    case ir::Op::call: return emit_call(value);
    case ir::Op::set_result: return emit_set_result(value);
    case ir::Op::arg: return define(value, arguments_.at(static_cast<std::size_t>(what.imm)));
    default: break;
  }
  // A value known at compile time has no code: whoever reads it gets the constant.
  if (ir::has_trait(what.op, 'p') && what.type != ir::Type::none && known_constant(version_, value) != nullptr) return;
  emit_operation(*this, value);
}

/// The phis of successor `successor_index` of `block`, each with its operand on that edge.
std::vector<std::pair<ir::Value, ir::Value>> WarpBody::phi_operands(ir::BlockId block, unsigned successor_index) const {
  const std::vector<ir::BlockId>& succs = function_->blocks[block].succs;
  const ir::BlockId to = succs[successor_index];
  // Edges between the same two blocks are in the same order in succs and in preds.
  auto skip = std::count(succs.begin(), succs.begin() + successor_index, to);
  const ir::Block& next = function_->blocks[to];
  std::size_t edge = 0;
  while (next.preds[edge] != block || skip-- > 0) ++edge;
  std::vector<std::pair<ir::Value, ir::Value>> result;
  for (const ir::Value phi : next.insts) {
    if (!is_phi(phi)) break;
    result.emplace_back(phi, inst(phi).args[edge]);
  }
  return result;
}

void WarpBody::emit_trap(std::uint32_t which) {
  llvm::FunctionType* type = llvm::FunctionType::get(code_.getVoidTy(), {code_.getPtrTy(), code_.getInt32Ty()}, false);
  if (!full()) {
    llvm::Value* lane = code_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, mask_word_, code_.getFalse());
    code_.CreateStore(lane, code_.CreateConstInBoundsGEP1_64(code_.getInt8Ty(), worker(), offsetof(engine::WorkerState, fault_lane)));
  }
  llvm::CallInst* call = code_.CreateCall(helper("quern_cpu_trap", type), {worker(), code_.getInt32(which)});
  call->setDoesNotReturn();
  code_.CreateUnreachable();
}

}  // namespace quern::cpu::emit
