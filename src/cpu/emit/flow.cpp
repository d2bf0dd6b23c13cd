// SPDX-License-Identifier: Apache-2.0
// WarpBody: the frame around the two versions of the blocks, launch constants, the instructions of a block.
#include <algorithm>

#include <llvm/IR/Module.h>

#include "cpu/abi/state.hpp"
#include "cpu/emit/sites.hpp"
#include "cpu/emit/warp_body.hpp"

namespace quern::cpu::emit {
namespace {

enum CacheIndex : unsigned { kParams, kWindowBase, kWindowBytes, kSharedBase, kLocalRoot, kLocalStride };

}  // namespace

WarpBody::WarpBody(const Plan& plan, const Specialisation& specialisation, const WarpPlace& place,
                   const DeviceFunctions& callees, Gang gang)
    : plan_(plan),
      place_(place),
      callees_(callees),
      gang_(gang),
      code_(place.begin),
      sites_(scope_of_sites(*place.begin->getModule())),
      masks_(code_, specialisation.isa),
      warps_(gang.width) {
  builder_ = &code_;
  module_ = plan.module;
  function_ = plan.function;
  analysis_ = &plan.masked;
  specialisation_ = specialisation;
}

void WarpBody::emit() {
  place_warps();
  create_blocks();
  find_frame();
  if (!is_gang() && !plan_.dispatched) {
    spans_ = Spans(plan_);
    dominance_ = analysis::Dominance(plan_.masked);
  }
  begin_warp();
  if (plan_.has_full) emit_full();
  if (plan_.dispatched) {
    emit_dispatched();
  } else if (!is_gang()) {
    emit_masked();
    emit_split_states();
  }
  emit_states();
}

// --- launch constants

llvm::Value* WarpBody::launch_constant(llvm::Value* base, std::uint64_t offset, llvm::Type* type,
                                       std::uint64_t pointee_bytes) {
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

llvm::Value* WarpBody::cached(unsigned which, llvm::Value* base, std::uint64_t offset, llvm::Type* type,
                              std::uint64_t bytes) {
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
llvm::Value* WarpBody::window_limit(std::uint32_t param, std::uint32_t mask, std::uint32_t low) {
  llvm::Value* const base = params();
  llvm::Value* const bytes = window_bytes();
  llvm::Value*& made = limits_[{param, mask, low}];
  if (made != nullptr) return made;
  llvm::IRBuilder<> at(place_.entry->getTerminator());
  llvm::LoadInst* const byte = at.CreateAlignedLoad(
      at.getInt8Ty(), at.CreateConstInBoundsGEP1_64(at.getInt8Ty(), base, param), llvm::Align(1));
  byte->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(llvm(), {}));
  llvm::Value* const is_low = at.CreateICmpEQ(at.CreateAnd(byte, at.getInt8(static_cast<std::uint8_t>(mask))),
                                              at.getInt8(static_cast<std::uint8_t>(low)));
  return made = at.CreateSelect(is_low, bytes, at.getInt64(0));
}
llvm::Value* WarpBody::shared_base() {
  return cached(kSharedBase, worker(), offsetof(engine::WorkerState, shared_base), code_.getPtrTy());
}
llvm::Value* WarpBody::local_stride() {
  return cached(kLocalStride, worker(), offsetof(engine::WorkerState, local_stride), code_.getInt64Ty());
}
llvm::Value* WarpBody::local_begin() {
  return place_.local_begin == nullptr ? code_.getInt64(0) : place_.local_begin;
}
llvm::Value* WarpBody::local_base() {
  WarpValues& warp = warps_[current_];
  if (warp.local_base == nullptr) {
    llvm::Value* root =
        cached(kLocalRoot, worker(), offsetof(engine::WorkerState, local_base), code_.getPtrTy());
    llvm::Value* stride = local_stride();
    llvm::IRBuilder<> at(place_.begin, place_.begin->getFirstInsertionPt());
    llvm::Value* first = at.CreateMul(at.CreateZExt(warp.index, at.getInt64Ty()), at.getInt64(kLanes));
    warp.local_base = at.CreateGEP(at.getInt8Ty(), root, at.CreateMul(first, stride));
  }
  return warp.local_base;
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
llvm::Value* WarpBody::live_bits() {
  return full() ? mask_bits() : code_.CreateLoad(code_.getInt32Ty(), live_);
}

// --- the frame around the versions

void WarpBody::create_blocks() {
  llvm::IRBuilder<> at(place_.entry, place_.entry->begin());
  const auto add_slot = [&](Version version, ir::Value value) {
    if (known_constant(version, value) != nullptr) return;
    llvm::Type* type = kept_type(version, value);
    if (type->isVectorTy() && inst(value).type == ir::Type::i1) type = masks_.type();
    for_each_warp(value, [&] {
      Slot& made = warp_of(value).slots[static_cast<std::size_t>(version)][value];
      made.memory = at.CreateAlloca(type);
      made.type = type;
    });
  };
  for (WarpValues& warp : warps_)
    for (auto& slots : warp.slots) slots.resize(function_->insts.size());
  for (ir::Value value = 0; value < function_->insts.size(); ++value) {
    if (!plan_.crosses[value] || inst(value).type == ir::Type::none) continue;
    if (!is_gang() && !plan_.dispatched) add_slot(Version::masked, value);
    if (plan_.has_full) add_slot(Version::full, value);
  }
  full_.resize(function_->blocks.size());
  masked_.resize(function_->blocks.size());
  if (plan_.dispatched)
    place_dispatched();
  else
    live_ = at.CreateAlloca(at.getInt32Ty());
  for (const ir::BlockId id : plan_.masked.order) {
    const auto make = [&](const char* name) {
      return llvm::BasicBlock::Create(llvm(), name + std::to_string(id), place_.function, place_.done);
    };
    if (plan_.has_full && plan_.full_needed[id]) full_[id] = make("full");
    if (plan_.dispatched)
      masked_[id] = {nullptr, make("apart"), nullptr};
    else if (plan_.masked_needed[id] && !is_gang())
      masked_[id] = {make("test"), make("masked"), at.CreateAlloca(masks_.type())};
  }
  for (const ir::Type type : function_->result_types)
    results_.push_back(at.CreateAlloca(vector_type_of(type)));
}

/// Emits the start of every warp: no lanes wait, masked slots hold zeros; then control goes to the first
/// block (or to the one in the saved state).
void WarpBody::begin_warp() {
  code_.SetInsertPoint(place_.begin);
  clear_masked();
  for (llvm::AllocaInst* result : results_)
    code_.CreateStore(llvm::Constant::getNullValue(result->getAllocatedType()), result);
  if (plan_.dispatched) return begin_dispatch();
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
  for (WarpValues& warp : warps_) {
    warp.values.clear();
    warp.expansions.clear();
    warp.elements.clear();
  }
  lanes_ = mask_ = mask_word_ = nullptr;
  certain_ = true;
  code_.SetInsertPoint(at);
}

void WarpBody::emit_insts(ir::BlockId block) {
  for (const ir::Value value : function_->blocks[block].insts) {
    if (ir::has_trait(inst(value).op, 't') || value == plan_.barrier[block]) break;
    if (full() && value == plan_.bounded[block].comparison) continue;  // full_cond_branch emits it
    if (sites_ != nullptr) set_site(code_, *sites_, *module_, *function_, value);
    for_each_warp(value, [&] {
      if (!is_phi(value))
        emit_inst(value);
      else if (has_slot(version_, value) && slot(version_, value).framed)
        store_to_frame(slot(version_, value), pack_bits(kept(value)));
    });
    if (sites_ != nullptr) clear_site(code_);
  }
}

void WarpBody::emit_inst(ir::Value value) {
  const ir::Inst& what = inst(value);
  switch (what.op) {
    case ir::Op::extract:
      return emit_extract(value);
    case ir::Op::call:
      return emit_call(value);
    case ir::Op::set_result:
      return emit_set_result(value);
    case ir::Op::arg:
      return define(value, arguments_.at(static_cast<std::size_t>(what.imm)));
    default:
      break;
  }
  // A value known at compile time has no code: its readers get the constant.
  if (ir::has_trait(what.op, 'p') && what.type != ir::Type::none &&
      known_constant(version_, value) != nullptr)
    return;
  // If lanes wait, other lanes get their turn while this one goes round its loop: sleeping would only delay
  // them.
  if (what.op == ir::Op::nanosleep && !plan_.full_needed[block_]) return;
  if (what.op == ir::Op::host_call) {
    note_place();
    note_for_report(offsetof(engine::WorkerState, fault_location), code_.getInt32(what.location));
  }
  emit_operation(*this, value);
  if (what.op == ir::Op::load && full()) prefetch(value);
}

void WarpBody::note_for_report(std::uint64_t offset, llvm::Value* what) {
  code_.CreateStore(what, code_.CreateConstInBoundsGEP1_64(code_.getInt8Ty(), worker(), offset));
}

/// A host call may report (a failed assertion does): it wants to know the block and the warp.
void WarpBody::note_place() {
  llvm::Value* index = code_.getInt64(0);
  for (unsigned d = 3; d-- > 0;) {
    llvm::Value* extent = code_.getInt64(1);
    if (d < 2)
      extent = code_.CreateZExt(
          launch_constant(launch(), offsetof(engine::LaunchState, grid) + 4 * d, code_.getInt32Ty()),
          code_.getInt64Ty());
    index = code_.CreateAdd(code_.CreateMul(index, extent), code_.CreateZExt(ctaid(d), code_.getInt64Ty()));
  }
  note_for_report(offsetof(engine::WorkerState, block_index), index);
  note_for_report(offsetof(engine::WorkerState, warp_index), warp_index());
}

/// The phis of successor `successor_index` of `block`, each with its operand on that edge.
std::vector<std::pair<ir::Value, ir::Value>> WarpBody::phi_operands(ir::BlockId block,
                                                                    unsigned successor_index) const {
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

/// Ends the launch; records the place (an index into KernelCode::locations or kNone) and the first affected
/// lane.
void WarpBody::emit_trap(std::uint64_t which, std::uint32_t location) {
  note_for_report(offsetof(engine::WorkerState, fault_location), code_.getInt32(location));
  note_for_report(offsetof(engine::WorkerState, warp_index), warp_index());
  note_for_report(offsetof(engine::WorkerState, fault_lane),
                  code_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, mask_bits(), code_.getFalse()));
  llvm::FunctionType* type =
      llvm::FunctionType::get(code_.getVoidTy(), {code_.getPtrTy(), code_.getInt32Ty()}, false);
  llvm::CallInst* call = code_.CreateCall(helper("quern_cpu_trap", type),
                                          {worker(), code_.getInt32(static_cast<std::uint32_t>(which))});
  call->setDoesNotReturn();
  code_.CreateUnreachable();
}

}  // namespace quern::cpu::emit
