// SPDX-License-Identifier: Apache-2.0
// The slot of each value that is read outside its block: a variable in memory for each version, which
// promote_slots turns into SSA form, or bytes in the warp's frame.
#pragma once

#include "cpu/emit/warp/body_state.hpp"

namespace quern::cpu::emit {

struct Slot {
  llvm::Value* memory = nullptr;
  llvm::Type* type = nullptr;  ///< type of the contents
  std::uint32_t frame = 0;     ///< offset in the warp's frame; 0: it is not in the frame
  bool framed = false;         ///< live across a barrier: every definition stores it to the frame
};

class Slots : private BodyPart {
 public:
  explicit Slots(BodyState& body) : BodyPart(body) {}

  /// Creates the slots of all values that leave their blocks, except the masked ones of dispatched code. `at`
  /// is in the entry block.
  void create(llvm::IRBuilder<>& at);
  bool has(Version version, ir::Value value) const;
  Slot& at(Version version, ir::Value value);
  /// The slot of a masked value of dispatched code, whose layout the caller sets.
  Slot& dispatched(ir::Value value) { return warps_[0][static_cast<std::size_t>(Version::masked)][value]; }
  /// All slots of warp 0, by ir::Value; values without a slot have an empty one.
  const std::vector<Slot>& of_version(Version version) const {
    return warps_[0][static_cast<std::size_t>(version)];
  }

  llvm::Value* load(const Slot& from, Version version);
  /// Stores `what` if the value has a slot.
  void write(Version version, ir::Value value, llvm::Value* what);

  /// The type of the stored form of `value`: its scalar's or its vector's.
  llvm::Type* kept_type(Version version, ir::Value value) const;
  /// The type in a slot: the same, except that a vector of i1 has the form of masks between blocks.
  llvm::Type* slot_type(Version version, ir::Value value) const;
  llvm::Value* pack_bits(llvm::Value* what);
  llvm::Value* unpack_bits(llvm::Value* what, ir::Type type);
  /// The stored form of a value that is known at compile time; otherwise null.
  llvm::Constant* known_constant(Version version, ir::Value value) const;

  llvm::Value* frame_address(std::uint32_t offset);
  static llvm::Align frame_align(const llvm::Type* type) { return llvm::Align(type->isVectorTy() ? 64 : 8); }
  void store_to_frame(const Slot& slot, llvm::Value* what);
  void load_from_frame(std::uint32_t offset, const Slot& to);

 private:
  void add(llvm::IRBuilder<>& at, Version version, ir::Value value);

  /// By warp of the gang, version and ir::Value.
  std::vector<std::array<std::vector<Slot>, 3>> warps_;
};

}  // namespace quern::cpu::emit
