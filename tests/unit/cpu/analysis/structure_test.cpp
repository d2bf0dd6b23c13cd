// SPDX-License-Identifier: Apache-2.0
// Orders, dominators and loops of random graphs, compared with reachability.
#include <algorithm>
#include <set>

#include "random_program.hpp"
#include "testing.hpp"

using namespace quern::cpu;
using test::analysed;
using test::block_of;
using test::IrBuilder;

namespace {

using Blocks = std::set<ir::BlockId>;

/// The nodes reachable from `from` along successors (or predecessors), without entering `avoided`.
Blocks reached(const ir::Function& function, ir::BlockId from, bool backwards,
               ir::BlockId avoided = ir::kNone) {
  Blocks result;
  std::vector<ir::BlockId> work{from};
  while (!work.empty()) {
    const ir::BlockId block = work.back();
    work.pop_back();
    if (block == avoided || !result.insert(block).second) continue;
    const std::vector<ir::BlockId>& next =
        backwards ? function.blocks[block].preds : function.blocks[block].succs;
    work.insert(work.end(), next.begin(), next.end());
  }
  return result;
}

Blocks dominators(const ir::Function& function, ir::BlockId block) {
  Blocks result{block};
  for (ir::BlockId above = 0; above < function.blocks.size(); ++above)
    if (above != block && !reached(function, 0, false, above).contains(block)) result.insert(above);
  return result;
}

Blocks chain(const std::vector<ir::BlockId>& parent, ir::BlockId block) {
  Blocks result;
  for (; block != ir::kNone; block = parent[block]) result.insert(block);
  return result;
}

/// True if every path from `block` to an end of the function contains `below`.
bool post_dominates(const ir::Function& function, ir::BlockId below, ir::BlockId block) {
  const Blocks ways = reached(function, block, false, below);
  return std::none_of(ways.begin(), ways.end(),
                      [&](ir::BlockId at) { return function.blocks[at].succs.empty(); });
}

void check_dominators(const ir::Function& function, const analysis::Analysis& a, const Blocks& all) {
  for (const ir::BlockId block : all) {
    const Blocks strict = dominators(function, block);
    Blocks expected;
    std::set_intersection(strict.begin(), strict.end(), all.begin(), all.end(),
                          std::inserter(expected, expected.end()));
    REQUIRE(chain(a.idom, block) == expected);
  }
}

void check_loops(const ir::Function& function, const analysis::Analysis& a, const Blocks& all) {
  std::size_t headers = 0;
  for (const ir::BlockId header : all) {
    Blocks body;
    for (const ir::BlockId pred : function.blocks[header].preds)
      if (all.contains(pred) && dominators(function, pred).contains(header))
        body.merge(reached(function, pred, true, header));
    if (body.empty() &&
        !std::count(function.blocks[header].preds.begin(), function.blocks[header].preds.end(), header))
      continue;
    body.insert(header);
    ++headers;
    const auto loop = std::find_if(a.loops.begin(), a.loops.end(),
                                   [&](const analysis::Loop& at) { return at.header == header; });
    REQUIRE(loop != a.loops.end());
    REQUIRE(Blocks(loop->blocks.begin(), loop->blocks.end()) == body);
    REQUIRE(loop->blocks.front() == header);
    // The blocks must be contiguous in the order.
    for (std::size_t i = 0; i < loop->blocks.size(); ++i)
      REQUIRE(a.position[loop->blocks[i]] == a.position[header] + i);
    if (loop->parent != ir::kNone) REQUIRE(&a.loops[loop->parent] < &*loop);
  }
  REQUIRE(headers == a.loops.size());
}

}  // namespace

