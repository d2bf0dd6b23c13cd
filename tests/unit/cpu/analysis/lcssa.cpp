// SPDX-License-Identifier: Apache-2.0
#include "lcssa.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace quern::cpu::test {
namespace {

using Blocks = std::set<ir::BlockId>;

/// The blocks reachable from `from`, itself included, without entering `avoided`.
Blocks reached(const ir::Function& function, ir::BlockId from, ir::BlockId avoided) {
  Blocks result;
  std::vector<ir::BlockId> work{from};
  while (!work.empty()) {
    const ir::BlockId block = work.back();
    work.pop_back();
    if (block == avoided || !result.insert(block).second) continue;
    const std::vector<ir::BlockId>& succs = function.blocks[block].succs;
    work.insert(work.end(), succs.begin(), succs.end());
  }
  return result;
}

/// Bodies of natural loops, by header.
std::map<ir::BlockId, Blocks> natural_loops(const ir::Function& function) {
  std::map<ir::BlockId, Blocks> loops;
  const Blocks all = reached(function, 0, ir::kNone);
  for (const ir::BlockId header : all) {
    const Blocks without = reached(function, 0, header);
    std::vector<ir::BlockId> work;
    for (const ir::BlockId pred : function.blocks[header].preds)
      if (all.contains(pred) && !without.contains(pred)) work.push_back(pred);
    if (work.empty()) continue;
    Blocks& body = loops[header];
    body.insert(header);
    while (!work.empty()) {
      const ir::BlockId block = work.back();
      work.pop_back();
      if (!body.insert(block).second) continue;
      for (const ir::BlockId pred : function.blocks[block].preds)
        if (all.contains(pred)) work.push_back(pred);
    }
  }
  return loops;
}

void split_edge(ir::Function& function, ir::BlockId from, std::size_t which) {
  const auto middle = static_cast<ir::BlockId>(function.blocks.size());
  const ir::BlockId to = function.blocks[from].succs[which];
  std::size_t same = 0;  // edges from `from` to `to` before this one
  for (std::size_t i = 0; i < which; ++i) same += function.blocks[from].succs[i] == to ? 1 : 0;
  function.blocks[from].succs[which] = middle;
  for (ir::BlockId& pred : function.blocks[to].preds)
    if (pred == from && same-- == 0) {
      pred = middle;
      break;
    }
  ir::Inst branch;
  branch.op = ir::Op::br;
  branch.block = middle;
  function.blocks.push_back({{static_cast<ir::Value>(function.insts.size())}, {from}, {to}});
  function.insts.push_back(branch);
}

ir::BlockId place_of_use(const ir::Function& function, ir::Value user, std::size_t i) {
  const ir::Inst& inst = function[user];
  return inst.op == ir::Op::phi ? function.blocks[inst.block].preds[i] : inst.block;
}

class ValueExit {
 public:
  ValueExit(ir::Function& function, const Blocks& body, ir::Value value)
      : function_(function), body_(body), value_(value) {}

  void replace(ir::Value user, std::size_t i) {
    const ir::Value replacement = at_end(place_of_use(function_, user, i));
    function_[user].args[i] = replacement;
  }

 private:
  ir::Value at_end(ir::BlockId block) {
    if (body_.contains(block)) return value_;
    if (const auto found = known_.find(block); found != known_.end()) return found->second;
    const std::vector<ir::BlockId> preds = function_.blocks[block].preds;
    const bool exit =
        std::any_of(preds.begin(), preds.end(), [&](ir::BlockId pred) { return body_.contains(pred); });
    if (preds.size() == 1 && !exit) return known_[block] = at_end(preds[0]);
    const auto phi = static_cast<ir::Value>(function_.insts.size());
    ir::Inst inst;
    inst.op = ir::Op::phi;
    inst.type = function_[value_].type;
    inst.block = block;
    function_.insts.push_back(inst);
    std::vector<ir::Value>& insts = function_.blocks[block].insts;
    insts.insert(insts.begin(), phi);
    known_[block] = phi;
    std::vector<ir::Value> args;
    for (const ir::BlockId pred : preds) args.push_back(at_end(pred));
    function_[phi].args = std::move(args);
    return phi;
  }

  ir::Function& function_;
  const Blocks& body_;
  ir::Value value_;
  std::map<ir::BlockId, ir::Value> known_;
};

void close_loop(ir::Function& function, const Blocks& body) {
  std::map<ir::Value, std::vector<std::pair<ir::Value, std::size_t>>> uses;
  for (ir::Value user = 0; user < function.insts.size(); ++user)
    for (std::size_t i = 0; i < function[user].args.size(); ++i) {
      const ir::Value used = function[user].args[i];
      if (body.contains(function[used].block) && !body.contains(place_of_use(function, user, i)))
        uses[used].emplace_back(user, i);
    }
  for (const auto& [value, users] : uses) {
    ValueExit exit(function, body, value);
    for (const auto& [user, i] : users) exit.replace(user, i);
  }
}

}  // namespace

void close_loops(ir::Function& function) {
  for (const auto& [header, body] : natural_loops(function))
    for (const ir::BlockId from : body)
      for (std::size_t i = 0; i < function.blocks[from].succs.size(); ++i)
        if (!body.contains(function.blocks[from].succs[i])) split_edge(function, from, i);
  std::vector<Blocks> loops;
  for (auto& [header, body] : natural_loops(function)) loops.push_back(body);
  std::sort(loops.begin(), loops.end(), [](const Blocks& a, const Blocks& b) { return a.size() < b.size(); });
  // Closing one loop may carry a value through another.
  for (std::size_t before = 0; before != function.insts.size();) {
    before = function.insts.size();
    for (const Blocks& body : loops) close_loop(function, body);
  }
}

}  // namespace quern::cpu::test
