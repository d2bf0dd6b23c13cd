// SPDX-License-Identifier: Apache-2.0
// The code that one warp runs, or a gang of warps in lockstep: the class behind Context. Its parts are in
// flow.cpp, values.cpp, full.cpp and masked.cpp (the two versions of the blocks), versions.cpp (going from
// one to the other), dispatch.cpp (what stands in for masked code where lanes wait for each other),
// meetings.cpp (where they wait), gang.cpp, barriers.cpp and calls.cpp.
//
// Memory form: every phi and every value read outside its block has a slot (an alloca), one for each version;
// definitions store, reads load, and slots.cpp makes SSA of it. So going from one version to the other, or
// on after a barrier, is a matter of filling slots.
//
// Masked code: each block has a variable `waiting`: the lanes that are to run it. A block whose variable is
// empty is skipped; else it empties the variable, runs, and adds its lanes to the variables of its
// successors. Invariants:
//  - a value's masked slot is right in the lanes that ran its definition; in the others it holds any defined
//  value (never undef);
//  - in full code every waiting variable is empty.
// LLVM sees paths that no lane can take; where slots and waiting variables hold nothing that counts they are
// set to nothing (spans.hpp), so that it does not carry them through all of the kernel.
//
// Dispatched code (Plan::dispatched) is masked code in another order: which block comes next is decided while
// the warp runs. The masked slots are places in the warp's frame, so that a warp can be left at any time, and
// a definition changes those of the running lanes only. There are no waiting variables: each lane's place is
// in the frame's head.
//
// A gang runs full code only: each instruction once for every warp, or once for all where the warps cannot
// differ. Where its warps part, it leaves each one's values in that warp's frame, from where the warps go on
// one by one.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "cpu/analysis/structure.hpp"
#include "cpu/cuts/plan.hpp"
#include "cpu/emit/context.hpp"
#include "cpu/emit/masks.hpp"
#include "cpu/emit/spans.hpp"

namespace quern::cpu::emit {

using cuts::BoundedBranch;
using cuts::kWarpLanes;
using cuts::masked_only;

/// A warp's frame across barriers: a header that the block driver reads, then the live values.
namespace frame {
inline constexpr std::uint32_t kState = 0;  ///< i32: where to go on; kDone: the warp has ended
inline constexpr std::uint32_t kTrueLanes =
    4;  ///< i32: barrier_reduce: lanes of this warp whose predicate held
inline constexpr std::uint32_t kArrivedLanes = 8;  ///< i32: barrier_reduce: lanes that arrived
inline constexpr std::uint32_t kHeaderBytes = 64;
inline constexpr std::uint32_t kDone = 0xffffffffu;
inline constexpr std::uint32_t kParted = 0xfffffffeu;  ///< a gang's step: each warp's frame has its own state
}  // namespace frame

/// The position and the purpose of a warp's body.
struct WarpPlace {
  llvm::Function* function = nullptr;
  llvm::BasicBlock* entry =
      nullptr;  ///< dominates everything; has its terminator: allocas and launch constants go here
  llvm::BasicBlock* begin = nullptr;  ///< empty: the body starts here
  llvm::BasicBlock* done = nullptr;   ///< the body branches here when the warp has ended
  llvm::Value* launch = nullptr;
  llvm::Value* worker = nullptr;
  std::array<llvm::Value*, 3> ctaid{};
  llvm::Value* warp = nullptr;
  llvm::Value* lanes = nullptr;        ///< i32, the lanes that exist; null: all 32
  llvm::Value* local_begin = nullptr;  ///< i64, of this activation in the lanes' local memory; null: 0
  // For kernels whose blocks have several warps and barriers; otherwise null.
  llvm::Value* frame = nullptr;
  llvm::Value* state = nullptr;
  llvm::Value* true_lanes = nullptr;  ///< barrier_reduce: over the whole block
  llvm::Value* arrived_lanes = nullptr;
};

class WarpBody;

/// For the body of a gang.
struct Gang {
  std::uint32_t width = 1;           ///< warps in lockstep, from WarpPlace::warp on
  std::uint32_t frame_bytes = 0;     ///< from one warp's frame to the next one's
  bool whole_block = false;          ///< the block has no other warps: nobody waits at a barrier
  bool resumes = false;              ///< goes on after barriers at which its warps have arrived one by one
  const WarpBody* single = nullptr;  ///< the body of one warp, emitted before: its frame and its states count
};

/// A device function that is called, not inlined, by its index in ir::Module::functions.
using DeviceFunctions = std::map<std::uint32_t, llvm::Function*>;

/// The operation that makes one round of a loop so long that the processor does not look past it.
enum class RoundLength : std::uint8_t { none, barrier, atomics };

class WarpBody final : public Context {
 public:
  WarpBody(const Plan& plan, const Specialisation& specialisation, const WarpPlace& place,
           const DeviceFunctions& callees, Gang gang = {});