TEST_CASE("dominators, loops and orders of random kernels are what reachability says") {
  for (std::uint64_t seed = 1; seed <= test::scaled(60); ++seed) {
    CAPTURE(seed);
    const test::RandomProgram program = test::random_program(seed, 3);
    const ir::Function& function = program.module.functions[0];
    if (function.blocks.size() > 120) continue;
    const auto a =
        analysis::analyse(program.module, function, program.specialisation, analysis::Assumption::safe);
    REQUIRE(a.has_value());
    const Blocks all = reached(function, 0, false);
    REQUIRE(Blocks(a->order.begin(), a->order.end()) == all);
    REQUIRE(a->order.size() == all.size());
    for (ir::BlockId block = 0; block < function.blocks.size(); ++block) {
      REQUIRE((a->position[block] == ir::kNone) == !all.contains(block));
      if (!all.contains(block)) continue;
      REQUIRE(a->order[a->position[block]] == block);
      for (const ir::BlockId to : function.blocks[block].succs)
        if (a->position[to] <= a->position[block]) REQUIRE(dominators(function, block).contains(to));
    }
    check_dominators(function, *a, all);
    check_loops(function, *a, all);
  }
}

TEST_CASE("post-dominators of random kernels are what reachability says") {
  for (std::uint64_t seed = 1; seed <= test::scaled(60); ++seed) {
    CAPTURE(seed);
    const test::RandomProgram program = test::random_program(seed, 2);
    const ir::Function& function = program.module.functions[0];
    if (function.blocks.size() > 60) continue;
    const auto a =
        analysis::analyse(program.module, function, program.specialisation, analysis::Assumption::safe);
    REQUIRE(a.has_value());
    const auto ends = [&](ir::BlockId block) { return !post_dominates(function, ir::kNone, block); };
    if (!std::all_of(a->order.begin(), a->order.end(), ends))
      continue;  // if loops do not end, no answer is correct
    for (const ir::BlockId block : a->order) {
      Blocks expected;
      for (const ir::BlockId below : a->order)
        if (below == block || post_dominates(function, below, block)) expected.insert(below);
      REQUIRE(chain(a->ipostdom, block) == expected);
    }
  }
}

TEST_CASE("a jump into the middle of a loop is refused with the lines of both ends") {
  IrBuilder b("goto_kernel");
  const auto n = b.param(ir::Type::i32);
  const auto x = b.block(), y = b.block(), end = b.block();
  b.line(10).cond_br(b.icmp(ir::Icmp::eq, n, b.i32(0)), x, y);
  b.at(x).line(20).br(y);
  b.at(y).line(30).cond_br(b.icmp(ir::Icmp::eq, n, b.i32(1)), x, end);
  b.at(end).ret();
  const ir::Module module = b.module();
  const auto result =
      analysis::analyse(module, module.functions[0], block_of(32), analysis::Assumption::safe);
  REQUIRE(!result.has_value());
  const quern::Diagnostic& error = result.errors()[0];
  CHECK(error.code == "ptx-unsupported");
  CHECK(error.message.find("goto_kernel") != std::string::npos);
  CHECK(error.message.find("line 20") != std::string::npos);
  CHECK(error.message.find("line 30") != std::string::npos);
  CHECK(error.message.find("irreducible") != std::string::npos);
  CHECK(!error.hint.empty());
}

TEST_CASE("a side that only ends comes before the code that goes on") {
  for (const bool taken_ends : {true, false}) {
    IrBuilder b;
    const auto out = b.param(ir::Type::i64);
    const auto gone = b.icmp(ir::Icmp::slt, b.tid(), b.i32(7));
    const auto side = b.block(), on = b.block(), end = b.block();
    if (taken_ends)
      b.cond_br(gone, side, on);
    else
      b.cond_br(gone, on, side);
    b.at(side).store(out, b.i32(1));
    b.br(end);
    b.at(on).barrier();
    b.br(end);
    b.at(end).ret();
    const analysis::Analysis a = analysed(b, block_of(64));
    CHECK(a.order == std::vector<ir::BlockId>{0, side, on, end});
    CHECK(a.divergent_control[side]);
    CHECK(!a.divergent_control[on]);
  }
}

TEST_CASE("an endless loop and unreachable blocks are analysed too") {
  IrBuilder b;
  const auto loop = b.block(), nowhere = b.block();
  b.br(loop);
  b.at(loop).br(loop);
  b.at(nowhere).br(loop);
  const ir::Module module = b.module();
  const auto result =
      analysis::analyse(module, module.functions[0], block_of(64), analysis::Assumption::safe);
  REQUIRE(result.has_value());
  CHECK(result->order == std::vector<ir::BlockId>{0, loop});
  CHECK(result->position[nowhere] == ir::kNone);
  CHECK(result->loops.size() == 1);
}
