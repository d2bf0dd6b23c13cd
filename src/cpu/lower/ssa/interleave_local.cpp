// SPDX-License-Identifier: Apache-2.0
// Local arrays that NVRTC cannot keep in registers, because an index is not a constant, are mostly indexed
// alike in all lanes. If the lanes' elements lie side by side, such an access is one vector instead of 32
// elements. That changes the distance of a lane's elements, so no address may leave the kernel, and all
// accesses must be of one size.
#include "cpu/lower/ssa/passes.hpp"

namespace quern::cpu::lower {
namespace {

using ir::Op;

/// An operation that computes with addresses of local memory, or whose own accesses are not seen here.
bool needs_areas(const ir::Inst& inst) {
  if (inst.op == Op::call) return true;
  const bool accesses = inst.op == Op::load || inst.op == Op::store;
  return inst.attr.space == ir::Space::local && !accesses;
}

/// The size of the elements of an access; 0 if it cannot be interleaved.
std::uint32_t element_bytes(const ir::Function& function, const ir::Inst& inst) {
  const ir::Type type = inst.op == Op::load ? inst.type : function[inst.args[1]].type;
  const std::uint32_t bytes = ir::byte_size(type);
  const bool aligned = inst.attr.alignment == 0 || inst.attr.alignment >= bytes;
  return (bytes == 4 || bytes == 8) && aligned && !ir::is_ordered(inst.attr) ? bytes : 0;
}

}  // namespace

void interleave_local(FunctionBuilder& builder) {
  ir::Function& function = builder.function;
  if (!function.kernel || function.stack_bytes != 0 || function.local_bytes == 0) return;
  std::uint32_t bytes = 0;
  for (const ir::Block& block : function.blocks)
    for (const ir::Value value : block.insts) {
      const ir::Inst& inst = function[value];
      if (needs_areas(inst)) return;
      if (inst.attr.space != ir::Space::local) continue;
      const std::uint32_t own = element_bytes(function, inst);
      if (own == 0 || (bytes != 0 && own != bytes)) return;
      bytes = own;
    }
  function.interleaved_bytes = bytes;
}

}  // namespace quern::cpu::lower
