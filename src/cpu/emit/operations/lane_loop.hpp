// SPDX-License-Identifier: Apache-2.0
// Code that processes the lanes of a warp one after the other, lowest first. If all lanes run, it is
// straight-line code that extracts the values from their registers, and also if few lanes run that are known
// at compile time; otherwise a loop over the running lanes, with the values in memory.
#pragma once

#include <array>
#include <functional>

#include "cpu/abi/warp_size.hpp"
#include "cpu/emit/operations/address.hpp"

namespace quern::cpu::emit {

/// True if at most kFewLanes run, which are known at compile time.
bool runs_few_known_lanes(Context& c);
inline constexpr int kFewLanes = 4;

/// A value by lane: a vector, or one scalar for all lanes.
class LaneArray {
 public:
  LaneArray() = default;
  LaneArray(Context& c, llvm::Value* vector);
  static LaneArray of_scalar(llvm::Value* scalar);
  /// The value of lane `lane`, an i64 that for_lanes() provides, in ascending order.
  llvm::Value* at(llvm::IRBuilder<>& b, llvm::Value* lane);
  void release(Context& c) const;

 private:
  llvm::Value* pair_at(llvm::IRBuilder<>& b, std::uint64_t index);

  llvm::Value* scalar_ = nullptr;
  llvm::Value* vector_ = nullptr;
  llvm::Value* memory_ = nullptr;
  llvm::Type* type_ = nullptr;
  std::array<llvm::Value*, kWarpSize / 2> pairs_{};
};

/// The pointers of an access, by lane.
class LanePlaces {
 public:
  explicit LanePlaces(const Access& access);
  LanePlaces(Context& c, const LanePointers& pointers) : pointers_(pointers), index_(c, pointers.index) {}
  llvm::Value* at(llvm::IRBuilder<>& b, llvm::Value* lane);
  void release(Context& c) const { index_.release(c); }

 private:
  LanePointers pointers_{};
  LaneArray index_;
};

/// Emits `body` for each running lane; at least one lane runs. `lane` is an i64.
void for_lanes(Context& c, const std::function<void(llvm::Value* lane)>& body);

}  // namespace quern::cpu::emit
