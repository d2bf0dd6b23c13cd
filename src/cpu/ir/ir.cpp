// SPDX-License-Identifier: Apache-2.0
#include "cpu/ir/ir.hpp"

#include <algorithm>

namespace quern::cpu::ir {
namespace {

struct TypeRow {
  std::string_view name;
  std::uint32_t bits;
  bool is_float;
};
constexpr TypeRow kTypes[] = {
#define QUERN_IR_TYPE(name, bits, is_float) {#name, bits, is_float},
#include "cpu/ir/types.def"
};

struct OpRow {
  std::string_view name;
  std::string_view types;
  std::string_view traits;
};
constexpr OpRow kOps[] = {
#define QUERN_IR_OP(name, types, traits, folded, meaning) {#name, types, traits},
#include "cpu/ir/ops.def"
};

constexpr std::string_view kWidthRelations = "<>=";

/// The column `types` of an operation.
struct TypePatterns {
  /// compares the width of the instruction with that of its first operand; ' ': any widths
  char relation = ' ';
  char result = '?';
  std::string_view operands;  ///< one letter for each operand, separated by blanks
  bool repeats = false;       ///< the last operand may occur any number of times

  constexpr std::size_t count() const { return (operands.size() + 1) / 2; }
  constexpr char operand(std::size_t index) const { return operands[2 * std::min(index, count() - 1)]; }
};

constexpr TypePatterns patterns_of(std::string_view types) {
  TypePatterns patterns;
  if (kWidthRelations.find(types.front()) != std::string_view::npos) {
    patterns.relation = types.front();
    types.remove_prefix(1);
  }
  patterns.result = types.front();
  patterns.repeats = types.ends_with('*');
  if (patterns.repeats) types.remove_suffix(1);
  if (types.size() > 2) patterns.operands = types.substr(2);
  return patterns;
}

constexpr bool is_well_formed(const OpRow& row) {
  constexpr std::string_view kLetters = "ifx?148";
  const TypePatterns patterns = patterns_of(row.types);
  if (patterns.result != '-' && kLetters.find(patterns.result) == std::string_view::npos) return false;
  if (patterns.relation != ' ' && patterns.count() == 0) return false;
  for (std::size_t i = 0; i < patterns.count(); ++i) {
    const char letter = patterns.operand(i);
    if (letter != 't' && !(letter == 's' && i > 0) && kLetters.find(letter) == std::string_view::npos)
      return false;
  }
  return patterns.count() == 0 ? !patterns.repeats : patterns.operands.size() % 2 == 1;
}
static_assert(std::ranges::all_of(kOps, is_well_formed), "a row of ops.def has types that are no patterns");

bool width_fits(char relation, std::uint32_t bits, std::uint32_t first_bits) {
  switch (relation) {
    case '<':
      return bits < first_bits;
    case '>':
      return bits > first_bits;
    case '=':
      return bits == first_bits;
    default:
      return true;
  }
}

bool matches(char letter, Type type, Type result, Type first) {
  switch (letter) {
    case 'i':
      return type != Type::none && !is_float(type);
    case 'f':
      return is_float(type);
    case 'x':
      return type != Type::none;
    case '-':
      return type == Type::none;
    case '1':
      return type == Type::i1;
    case '4':
      return type == Type::i32;
    case '8':
      return type == Type::i64;
    case 't':
      return type == result;
    case 's':
      return type == first;
    default:
      return true;
  }
}

constexpr std::string_view kSpecials[] = {"tid.x",
                                          "tid.y",
                                          "tid.z",
                                          "ntid.x",
                                          "ntid.y",
                                          "ntid.z",
                                          "ctaid.x",
                                          "ctaid.y",
                                          "ctaid.z",
                                          "nctaid.x",
                                          "nctaid.y",
                                          "nctaid.z",
                                          "laneid",
                                          "warpid",
                                          "nwarpid",
                                          "smid",
                                          "nsmid",
                                          "gridid",
                                          "lanemask_eq",
                                          "lanemask_le",
                                          "lanemask_lt",
                                          "lanemask_ge",
                                          "lanemask_gt",
                                          "clock",
                                          "clock_hi",
                                          "clock64",
                                          "globaltimer",
                                          "globaltimer_lo",
                                          "globaltimer_hi",
                                          "dynamic_smem_size",
                                          "total_smem_size",
                                          "grid_workspace_lo",
                                          "grid_workspace_hi"};

}  // namespace

std::uint32_t bit_size(Type type) noexcept { return kTypes[static_cast<std::size_t>(type)].bits; }
std::uint32_t byte_size(Type type) noexcept { return (bit_size(type) + 7) / 8; }
bool is_float(Type type) noexcept { return kTypes[static_cast<std::size_t>(type)].is_float; }
std::string_view name(Type type) noexcept { return kTypes[static_cast<std::size_t>(type)].name; }

std::string_view name(Op op) noexcept {
  const std::string_view text = kOps[static_cast<std::size_t>(op)].name;
  return text.ends_with('_') ? text.substr(0, text.size() - 1) : text;
}
bool has_trait(Op op, char trait) noexcept {
  return kOps[static_cast<std::size_t>(op)].traits.find(trait) != std::string_view::npos;
}
int arity(Op op) noexcept {
  const TypePatterns patterns = patterns_of(kOps[static_cast<std::size_t>(op)].types);
  return patterns.repeats ? -1 : static_cast<int>(patterns.count());
}
bool types_fit(Op op, Type type, std::span<const Type> operands) noexcept {
  const TypePatterns patterns = patterns_of(kOps[static_cast<std::size_t>(op)].types);
  const std::size_t least = patterns.count() - (patterns.repeats ? 1 : 0);
  if (operands.size() < least || (operands.size() > least && !patterns.repeats)) return false;
  const Type first = operands.empty() ? Type::none : operands[0];
  if (!matches(patterns.result, type, type, first)) return false;
  if (!width_fits(patterns.relation, bit_size(type), bit_size(first))) return false;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!matches(patterns.operand(i), operands[i], type, first)) return false;
  }
  return true;
}
bool is_barrier(Op op) noexcept {
  return op == Op::barrier || op == Op::barrier_arrive || op == Op::barrier_reduce;
}
bool syncs_lanes(const Inst& inst) noexcept {
  return has_trait(inst.op, 'c') && !is_barrier(inst.op) && inst.op != Op::activemask && !inst.attr.together;
}
std::string_view name(Special which) noexcept { return kSpecials[static_cast<std::size_t>(which)]; }

