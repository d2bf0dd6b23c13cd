// SPDX-License-Identifier: Apache-2.0
#include "lane_interpreter.hpp"

#include <cstdlib>
#include <numeric>

namespace quern::cpu::test {
namespace {

using ir::Op;
constexpr std::size_t kMostRuns = 400;

class Lane {
 public:
  Lane(const ir::Function& function, const analysis::Analysis& analysis, const Launch& launch,
       std::uint32_t thread)
      : function_(function),
        analysis_(analysis),
        launch_(launch),
        thread_(thread),
        values_(function.insts.size()) {}

  LaneTrace run() {
    LaneTrace trace;
    ir::BlockId from = ir::kNone;
    ir::BlockId block = 0;
    while (block != ir::kNone && trace.runs.size() < kMostRuns) {
      enter(from, block);
      BlockRun run;
      run.time = time_of(block);
      run.block = block;
      time_ = run.time;
      run_block(from, block, run);
      from = block;
      block = run.next;
      trace.runs.push_back(std::move(run));
    }
    trace.ended = block == ir::kNone;
    return trace;
  }

 private:
  std::vector<std::uint32_t> loops_around(ir::BlockId block) const {
    std::vector<std::uint32_t> loops;
    for (std::uint32_t loop = analysis_.loop_of[block]; loop != ir::kNone;
         loop = analysis_.loops[loop].parent)
      loops.insert(loops.begin(), loop);
    return loops;
  }
  void enter(ir::BlockId from, ir::BlockId to) {
    const std::vector<std::uint32_t> before =
        from == ir::kNone ? std::vector<std::uint32_t>{} : loops_around(from);
    for (const std::uint32_t loop : loops_around(to)) {
      bool stayed = false;
      for (const std::uint32_t other : before) stayed |= other == loop;
      if (!stayed)
        iteration_[loop] = 0;
      else if (analysis_.loops[loop].header == to)
        ++iteration_[loop];
    }
  }
  Time time_of(ir::BlockId block) const {
    Time time;
    for (const std::uint32_t loop : loops_around(block)) {
      time.push_back(analysis_.position[analysis_.loops[loop].header]);
      time.push_back(iteration_.at(loop));
    }
    time.push_back(analysis_.position[block]);
    return time;
  }

  void run_block(ir::BlockId from, ir::BlockId block, BlockRun& run) {
    const std::vector<ir::Value>& insts = function_.blocks[block].insts;
    const std::vector<ir::BlockId>& preds = function_.blocks[block].preds;
    std::size_t edge = 0;
    while (edge < preds.size() && preds[edge] != from) ++edge;
    for (const ir::Value value : insts)
      if (function_[value].op == Op::phi) run.values.push_back(values_[function_[value].args[edge]]);
    for (std::size_t i = 0; i < run.values.size(); ++i) values_[insts[i]] = run.values[i];
    for (std::size_t i = run.values.size(); i < insts.size(); ++i) {
      const ir::Inst& inst = function_[insts[i]];
      values_[insts[i]] =
          ir::has_trait(inst.op, 't') ? 0 : masked(evaluate(insts[i]), ir::bit_size(inst.type));
      run.values.push_back(values_[insts[i]]);
    }
    run.next = next_block(function_[insts.back()], block);
  }
  ir::BlockId next_block(const ir::Inst& terminator, ir::BlockId block) const {
    const std::vector<ir::BlockId>& succs = function_.blocks[block].succs;
    if (terminator.op == Op::br) return succs[0];
    if (terminator.op == Op::cond_br) return succs[values_[terminator.args[0]] != 0 ? 0 : 1];
    if (terminator.op == Op::switch_br) return succs[values_[terminator.args[0]] % succs.size()];
    return ir::kNone;
  }

  /// A value that is the same in all lanes that run together.
  std::uint64_t warp_noise(ir::Value value) const {
    std::uint64_t noise = mix(launch_.seed, value);
    for (const std::uint32_t part : time_) noise = mix(noise, part);
    return noise;
  }
  std::uint64_t lane_noise(ir::Value value) const { return mix(warp_noise(value), thread_ + 77); }

