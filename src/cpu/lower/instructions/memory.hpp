// SPDX-License-Identifier: Apache-2.0
// Shared by the families that touch memory.
#pragma once

#include <optional>

#include "cpu/lower/translate/translator.hpp"

namespace quern::cpu::lower {

ir::Space ir_space(ptx::Space space) noexcept;

/// An address operand: the i64 base in `space`, and the constant byte offset from it.
struct Address {
  ir::Value base = ir::kNone;
  std::uint64_t offset = 0;
  ir::Space space = ir::Space::generic;
};
/// The address that an instruction accesses; empty (with an error) if the operand cannot be an address.
std::optional<Address> address_of(Translator& t, const ptx::Instruction& instruction,
                                  const ptx::Operand& operand);
std::optional<Address> address_in(Translator& t, const ptx::Operand& operand, ir::Space space);

/// The instruction's memory order and scope; `otherwise` if it gives no order.
void set_order(ir::Attributes& attributes, const ptx::Instruction& instruction, ir::Semantics otherwise);

}  // namespace quern::cpu::lower
