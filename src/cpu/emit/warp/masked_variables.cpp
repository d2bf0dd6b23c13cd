// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/warp/masked_variables.hpp"

namespace quern::cpu::emit {

void MaskedVariables::clear_all() {
  if (plan_.dispatched) return;  // their variables are in memory and stay there
  for (const MaskedBlocks& blocks : body_.masked_blocks) {
    if (blocks.waiting != nullptr) code_.CreateStore(masks_.none(), blocks.waiting);
    if (blocks.unasked != nullptr) code_.CreateStore(code_.getFalse(), blocks.unasked);
  }
  for (const Slot& each : slots_.of_version(Version::masked))
    if (each.memory != nullptr) code_.CreateStore(llvm::Constant::getNullValue(each.type), each.memory);
}

void MaskedVariables::clear(const MaskedVariable& variable) {
  if (variable.value == ir::kNone) {
    if (llvm::AllocaInst* waiting = body_.masked_blocks[variable.waiting].waiting; waiting != nullptr)
      code_.CreateStore(masks_.none(), waiting);
  } else if (slots_.has(Version::masked, variable.value)) {
    const Slot& to = slots_.at(Version::masked, variable.value);
    code_.CreateStore(llvm::Constant::getNullValue(to.type), to.memory);
  }
}

void MaskedVariables::clear_begun(ir::BlockId block, bool runs) {
  for (const MaskedVariable& each : spans_.from(plan_.masked.position[block]))
    if (!runs || each.value == ir::kNone || is_phi(each.value) || inst(each.value).block != block)
      clear(each);
}

void MaskedVariables::clear_skipped(std::uint32_t from, std::uint32_t to) {
  for (const MaskedVariable& each : spans_.skipped(from, to)) clear(each);
}

void MaskedVariables::enter(std::uint32_t position) {
  for (const MaskedVariable& each : spans_.across(position)) clear(each);
}

}  // namespace quern::cpu::emit
