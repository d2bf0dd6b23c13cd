// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/warp/serial_code.hpp"

#include <algorithm>
#include <bit>
#include <span>

#include "cpu/emit/llvm/sites.hpp"

namespace quern::cpu::emit {

void SerialCode::emit(ir::BlockId branch) {
  branch_ = branch;
  region_ = &plan_.serial[branch];
  // Values of the branch's own block may have no slots: read them before the first warp runs.
  std::vector<EdgeList> first;
  for_each_warp([&] { first.push_back(edges_from(branch, masks_.all())); });
  Contents restored;
  for (const ir::Value value : values_to_restore())
    restored.emplace_back(value, slots_.load(slots_.at(Version::full, value), Version::full));
  body_.serial = true;
  if (region_->joint_block != ir::kNone) run_head(first);
  for (body_.current = 0; body_.current < body_.warps.size(); ++body_.current) {
    if (body_.current != 0)
      for (const auto& [value, what] : restored)
        code_.CreateStore(what, slots_.at(Version::full, value).memory);
    run_warp(first[body_.current]);
  }
  body_.current = 0;
  body_.serial = false;
  body_.running = {};
  code_.CreateBr(body_.full_blocks[region_->join]);
}

/// The edges from `block`, of which each of `lanes` takes one.
SerialCode::EdgeList SerialCode::edges_from(ir::BlockId block, llvm::Value* lanes) {
  const std::vector<ir::BlockId>& succs = function_->blocks[block].succs;
  const ir::Inst& last = terminator(block);
  std::vector<llvm::Value*> by_edge{lanes};
  if (last.op == ir::Op::cond_br && pattern(last.args[0]).kind == analysis::LanePatternKind::uniform) {
    llvm::Value* condition = values_.scalar(last.args[0]);
    by_edge = {code_.CreateSelect(condition, lanes, masks_.none()),
               code_.CreateSelect(condition, masks_.none(), lanes)};
  } else if (last.op != ir::Op::br) {
    by_edge = edges_.lanes_by_edge(block, lanes);
  }
  EdgeList edges;
  for (unsigned i = 0; i < succs.size(); ++i) {
    Edge& edge = edges.emplace_back(Edge{block, succs[i], by_edge[i], {}});
    for (const auto& [phi, operand] : edges_.phi_operands(block, i)) {
      if (!slots_.has(Version::full, phi)) continue;
      // LLVM may combine a load with a following select, at the position of the select.
      if (body_.sites != nullptr) set_site(code_, *body_.sites, *plan_.module, *function_, operand);
      edge.phis.emplace_back(phi,
                             slots_.pack_bits(values_.as_kept(operand, kept_scalar(Version::full, phi))));
    }
  }
  if (body_.sites != nullptr) clear_site(code_);
  return edges;
}

/// Lanes wait at the end of the edge, and its phis get their operands in those lanes.
void SerialCode::take(const Edge& edge) {
  const bool blend = edges_.must_blend(plan_.full, edge.from, edge.to);
  for (const auto& [phi, operand] : edge.phis) {
    const Slot& to = slots_.at(Version::full, phi);
    llvm::Value* what = operand;
    if (kept_scalar(Version::full, phi))
      what = code_.CreateSelect(masks_.any(edge.lanes), what, code_.CreateLoad(to.type, to.memory));
    else if (blend)
      what = code_.CreateSelect(masks_.bits_of(edge.lanes), what, code_.CreateLoad(to.type, to.memory));
    code_.CreateStore(what, to.memory);
  }
  if (edge.to == region_->join) return;
  llvm::AllocaInst* place = waiting(edge.to);
  llvm::Value* lanes = edge.lanes;
  if (blend) lanes = masks_.either(lanes, code_.CreateLoad(masks_.type(), place));
  code_.CreateStore(lanes, place);
}

bool SerialCode::is_read_after_branch(ir::Value value) const {
  return std::ranges::any_of(function_->blocks[branch_].succs, [&](ir::BlockId successor) {
    return std::ranges::binary_search(plan_.live_in[successor], value);
  });
}

/// Values that all warps share, that the region reads and defines again (in a loop around the branch): each
/// warp begins with the same ones.
std::vector<ir::Value> SerialCode::values_to_restore() const {
  std::vector<ir::Value> values;
  for (const ir::BlockId id : region_->blocks)
    for (const ir::Value value : function_->blocks[id].insts)
      if (is_shared(value) && slots_.has(Version::full, value) && is_read_after_branch(value))
        values.push_back(value);
  return values;
}

/// Lanes that do not run a definition contain zero: LLVM must not see undefined values.
void SerialCode::clear_others() {
  const auto clear = [&](ir::Value value) {
    if (!slots_.has(Version::full, value) || is_read_after_branch(value)) return;
    const Slot& slot = slots_.at(Version::full, value);
    code_.CreateStore(llvm::Constant::getNullValue(slot.type), slot.memory);
  };
  for (const ir::BlockId id : region_->blocks) std::ranges::for_each(function_->blocks[id].insts, clear);
  for (const ir::Value value : function_->blocks[region_->join].insts)
    if (is_phi(value)) clear(value);
}

/// Emits the instructions that the warps run together, if any of them has lanes there. Their values wait in
/// head_ until each warp runs the rest of the block.
void SerialCode::run_head(const std::vector<EdgeList>& first) {
  const ir::BlockId id = region_->joint_block;
  std::vector<llvm::Value*> lanes;
  llvm::Value* any = nullptr;
  for (const EdgeList& edges : first) {
    lanes.push_back(std::ranges::find(edges, id, &Edge::to)->lanes);
    any = any == nullptr ? lanes.back() : masks_.either(any, lanes.back());
  }
  llvm::BasicBlock* before = code_.GetInsertBlock();
  llvm::BasicBlock* head = make_block("head");
  llvm::BasicBlock* done = llvm::BasicBlock::Create(code_.getContext(), "head_done", inputs_.function, head);
  code_.CreateCondBr(masks_.any(any), head, done);

  values_.begin_block(Version::full, id, head);
  const auto for_each_warp = [&](llvm::function_ref<void()> emit) {
    for (body_.current = 0; body_.current < body_.warps.size(); ++body_.current) {
      run_lanes(lanes[body_.current]);
      emit();
    }
    body_.current = 0;
  };
  const std::span insts(function_->blocks[id].insts.data(), region_->joint_head);
  const ir::Value joint = insts.back();
  for_each_warp([&] { instructions_.emit(id, 0, region_->joint_head - 1); });
  instructions_.emit_joint(joint, for_each_warp);
  head_.clear();
  for_each_warp([&] {
    Contents& of_warp = head_.emplace_back();
    for (const ir::Value value : insts)
      if (slots_.known_constant(Version::full, value) == nullptr)
        of_warp.emplace_back(value, values_.kept(value));
  });
  llvm::BasicBlock* end_of_head = code_.GetInsertBlock();
  code_.CreateBr(done);
  code_.SetInsertPoint(done);
  for (Contents& of_warp : head_)
    for (auto& [value, what] : of_warp) {
      llvm::PHINode* phi = code_.CreatePHI(what->getType(), 2);
      phi->addIncoming(what, end_of_head);
      phi->addIncoming(llvm::Constant::getNullValue(what->getType()), before);
      what = phi;
    }
}

/// The current warp runs with `lanes`.
void SerialCode::run_lanes(llvm::Value* lanes) {
  body_.running.lanes = lanes;
  body_.running.bits = masks_.bits_of(lanes);
  body_.running.word = masks_.word_of(body_.running.bits);
}

/// The current warp runs with these lanes. Returns them in the representation of Masks.
llvm::Value* SerialCode::run_known_lanes(std::uint32_t lanes) {
  llvm::SmallVector<llvm::Constant*, kWarpSize> bits;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) bits.push_back(code_.getInt1((lanes >> lane & 1) != 0));
  body_.running.bits = llvm::ConstantVector::get(bits);
  body_.running.lanes = masks_.lanes_of(body_.running.bits);
  body_.running.word = code_.getInt32(lanes);
  return body_.running.lanes;
}

