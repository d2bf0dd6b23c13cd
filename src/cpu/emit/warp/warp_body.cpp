// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/warp/warp_body.hpp"

#include "cpu/emit/llvm/llvm_target.hpp"

namespace quern::cpu::emit {
namespace {

/// Measured (docs/decisions/0057-masked-accesses.md).
Cache block_prefetch_cache(const Specialisation& specialisation) {
  return fills_first_cache(specialisation.isa, specialisation.portable) ? Cache::first : Cache::second;
}

}  // namespace

WarpBody::WarpBody(const Plan& plan, const Specialisation& specialisation, const BodyInputs& inputs,
                   const DeviceFunctions& callees, Gang gang)
    : body_(plan, inputs, gang, specialisation.isa),
      slots_(body_),
      values_(body_, slots_),
      constants_(body_),
      engine_(body_, constants_),
      edges_(body_, values_),
      conversions_(body_, slots_, values_, edges_),
      variables_(body_, slots_),
      states_(body_, slots_, values_, variables_),
      barriers_(body_, slots_, values_, engine_, states_),
      calls_(body_, values_, constants_, engine_, callees),
      prefetcher_(body_, slots_, values_, specialisation, block_prefetch_cache(specialisation)),
      instructions_(body_, slots_, values_, engine_, calls_, prefetcher_, *this),
      lanes_(body_, slots_, values_, edges_, variables_, instructions_),
      masked_(body_, slots_, values_, engine_, edges_, conversions_, variables_, instructions_, barriers_,
              lanes_),
      dispatched_(body_, slots_, values_, engine_, edges_, conversions_, instructions_),
      gang_(body_, slots_, values_, states_, barriers_),
      serial_(body_, slots_, values_, edges_, instructions_),
      full_(body_, slots_, values_, engine_, edges_, instructions_, barriers_, masked_, dispatched_, gang_,
            serial_) {
  builder_ = &body_.code;
  module_ = plan.module;
  function_ = plan.function;
  specialisation_ = specialisation;
}

void WarpBody::emit() {
  create_warps();
  create_blocks();
  states_.lay_out_frame();
  const bool dispatched = body_.plan.dispatched;
  if (!body_.is_gang() && !dispatched) {
    variables_.find_spans();
    masked_.find_dominance();
  }
  emit_begin();
  if (body_.plan.has_full) full_.emit();
  if (dispatched) {
    dispatched_.emit();
  } else if (!body_.is_gang()) {
    masked_.emit();
    states_.add_split_states();
  }
  states_.finish();
}

llvm::BasicBlock* WarpBody::new_block(const char* name) {
  llvm::BasicBlock* made = body_.make_block(name);
  body_.code.SetInsertPoint(made);
  return made;
}

void WarpBody::create_warps() {
  const BodyInputs& inputs = body_.inputs;
  if (!body_.is_gang()) {
    body_.warps[0] = {inputs.warp, inputs.frame};
    return;
  }
  llvm::IRBuilder<> at(inputs.entry->getTerminator());
  for (std::uint32_t i = 0; i < body_.gang.width; ++i) {
    body_.warps[i].index = at.CreateAdd(inputs.warp, at.getInt32(i));
    if (inputs.frame == nullptr) continue;
    body_.warps[i].frame = at.CreateConstInBoundsGEP1_64(at.getInt8Ty(), inputs.frame,
                                                         std::uint64_t{i} * body_.gang.frame_bytes);
  }
}

/// Creates the variables and the blocks of both versions.
void WarpBody::create_blocks() {
  const Plan& plan = body_.plan;
  const BodyInputs& inputs = body_.inputs;
  llvm::IRBuilder<> at(inputs.entry, inputs.entry->begin());
  slots_.create(at);
  body_.full_blocks.resize(function_->blocks.size());
  body_.masked_blocks.resize(function_->blocks.size());
  if (plan.dispatched)
    dispatched_.lay_out_frame();
  else
    body_.live = at.CreateAlloca(at.getInt32Ty());
  for (const ir::BlockId id : plan.masked.order) {
    const auto make = [&](const char* name) {
      return llvm::BasicBlock::Create(llvm(), name + std::to_string(id), inputs.function, inputs.done);
    };
    const bool has_regions = body_.is_gang() || (plan.gang.width <= 1 && !plan.lockstep.empty());
    const bool in_full = plan.full_needed[id] && (!has_regions || plan.lockstep[id]);
    if (plan.has_full && in_full) body_.full_blocks[id] = make("full");
    if (plan.dispatched)
      body_.masked_blocks[id] = {nullptr, make("apart"), nullptr};
    else if (plan.masked_needed[id] && !body_.is_gang())
      body_.masked_blocks[id] = {make("test"), make("masked"), at.CreateAlloca(body_.masks.type())};
    if (plan.eager[id] == id && body_.masked_blocks[id].waiting != nullptr)
      body_.masked_blocks[id].unasked = at.CreateAlloca(at.getInt1Ty());
  }
  calls_.create_results(at);
}

/// Emits the start of every warp: no lanes wait, and masked slots contain zeros. Then control goes to the
/// first block, or to the block of the saved state.
void WarpBody::emit_begin() {
  llvm::IRBuilder<>& code = body_.code;
  const BodyInputs& inputs = body_.inputs;
  code.SetInsertPoint(inputs.begin);
  variables_.clear_all();
  calls_.clear_results();
  if (body_.plan.dispatched) return dispatched_.begin();
  llvm::BasicBlock* start = body_.make_block("start");
  if (inputs.state != nullptr)
    states_.begin(start);
  else
    code.CreateBr(start);
  code.SetInsertPoint(start);
  if (body_.plan.has_full) {
    code.CreateBr(body_.full_blocks[0]);
    return;
  }
  llvm::Value* lanes = inputs.lanes == nullptr ? code.getInt32(0xffffffffu) : inputs.lanes;
  code.CreateStore(lanes, body_.live);
  Masks& masks = body_.masks;
  code.CreateStore(masks.lanes_of(masks.bits_of_word(lanes)), body_.masked_blocks[0].waiting);
  code.CreateBr(body_.masked_blocks[0].run);
}

}  // namespace quern::cpu::emit
