// SPDX-License-Identifier: Apache-2.0
// The state that the parts of a warp's body share during emission (warp_body.hpp lists the parts), and the
// base class of these parts.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "cpu/abi/warp_size.hpp"
#include "cpu/cuts/plan.hpp"
#include "cpu/emit/operations/context.hpp"
#include "cpu/emit/warp/masks.hpp"

namespace quern::cpu::emit {

using cuts::Plan;
using cuts::Version;

/// A warp's frame across barriers: a header that the block loop reads, followed by the live values.
namespace frame {
inline constexpr std::uint32_t kState = 0;  ///< i32: the state to continue from; kDone: the warp has ended
inline constexpr std::uint32_t kTrueLanes =
    4;  ///< i32: barrier_reduce: lanes of this warp whose predicate held
inline constexpr std::uint32_t kArrivedLanes = 8;  ///< i32: barrier_reduce: lanes that arrived
inline constexpr std::uint32_t kHeaderBytes = 64;
inline constexpr std::uint32_t kDone = 0xffffffffu;
/// the result of a gang's step: each warp's frame contains its state
inline constexpr std::uint32_t kParted = 0xfffffffeu;
}  // namespace frame

/// The LLVM function into which a warp's body is emitted, and the values that the body starts with.
struct BodyInputs {
  llvm::Function* function = nullptr;
  llvm::BasicBlock* entry =
      nullptr;  ///< dominates everything and has its terminator; allocas and launch constants are placed here
  llvm::BasicBlock* begin = nullptr;  ///< empty: the body starts here
  llvm::BasicBlock* done = nullptr;   ///< the body branches here when the warp has ended
  llvm::Value* launch = nullptr;
  llvm::Value* worker = nullptr;
  std::array<llvm::Value*, 3> ctaid{};
  llvm::Value* warp = nullptr;
  llvm::Value* lanes = nullptr;        ///< i32, the existing lanes; null: all 32
  llvm::Value* local_begin = nullptr;  ///< i64, start of this activation in the lanes' local memory; null: 0
  // For kernels whose blocks have several warps and barriers; otherwise null.
  llvm::Value* frame = nullptr;
  llvm::Value* state = nullptr;
  llvm::Value* true_lanes = nullptr;  ///< barrier_reduce: count for the whole block
  llvm::Value* arrived_lanes = nullptr;
};

class ResumePoints;

/// Parameters of a gang's body.
struct Gang {
  std::uint32_t width = 1;        ///< warps in lockstep, from BodyInputs::warp on
  std::uint32_t frame_bytes = 0;  ///< from one warp's frame to the next one's
  bool whole_block = false;       ///< the block has no other warps, so no warp waits at a barrier
  bool resumes = false;           ///< continues after barriers at which its warps have arrived separately
  /// states and frame of the body of one warp, which was emitted before; null if the gang never splits
  const ResumePoints* single = nullptr;
};

/// The LLVM blocks of a block's masked version: `test` skips the block if no lane waits at it, `run` is its
/// code.
struct MaskedBlocks {
  llvm::BasicBlock* test = nullptr;
  llvm::BasicBlock* run = nullptr;
  llvm::AllocaInst* waiting = nullptr;
  llvm::AllocaInst* unasked = nullptr;  ///< i1: `test` runs the block once without lanes; for eager loops
};

/// The lanes that run the block being emitted, in three forms; null if all lanes run in full code.
struct RunningLanes {
  llvm::Value* lanes = nullptr;  ///< in the representation of Masks
  llvm::Value* bits = nullptr;   ///< <32 x i1>
  llvm::Value* word = nullptr;   ///< i32
  bool certain = true;           ///< at least one lane runs
};

/// One warp of the gang. Without a gang, there is one.
struct Warp {
  llvm::Value* index = nullptr;  ///< i32, in the block
  llvm::Value* frame = nullptr;
};

struct BodyState {
  BodyState(const Plan& the_plan, const BodyInputs& the_inputs, const Gang& the_gang, Isa isa);