void SerialCode::run_warp(const EdgeList& first) {
  clear_others();
  for (const ir::BlockId id : region_->blocks) code_.CreateStore(masks_.none(), waiting(id));
  std::ranges::for_each(first, [&](const Edge& edge) { take(edge); });
  llvm::BasicBlock* end = make_block("next_warp");
  tests_.clear();
  for (std::size_t i = 0; i < region_->blocks.size(); ++i)
    tests_.push_back(llvm::BasicBlock::Create(code_.getContext(), "test", inputs_.function, end));
  // The branch, if it is in the region, and the blocks before it wait for the next iteration.
  const std::uint32_t position = plan_.full.position[branch_];
  const auto behind = std::ranges::find_if(
      region_->blocks, [&](ir::BlockId id) { return plan_.full.position[id] > position; });
  code_.CreateBr(behind == region_->blocks.end()
                     ? end
                     : tests_[static_cast<std::size_t>(behind - region_->blocks.begin())]);
  for (std::size_t i = 0; i < region_->blocks.size(); ++i) emit_block(i, end);
  code_.SetInsertPoint(end);
}

/// True if the block is empty, and not the end of a loop, which must not be repeated without lanes.
bool SerialCode::only_leads_on(ir::BlockId block) const {
  return function_->blocks[block].insts.size() == 1 && terminator(block).op == ir::Op::br &&
         plan_.full.position[function_->blocks[block].succs[0]] > plan_.full.position[block];
}

