// SPDX-License-Identifier: Apache-2.0
// Building blocks of a warp's atomic operations. A function that returns old values returns them in their
// memory form, <32 x T>, or null if the instruction does not use them.
#pragma once

#include <functional>
#include <optional>

#include "cpu/emit/operations/address.hpp"
#include "cpu/emit/operations/lane_loop.hpp"

namespace quern::cpu::emit {

/// True if threads on other processors may access the address at the same time.
bool needs_lock(const Access& access);
/// True if no other access is ordered by the operation.
bool is_relaxed(const Access& access);
/// True if update() supports the operation.
bool has_update(ir::AtomicOp op, ir::Type type);

/// The value in memory after the operation, scalars or vectors; `second` is used for cas only.
llvm::Value* combine(llvm::IRBuilder<>& b, ir::AtomicOp op, llvm::Value* old, llvm::Value* operand,
                     llvm::Value* second);
/// Emits the operation at `pointer`, on values of the access's memory type. Returns the old value.
llvm::Value* update(const Access& access, llvm::Value* pointer, llvm::Value* operand, llvm::Value* second);
/// Emits an exchange of `next` for `seen`, integers of one size; locked where update() is.
struct Exchange {
  llvm::Value* old;  ///< of the type of `seen`
  llvm::Value* done;
};
Exchange exchange(const Access& access, llvm::Value* pointer, llvm::Value* seen, llvm::Value* next);

/// Emits `then` and `otherwise` on the two sides of a branch. Both return a value, which is chosen, or null.
using Side = std::function<llvm::Value*()>;
llvm::Value* emit_either(Context& c, llvm::Value* condition, const char* name, const Side& then,
                         const Side& otherwise);

/// The addresses of all lanes, <32 x i64>.
llvm::Value* lane_addresses(const Access& access);
/// Operand `index` of the instruction by lane, in its memory form.
LaneArray lanes_of_operand(const Access& access, std::size_t index);
/// Operand `index` of the instruction in all lanes, in its memory form.
llvm::Value* vector_of_operand(const Access& access, std::size_t index);

/// Emits inline code that runs the lanes one after the other, lowest first. Returns the old values.
llvm::Value* emit_lanes(const Access& access);
/// The same at other places, by `update_one(pointer, operand, second)`, which returns the old value.
using UpdateOne = std::function<llvm::Value*(llvm::Value*, llvm::Value*, llvm::Value*)>;
llvm::Value* emit_lanes_at(const Access& access, LanePlaces places, const UpdateOne& update_one);

/// True if all lanes run, and their addresses follow each other in equal parts of the warp.
bool is_consecutive(const Access& access);
/// Emits vector instructions for a consecutive access that needs no lock. Returns the old values.
llvm::Value* emit_consecutive(const Access& access);
/// The same for values of the worker's own: `moved` is where the value for an address is.
void emit_consecutive_at(const Access& access, const std::function<llvm::Value*(llvm::Value*)>& moved);
/// True if emit_pieces() supports the access.
bool has_pieces(const Access& access);
/// Emits one locked instruction for each 16 bytes of memory, for lanes with consecutive addresses;
/// `otherwise` emits the code for addresses that are not aligned to 16 bytes, and returns the old values, as
/// this does.
llvm::Value* emit_pieces(const Access& access, const Side& otherwise);

/// Emits one exchange for an operation of all lanes on one address. Returns the old values.
llvm::Value* emit_chained(const Access& access);

/// The distances of the first and after the last byte of the lanes from a base that all have in common.
struct Span {
  std::int64_t first = 0;
  std::int64_t end = 0;
};
std::optional<Span> span_of(const Access& access);

/// True if the operation asks for the owner of its region (cuts/bias_atomics.cpp).
bool is_biased(const Access& access);
/// True if emit_owned() supports the access.
bool has_owned(const Access& access);
/// Emits plain instructions for a region that belongs to the worker; `locked` emits the operation for
/// others, and returns the old values, as this does.
llvm::Value* emit_owned(const Access& access, const Side& locked);
/// Takes the regions of the running lanes from other workers: locked instructions may follow.
void emit_unbias(const Access& access);

/// True if the plan gathers the updates of this access (cuts/gather_updates.cpp).
bool is_gathered(const Access& access);
/// Emits the update of the worker's pending values, where the window of this access contains all addresses;
/// otherwise `direct` updates the memory itself. For accesses whose addresses differ between lanes.
void emit_gathered(const Access& access, const std::function<void()>& direct);
/// True if the access is gathered by vector instructions.
bool gathers_neighbours(const Access& access);
/// Gathers an access for which gathers_neighbours() is true, as emit_gathered() does.
void emit_gathered_neighbours(const Access& access, const std::function<void()>& direct);
/// The same for one address, and the operands of all lanes reduced to `operand`.
void emit_gathered_once(const Access& access, llvm::Value* operand);

}  // namespace quern::cpu::emit
