// SPDX-License-Identifier: Apache-2.0
// Turns an address in a state space into a host pointer that cannot leave the device window (see
// abi/state.hpp):
//
// * global, generic, constant: window base + min(address - window base, window size), unsigned. An address
//   outside becomes the end of the window, which is inaccessible. Constants and scaled 32-bit indices added
//   after that stay within the gaps. In a compact window, every lane's address is checked instead of an
//   index, and constants beyond kCompactReachBytes are added before the check.
// * shared: shared base + the low 32 bits, sign-extended. The reservation and the gap before it contain all
//   such addresses (a lane may be at "base - 4 + 4" although lane 0's own address is negative). In a compact
//   window, every lane's offset is checked.
// * local: lane's area + min(offset, area size). The next lane's area follows, or the memory after the
//   worker's local memory, which is inaccessible or belongs to the worker. If it is interleaved, the
//   warp's area + min(offset, area size) * 32 + lane * element size.
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
  bool exclusive = false;  ///< no other thread accesses the addresses at the same time
  /// i64: the addresses of Layout::base_lanes without displacement, if they are not those of the pattern
  std::vector<llvm::Value*> bases;

  unsigned bytes() const { return element_bytes * count; }
  /// True for local memory in which the same element of all lanes lies side by side.
  bool interleaved() const;
  /// Bytes from an element of a lane to its next one.
  std::int64_t element_step() const;
  /// True if the window is compact: at most kCompactReachBytes may be added to a checked address.
  bool compact() const { return context.specialisation().compact; }
  /// The element type in memory: an integer for i1 and the 16-bit floating types.
  llvm::Type* memory_type() const;
  llvm::Align align() const;
  /// True if masked vector loads and stores of this element are single instructions (otherwise LLVM emits a
  /// branch for each lane).
  bool masks_natively() const;
};

/// True if accesses of the function may test at run time how their lanes lie. Each test adds blocks, for
/// which the code generator takes more than linear time: functions with many accesses go without.
bool chooses_at_run_time(const ir::Function& function);

/// An access with 32-bit indices that have known differences: a few vectors, unless the index wraps.
struct NearAccess {
  Access access;      ///< as if no index wraps
  llvm::Value* near;  ///< i1: no index wraps
};
/// Returns nothing if the layout of `access` says all already, or the index varies. Emits code.
std::optional<NearAccess> near_access(const Access& access);

/// An access whose neighbouring lanes are a number apart that is known at run time alone, as the pixels of an
/// image of several channels are, or the elements of an array with strides.
struct SteppedAccess {
  Access access;         ///< as if it were that many elements
  llvm::Value* stepped;  ///< i1: it is
};
/// The cases that are likely, at most two. Emits code.
std::vector<SteppedAccess> stepped_accesses(const Access& access);

/// Returns the pointer of a uniform address.
llvm::Value* uniform_pointer(const Access& access);
/// Returns, for each of Layout::base_lanes, the pointer to which Segment::offset is relative.
std::vector<llvm::Value*> base_pointers(const Access& access);

/// Pointers of 32 lanes: base + sext(index) * scale.
struct LanePointers {
  llvm::Value* base;   ///< ptr
  llvm::Value* index;  ///< <32 x i32> or <32 x i64>
  std::int64_t scale;
};
LanePointers lane_pointers(const Access& access);
/// Returns the same addresses as <32 x i64>.
llvm::Value* absolute_addresses(Context& context, const LanePointers& pointers, std::int64_t displacement);
/// Returns the same addresses as <32 x ptr>, in the form for which LLVM emits an indexed gather.
llvm::Value* gather_pointers(Context& context, const LanePointers& pointers, std::int64_t displacement);

/// The cache to which lines are prefetched.
enum class Cache : std::uint8_t { first, second };
/// Says what needs the lines: a store needs its line alone, without copies in the caches of others.
enum class Purpose : std::uint8_t { load, store };
struct Prefetch {
  Cache cache = Cache::first;
  Purpose purpose = Purpose::load;
};
/// Prefetches the line of `pointer`. A hint: it reads nothing and does not fault.
void prefetch_line(llvm::IRBuilder<>& builder, llvm::Value* pointer, Prefetch how);
/// Blocks that are pieces of rows prefetch that many blocks ahead. Measured: better than one, and than four.
inline constexpr std::int64_t kPiecesAhead = 2;

llvm::Value* advance(Context& context, llvm::Value* pointer, std::int64_t bytes);

/// Loads a value that does not change during the launch.
llvm::Value* load_invariant(Context& context, llvm::Type* type, llvm::Value* pointer);
/// Annotates an access with its space for LLVM: accesses of different spaces do not alias.
void annotate(const Access& access, llvm::Instruction* instruction);
/// Keeps LLVM from moving memory accesses across the builder's position. Emits no instruction.
void compiler_barrier(Context& context);

/// Converts an element, scalar or vector, from its memory form to its value form and back.
llvm::Value* from_memory(const Access& access, llvm::Value* value);
llvm::Value* to_memory(const Access& access, llvm::Value* value);

}  // namespace quern::cpu::emit