  /// No lane of the values runs without the others. Only a gang's warps that run one after another may have
  /// masks in the full version.
  bool full() const { return version != Version::masked && running.lanes == nullptr; }
  llvm::Value* mask() { return full() ? masks.bits_of(masks.all()) : running.bits; }
  llvm::Value* mask_bits() { return full() ? code.getInt32(0xffffffffu) : running.word; }
  llvm::Value* live_bits() {
    if (version == Version::full) return code.getInt32(0xffffffffu);  // no lane of a gang has ended
    return code.CreateLoad(code.getInt32Ty(), live);
  }
  llvm::Value* warp_index() const { return warps[current].index; }
  /// Creates a block after the current one. The builder does not move.
  llvm::BasicBlock* make_block(const char* name) {
    return llvm::BasicBlock::Create(code.getContext(), name, inputs.function,
                                    code.GetInsertBlock()->getNextNode());
  }
  bool is_gang() const { return gang.width > 1; }

  const Plan& plan;
  BodyInputs inputs;
  const Gang gang;
  llvm::IRBuilder<> code;
  llvm::DISubprogram* const sites;  ///< null: instructions get no sites (sites.hpp)
  Masks masks;

  std::vector<Warp> warps;
  std::size_t current = 0;                     ///< the warp for which code is emitted
  bool serial = false;                         ///< the code is for the current warp only (serial_code.hpp)
  std::vector<llvm::BasicBlock*> full_blocks;  ///< by BlockId
  std::vector<MaskedBlocks> masked_blocks;     ///< by BlockId
  llvm::Value* live = nullptr;  ///< pointer to an i32: lanes that have not exited, in masked code
  std::uint32_t frame_end = frame::kHeaderBytes;

  // State of the current block.
  Version version = Version::full;
  ir::BlockId block = ir::kNone;
  llvm::BasicBlock* first = nullptr;  ///< its first LLVM block, which dominates the others
  RunningLanes running;
};

/// The base class of the parts: the shared state, and functions that every part uses.
class BodyPart {
 public:
  BodyPart(const BodyPart&) = delete;
  BodyPart& operator=(const BodyPart&) = delete;

 protected:
  explicit BodyPart(BodyState& body)
      : body_(body),
        plan_(body.plan),
        function_(body.plan.function),
        inputs_(body.inputs),
        code_(body.code),
        masks_(body.masks) {}
  ~BodyPart() = default;

  const ir::Inst& inst(ir::Value value) const { return (*function_)[value]; }
  const ir::Inst& terminator(ir::BlockId block) const { return inst(function_->blocks[block].insts.back()); }
  bool is_phi(ir::Value value) const { return inst(value).op == ir::Op::phi; }
  const analysis::LanePattern& pattern_in(Version version, ir::Value value) const {
    return plan_.facts(version).patterns[value];
  }
  /// The pattern in the version being emitted.
  const analysis::LanePattern& pattern(ir::Value value) const { return pattern_in(body_.version, value); }
  bool kept_scalar(Version version, ir::Value value) const { return pattern_in(version, value).scalar(); }
  llvm::Type* type_of(ir::Type type) const { return scalar_type(code_.getContext(), type); }
  llvm::Type* vector_type_of(ir::Type type) const {
    return llvm::FixedVectorType::get(type_of(type), kWarpSize);
  }

  bool full() const { return body_.full(); }
  llvm::BasicBlock* make_block(const char* name) { return body_.make_block(name); }

  bool is_gang() const { return body_.is_gang(); }
  /// True if full code at this branch runs the region behind it by SerialCode.
  bool has_region(ir::BlockId branch) const {
    return is_gang() ? plan_.serial[branch].join != ir::kNone : plan_.runs_region_alone(branch);
  }
  bool is_shared(ir::Value value) const { return is_gang() && plan_.gang.shared[value]; }
  /// The warp that stores `value` for the current warp: warp 0 if the warps share the value.
  std::size_t warp_of(ir::Value value) const { return is_shared(value) ? 0 : body_.current; }
  template <class Function>
  void for_each_warp(const Function& function) {
    if (body_.serial) return function();
    for (body_.current = 0; body_.current < body_.warps.size(); ++body_.current) function();
    body_.current = 0;
  }
  /// Calls `function` for each warp, or only for the first one if `value` is the same in all.
  template <class Function>
  void for_each_warp(ir::Value value, const Function& function) {
    if (is_shared(value) || body_.serial)
      function();
    else
      for_each_warp(function);
  }

  BodyState& body_;
  const Plan& plan_;
  const ir::Function* const function_;
  BodyInputs& inputs_;
  llvm::IRBuilder<>& code_;
  Masks& masks_;
};

}  // namespace quern::cpu::emit