  /// Emits everything between place.begin and place.done.
  void emit();
  /// After emit(): the frame that a warp needs, with its header; 0 without barriers.
  std::uint32_t frame_bytes() const { return place_.frame == nullptr ? 0 : frame_end_; }
  /// After emit(): by state - 1, the barrier (an index into Function::insts) that the state goes on from;
  /// ir::kNone where the warp left its gang. The barriers in full code come first.
  const std::vector<ir::Value>& states() const { return states_; }
  /// After emit(): how many states go on in full code after a barrier.
  std::uint32_t full_states() const { return static_cast<std::uint32_t>(full_state_.size()); }
  /// After emit() of a device function: loads result `index`, as set in each lane.
  llvm::Value* result(unsigned index, llvm::IRBuilder<>& at);
  /// Before emit() of a device function.
  void set_arguments(std::vector<llvm::Value*> arguments) { arguments_ = std::move(arguments); }

  // --- Context
  llvm::Value* scalar(ir::Value value) override;
  llvm::Value* vector(ir::Value value) override;
  void define(ir::Value value, llvm::Value* what) override;
  void define_element(ir::Value value, unsigned index, llvm::Value* what) override;
  bool full() const override { return version_ == Version::full; }
  llvm::Value* mask() override;
  llvm::Value* mask_bits() override;
  llvm::Value* params() override;
  llvm::Value* window_base() override;
  llvm::Value* window_bytes() override;
  llvm::Value* window_limit(std::uint32_t param, std::uint32_t mask, std::uint32_t low) override;
  llvm::Value* shared_base() override;
  llvm::Value* local_base() override;
  llvm::Value* local_stride() override;
  llvm::Value* local_begin() override;
  llvm::Value* launch() override { return place_.launch; }
  llvm::Value* worker() override { return place_.worker; }
  llvm::Value* ctaid(unsigned dimension) override { return place_.ctaid[dimension]; }
  llvm::Value* warp_index() override { return warps_[current_].index; }
  llvm::Value* live_bits() override;
  llvm::FunctionCallee helper(std::string_view name, llvm::FunctionType* type) override;
  llvm::BasicBlock* new_block(const char* name) override;

 private:
  struct Slot {
    llvm::Value* memory = nullptr;
    llvm::Type* type = nullptr;  ///< of what it holds
    std::uint32_t frame = 0;     ///< offset in the warp's frame; 0: has no place there
    bool framed = false;         ///< live across a barrier: stored to the frame wherever it is defined
  };
  struct Expansion {
    llvm::Value* vector = nullptr;
    llvm::BasicBlock* block = nullptr;
  };
  /// The values of one warp of the gang. Values that the warps share are those of warp 0.
  struct WarpValues {
    llvm::Value* index = nullptr;  ///< i32, in the block
    llvm::Value* frame = nullptr;
    llvm::Value* local_base = nullptr;
    std::array<std::vector<Slot>, 2> slots;
    // Valid for the block being emitted.
    std::map<ir::Value, llvm::Value*> values;
    std::map<ir::Value, Expansion> expansions;
    std::map<std::pair<ir::Value, unsigned>, llvm::Value*> elements;
  };
  /// The LLVM blocks of a block's masked version: `test` skips it if no lane waits, `run` is its code.
  struct MaskedBlocks {
    llvm::BasicBlock* test = nullptr;
    llvm::BasicBlock* run = nullptr;
    llvm::AllocaInst* waiting = nullptr;
  };

  /// Gives the scalar of a term's coefficient.
  using Coefficient = std::function<llvm::Value*(ir::Value)>;

  // --- values.cpp
  const analysis::Shape& shape_in(Version version, ir::Value value) const {
    return plan_.facts(version).shapes[value];
  }
  bool kept_scalar(Version version, ir::Value value) const { return shape_in(version, value).scalar(); }
  llvm::Type* kept_type(Version version, ir::Value value);
  bool has_slot(Version version, ir::Value value) const;
  Slot& slot(Version version, ir::Value value);
  void write_slot(Version version, ir::Value value, llvm::Value* what);
  void store_to_frame(const Slot& slot, llvm::Value* what);
  void load_from_frame(std::uint32_t offset, const Slot& to);
  llvm::Value* kept(ir::Value value);
  void emit_extract(ir::Value value);
  llvm::Constant* known_constant(Version version, ir::Value value);
  llvm::Value* as_kept(ir::Value value, bool want_scalar);
  llvm::Value* expand(const analysis::Shape& shape, ir::Type type, llvm::Value* base,
                      const Coefficient& coefficient);
  static llvm::Constant* pattern(const analysis::LanePattern& lanes, llvm::Type* element);
  llvm::Value* pack_bits(llvm::Value* what);
  llvm::Value* unpack_bits(llvm::Value* what, ir::Type type);

