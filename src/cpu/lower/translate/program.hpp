// SPDX-License-Identifier: Apache-2.0
// Facts about the kernel and the functions that it calls, collected before any instruction is translated: the
// call graph, the accesses to .param arrays, the addresses of shared variables.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "cpu/ir/ir.hpp"
#include "ptx/module.hpp"

namespace quern::cpu::lower {

/// A part of a .param array that is always read and written as one value of 1, 2, 4 or 8 bytes.
struct Piece {
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
};

/// The accesses of one function to one of its .param variables.
struct ParamUse {
  std::vector<Piece>
      /// first the accesses themselves, then the disjoint pieces that they are split into; ascending
      pieces;
  bool address_taken = false;
};

struct FunctionFacts {
  std::vector<ParamUse> parameters;  ///< by index, as in the PTX function
  std::vector<ParamUse> returns;
  std::vector<ParamUse> variables;
  std::vector<std::uint32_t> callees;           ///< functions with a body that may be called
  std::vector<std::uint32_t> module_variables;  ///< referenced by instructions
  std::vector<bool> is_target;   ///< by body position (one more than instructions): a label is here
  bool reserved_shared = false;  ///< the function reads a %reserved_smem_offset register
  bool recursive = false;        ///< the function is on a cycle of the call graph
  bool ends_threads = false;     ///< the function, or one that it calls, has an `exit`
};

/// Shared memory that GPUs from sm_80 on reserve for system software; cooperative_groups uses some of it.
inline constexpr std::uint64_t kReservedSharedBytes = 1024;

/// The form of calls of functions that cannot be inlined.
enum class CallForm : std::uint8_t {
  functions,    ///< functions of the IR, called by ir::Op::call; threads cannot wait for others in them
  activations,  ///< parts of the kernel's own graph; values that are live across a call are kept in local
                ///< memory
};

class Program {
 public:
  Program(const ptx::Module& module, std::uint32_t kernel);

  const ptx::Module& ptx() const { return module_; }
  const FunctionFacts& facts(std::uint32_t function) const { return facts_.at(function); }
  /// The function with a body that a reference to `function` means; kNoIndex if there is only a declaration.
  std::uint32_t definition(std::uint32_t function) const { return module_.definition_of(function); }
  /// The possible targets of a call through a register: the functions of its table, or all functions whose
  /// addresses are taken and whose parameters match the prototype.
  std::vector<std::uint32_t> indirect_targets(const ptx::Function& caller, const ptx::Instruction& call);

  /// Offset of a shared variable in the block's shared memory.
  std::uint64_t shared_offset(const ptx::Variable& variable) const;
  /// Index into ir::Module::symbols of a module variable. Adds the variable if it is new.
  std::uint32_t symbol(std::uint32_t module_variable);
  /// Index into ir::Module::functions of a recursive function. Adds the function to the list of functions to
  /// translate if it is new.
  std::uint32_t function_index(std::uint32_t function);
  /// PTX functions to translate, by index into ir::Module::functions: the kernel, then recursive functions in
  /// the order in which calls of them are found.
  const std::vector<std::uint32_t>& functions() const { return functions_; }

  std::vector<ir::Symbol> symbols;
  std::uint64_t static_shared_bytes = 0;
  /// bytes of declared_shared_bytes that variables of the module use
  std::uint64_t declared_shared_bytes = 0;
  /// kReservedSharedBytes if the kernel reads the reserved registers
  std::uint64_t reserved_shared_offset = 0;
  std::set<const ptx::Instruction*> refused;  ///< instructions that were reported already

 private:
  void find_address_taken();
  void examine(std::uint32_t function);
  void find_recursion(std::uint32_t kernel);
  void find_exits();
  void lay_out_shared();
  void place_shared(const ptx::Variable& variable);

  const ptx::Module& module_;
  std::vector<std::uint32_t> address_taken_;
  bool address_taken_known_ = false;
  std::map<std::uint32_t, FunctionFacts> facts_;  ///< facts about the kernel and all functions that it calls
  std::vector<std::uint32_t> order_;              ///< those functions in the order of their first calls
  std::map<const ptx::Variable*, std::uint64_t> shared_offsets_;
  std::uint64_t dynamic_align_ = 0;  ///< 0: the kernel uses no dynamic shared memory
  std::map<std::uint32_t, std::uint32_t> symbol_of_;
  std::vector<std::uint32_t> functions_;
};

/// True for .shared variables whose size the launch sets.
bool is_dynamic_shared(const ptx::Variable& variable);
std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment);

}  // namespace quern::cpu::lower