  std::uint64_t evaluate(ir::Value value) const {
    const ir::Inst& inst = function_[value];
    std::vector<std::uint64_t> args;
    for (const ir::Value arg : inst.args) args.push_back(values_[arg]);
    switch (inst.op) {
      case Op::constant:
      case Op::local_address:
        return inst.imm;
      case Op::undef:
        return 0;
      case Op::param:
        return parameter(inst.imm);
      case Op::special:
        return special(value);
      case Op::symbol:
        return mix(launch_.seed, inst.imm) % 1024 * 16;
      case Op::to_generic:
      case Op::from_generic:
        return convert(inst, args[0]);
      case Op::load:
        return load(value, args[0] + inst.imm);
      case Op::shuffle:
      case Op::shuffle_valid:
      case Op::match_any:
      case Op::atomic:
      case Op::host_call:
        return lane_noise(value);
      case Op::vote:
      case Op::reduce:
      case Op::match_all:
        return mix(warp_noise(value), args[1]);
      case Op::activemask:
      case Op::barrier_reduce:
        return warp_noise(value);
      case Op::extract:
        return mix(args[0], inst.imm);
      case Op::store:
      case Op::barrier:
      case Op::warp_sync:
      case Op::fence:
      case Op::nanosleep:
        return 0;
      default:
        return compute(function_, inst, args);
    }
  }
  std::uint64_t parameter(std::uint64_t offset) const {
    const auto found = launch_.params.find(offset);
    return found != launch_.params.end() ? found->second : mix(launch_.seed, offset) % 40;
  }
  std::uint64_t convert(const ir::Inst& inst, std::uint64_t address) const {
    std::uint64_t start = 0;
    if (inst.attr.space == ir::Space::shared) start = 0x700000000000;
    if (inst.attr.space == ir::Space::local) start = 0x710000000000 + std::uint64_t{4096} * thread_;
    return inst.op == Op::to_generic ? address + start : address - start;
  }
  std::uint64_t load(ir::Value value, std::uint64_t address) const {
    if (function_[value].attr.is_volatile) return lane_noise(value);
    const std::uint64_t memory = mix(mix(launch_.seed, 5), address);
    return function_[value].attr.space == ir::Space::local ? mix(memory, thread_) : memory;
  }
  std::uint64_t special(ir::Value value) const {
    const Specialisation& s = launch_.specialisation;
    const auto which = static_cast<ir::Special>(function_[value].imm);
    const std::uint32_t lane = thread_ % 32;
    switch (which) {
      case ir::Special::tid_x:
        return thread_ % s.block[0];
      case ir::Special::tid_y:
        return thread_ / s.block[0] % s.block[1];
      case ir::Special::tid_z:
        return thread_ / s.block[0] / s.block[1];
      case ir::Special::ntid_x:
        return s.block[0];
      case ir::Special::ntid_y:
        return s.block[1];
      case ir::Special::ntid_z:
        return s.block[2];
      case ir::Special::ctaid_x:
        return launch_.block_index[0];
      case ir::Special::ctaid_y:
        return launch_.block_index[1];
      case ir::Special::ctaid_z:
        return launch_.block_index[2];
      case ir::Special::nctaid_x:
        return launch_.grid[0];
      case ir::Special::nctaid_y:
        return launch_.grid[1];
      case ir::Special::nctaid_z:
        return launch_.grid[2];
      case ir::Special::laneid:
        return lane;
      case ir::Special::warpid:
        return thread_ / 32;
      case ir::Special::nwarpid:
        return (s.block[0] * s.block[1] * s.block[2] + 31) / 32;
      case ir::Special::lanemask_lt:
        return (std::uint64_t{1} << lane) - 1;
      default:
        return warp_noise(value);
    }
  }

