// SPDX-License-Identifier: Apache-2.0
// SIMT IR + plans -> LLVM IR -> machine code. This folder is the only place that includes LLVM; this header
// does not. The functions over LlvmCode are passes: compiler/passes.cpp has their order.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cpu/abi/specialisation.hpp"
#include "cpu/code/image.hpp"
#include "cpu/cuts/plan.hpp"
#include "cpu/ir/code_sites.hpp"
#include "cpu/ir/ir.hpp"
#include "quern/expected.hpp"

namespace quern::cpu::emit {

/// LLVM IR of one kernel (llvm_code.hpp).
class LlvmCode;
struct DeleteLlvmCode {
  void operator()(LlvmCode* code) const noexcept;
};
using OwnedLlvmCode = std::unique_ptr<LlvmCode, DeleteLlvmCode>;

enum class WithSites : bool { no, yes };

/// Returns an error (code "ptx-unsupported") for each operation in `module` that the emitter does not
/// support, and for barriers and ends of threads in device functions.
Expected<void> check_emittable(const ir::Module& module);

/// Collects the locations of all functions in one list. Their instructions refer to that list afterwards.
std::vector<ir::Location> gather_locations(ir::Module& module);

/// Emits LLVM IR for functions[0] of `module` and the functions that it calls. WithSites::yes: instructions
/// have sites (read_sites()). Errors here and below have code "internal".
Expected<OwnedLlvmCode> emit_llvm(const ir::Module& module, const std::vector<cuts::Plan>& plans,
                                  const Specialisation& specialisation, WithSites with_sites);

/// Errors: LLVM's verifier finds the code malformed.
Expected<void> verify_llvm(LlvmCode& code);

// Passes of LLVM and of quern over LLVM IR. Code of every optimisation level needs the last two, which the
// code generator requires.
Expected<void> promote_slots(LlvmCode& code);            ///< variables -> SSA form (slots.hpp)
Expected<void> replace_aggregates(LlvmCode& code);       ///< SROA
Expected<void> merge_equal_values(LlvmCode& code);       ///< EarlyCSE
Expected<void> simplify_control_flow(LlvmCode& code);    ///< SimplifyCFG
Expected<void> combine_small_functions(LlvmCode& code);  ///< InstCombine, of functions that are not too large
Expected<void> hoist_out_of_loops(LlvmCode& code);       ///< LICM
Expected<void> remove_redundant_loads(LlvmCode& code);   ///< GVN
Expected<void> forward_shared(LlvmCode& code);           ///< shared memory in registers (forward_shared.hpp)
Expected<void> choose_extremes(LlvmCode& code);          ///< (a > b) != up ? a : b (choose_extremes.hpp)
Expected<void> join_halves(LlvmCode& code);              ///< of permuted 64-bit elements (join_halves.hpp)
Expected<void> compose_shuffles(LlvmCode& code);         ///< chains of permutations (compose_shuffles.hpp)
Expected<void> combine_instructions(LlvmCode& code);     ///< InstCombine
Expected<void> remove_dead_code(LlvmCode& code);         ///< ADCE
Expected<void> keep_halves_packed(LlvmCode& code);       ///< of 32-bit words (packed_halves.hpp)
Expected<void> check_bases(LlvmCode& code);   ///< of indexed addresses, in wide windows (check_bases.hpp)
Expected<void> share_checks(LlvmCode& code);  ///< of near addresses (share_checks.hpp)
Expected<void> reduce_loop_strength(LlvmCode& code);     ///< LoopStrengthReduce
Expected<void> narrow_accesses(LlvmCode& code);          ///< constant masks (narrow_accesses.hpp)
Expected<void> keep_load_order(LlvmCode& code);          ///< loads in their order (keep_load_order.hpp)
Expected<void> loop_over_lanes(LlvmCode& code);          ///< of quick code (loop_over_lanes.hpp)
Expected<void> prefetch_masked(LlvmCode& code);          ///< some processors (prefetch_masked.hpp)
Expected<void> compute_masks_as_lanes(LlvmCode& code);   ///< without AVX-512 (lane_masks.hpp)
Expected<void> compute_masks_as_words(LlvmCode& code);   ///< AVX-512 (mask_words.hpp)
Expected<void> keep_logic_from_selects(LlvmCode& code);  ///< AVX-512 (masked_ternlog.hpp)

/// Generates an object file in memory. Changes the LLVM IR.
Expected<void> make_object(LlvmCode& code);

/// Links the object of make_object(), and adds the facts about `module` that the device needs.
Expected<CodeImage> link_image(LlvmCode& code, const ir::Module& module, std::vector<ir::Location> locations);

/// Maps the machine code of make_object() to instructions, after emit_llvm() with sites.
Expected<CodeSites> read_sites(LlvmCode& code, const ir::Module& module);

Expected<std::string> print_llvm(LlvmCode& code);
Expected<std::string> print_assembly(LlvmCode& code);

/// Name and features of the processor, as LLVM uses them. Does not create a code generator.
std::string processor_identity();

/// The widest instruction set of this processor, ignoring the environment variable.
Isa processor_isa();
/// True if this processor runs portable code (Specialisation::portable) for `isa`.
bool runs_portable(Isa isa);

}  // namespace quern::cpu::emit
