// SPDX-License-Identifier: Apache-2.0
// Computes 64-bit integers of which only the low 32 bits are used in 32 bits. Python's integers have 64 bits
// whatever they hold, and NVRTC keeps them:
//
//   b = (a << 13) & 0xffffe000;  c = b ^ (a & 0xffffffff);  out = trunc(c ^ (c >> 17))
//
// A warp's vector of 64-bit numbers takes twice the registers, and twice the instructions.
#include <algorithm>
#include <utility>
#include <vector>

#include "cpu/lower/ssa/passes.hpp"

namespace quern::cpu::lower {
namespace {

using ir::BlockId;
using ir::Op;
using ir::Type;
using ir::Value;

constexpr std::uint64_t kLow = low_mask(32);

class Narrower {
 public:
  explicit Narrower(FunctionBuilder& builder)
      : builder_(builder), function_(builder.function), order_(order_blocks(builder.function)) {}

  /// Returns whether it changed anything.
  bool run() {
    if (!find_candidates()) return false;
    find_demands();
    if (!choose()) return false;
    rewrite();
    return true;
  }

 private:
  enum class Bits : std::uint8_t { none, low, all };

  template <class Visit>
  void for_each_inst(const Visit& visit) const {
    for (const BlockId block : order_.blocks)
      for (const Value value : function_.blocks[block].insts) visit(value);
  }

  /// True for operations whose low 32 bits follow from the low 32 bits of their 64-bit operands.
  static bool has_low_word(Op op) {
    switch (op) {
      case Op::iadd:
      case Op::isub:
      case Op::imul:
      case Op::and_:
      case Op::or_:
      case Op::xor_:
      case Op::shl:
      case Op::select:
      case Op::phi:
        return true;
      default:
        return false;
    }
  }

  bool is_low_constant(Value value) const {
    return function_[value].op == Op::constant && (function_[value].imm & ~kLow) == 0;
  }

  /// Finds the values whose high 32 bits are 0, and returns whether any could be computed in 32 bits.
  bool find_candidates() {
    bool any = false;
    high_zero_.assign(function_.insts.size(), false);
    const auto zero = [&](Value value) { return high_zero_[value] || is_low_constant(value); };
    for_each_inst([&](Value value) {
      const ir::Inst& inst = function_[value];
      if (inst.type != Type::i64) return;
      any |= has_low_word(inst.op);
      switch (inst.op) {
        case Op::zext:
          high_zero_[value] = true;
          break;
        case Op::and_:
          high_zero_[value] = zero(inst.args[0]) || zero(inst.args[1]);
          break;
        case Op::or_:
        case Op::xor_:
          high_zero_[value] = zero(inst.args[0]) && zero(inst.args[1]);
          break;
        case Op::lshr:
          high_zero_[value] = zero(inst.args[0]);
          break;
        case Op::select:
          high_zero_[value] = zero(inst.args[1]) && zero(inst.args[2]);
          break;
        default:
          break;
      }
    });
    return any;
  }

  /// The bits of its operand `arg` that `user` reads, of which `demanded` are read.
  Bits read_bits(const ir::Inst& user, std::size_t arg, Bits demanded) const {
    if (user.op == Op::trunc) return Bits::low;
    if (user.op == Op::lshr && arg == 0 && high_zero_[user.args[0]]) return Bits::low;
    if (user.op == Op::and_ && is_low_constant(user.args[1 - arg])) return Bits::low;
    return user.type == Type::i64 && has_low_word(user.op) ? demanded : Bits::all;
  }

  void find_demands() {
    demands_.assign(function_.insts.size(), Bits::none);
    std::vector<Value> open;
    const auto read = [&](Value user) {
      const ir::Inst& inst = function_[user];
      for (std::size_t arg = 0; arg < inst.args.size(); ++arg) {
        const Value of = inst.args[arg];
        if (function_[of].type != Type::i64) continue;
        const Bits bits = read_bits(inst, arg, demands_[user]);
        if (bits <= demands_[of]) continue;
        demands_[of] = bits;
        open.push_back(of);
      }
    };
    for_each_inst([&](Value value) {
      if (function_[value].type != Type::i64 || !has_low_word(function_[value].op)) read(value);
    });
    while (!open.empty()) {
      const Value value = open.back();
      open.pop_back();
      if (has_low_word(function_[value].op)) read(value);
    }
  }

  bool may_narrow(Value value) const {
    const ir::Inst& inst = function_[value];
    return inst.type == Type::i64 && demands_[value] == Bits::low &&
           (has_low_word(inst.op) || (inst.op == Op::lshr && high_zero_[inst.args[0]]));
  }

