// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/warp/edges.hpp"

#include <algorithm>
#include <numeric>

#include "cpu/analysis/structure.hpp"

namespace quern::cpu::emit {

std::vector<std::pair<ir::Value, ir::Value>> Edges::phi_operands(ir::BlockId block,
                                                                 unsigned successor_index) const {
  const std::vector<ir::BlockId>& succs = function_->blocks[block].succs;
  const ir::BlockId to = succs[successor_index];
  // Edges between the same two blocks have the same order in succs and in preds.
  auto skip = std::count(succs.begin(), succs.begin() + successor_index, to);
  const ir::Block& next = function_->blocks[to];
  std::size_t edge = 0;
  while (next.preds[edge] != block || skip-- > 0) ++edge;
  std::vector<std::pair<ir::Value, ir::Value>> result;
  for (const ir::Value phi : next.insts) {
    if (!is_phi(phi)) break;
    result.emplace_back(phi, inst(phi).args[edge]);
  }
  return result;
}

std::vector<llvm::Value*> Edges::lanes_by_edge(ir::BlockId block, llvm::Value* among) {
  const ir::Inst& last = terminator(block);
  llvm::Value* operand = values_.vector(last.args[0]);
  const auto count = static_cast<unsigned>(function_->blocks[block].succs.size());
  std::vector<llvm::Value*> result;
  llvm::Value* rest = among;
  for (unsigned i = 0; i + 1 < count; ++i) {
    llvm::Value* takes = operand;
    if (last.op == ir::Op::switch_br)
      takes = code_.CreateICmpEQ(operand, llvm::ConstantInt::get(operand->getType(), i));
    llvm::Value* lanes = masks_.lanes_of(takes);
    result.push_back(masks_.both(among, lanes));
    rest = masks_.without(rest, lanes);
  }
  result.push_back(rest);
  return result;
}

bool Edges::must_blend(const analysis::Analysis& facts, ir::BlockId block, ir::BlockId successor) const {
  const std::vector<ir::BlockId>& preds = function_->blocks[successor].preds;
  if (analysis::leaves_divergent_loop(facts, block, successor)) return true;
  const std::uint32_t own = facts.loop_of[successor];
  if (own != ir::kNone && facts.loops[own].header == successor && preds.size() == 2) return false;
  const auto before = [&](ir::BlockId a, ir::BlockId b) { return facts.position[a] < facts.position[b]; };
  return *std::min_element(preds.begin(), preds.end(), before) != block;
}

std::vector<unsigned> Edges::all(ir::BlockId block) const {
  std::vector<unsigned> edges(function_->blocks[block].succs.size());
  std::iota(edges.begin(), edges.end(), 0u);
  return edges;
}

}  // namespace quern::cpu::emit
