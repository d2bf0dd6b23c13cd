// SPDX-License-Identifier: Apache-2.0
// From an address in a state space to a host pointer that cannot leave the device window (see
// abi/state.hpp):
//
// * global, generic, constant: window base + min(address - window base, window size), unsigned. An address
//   outside becomes the inaccessible end; constants and scaled 32-bit indices added after that stay within
//   the gaps. In a compact window every lane's address is checked instead of an index, and constants beyond
//   kCompactReachBytes are added before the check.
// * shared: shared base + the low 32 bits, sign-extended. The reservation and the gap before it contain all
//   such addresses (a lane may be at "base - 4 + 4" although lane 0's own address is negative). In a compact
//   window every lane's offset is checked.
// * local: lane's area + min(offset, area size). The next lane's area follows, or the memory behind the
//   worker's local memory, which is inaccessible or the worker's own.
// * param: parameters + min(offset, their size)
#pragma once

#include "cpu/emit/operations/context.hpp"
#include "cpu/emit/operations/layout.hpp"

namespace quern::cpu::emit {

/// An access to memory by one instruction.
struct Access {
  Access(Context& context, ir::Value inst, ir::Type element);

  Context& context;
  const ir::Inst& inst;
  ir::Value address;  ///< the instruction's first operand
  ir::Space space;
  ir::Type element;
  unsigned element_bytes;
  unsigned count;  ///< elements a lane
  std::int64_t displacement;
  Layout layout;

  unsigned bytes() const { return element_bytes * count; }
  /// The window is compact: nothing but kCompactReachBytes may be added to a checked address.
  bool compact() const { return context.specialisation().compact; }
  /// The element type in memory: an integer for i1 and the 16-bit floating types.
  llvm::Type* memory_type() const;
  llvm::Align align() const;
  /// Volatile, or with an order that other threads may rely on.
  bool ordered() const { return inst.attr.is_volatile || inst.attr.semantics != ir::Semantics::weak; }
  /// Masked vector loads and stores of this element are instructions (elsewhere LLVM would make a branch for
  /// each lane).
  bool masks_natively() const;
};

/// The pointer of a uniform address.
llvm::Value* uniform_pointer(const Access& access);
/// For each of Layout::base_lanes, the pointer that Segment::offset counts from.
std::vector<llvm::Value*> base_pointers(const Access& access);

/// Pointers of 32 lanes: base + sext(index) * scale.
struct LanePointers {
  llvm::Value* base;   ///< ptr
  llvm::Value* index;  ///< <32 x i32> or <32 x i64>
  std::int64_t scale;
};
LanePointers lane_pointers(const Access& access);
/// The same as <32 x i64>.
llvm::Value* absolute_addresses(Context& context, const LanePointers& pointers, std::int64_t displacement);
/// The same as <32 x ptr>, in the form that LLVM makes an indexed gather of.
llvm::Value* gather_pointers(Context& context, const LanePointers& pointers, std::int64_t displacement);

llvm::Value* advance(Context& context, llvm::Value* pointer, std::int64_t bytes);

/// A load of a value that does not change during the launch.
llvm::Value* load_invariant(Context& context, llvm::Type* type, llvm::Value* pointer);
/// Annotates an access with its space for LLVM: accesses of different spaces do not alias.
void annotate(const Access& access, llvm::Instruction* instruction);
/// Keeps LLVM from moving memory accesses across the builder's position. Emits no instruction.
void compiler_barrier(Context& context);

/// Memory form <-> value form of an element, scalar or vector.
llvm::Value* from_memory(const Access& access, llvm::Value* value);
llvm::Value* to_memory(const Access& access, llvm::Value* value);

}  // namespace quern::cpu::emit