  // --- flow.cpp
  llvm::Value* launch_constant(llvm::Value* base, std::uint64_t offset, llvm::Type* type,
                               std::uint64_t pointee_bytes = 0);
  llvm::Value* cached(unsigned which, llvm::Value* base, std::uint64_t offset, llvm::Type* type,
                      std::uint64_t bytes = 0);
  const ir::Inst& inst(ir::Value value) const { return (*function_)[value]; }
  const ir::Inst& terminator(ir::BlockId block) const { return inst(function_->blocks[block].insts.back()); }
  bool is_phi(ir::Value value) const { return inst(value).op == ir::Op::phi; }
  llvm::BasicBlock* make_block(const char* name);
  void create_blocks();
  void begin_warp();
  void begin_block(Version version, ir::BlockId block, llvm::BasicBlock* at);
  void emit_insts(ir::BlockId block);
  void emit_inst(ir::Value value);
  std::vector<std::pair<ir::Value, ir::Value>> phi_operands(ir::BlockId block,
                                                            unsigned successor_index) const;
  void note_for_report(std::uint64_t offset, llvm::Value* what);
  void note_place();
  void emit_trap(std::uint64_t which, std::uint32_t location);

  // --- full.cpp
  void emit_full();
  void full_terminator(ir::BlockId block);
  void full_edge(ir::BlockId block, unsigned successor_index);
  void full_phis(ir::BlockId block, unsigned successor_index);
  void full_cond_branch(ir::BlockId block);
  llvm::Value* every_lane_below(const BoundedBranch& branch);
  void full_switch(ir::BlockId block);
  void full_tests(ir::BlockId block);
  llvm::Value* widening_holds(ir::Value widening);
  void leave_full(ir::BlockId block);
  std::vector<unsigned> every_edge(ir::BlockId block) const;
  void go_masked_at_branch(ir::BlockId block);
  void go_masked_whole(ir::BlockId block);

  // --- masked.cpp
  void emit_masked();
  void emit_masked_block(ir::BlockId block);
  bool may_run_empty(ir::BlockId block) const;
  void masked_terminator(ir::BlockId block);
  void masked_edge(ir::BlockId block, unsigned successor_index, llvm::Value* lanes);
  void masked_uniform_branch(ir::BlockId block);
  void masked_divergent_branch(ir::BlockId block);
  void retire(llvm::Value* lanes);
  bool must_blend(ir::BlockId block, ir::BlockId successor) const;
  bool only_from(ir::BlockId block, ir::BlockId other) const;
  void leave(ir::BlockId block, ir::BlockId target, bool certain);
  std::uint32_t next_needed(std::uint32_t position) const;
  llvm::BasicBlock* next_test(std::uint32_t position);
  void clear_masked();
  void clear(const MaskedVariable& variable);
  void clear_begun(ir::BlockId block, bool runs);
  void enter_masked(std::uint32_t position);
  std::vector<llvm::Value*> switch_masks(ir::BlockId block, llvm::Value* among);

  // --- versions.cpp
  llvm::Value* masked_from_full(ir::Value value);
  void reenter_full(ir::BlockId block);
  llvm::Value* full_from_masked(ir::Value value, std::map<ir::Value, llvm::Value*>& done,
                                llvm::Value*& holds);
  llvm::Value* base_of(const analysis::Shape& shape, llvm::Value* lane0);
  llvm::Value* lane0_of(ir::Value value);

  // --- gang.cpp
  bool is_gang() const { return gang_.single != nullptr; }
  bool is_shared(ir::Value value) const { return is_gang() && plan_.gang.shared[value]; }
  WarpValues& warp_of(ir::Value value) { return warps_[is_shared(value) ? 0 : current_]; }
  const WarpValues& warp_of(ir::Value value) const { return warps_[is_shared(value) ? 0 : current_]; }
  template <class Function>
  void for_each_warp(const Function& function) {
    for (current_ = 0; current_ < warps_.size(); ++current_) function();
    current_ = 0;
  }
  /// Only for the first warp if `value` is the same in all.
  template <class Function>
  void for_each_warp(ir::Value value, const Function& function) {
    if (is_shared(value))
      function();
    else
      for_each_warp(function);
  }
  void place_warps();
  std::pair<llvm::Value*, llvm::Value*> all_and_any(ir::Value condition);
  void gang_barrier(ir::BlockId block);
  std::uint32_t place_in_frame(ir::Value value) const;
  void store_frames(ir::BlockId next, ir::Value made_later);
  void gang_split(ir::BlockId block);
  void emit_split_states();

