// SPDX-License-Identifier: Apache-2.0
// Shared by the families of instructions that access memory.
#pragma once

#include <optional>

#include "cpu/lower/translate/translator.hpp"

namespace quern::cpu::lower {

ir::Space ir_space(ptx::Space space) noexcept;

/// An address operand: an i64 base in `space`, and a constant byte offset from it.
struct Address {
  ir::Value base = ir::kNone;
  std::uint64_t offset = 0;
  ir::Space space = ir::Space::generic;
};
/// Returns the address that an instruction accesses. If the operand cannot be an address, reports an error
/// and returns nothing.
std::optional<Address> address_of(Translator& t, const ptx::Instruction& instruction,
                                  const ptx::Operand& operand);
std::optional<Address> address_in(Translator& t, const ptx::Operand& operand, ir::Space space);

/// Sets the memory order and scope of the instruction; the order is `otherwise` if the instruction has none.
void set_order(ir::Attributes& attributes, const ptx::Instruction& instruction, ir::Semantics otherwise);

}  // namespace quern::cpu::lower
