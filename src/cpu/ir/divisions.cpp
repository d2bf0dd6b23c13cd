// SPDX-License-Identifier: Apache-2.0
#include "cpu/ir/divisions.hpp"

namespace quern::cpu::ir {

Value divided_for(const Function& function, const Inst& inst) {
  if (inst.op != Op::isub) return kNone;
  const Inst& product = function[inst.args[1]];
  if (product.op != Op::imul) return kNone;
  for (const std::size_t which : {0u, 1u}) {
    const Inst& quotient = function[product.args[which]];
    if (is_quotient(quotient.op) && quotient.args[0] == inst.args[0] &&
        quotient.args[1] == product.args[1 - which])
      return product.args[which];
  }
  return kNone;
}

}  // namespace quern::cpu::ir
