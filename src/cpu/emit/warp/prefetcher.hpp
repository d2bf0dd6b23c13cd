// SPDX-License-Identifier: Apache-2.0
// Prefetches for loads and stores that walk through memory in a loop. The processor does not detect strides
// that are too long (as long as the width of the grid), and does not look past long operations between
// iterations (barriers, atomic operations lane by lane). In these cases the code prefetches the addresses of
// later iterations.
#pragma once

#include <map>
#include <optional>
#include <utility>

#include "cpu/emit/operations/address.hpp"
#include "cpu/emit/warp/values.hpp"

namespace quern::cpu::emit {

/// The operation that makes an iteration of the loop so long that the processor does not look past it. few:
/// none, and the loop has few iterations.
enum class RoundLength : std::uint8_t { none, few, barrier, atomics };

class Prefetcher : private BodyPart {
 public:
  /// `of_blocks`: the cache to which the lines of blocks farther ahead are prefetched.
  Prefetcher(BodyState& body, Slots& slots, Values& values, const Specialisation& specialisation,
             Cache of_blocks)
      : BodyPart(body),
        slots_(slots),
        values_(values),
        specialisation_(specialisation),
        of_blocks_(of_blocks) {}

  /// Called after each instruction.
  void emit(ir::Value access);

 private:
  /// Returns the analysis of the version being emitted.
  const analysis::Analysis& facts() const { return plan_.facts(body_.version); }
  struct Walk {
    analysis::LanePattern lanes;  ///< affine, in bytes
    ir::Value moving;             ///< what iterations add to: the address, or its index
    std::int64_t scale;           ///< bytes for each unit of `moving`
  };
  std::optional<Walk> walk_of(ir::Value address) const;
  llvm::Value* base_of(ir::Value address);
  void emit_for_next_block(ir::Value load, const Walk& walk, const std::vector<unsigned>& lanes);
  void emit_by_pieces(ir::Value load, const Walk& walk, const std::vector<unsigned>& lanes);
  void emit_by_block_step(ir::Value load, const Walk& walk, const std::vector<unsigned>& lanes);
  void prefetch(llvm::Value* base, const analysis::LanePattern& where, const std::vector<unsigned>& lanes,
                Prefetch how);
  std::size_t whole_lines(ir::Value access) const;
  bool is_dense(std::size_t lines, std::size_t whole_lines);
  bool has_rows();
  bool reads_many_rows();
  std::uint64_t blocks_ahead();
  bool is_short(std::uint32_t loop);
  bool leaves_gaps(ir::Value load, std::uint32_t loop, std::int64_t stride) const;
  RoundLength round_length(std::uint32_t loop);
  /// The amount that an iteration of a loop adds to a value.
  struct Advance {
    llvm::Value* amount = nullptr;  ///< null: none
    std::uint64_t copies = 1;       ///< additions of which it is the sum
  };
  template <class ConstantPart>
  Advance sum_since(ir::Value next, ir::Value phi, const ConstantPart& constant_part);
  std::optional<Advance> advance_of(ir::Value value, std::uint32_t loop, unsigned depth);

  Slots& slots_;
  Values& values_;
  const Specialisation& specialisation_;
  const Cache of_blocks_;
  std::map<ir::Value, llvm::Value*> distances_;  ///< by load: from this block's address to a later one's
  std::uint64_t blocks_ahead_ = 0;               ///< 0: not computed yet
  std::optional<bool> has_rows_;
  std::optional<bool> reads_many_rows_;
  /// by version and its loop, for those computed so far
  std::map<std::pair<Version, std::uint32_t>, RoundLength> round_lengths_;
};

}  // namespace quern::cpu::emit