void SerialCode::emit_block(std::size_t index, llvm::BasicBlock* end) {
  const ir::BlockId id = region_->blocks[index];
  llvm::BasicBlock* next = index + 1 < tests_.size() ? tests_[index + 1] : end;
  llvm::BasicBlock* run = llvm::BasicBlock::Create(code_.getContext(), "run", inputs_.function, next);
  code_.SetInsertPoint(tests_[index]);
  llvm::Value* lanes = code_.CreateLoad(masks_.type(), waiting(id));
  const std::uint32_t known = region_->known_lanes[index];
  if (known == 0 && !region_->all_lanes[index] && only_leads_on(id))
    code_.CreateBr(run);  // with the lanes that wait, which may be none
  else if (known != 0)
    code_.CreateCondBr(masks_.has(lanes, static_cast<unsigned>(std::countr_zero(known))), run, next);
  else
    code_.CreateCondBr(masks_.any(lanes), run, next);

  values_.begin_block(Version::full, id, run);
  code_.CreateStore(masks_.none(), waiting(id));
  if (region_->all_lanes[index]) {
    lanes = masks_.all();
  } else if (known != 0) {
    lanes = run_known_lanes(known);
  } else {
    run_lanes(lanes);
  }
  std::size_t made = 0;
  if (id == region_->joint_block) {
    made = region_->joint_head;
    for (const auto& [value, what] : head_[body_.current]) values_.define(value, what);
  }
  instructions_.emit(id, made);
  const ir::Value comparison = plan_.bounded[id].comparison;
  if (full() && comparison != ir::kNone) instructions_.emit_one(comparison);
  const EdgeList edges = edges_from(id, lanes);
  std::ranges::for_each(edges, [&](const Edge& edge) { take(edge); });
  // All lanes that stay in a loop have passed its last block, from which they return to the header.
  const auto header = std::find(
      region_->blocks.begin(), region_->blocks.begin() + static_cast<std::ptrdiff_t>(index) + 1, edges[0].to);
  const bool returns =
      edges.size() == 1 && header != region_->blocks.begin() + static_cast<std::ptrdiff_t>(index) + 1;
  code_.CreateBr(returns ? tests_[static_cast<std::size_t>(header - region_->blocks.begin())] : next);
}

llvm::AllocaInst* SerialCode::waiting(ir::BlockId block) {
  waiting_.resize(function_->blocks.size(), nullptr);
  if (waiting_[block] == nullptr) {
    llvm::IRBuilder<> at(inputs_.entry, inputs_.entry->begin());
    waiting_[block] = at.CreateAlloca(masks_.type());
  }
  return waiting_[block];
}

}  // namespace quern::cpu::emit
