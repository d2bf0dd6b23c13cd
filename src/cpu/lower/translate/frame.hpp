// SPDX-License-Identifier: Apache-2.0
// An instance of a PTX function inside the IR function under translation: the kernel, or a callee at one
// call.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "cpu/lower/ssa/function_builder.hpp"
#include "cpu/lower/translate/program.hpp"

namespace quern::cpu::lower {

/// A .param array of a call. Each piece of it that some instruction accesses is a variable.
struct ParamArray {
  struct Slot {
    Piece piece;
    Variable variable = 0;
  };
  std::vector<Slot> slots;  ///< disjoint, ascending
  std::uint64_t size = 0;
  bool in_local = false;  ///< its address is taken: it lies in local memory at `local_offset`
  std::uint32_t local_offset = 0;
};

/// The most that alloca may allocate in one call of a function, and its largest alignment.
inline constexpr std::uint64_t kStackBytes = 8192;
inline constexpr std::uint64_t kStackAlign = 16;

struct Region;

struct Frame {
  const ptx::Function* function = nullptr;
  const FunctionFacts* facts = nullptr;
  Frame* caller = nullptr;
  /// the region of which the function is a part (activations.hpp); null: the IR function itself
  Region* region = nullptr;
  std::uint32_t call_location = ir::kNone;  ///< the call that was inlined: index into ir::Function::locations
  ir::BlockId return_block = ir::kNone;
  std::vector<ir::BlockId> blocks;  ///< by body position; kNone where no block begins
  std::vector<Variable> registers;  ///< by register index: the variable of its first component
  Variable carry = 0;
  Variable stack_taken = 0;        ///< bytes of the area for alloca that are in use
  std::uint32_t stack_offset = 0;  ///< start of that area in local memory
  std::vector<ParamArray> parameters, returns, variables;
  /// offsets of .local variables, by index into Function::variables
  std::vector<std::uint32_t> local_offsets;
  std::uint32_t local_end = 0;
  std::vector<std::uint32_t> scope_locations;  ///< by index into ptx locations: as an inlined_at target
};

}  // namespace quern::cpu::lower
