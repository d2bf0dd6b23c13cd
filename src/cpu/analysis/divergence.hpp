// SPDX-License-Identifier: Apache-2.0
// Finds the blocks at which diverged lanes reconverge: joins whose phis differ between lanes, exits of loops
// that lanes leave in different iterations, and blocks that not all live lanes reach together.
#pragma once

#include <vector>

#include "cpu/analysis/structure.hpp"

namespace quern::cpu::analysis {

/// From each divergent branch, labels are propagated along the edges of one iteration: a block reached by two
/// labels is a join. A loop that one label leaves while another continues with the next iteration is
/// divergent. Its exits are then like the targets of a branch, taken when all lanes have left the loop.
class DivergencePropagation {
 public:
  DivergencePropagation(const Structure& structure, Analysis& analysis);

  /// Handles lanes that leave `block` to different successors. Sets Loop::divergent, and appends the blocks
  /// whose phis may have changed to `changed`.
  void split(ir::BlockId block, std::vector<ir::BlockId>& changed);

  /// True if lanes may reach `block` together over different edges.
  bool is_join(ir::BlockId block) const { return join_[block]; }

 private:
  struct Arrival {
    ir::BlockId to;
    std::uint32_t label;
  };
  void propagate(const std::vector<Arrival>& arrivals, std::uint32_t loop);
  void flow_inside();
  void arrive(const Arrival& arrival);
  void mark_join(ir::BlockId block);
  void mark_ends(ir::BlockId block);
  void mark_divergent(std::uint32_t loop);

  const Structure& structure_;
  Analysis& analysis_;
  std::vector<bool> join_;
  std::vector<ir::BlockId>* changed_ = nullptr;
  // State of the current propagation: within `loop_`, by block.
  std::uint32_t loop_ = ir::kNone;
  std::vector<std::uint32_t> label_;
  std::vector<ir::BlockId> labelled_;
  std::vector<std::uint32_t> pending_;  ///< heap of positions
  std::vector<Arrival> exits_;
  std::uint32_t header_label_ = ir::kNone;
};

}  // namespace quern::cpu::analysis
