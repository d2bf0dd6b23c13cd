// SPDX-License-Identifier: Apache-2.0
// The SIMT IR: the operations of one lane, in SSA form. `lower` makes it from PTX, `analysis` finds how
// values differ between the lanes of a warp, `emit` turns it into vectors.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cpu/abi/facts.hpp"

namespace quern::cpu::ir {

enum class Type : std::uint8_t {
#define QUERN_IR_TYPE(name, bits, is_float) name,
#include "cpu/ir/types.def"
};
std::uint32_t bit_size(Type type) noexcept;
/// Bytes in memory; 1 for i1.
std::uint32_t byte_size(Type type) noexcept;
bool is_float(Type type) noexcept;
std::string_view name(Type type) noexcept;

enum class Op : std::uint8_t {
#define QUERN_IR_OP(name, types, traits, folded, meaning) name,
#include "cpu/ir/ops.def"
};
std::string_view name(Op op) noexcept;
bool has_trait(Op op, char trait) noexcept;
/// The number of operands; -1 if it varies.
int arity(Op op) noexcept;
/// True if an instruction may have this type and operands of these types, by its row of ops.def.
bool types_fit(Op op, Type type, std::span<const Type> operands) noexcept;
/// True if threads of the block wait for each other at this operation.
bool is_barrier(Op op) noexcept;
struct Inst;
/// True if the instruction waits for the lanes in its last operand, a membermask.
bool syncs_lanes(const Inst& inst) noexcept;

/// An instruction and its result share one number: an index in Function::insts.
using Value = std::uint32_t;
using BlockId = std::uint32_t;

enum class Rounding : std::uint8_t { rn, rz, rm, rp, rna };
enum class Icmp : std::uint8_t { eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge };
/// o*: false on NaN; u*: true on NaN; ord: neither is NaN; uno: either is.
enum class Fcmp : std::uint8_t { oeq, one, olt, ole, ogt, oge, ueq, une, ult, ule, ugt, uge, ord, uno };
enum class Approx : std::uint8_t { div, div_full, sqrt, rsqrt, rcp, ex2, lg2, sin, cos, tanh };
enum class TestProperty : std::uint8_t { finite, infinite, number, notanumber, normal, subnormal };
enum class AtomicOp : std::uint8_t {
  add,
  fadd,
  and_,
  or_,
  xor_,
  exch,
  cas,
  smin,
  smax,
  umin,
  umax,
  inc,
  dec,
  fmin,
  fmax,
  /// arrives at an mbarrier (lower/async.cpp): the operand is the number of arrivals; the last one begins
  /// the next phase
  arrive,
  arrive_drop,  ///< the same, and later phases do not expect these arrivals
};
enum class Semantics : std::uint8_t { weak, relaxed, acquire, release, acq_rel, sc };
enum class Scope : std::uint8_t { none, cta, cluster, gpu, sys };
enum class ShuffleMode : std::uint8_t { up, down, bfly, idx };
enum class VoteMode : std::uint8_t { all, any, uni, ballot };
enum class BarrierReduce : std::uint8_t { popc, and_, or_ };
enum class ReduceMode : std::uint8_t { add, smin, smax, umin, umax, and_, or_, xor_ };
enum class PrmtMode : std::uint8_t { index, f4e, b4e, rc8, ecl, ecr, rc16 };
enum class Special : std::uint8_t {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  laneid,
  warpid,
  nwarpid,
  smid,
  nsmid,
  gridid,
  lanemask_eq,
  lanemask_le,
  lanemask_lt,
  lanemask_ge,
  lanemask_gt,
  clock,
  clock_hi,
  clock64,
  globaltimer,
  globaltimer_lo,
  globaltimer_hi,
  dynamic_smem_size,
  total_smem_size,
  grid_workspace_lo,  ///< LaunchState::grid_workspace, for barriers between the blocks of a cooperative
                      ///< launch
  grid_workspace_hi,
};
std::string_view name(Special which) noexcept;

/// Attributes of an operation beside its operands. Plain data; unused fields stay at their defaults.
struct Attributes {
  Space space = Space::generic;
  std::uint8_t count = 1;
  Rounding rounding = Rounding::rn;
  Icmp icmp = Icmp::eq;
  Fcmp fcmp = Fcmp::oeq;
  AtomicOp atomic = AtomicOp::add;
  Semantics semantics = Semantics::weak;
  Scope scope = Scope::none;
  std::uint32_t alignment = 0;  ///< of a load or store, in bytes, as PTX requires it (the access size)
  bool ftz = false;
  bool sat = false;
  bool nan = false;
  bool relu = false;
  bool clamp = false;
  bool is_signed = false;
  bool shiftamt = false;
  bool is_volatile = false;
  bool invariant = false;  ///< the memory read does not change during the launch
  bool unused_result = false;
  bool biased = false;  ///< of an atomic: asks for the owner of its region (cuts/bias_atomics.cpp)
  // Set by cuts/gather_updates.cpp; the numbers are those of the worker's windows (abi/pending.hpp).
  std::uint8_t gathers = 0;  ///< of an atomic: 1 + the window that gathers it; 0: none does
  bool same_places = false;  ///< of an atomic that is gathered: all blocks update the same elements
  std::uint8_t settles = 0;  ///< bit set of windows whose updates may be pending and are ordered before this
  bool settles_all = false;  ///< all these updates; otherwise those of the addresses that this accesses
  /// for a vote or shuffle: all its lanes run it at the same time, so it does not wait for lanes
  bool together = false;
  friend bool operator==(const Attributes&, const Attributes&) = default;
};
/// True if the access is volatile, or has an order that other threads may rely on.
constexpr bool is_ordered(const Attributes& attributes) noexcept {
  return attributes.is_volatile || attributes.semantics != Semantics::weak;
}

struct Inst {
  Op op = Op::undef;
  Type type = Type::none;
  Attributes attr;
  std::uint64_t imm = 0;
  std::vector<Value> args;
  BlockId block = kNone;
  std::uint32_t location = kNone;  ///< index into Function::locations
};

/// A basic block: phis first, one terminator last. `preds` and `succs` have a fixed order: phi operands
/// follow preds, and the succs of a cond_br are {taken, not taken}. A block may occur twice as a predecessor.
struct Block {
  std::vector<Value> insts;
  std::vector<BlockId> preds;
  std::vector<BlockId> succs;
};

/// blocks[0] is the entry and has no predecessors.
struct Function {
  std::string name;
  bool kernel = false;
  std::vector<Parameter> params;     ///< parameters of a kernel, at their offsets in the parameter buffer
  std::vector<Type> argument_types;  ///< flattened arguments of a device function (op arg)
  std::vector<Type> result_types;
  std::uint32_t local_bytes = 0;  ///< .local memory a lane needs
  /// The last part of local_bytes, for activations of functions that are part of this kernel's graph
  /// (lower/activations.cpp). It begins with the number of bytes of local memory in use. If it is not 0,
  /// threads may wait for others anywhere, so the dispatcher runs the kernel.
  std::uint32_t stack_bytes = 0;
  /// If not 0, all accesses to local memory are of elements of this size, and the same element of a warp's 32
  /// lanes lies side by side (lower/ssa/interleave_local.cpp). Otherwise, each lane has an area of its own.
  std::uint32_t interleaved_bytes = 0;
  std::vector<Inst> insts;
  std::vector<Block> blocks;
  std::vector<Location> locations;