  // --- prefetch.cpp
  RoundLength round_length(std::uint32_t loop);
  std::optional<llvm::Value*> advance_of(ir::Value value, std::uint32_t loop, unsigned depth);
  void prefetch(ir::Value load);

  // --- barriers.cpp
  void find_frame();
  llvm::Value* frame_address(std::uint32_t offset);
  static llvm::Align frame_align(const llvm::Type* type) { return llvm::Align(type->isVectorTy() ? 64 : 8); }
  void resume_at(std::uint32_t state, ir::BlockId next);
  void masked_barrier(ir::BlockId block);
  void barrier(ir::BlockId block);
  void suspend(ir::BlockId block);
  llvm::Value* reduction(ir::Value which, llvm::Value* true_lanes, llvm::Value* arrived_lanes);
  void emit_states();

  // --- dispatch.cpp
  void place_dispatched();
  std::uint32_t place_of(ir::BlockId block) const;
  llvm::Value* head_field(std::uint64_t offset);
  llvm::Value* load_places();
  void store_places(llvm::Value* places);
  void begin_dispatch();
  void emit_dispatcher();
  void leave_step(llvm::Value* end);
  void emit_dispatched();
  void emit_dispatched_block(ir::BlockId block);
  void dispatched_terminator(ir::BlockId block);
  void send(ir::BlockId block, unsigned successor_index, llvm::Value* lanes);
  bool goes_straight(ir::BlockId block) const;
  void end_lanes(llvm::Value* word);
  void go_apart(ir::BlockId block, const std::vector<unsigned>& edges);
  llvm::Value* call_engine(const char* name, llvm::Type* result, llvm::ArrayRef<llvm::Value*> args);

  // --- meetings.cpp
  void meet_lanes(ir::BlockId block);
  void meet_block(ir::BlockId block);
  void define_reduction(ir::BlockId block);

  // --- calls.cpp
  void emit_call(ir::Value value);
  llvm::Value* begin_activation(const ir::Inst& call);
  void emit_set_result(ir::Value value);

  const Plan& plan_;
  WarpPlace place_;
  const DeviceFunctions& callees_;
  const Gang gang_;
  llvm::IRBuilder<> code_;
  llvm::DISubprogram* const sites_;  ///< null: instructions need no sites (sites.hpp)
  Masks masks_;
  Version version_ = Version::full;
  ir::BlockId block_ = ir::kNone;

  std::vector<WarpValues> warps_;
  std::size_t current_ = 0;  ///< the warp that code is emitted for
  std::vector<llvm::BasicBlock*> full_;
  std::vector<MaskedBlocks> masked_;
  // For masked code, not for dispatched code.
  Spans spans_;
  analysis::Dominance dominance_;
  llvm::Value* live_ = nullptr;  ///< i32: lanes that have not exited, in masked code
  std::uint32_t live_frame_ = 0;
  std::uint32_t frame_end_ = frame::kHeaderBytes;
  std::vector<ir::Value> states_;
  std::map<std::uint32_t, llvm::BasicBlock*> resumes_;  ///< by state
  std::map<ir::BlockId, std::uint32_t> full_state_;     ///< after the barrier at the end of this block
  std::map<ir::BlockId, std::uint32_t> split_state_;    ///< at the end of this block, left by a gang
  llvm::SwitchInst* resume_ = nullptr;
  llvm::BasicBlock* dispatch_ = nullptr;
  llvm::SwitchInst* places_ = nullptr;
  std::vector<llvm::Value*> arguments_;
  std::vector<llvm::AllocaInst*> results_;

  // Valid for the block being emitted.
  llvm::BasicBlock* first_ = nullptr;  ///< its first LLVM block, which dominates the others
  llvm::Value* lanes_ = nullptr;       ///< running lanes, in kept form; null in full code
  llvm::Value* mask_ = nullptr;
  llvm::Value* mask_word_ = nullptr;
  bool certain_ = false;  ///< at least one lane runs

  std::array<llvm::Value*, 8> cache_{};
  std::map<std::array<std::uint32_t, 3>, llvm::Value*> limits_;  ///< by parameter, mask and low bits
  std::map<std::uint32_t, RoundLength> round_lengths_;           ///< by loop, as far as asked for
};

}  // namespace quern::cpu::emit