  const ir::Function& function_;
  const analysis::Analysis& analysis_;
  const Launch& launch_;
  std::uint32_t thread_;
  std::vector<std::uint64_t> values_;
  std::map<std::uint32_t, std::uint32_t> iteration_;
  Time time_;
};

bool compare(ir::Icmp how, std::uint64_t a, std::uint64_t b, std::uint32_t bits) {
  const std::int64_t x = as_signed(a, bits);
  const std::int64_t y = as_signed(b, bits);
  switch (how) {
    case ir::Icmp::eq:
      return a == b;
    case ir::Icmp::ne:
      return a != b;
    case ir::Icmp::slt:
      return x < y;
    case ir::Icmp::sle:
      return x <= y;
    case ir::Icmp::sgt:
      return x > y;
    case ir::Icmp::sge:
      return x >= y;
    case ir::Icmp::ult:
      return a < b;
    case ir::Icmp::ule:
      return a <= b;
    case ir::Icmp::ugt:
      return a > b;
    case ir::Icmp::uge:
      return a >= b;
  }
  std::abort();
}

std::uint64_t divide(Op op, std::uint64_t a, std::uint64_t b, std::uint32_t bits) {
  const std::int64_t x = as_signed(a, bits);
  const std::int64_t y = as_signed(b, bits);
  const bool remainder = op == Op::urem || op == Op::srem;
  if (b == 0) return ~std::uint64_t{0};
  if (op == Op::udiv) return a / b;
  if (op == Op::urem) return a % b;
  if (y == -1) return remainder ? 0 : ~a + 1;
  return static_cast<std::uint64_t>(remainder ? x % y : x / y);
}

}  // namespace

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::uint64_t masked(std::uint64_t value, std::uint32_t bits) {
  return bits >= 64 ? value : value & ((std::uint64_t{1} << bits) - 1);
}

std::int64_t as_signed(std::uint64_t value, std::uint32_t bits) {
  if (bits >= 64 || (value >> (bits - 1) & 1) == 0) return static_cast<std::int64_t>(value);
  return static_cast<std::int64_t>(value | ~((std::uint64_t{1} << bits) - 1));
}

std::uint64_t compute(const ir::Function& function, const ir::Inst& inst,
                      const std::vector<std::uint64_t>& args) {
  const std::uint32_t bits = ir::bit_size(function[inst.args[inst.op == Op::select ? 1 : 0]].type);
  const std::uint64_t a = args[0];
  const std::uint64_t b = args.size() > 1 ? args[1] : 0;
  const std::int64_t x = as_signed(a, bits);
  const std::int64_t y = as_signed(b, bits);
  const auto result = [&]() -> std::uint64_t {
    switch (inst.op) {
      case Op::iadd:
        return a + b;
      case Op::isub:
        return a - b;
      case Op::imul:
        return a * b;
      case Op::sdiv:
      case Op::udiv:
      case Op::srem:
      case Op::urem:
        return divide(inst.op, a, b, bits);
      case Op::smin:
        return x < y ? a : b;
      case Op::smax:
        return x < y ? b : a;
      case Op::umin:
        return a < b ? a : b;
      case Op::umax:
        return a < b ? b : a;
      case Op::iabs:
        return x < 0 ? ~a + 1 : a;
      case Op::and_:
        return a & b;
      case Op::or_:
        return a | b;
      case Op::xor_:
        return a ^ b;
      case Op::shl:
        return b < bits ? a << b : 0;
      case Op::lshr:
        return b < bits ? a >> b : 0;
      case Op::ashr:
        return static_cast<std::uint64_t>(x >> (b < bits ? b : bits - 1));
      case Op::popc: {
        std::uint64_t count = 0;
        for (std::uint32_t bit = 0; bit < bits; ++bit) count += a >> bit & 1;
        return count;
      }
      case Op::clz: {
        std::uint64_t count = 0;
        while (count < bits && (a >> (bits - 1 - count) & 1) == 0) ++count;
        return count;
      }
      case Op::icmp:
        return compare(inst.attr.icmp, a, b, bits);
      case Op::select:
        return a != 0 ? b : args[2];
      case Op::trunc:
      case Op::zext:
        return a;
      case Op::sext:
        return static_cast<std::uint64_t>(x);
      default:  // only requires that equal operands give equal results
        return std::accumulate(args.begin(), args.end(), mix(inst.imm, static_cast<std::uint64_t>(inst.op)),
                               mix);
    }
  };
  return masked(result(), ir::bit_size(inst.type));
}

LaneTrace run_lane(const ir::Function& function, const analysis::Analysis& analysis, const Launch& launch,
                   std::uint32_t thread) {
  return Lane(function, analysis, launch, thread).run();
}

}  // namespace quern::cpu::test
