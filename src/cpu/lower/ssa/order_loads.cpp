// SPDX-License-Identifier: Apache-2.0
// Loads of neighbouring places go in ascending order. NVRTC often reverses them:
//
//   part[t] = x[i] + x[i + 256];      loads x[i + 256] first
//
// The prefetchers of some processors learn nothing from that: what each block of threads reads follows what
// the block before it read, but the halves are exchanged.
#include <algorithm>
#include <optional>
#include <vector>

#include "cpu/lower/ssa/passes.hpp"

namespace quern::cpu::lower {
namespace {

using ir::Op;
using ir::Value;

/// Operations between an address and the index that differs.
constexpr unsigned kMaxDepth = 8;
/// Loads that are compared with a later one.
constexpr std::size_t kMaxLoads = 64;

class Sorter {
 public:
  explicit Sorter(ir::Function& function) : function_(function) {}

  void run(ir::Block& block) {
    std::vector<Value> done, loads;
    done.reserve(block.insts.size());
    for (const Value value : block.insts) {
      const ir::Inst& inst = function_[value];
      if (inst.op != Op::load || inst.attr.space != ir::Space::global || ir::is_ordered(inst.attr)) {
        if (ir::has_trait(inst.op, 's')) loads.clear();
        done.push_back(value);
        continue;
      }
      done.insert(place_of(value, loads, done), value);
      loads.push_back(value);
      if (loads.size() > kMaxLoads) loads.clear();
    }
    block.insts = std::move(done);
  }

 private:
  /// Before the first of `loads` that is above `load` in memory, unless the address is computed behind it.
  std::vector<Value>::iterator place_of(Value load, const std::vector<Value>& loads,
                                        std::vector<Value>& done) {
    const auto above = [&](Value other) {
      return std::ranges::find(loads, other) != loads.end() && is_below(load, other);
    };
    const auto first = std::ranges::find_if(done, above);
    const Value address = function_[load].args[0];
    return std::ranges::find(first, done.end(), address) == done.end() ? first : done.end();
  }

  bool is_below(Value load, Value other) const {
    const ir::Inst &a = function_[load], &b = function_[other];
    if (!ir::same_line(function_, a.location, b.location)) return false;  // a fault is reported for the first
    const std::optional<std::int64_t> order = compare(a.args[0], b.args[0], kMaxDepth);
    if (!order) return false;
    return *order != 0 ? *order < 0 : static_cast<std::int64_t>(a.imm) < static_cast<std::int64_t>(b.imm);
  }

  std::optional<std::int64_t> constant(Value value) const {
    const ir::Inst& inst = function_[value];
    if (inst.op != Op::constant) return std::nullopt;
    return ir::sign_extend(inst.imm, ir::byte_size(inst.type) * 8);
  }

  bool is_same(Value a, Value b) const {
    return a == b || (constant(a) && function_[a].type == function_[b].type && constant(a) == constant(b));
  }

  /// The sign of a - b where it is likely: numbers that are added are expected to be positive, and nothing to
  /// wrap. A wrong guess costs time at most.
  std::optional<std::int64_t> compare(Value a, Value b, unsigned depth) const {
    if (a == b) return 0;
    if (depth == 0) return std::nullopt;
    const ir::Inst &left = function_[a], &right = function_[b];
    const auto left_constant = constant(a), right_constant = constant(b);
    if (left_constant && right_constant) return *left_constant < *right_constant ? -1 : 1;
    if (const auto added = added_to(left, b)) return added;
    if (const auto added = added_to(right, a)) return -*added;
    if (left.op != right.op) return std::nullopt;
    switch (left.op) {
      case Op::iadd:
        for (const std::size_t i : {0u, 1u})
          for (const std::size_t j : {0u, 1u})
            if (is_same(left.args[i], right.args[j]))
              return compare(left.args[1 - i], right.args[1 - j], depth - 1);
        return std::nullopt;
      case Op::imul:
      case Op::shl:
        if (!is_same(left.args[1], right.args[1])) return std::nullopt;
        return compare(left.args[0], right.args[0], depth - 1);
      case Op::sext:
      case Op::zext:
        return compare(left.args[0], right.args[0], depth - 1);
      default:
        return std::nullopt;
    }
  }

  /// The sign of what `sum` adds to `value`, if it does.
  std::optional<std::int64_t> added_to(const ir::Inst& sum, Value value) const {
    if (sum.op != Op::iadd) return std::nullopt;
    for (const std::size_t i : {0u, 1u})
      if (sum.args[i] == value) return constant(sum.args[1 - i]).value_or(1) < 0 ? -1 : 1;
    return std::nullopt;
  }

  ir::Function& function_;
};

}  // namespace

void order_loads(FunctionBuilder& builder) {
  Sorter sorter(builder.function);
  for (ir::Block& block : builder.function.blocks) sorter.run(block);
}

}  // namespace quern::cpu::lower
