// SPDX-License-Identifier: Apache-2.0
#include "cpu/analysis/divergence.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace quern::cpu::analysis {

DivergencePropagation::DivergencePropagation(const ir::Function& function, const Structure& structure,
                                             Analysis& analysis)
    : function_(function),
      structure_(structure),
      analysis_(analysis),
      join_(structure.graph.size()),
      label_(structure.graph.size(), ir::kNone) {}

void DivergencePropagation::split(ir::BlockId block, std::vector<ir::BlockId>& changed) {
  changed_ = &changed;
  std::vector<Arrival> arrivals;
  for (const ir::BlockId to : structure_.graph.succs[block]) arrivals.push_back({to, to});
  propagate(std::move(arrivals), analysis_.loop_of[block]);
}

/// `loop`: the innermost that all of the lanes are in.
void DivergencePropagation::propagate(std::vector<Arrival> arrivals, std::uint32_t loop) {
  for (;; loop = analysis_.loops[loop].parent) {
    loop_ = loop;
    header_label_ = ir::kNone;
    exits_.clear();
    pending_.clear();
    for (const ir::BlockId block : labelled_) label_[block] = ir::kNone;
    labelled_.clear();
    for (const Arrival& arrival : arrivals) arrive(arrival);
    flow_inside();
    if (exits_.empty()) return;
    const auto together = [&](const Arrival& exit) { return exit.label == header_label_; };
    if (header_label_ != ir::kNone) {
      if (!std::all_of(exits_.begin(), exits_.end(), together)) mark_divergent(loop);
      return;
    }
    arrivals = exits_;  // all lanes leave in this iteration
  }
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
  } else if (label_[to] == ir::kNone) {
    label_[to] = arrival.label;
    labelled_.push_back(to);
    const bool end =
        structure_.graph.succs[to].empty() && function_[function_.blocks[to].insts.front()].op != ir::Op::phi;
    if (end) return;
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
  if (arrivals.size() > 1) propagate(std::move(arrivals), analysis_.loops[loop].parent);
}

void find_divergent_control(const ir::Function& function, const Structure& structure, Analysis& analysis) {
  const std::size_t count = structure.graph.size();
  analysis.divergent_control.assign(count, !function.kernel);
  if (!function.kernel) return;  // called by some lanes only, for all we know
  // Without the sides that only end, what comes after an early exit does not depend on it: those lanes are
  // not live.
  Graph pruned(count);
  std::vector<std::vector<ir::BlockId>> ending_sides(count);
  for (const ir::BlockId from : structure.rpo) {
    const std::vector<ir::BlockId>& succs = structure.graph.succs[from];
    const auto ends = [&](ir::BlockId to) { return edge_ends(analysis, structure, from, to); };
    const bool all_end = std::all_of(succs.begin(), succs.end(), ends);
    for (const ir::BlockId to : succs) {
      if (all_end || !ends(to))
        pruned.edge(from, to);
      else
        ending_sides[from].push_back(to);
    }
  }
  // Sides that were cut off start on their own.
  const std::vector<Node> ipostdom = immediate_post_dominators(pruned, structure.rpo);
  const std::vector<std::vector<Node>> children = dominator_children(analysis.idom, structure.rpo);
  std::vector<ir::BlockId> work;
  const auto mark = [&](ir::BlockId block) {
    if (analysis.divergent_control[block]) return;
    analysis.divergent_control[block] = true;
    work.push_back(block);
  };
  const auto mark_dependents = [&](ir::BlockId branch) {
    for (const ir::BlockId to : pruned.succs[branch])
      for (Node block = to; block != ipostdom[branch] && block != kNoNode; block = ipostdom[block])
        mark(block);
    for (const ir::BlockId side : ending_sides[branch]) {
      if (structure.ends_at_once[side]) continue;
      std::vector<Node> inside{side};
      while (!inside.empty()) {
        const Node block = inside.back();
        inside.pop_back();
        if (structure.graph.preds[block].size() > 1 && structure.ends_at_once[block]) continue;
        mark(block);
        inside.insert(inside.end(), children[block].begin(), children[block].end());
      }
    }
  };
  for (const ir::BlockId block : structure.rpo)
    if (analysis.divergent_branch[block]) mark_dependents(block);
  while (!work.empty()) {
    const ir::BlockId block = work.back();
    work.pop_back();
    mark_dependents(block);
  }
}

}  // namespace quern::cpu::analysis