std::int64_t sign_extend(std::uint64_t value, std::uint32_t bits) noexcept {
  if (bits == 0 || bits >= 64) return static_cast<std::int64_t>(value);
  return static_cast<std::int64_t>(value << (64 - bits)) >> (64 - bits);
}

bool holds(Icmp how, std::uint64_t a, std::uint64_t b, std::uint32_t bits) noexcept {
  const std::int64_t sa = sign_extend(a, bits);
  const std::int64_t sb = sign_extend(b, bits);
  switch (how) {
    case Icmp::eq:
      return a == b;
    case Icmp::ne:
      return a != b;
    case Icmp::slt:
      return sa < sb;
    case Icmp::sle:
      return sa <= sb;
    case Icmp::sgt:
      return sa > sb;
    case Icmp::sge:
      return sa >= sb;
    case Icmp::ult:
      return a < b;
    case Icmp::ule:
      return a <= b;
    case Icmp::ugt:
      return a > b;
    case Icmp::uge:
      return a >= b;
  }
  return false;
}

bool is_equality(Icmp how) noexcept { return how == Icmp::eq || how == Icmp::ne; }
bool is_signed(Icmp how) noexcept { return how >= Icmp::slt && how <= Icmp::sge; }

Icmp swapped(Icmp how) noexcept {
  switch (how) {
    case Icmp::slt:
      return Icmp::sgt;
    case Icmp::sle:
      return Icmp::sge;
    case Icmp::sgt:
      return Icmp::slt;
    case Icmp::sge:
      return Icmp::sle;
    case Icmp::ult:
      return Icmp::ugt;
    case Icmp::ule:
      return Icmp::uge;
    case Icmp::ugt:
      return Icmp::ult;
    case Icmp::uge:
      return Icmp::ule;
    default:
      return how;
  }
}

bool same_line(const Function& function, std::uint32_t a, std::uint32_t b) {
  if (a == b) return true;
  if (a == kNone || b == kNone) return false;
  const Location &one = function.locations[a], &other = function.locations[b];
  return one.file == other.file && one.line == other.line;
}

bool parts_and_joins(const Function& function, BlockId block) {
  const std::vector<BlockId>& succs = function.blocks[block].succs;
  if (succs.size() != 2 || succs[0] == succs[1]) return false;
  const std::vector<BlockId>& next = function.blocks[succs[0]].succs;
  return next.size() == 1 && next[0] != block && std::ranges::all_of(succs, [&](BlockId side) {
           return function.blocks[side].preds.size() == 1 && function.blocks[side].succs == next;
         });
}

}  // namespace quern::cpu::ir
