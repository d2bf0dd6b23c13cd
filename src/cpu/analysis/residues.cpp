// SPDX-License-Identifier: Apache-2.0
#include "cpu/analysis/residues.hpp"

#include <algorithm>
#include <bit>
#include <optional>

namespace quern::cpu::analysis {
namespace {

/// nullopt: not reached yet (the top of the lattice).
using Known = std::optional<Residue>;

Residue residue(std::uint64_t value, std::uint32_t modulus, std::uint32_t param = ir::kNone) {
  const std::uint32_t kept = std::clamp<std::uint32_t>(modulus, 1, kMaxModulus);
  if (kept == 1) return {};
  return {kept, static_cast<std::uint32_t>(value & (kept - 1)), param};
}

Residue number(std::uint64_t value) { return residue(value, kMaxModulus); }

/// The largest power of two that divides `value`, up to kMaxModulus.
std::uint32_t divisor(std::uint32_t value) {
  return value == 0 ? kMaxModulus : std::uint32_t{1} << std::countr_zero(value);
}

/// The residue of a value that is either `a` or `b`.
Residue join(const Residue& a, const Residue& b) {
  if (a.param != b.param) return {};
  return residue(a.value, std::min({a.modulus, b.modulus, divisor(a.value ^ b.value)}), a.param);
}

Residue sum(const Residue& a, const Residue& b, bool subtract) {
  if (b.param != ir::kNone && (subtract || a.param != ir::kNone)) return {};
  const std::uint32_t value = subtract ? a.value - b.value : a.value + b.value;
  return residue(value, std::min(a.modulus, b.modulus), a.param != ir::kNone ? a.param : b.param);
}

/// Computes (a + i * m) * (b + j * n). An operand that is relative to a parameter counts as unknown.
Residue product(Residue a, Residue b) {
  if (a.param != ir::kNone) a = {};
  if (b.param != ir::kNone) b = {};
  return residue(a.value * b.value, std::min({a.modulus * b.modulus, divisor(a.value) * b.modulus,
                                              divisor(b.value) * a.modulus}));
}

/// The known low bits of the result.
Residue bitwise(ir::Op op, const Residue& a, const Residue& b) {
  const auto bit_of = [](const Residue& from, std::uint32_t bit) -> std::optional<bool> {
    if (from.param != ir::kNone || bit >= from.modulus) return std::nullopt;
    return (from.value & bit) != 0;
  };
  std::uint32_t value = 0;
  std::uint32_t modulus = 1;
  for (; modulus < kMaxModulus; modulus *= 2) {
    const std::optional<bool> x = bit_of(a, modulus);
    const std::optional<bool> y = bit_of(b, modulus);
    const bool decides = op == ir::Op::or_;  // an operand bit of this value determines the bit of the result
    if (op != ir::Op::xor_ && (x == decides || y == decides)) {
      value |= decides ? modulus : 0;
    } else if (x && y) {
      const bool set = op == ir::Op::xor_ ? *x != *y : !decides;
      value |= set ? modulus : 0;
    } else {
      break;
    }
  }
  return residue(value, modulus);
}

class Finder {
 public:
  Finder(const ir::Module& module, const ir::Function& function, const Analysis& analysis)
      : module_(module), function_(function), analysis_(analysis), known_(function.insts.size()) {}

  std::vector<Residue> run() {
    // Iterations after the first one are needed for loops. A residue becomes less precise only a few times.
    for (bool changed = true; changed;) {
      changed = false;
      for (const ir::BlockId block : analysis_.order)
        for (const ir::Value value : function_.blocks[block].insts) changed |= update(value);
    }
    std::vector<Residue> residues;
    for (const Known& known : known_) residues.push_back(known.value_or(Residue{}));
    return residues;
  }

 private:
  bool update(ir::Value value) {
    Known made = evaluate(value);
    if (made && known_[value]) made = join(*known_[value], *made);
    if (!made || made == known_[value]) return false;
    known_[value] = made;
    return true;
  }

  Known evaluate(ir::Value value) const {
    const ir::Inst& inst = function_[value];
    const LanePattern& pattern = analysis_.patterns[value];
    if (inst.type == ir::Type::none || inst.type == ir::Type::i1 || ir::is_float(inst.type)) return Residue{};
    if (pattern.kind == LanePatternKind::uniform && pattern.constant) return number(*pattern.constant);
    switch (inst.op) {
      case ir::Op::constant:
      case ir::Op::local_address:
        return number(inst.imm);
      case ir::Op::undef:
        return number(0);
      case ir::Op::param:
        return residue(0, kMaxModulus, static_cast<std::uint32_t>(inst.imm));
      case ir::Op::symbol:
        return symbol(module_.symbols[inst.imm]);
      default:
        return combine(inst);
    }
  }

  static Residue symbol(const ir::Symbol& symbol) {
    return symbol.space == ir::Space::shared ? number(symbol.shared_offset) : residue(0, symbol.align);
  }

  /// nullopt while an operand that determines the result is not reached.
  Known combine(const ir::Inst& inst) const {
    const auto arg = [&](std::size_t which) { return known_[inst.args[which]]; };
    const auto both = [&](auto&& function, std::size_t first = 0) -> Known {
      const Known a = arg(first), b = arg(first + 1);
      return a && b ? Known(function(*a, *b)) : std::nullopt;
    };
    switch (inst.op) {
      case ir::Op::phi:
        return phi(inst);
      case ir::Op::select:
        return both(join, 1);
      case ir::Op::smin:
      case ir::Op::smax:
      case ir::Op::umin:
      case ir::Op::umax:
        return both(join);
      case ir::Op::iadd:
        return both([](const Residue& a, const Residue& b) { return sum(a, b, false); });
      case ir::Op::isub:
        return both([](const Residue& a, const Residue& b) { return sum(a, b, true); });
      case ir::Op::imul:
        return both(product);
      case ir::Op::and_:
      case ir::Op::or_:
      case ir::Op::xor_:
        return both([&](const Residue& a, const Residue& b) { return bitwise(inst.op, a, b); });
      case ir::Op::shl:
        return shifted(inst);
      case ir::Op::trunc:
      case ir::Op::zext:
      case ir::Op::sext:
        return function_[inst.args[0]].type == ir::Type::i1 ? Residue{} : arg(0);
      case ir::Op::to_generic:
      case ir::Op::from_generic:
        return arg(0);  // every space and every lane's local memory begin at a multiple of the modulus
      default:
        return Residue{};
    }
  }

  Known phi(const ir::Inst& inst) const {
    Known joined;
    for (const ir::Value operand : inst.args) {
      const Known& known = known_[operand];
      if (known) joined = joined ? join(*joined, *known) : *known;
    }
    return joined;
  }

  Known shifted(const ir::Inst& inst) const {
    const Known& what = known_[inst.args[0]];
    const LanePattern& by = analysis_.patterns[inst.args[1]];
    if (!what) return std::nullopt;
    if (by.kind != LanePatternKind::uniform || !by.constant) return Residue{};
    if (*by.constant >= kMaxModulus) return number(0);
    return product(*what, number(std::uint64_t{1} << *by.constant));
  }

  const ir::Module& module_;
  const ir::Function& function_;
  const Analysis& analysis_;
  std::vector<Known> known_;
};

}  // namespace

std::vector<Residue> find_residues(const ir::Module& module, const ir::Function& function,
                                   const Analysis& analysis) {
  return Finder(module, function, analysis).run();
}

}  // namespace quern::cpu::analysis
