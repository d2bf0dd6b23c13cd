// SPDX-License-Identifier: Apache-2.0
#include "cpu/analysis/divergence.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace quern::cpu::analysis {

DivergencePropagation::DivergencePropagation(const Structure& structure, Analysis& analysis)
    : structure_(structure),
      analysis_(analysis),
      join_(structure.graph.size()),
      label_(structure.graph.size(), ir::kNone) {}

void DivergencePropagation::split(ir::BlockId block, std::vector<ir::BlockId>& changed) {
  changed_ = &changed;
  std::vector<Arrival> arrivals;
  for (const ir::BlockId to : structure_.graph.succs[block]) arrivals.push_back({to, to});
  propagate(arrivals, analysis_.loop_of[block]);
}

/// `loop`: the innermost loop that contains all lanes. Some path always leads back to its header.
void DivergencePropagation::propagate(const std::vector<Arrival>& arrivals, std::uint32_t loop) {
  loop_ = loop;
  header_label_ = ir::kNone;
  exits_.clear();
  pending_.clear();
  for (const ir::BlockId block : labelled_) label_[block] = ir::kNone;
  labelled_.clear();
  for (const Arrival& arrival : arrivals) arrive(arrival);
  flow_inside();
  const auto together = [&](const Arrival& exit) { return exit.label == header_label_; };
  if (!std::all_of(exits_.begin(), exits_.end(), together)) mark_divergent(loop);
}

void DivergencePropagation::flow_inside() {
  while (!pending_.empty()) {
    if (pending_.size() == 1 && exits_.empty() && header_label_ == ir::kNone)
      return;  // all lanes are together again
    std::pop_heap(pending_.begin(), pending_.end(), std::greater<>());
    const ir::BlockId block = analysis_.order[pending_.back()];
    pending_.pop_back();
    for (const ir::BlockId to : structure_.graph.succs[block]) {
      const bool own_header = loop_ != ir::kNone && analysis_.loops[loop_].header == to;
      const bool inner_back_edge =
          analysis_.position[to] <= analysis_.position[block] && loop_contains(analysis_, loop_, to);
      if (own_header || !inner_back_edge) arrive({to, label_[block]});
    }
  }
}

void DivergencePropagation::arrive(const Arrival& arrival) {
  const ir::BlockId to = arrival.to;
  if (loop_ != ir::kNone && analysis_.loops[loop_].header == to) {
    if (header_label_ != ir::kNone && header_label_ != arrival.label) {
      mark_join(to);
      header_label_ = to;
    } else {
      header_label_ = arrival.label;
    }
  } else if (!loop_contains(analysis_, loop_, to)) {
    exits_.push_back(arrival);
  } else if (structure_.ends_at_once[to]) {
    mark_ends(to);
  } else if (label_[to] == ir::kNone) {
    label_[to] = arrival.label;
    labelled_.push_back(to);
    pending_.push_back(analysis_.position[to]);
    std::push_heap(pending_.begin(), pending_.end(), std::greater<>());
  } else if (label_[to] != arrival.label) {
    label_[to] = to;
    mark_join(to);
  }
}

void DivergencePropagation::mark_join(ir::BlockId block) {
  if (join_[block]) return;
  join_[block] = true;
  changed_->push_back(block);
}

/// Marks that lanes end here: the others are together again without them.
void DivergencePropagation::mark_ends(ir::BlockId block) {
  while (structure_.graph.preds[block].size() == 1 && !structure_.graph.succs[block].empty())
    block = structure_.graph.succs[block][0];
  if (structure_.graph.preds[block].size() == 1 || join_[block]) return;
  mark_join(block);
  if (!structure_.graph.succs[block].empty()) mark_ends(structure_.graph.succs[block][0]);
}

void DivergencePropagation::mark_divergent(std::uint32_t loop) {
  if (analysis_.loops[loop].divergent) return;
  analysis_.loops[loop].divergent = true;
  std::vector<Arrival> arrivals;
  for (const ir::BlockId block : analysis_.loops[loop].blocks)
    for (const ir::BlockId to : structure_.graph.succs[block]) {
      if (loop_contains(analysis_, loop, to)) continue;
      const auto edge = static_cast<std::uint32_t>(structure_.graph.size() + arrivals.size());
      arrivals.push_back({to, edge});
      changed_->push_back(to);
    }
  if (arrivals.size() > 1) propagate(arrivals, analysis_.loops[loop].parent);
}

}  // namespace quern::cpu::analysis
