// SPDX-License-Identifier: Apache-2.0
#include "cpu/ir/ir.hpp"

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
  int arity;
  std::string_view traits;
};
constexpr OpRow kOps[] = {
#define QUERN_IR_OP(name, arity, traits, meaning) {#name, arity, traits},
#include "cpu/ir/ops.def"
};

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
int arity(Op op) noexcept { return kOps[static_cast<std::size_t>(op)].arity; }
bool is_barrier(Op op) noexcept {
  return op == Op::barrier || op == Op::barrier_arrive || op == Op::barrier_reduce;
}
bool meets_lanes(Op op) noexcept { return has_trait(op, 'c') && !is_barrier(op) && op != Op::activemask; }
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

}  // namespace quern::cpu::ir
