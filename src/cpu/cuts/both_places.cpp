// SPDX-License-Identifier: Apache-2.0
// const double *row = table + (quadrant & 1 ? 8 : 0);
// s = row[0] * x + row[1];
//
// reads one of two places for each element. Lanes of one warp read both, so each element would be a gather.
// Instead both places are loaded once for all lanes, and each lane chooses: two broadcasts and a blend.
// NVRTC's sin, cos and tan in f64 read their coefficients so.
//
// Both places lie in a variable of the module that nobody writes while the kernel runs, so a load that no
// thread asked for cannot be seen.
#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <vector>

#include "cpu/cuts/passes.hpp"
#include "cpu/ir/fold.hpp"

namespace quern::cpu::cuts {
namespace {

using ir::Op;
using ir::Value;

/// Operations between the bit that chooses and the address.
constexpr unsigned kMaxDepth = 8;

/// Describes the two numbers that a value may be: the sum of a symbol's address, or 0, and one of `numbers`.
struct Places {
  Value symbol = ir::kNone;
  Value test = ir::kNone;  ///< of any type: the second number if it is not 0; kNone: they are equal
  std::array<std::uint64_t, 2> numbers{};  ///< of the value's type
};

class Loader {
 public:
  Loader(ir::Function& function, const ir::Module& module) : function_(function), module_(module) {}

  void run() {
    // The blocks that are visited get no new blocks, and no load that is inserted is visited.
    for (ir::BlockId block = 0; block < function_.blocks.size(); ++block)
      for (const Value value : std::vector<Value>(function_.blocks[block].insts))
        if (function_[value].op == Op::load) load_both(value);
  }

 private:
  void load_both(Value load) {
    if (!may_be_read_by_all(function_[load].attr)) return;
    const std::optional<Places> found = find(function_[load].args[0], kMaxDepth);
    if (!found || found->symbol == ir::kNone || found->test == ir::kNone || !lie_in_symbol(load, *found))
      return;
    std::array<Value, 2> loads{};
    for (const unsigned which : {0u, 1u}) {
      ir::Inst inst = function_[load];
      inst.args = {found->symbol};
      inst.imm += found->numbers[which];
      loads[which] = insert(load, std::move(inst));
    }
    const Value condition = is_not_zero(load, found->test);
    if (function_[load].attr.count == 1) return choose(load, condition, loads);
    for (const Value extract : extracts_of(load)) {
      std::array<Value, 2> elements{};
      for (const unsigned which : {0u, 1u}) {
        ir::Inst inst = function_[extract];
        inst.args = {loads[which]};
        elements[which] = insert(extract, std::move(inst));
      }
      choose(extract, condition, elements);
    }
    std::erase(function_.blocks[function_[load].block].insts, load);
  }

  static bool may_be_read_by_all(const ir::Attributes& attr) {
    const bool of_module = attr.space == ir::Space::global || attr.space == ir::Space::constant;
    return of_module && attr.invariant && !ir::is_ordered(attr);
  }

  bool lie_in_symbol(Value load, const Places& places) const {
    const ir::Inst& inst = function_[load];
    const ir::Symbol& symbol = module_.symbols[function_[places.symbol].imm];
    const std::uint64_t bytes = std::uint64_t{ir::byte_size(inst.type)} * inst.attr.count;
    return symbol.space == inst.attr.space && symbol.align % bytes == 0 &&
           std::ranges::all_of(places.numbers, [&](std::uint64_t number) {
             const std::uint64_t offset = number + inst.imm;
             return offset % bytes == 0 && bytes <= symbol.size && offset <= symbol.size - bytes;
           });
  }

  std::optional<Places> find(Value value, unsigned depth) const {
    const ir::Inst& inst = function_[value];
    if (inst.op == Op::symbol) return Places{.symbol = value};
    if (inst.op == Op::constant) return Places{.numbers = {inst.imm, inst.imm}};
    if (inst.op == Op::icmp || inst.op == Op::fcmp) return Places{.test = value, .numbers = {0, 1}};
    if (depth == 0 || inst.op == Op::phi || inst.args.empty() || !ir::has_trait(inst.op, 'p'))
      return std::nullopt;
    if (const auto bit = single_bit(inst)) return Places{.test = value, .numbers = {0, *bit}};
    std::vector<Places> operands;
    for (const Value arg : inst.args) {
      const auto found = find(arg, depth - 1);
      if (!found) return std::nullopt;
      operands.push_back(*found);
    }
    return combine(inst, operands);
  }

  /// The only bit that may be set in the result: x & 8.
  std::optional<std::uint64_t> single_bit(const ir::Inst& inst) const {
    if (inst.op != Op::and_) return std::nullopt;
    for (const Value arg : inst.args)
      if (function_[arg].op == Op::constant && std::has_single_bit(function_[arg].imm))
        return function_[arg].imm;
    return std::nullopt;
  }

  std::optional<Places> combine(const ir::Inst& inst, const std::vector<Places>& operands) const {
    Places result;
    for (const Places& operand : operands) {
      if (operand.symbol != ir::kNone) {
        if (inst.op != Op::iadd || result.symbol != ir::kNone) return std::nullopt;
        result.symbol = operand.symbol;
      }
      if (operand.test == ir::kNone) continue;
      if (result.test != ir::kNone && result.test != operand.test) return std::nullopt;
      result.test = operand.test;
    }
    const std::uint32_t width = ir::bit_size(function_[inst.args[inst.op == Op::select ? 1 : 0]].type);
    for (const unsigned which : {0u, 1u}) {
      std::vector<std::uint64_t> args;
      for (const Places& operand : operands) args.push_back(operand.numbers[which]);
      const std::optional<std::uint64_t> folded = ir::fold(inst, width, args);
      if (!folded) return std::nullopt;
      result.numbers[which] = *folded;
    }
    return result;
  }

  /// Inserts an instruction directly before `before`.
  Value insert(Value before, ir::Inst inst) {
    const auto made = static_cast<Value>(function_.insts.size());
    inst.block = function_[before].block;
    inst.location = function_[before].location;
    std::vector<Value>& insts = function_.blocks[inst.block].insts;
    insts.insert(std::ranges::find(insts, before), made);
    function_.insts.push_back(std::move(inst));
    return made;
  }

  Value is_not_zero(Value before, Value test) {
    const ir::Type type = function_[test].type;
    if (type == ir::Type::i1) return test;
    const Value zero = insert(before, {.op = Op::constant, .type = type});
    ir::Inst inst{.op = Op::icmp, .type = ir::Type::i1, .args = {test, zero}};
    inst.attr.icmp = ir::Icmp::ne;
    return insert(before, std::move(inst));
  }

  /// Makes `value` a choice.
  void choose(Value value, Value condition, const std::array<Value, 2>& places) {
    ir::Inst& inst = function_[value];
    inst.op = Op::select;
    inst.attr = {};
    inst.imm = 0;
    inst.args = {condition, places[1], places[0]};
  }

  std::vector<Value> extracts_of(Value load) const {
    std::vector<Value> found;
    for (Value value = 0; value < function_.insts.size(); ++value)
      if (function_[value].op == Op::extract && function_[value].args[0] == load) found.push_back(value);
    return found;
  }

  ir::Function& function_;
  const ir::Module& module_;
};

}  // namespace

void load_both_places(ir::Function& function, Plan& plan, const Specialisation&) {
  Loader(function, *plan.module).run();
}

}  // namespace quern::cpu::cuts
