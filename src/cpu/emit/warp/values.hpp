// SPDX-License-Identifier: Apache-2.0
// The values of the current block: their stored form, and their conversion to scalars and vectors.
#pragma once

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "cpu/emit/warp/slots.hpp"

namespace quern::cpu::emit {

class Values : private BodyPart {
 public:
  /// Returns the scalar of a term's coefficient.
  using Coefficient = std::function<llvm::Value*(ir::Value)>;

  Values(BodyState& body, Slots& slots) : BodyPart(body), slots_(slots) {}

  /// Starts the code of `block` at `at`, and discards the values of the previous block.
  void begin_block(Version version, ir::BlockId block, llvm::BasicBlock* at);

  /// The stored form of `value` in the version being emitted: its scalar or its vector.
  llvm::Value* kept(ir::Value value);
  llvm::Value* scalar(ir::Value value);
  llvm::Value* vector(ir::Value value);
  /// The operand of a phi in the stored form of the phi.
  llvm::Value* as_kept(ir::Value value, bool want_scalar);
  /// All lanes of a value with this pattern, computed from its scalar `base`.
  llvm::Value* expand(const analysis::LanePattern& pattern, ir::Type type, llvm::Value* base,
                      const Coefficient& coefficient);

  void define(ir::Value value, llvm::Value* what);
  void define_element(ir::Value value, unsigned index, llvm::Value* what);
  void emit_extract(ir::Value value);

 private:
  struct Expansion {
    llvm::Value* vector = nullptr;
    llvm::BasicBlock* block = nullptr;
  };
  /// The values of one warp of the gang. Shared values are stored for warp 0 only.
  struct WarpValues {
    std::map<ir::Value, llvm::Value*> values;
    std::map<ir::Value, Expansion> expansions;
    std::map<std::pair<ir::Value, unsigned>, llvm::Value*> elements;
  };
  WarpValues& of_warp(ir::Value value) { return warps_[warp_of(value)]; }

  Slots& slots_;
  std::vector<WarpValues> warps_;
};

}  // namespace quern::cpu::emit
