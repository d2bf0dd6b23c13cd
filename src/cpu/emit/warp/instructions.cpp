// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/warp/instructions.hpp"

#include <algorithm>

#include "cpu/abi/state.hpp"
#include "cpu/cuts/joint.hpp"
#include "cpu/emit/llvm/sites.hpp"

namespace quern::cpu::emit {

void Instructions::emit(ir::BlockId block, std::size_t first, std::size_t end) {
  const std::vector<ir::Value>& insts = function_->blocks[block].insts;
  for (std::size_t at = first; at < std::min(end, insts.size()); ++at) {
    const ir::Value value = insts[at];
    if (ir::has_trait(inst(value).op, 't') || value == plan_.barrier[block]) break;
    if (full() && value == plan_.bounded[block].comparison) continue;  // FullCode emits it with the branch
    if (is_gang() && !body_.serial && cuts::is_joint(*function_, plan_.full.patterns, plan_.gang, value)) {
      emit_joint(value, [&](llvm::function_ref<void()> emit) { for_each_warp(emit); });
      continue;
    }
    if (body_.sites != nullptr) set_site(code_, *body_.sites, *plan_.module, *function_, value);
    for_each_warp(value, [&] {
      if (!is_phi(value))
        emit_one(value);
      else if (slots_.has(body_.version, value) && slots_.at(body_.version, value).framed)
        slots_.store_to_frame(slots_.at(body_.version, value), slots_.pack_bits(values_.kept(value)));
    });
    if (body_.sites != nullptr) clear_site(code_);
  }
}

void Instructions::emit_joint(ir::Value value, ForEachWarp for_each_warp) {
  if (body_.sites != nullptr) set_site(code_, *body_.sites, *plan_.module, *function_, value);
  emit::emit_joint(context_, value, for_each_warp);
  if (body_.sites != nullptr) clear_site(code_);
}

void Instructions::emit_one(ir::Value value) {
  const ir::Inst& what = inst(value);
  switch (what.op) {
    case ir::Op::extract:
      return values_.emit_extract(value);
    case ir::Op::call:
      return calls_.emit(value);
    case ir::Op::set_result:
      return calls_.emit_set_result(value);
    case ir::Op::arg:
      return values_.define(value, calls_.argument(what));
    default:
      break;
  }
  // A value that is known at compile time has no code: its uses get the constant.
  if (ir::has_trait(what.op, 'p') && what.type != ir::Type::none &&
      slots_.known_constant(body_.version, value) != nullptr)
    return;
  // While one lane iterates in a loop that waits, other lanes run: sleeping would only delay them.
  if (what.op == ir::Op::nanosleep && !plan_.full_needed[body_.block]) return;
  if (what.op == ir::Op::host_call) {
    engine_.note_block_and_warp();
    engine_.note(offsetof(engine::WorkerState, fault_location), code_.getInt32(what.location));
  }
  emit_operation(context_, value);
  if (body_.version != Version::lane) prefetcher_.emit(value);
}

}  // namespace quern::cpu::emit