  /// True if the low word of `value` needs no instruction.
  bool has_free_word(Value value) const {
    const ir::Inst& inst = function_[value];
    return narrow_[value] || inst.op == Op::constant || inst.op == Op::undef ||
           ((inst.op == Op::zext || inst.op == Op::sext) && function_[inst.args[0]].type == Type::i32);
  }

  /// Chooses the values that gain by it: most of their operands have a low word.
  bool choose() {
    narrow_.assign(function_.insts.size(), false);
    std::vector<Value> chosen;
    for_each_inst([&](Value value) {
      if (!may_narrow(value)) return;
      narrow_[value] = true;
      chosen.push_back(value);
    });
    for (bool changed = true; changed;) {
      changed = std::erase_if(chosen, [&](Value value) {
                  const ir::Inst& inst = function_[value];
                  const auto costs = [&](Value arg) {
                    return function_[arg].type == Type::i64 && !has_free_word(arg);
                  };
                  if (std::ranges::count_if(inst.args, costs) <= 1) return false;
                  narrow_[value] = false;
                  return true;
                }) != 0;
    }
    return !chosen.empty();
  }

  // --- rewriting

  Value add_behind(Value value, ir::Inst inst) {
    inst.location = function_[value].location;
    const Value made = builder_.append(ir::kNone, std::move(inst));
    const BlockId block =
        function_[value].block;  // ir::kNone: number_all places it at the start of the entry
    function_[made].block = block == ir::kNone ? 0 : block;
    behind_.resize(function_.insts.size());
    behind_[value].push_back(made);
    return made;
  }

  /// The low word of an operand.
  Value low_word(Value value) {
    if (narrow_[value]) return value;
    const ir::Inst inst = function_[value];
    if (inst.op == Op::constant) return builder_.constant(Type::i32, inst.imm & kLow);
    if (inst.op == Op::undef) return builder_.nullary(Op::undef, Type::i32, 0);
    if (has_free_word(value)) return inst.args[0];
    if (words_[value] == ir::kNone)
      words_[value] = add_behind(value, {.op = Op::trunc, .type = Type::i32, .args = {value}});
    return words_[value];
  }

  /// A narrow value as its other readers expect it: they read its low bits, or its high ones are 0.
  Value widened(Value value) {
    if (words_[value] == ir::kNone)
      words_[value] = add_behind(value, {.op = Op::zext, .type = Type::i64, .args = {value}});
    return words_[value];
  }

  void rewrite() {
    const std::size_t count = function_.insts.size();
    words_.assign(count, ir::kNone);
    std::vector<Value> order;
    for_each_inst([&](Value value) { order.push_back(value); });
    for (const Value value : order) {
      const bool is_narrow = narrow_[value];
      for (std::size_t i = 0; i < function_[value].args.size(); ++i) {
        const Value arg = function_[value].args[i];
        if (function_[arg].type != Type::i64 && !narrow_[arg]) continue;
        if (is_narrow)
          function_[value].args[i] = low_word(arg);
        else if (narrow_[arg])
          function_[value].args[i] = widened(arg);
      }
      if (is_narrow) function_[value].type = Type::i32;
    }
    place();
  }

  /// Places the new instructions behind those that they belong to.
  void place() {
    behind_.resize(function_.insts.size());
    for (const BlockId block : order_.blocks) {
      std::vector<Value>& insts = function_.blocks[block].insts;
      std::vector<Value> placed, of_phis;
      if (block == 0)
        for (const Value value : builder_.prologue)
          placed.insert(placed.end(), behind_[value].begin(), behind_[value].end());
      for (const Value value : insts) {
        if (function_[value].op != Op::phi) {
          placed.insert(placed.end(), of_phis.begin(), of_phis.end());
          of_phis.clear();
        }
        placed.push_back(value);
        std::vector<Value>& to = function_[value].op == Op::phi ? of_phis : placed;
        to.insert(to.end(), behind_[value].begin(), behind_[value].end());
      }
      insts = std::move(placed);
    }
  }

  FunctionBuilder& builder_;
  ir::Function& function_;
  Order order_;
  std::vector<bool> high_zero_;             ///< by value
  std::vector<Bits> demands_;               ///< by value: the bits that are read
  std::vector<bool> narrow_;                ///< by value: it is computed in 32 bits
  std::vector<Value> words_;                ///< by value: in the other width
  std::vector<std::vector<Value>> behind_;  ///< by value: new instructions behind it
};

}  // namespace

void narrow_to_low_words(FunctionBuilder& builder) {
  if (Narrower(builder).run()) propagate(builder);
}

}  // namespace quern::cpu::lower