  const Inst& operator[](Value value) const { return insts[value]; }
  Inst& operator[](Value value) { return insts[value]; }
};

/// A symbol of the module. Its address is known only at load time, so code refers to it by index.
struct Symbol {
  std::string name;
  Space space = Space::global;
  std::uint64_t size = 0;  ///< 0: dynamic shared memory
  std::uint32_t align = 1;
  std::uint64_t shared_offset = 0;  ///< offset in the static shared memory of the block (space == shared)
};

/// The address of a function: a unique number computed from its index in the PTX module. There is no memory
/// at this address. Calls through registers compare with it.
constexpr std::uint64_t function_address(std::uint32_t ptx_function) {
  return 0x1000 + std::uint64_t{ptx_function} * 16;
}

/// One kernel with the functions and symbols that it uses.
struct Module {
  std::vector<Symbol> symbols;
  std::vector<Function> functions;        ///< functions[0] is the kernel; the others are called, not inlined
  std::uint64_t static_shared_bytes = 0;  ///< dynamic shared memory starts here, aligned to 16
};

/// True if both locations, indices into Function::locations or kNone, are in one line of the source.
bool same_line(const Function& function, std::uint32_t a, std::uint32_t b);

/// True if the block ends in a branch to two sides, of which it is the only predecessor and that lead to one
/// other block.
bool parts_and_joins(const Function& function, BlockId block);

/// Text for `--emit simt` and for tests.
std::string print(const Module& module);
std::string print(const Function& function);

/// The low `bits` (1..64) of `value` as a signed number.
std::int64_t sign_extend(std::uint64_t value, std::uint32_t bits) noexcept;
/// True if `a how b`, both zero-extended numbers of `bits`.
bool holds(Icmp how, std::uint64_t a, std::uint64_t b, std::uint32_t bits) noexcept;
/// `a how b` is equivalent to `b swapped(how) a`.
Icmp swapped(Icmp how) noexcept;
bool is_equality(Icmp how) noexcept;  ///< eq, ne
bool is_signed(Icmp how) noexcept;    ///< slt to sge

}  // namespace quern::cpu::ir
