// SPDX-License-Identifier: Apache-2.0
// Addresses of variables, and special registers.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "cpu/abi/warp_size.hpp"
#include "cpu/lower/translate/operands.hpp"

namespace quern::cpu::lower {
namespace {

using ir::Op;
using ir::Value;

struct SpecialRow {
  ptx::SpecialRegister ptx;
  ir::Special ir;
};

constexpr SpecialRow kSpecials[] = {
#define QUERN_SAME(name) {ptx::SpecialRegister::name, ir::Special::name},
    {ptx::SpecialRegister::envreg1, ir::Special::grid_workspace_hi},
    {ptx::SpecialRegister::envreg2, ir::Special::grid_workspace_lo},
    {ptx::SpecialRegister::aggr_smem_size, ir::Special::total_smem_size},
    {ptx::SpecialRegister::clusterid_x, ir::Special::ctaid_x},
    {ptx::SpecialRegister::clusterid_y, ir::Special::ctaid_y},
    {ptx::SpecialRegister::clusterid_z, ir::Special::ctaid_z},
    {ptx::SpecialRegister::nclusterid_x, ir::Special::nctaid_x},
    {ptx::SpecialRegister::nclusterid_y, ir::Special::nctaid_y},
    {ptx::SpecialRegister::nclusterid_z, ir::Special::nctaid_z},
    QUERN_SAME(tid_x) QUERN_SAME(tid_y) QUERN_SAME(tid_z) QUERN_SAME(ntid_x) QUERN_SAME(ntid_y)
        QUERN_SAME(ntid_z) QUERN_SAME(ctaid_x) QUERN_SAME(ctaid_y) QUERN_SAME(ctaid_z) QUERN_SAME(nctaid_x)
            QUERN_SAME(nctaid_y) QUERN_SAME(nctaid_z) QUERN_SAME(laneid) QUERN_SAME(warpid)
                QUERN_SAME(nwarpid) QUERN_SAME(smid) QUERN_SAME(nsmid) QUERN_SAME(gridid)
                    QUERN_SAME(lanemask_eq) QUERN_SAME(lanemask_le) QUERN_SAME(lanemask_lt)
                        QUERN_SAME(lanemask_ge) QUERN_SAME(lanemask_gt) QUERN_SAME(clock) QUERN_SAME(clock_hi)
                            QUERN_SAME(clock64) QUERN_SAME(globaltimer) QUERN_SAME(globaltimer_lo)
                                QUERN_SAME(globaltimer_hi) QUERN_SAME(dynamic_smem_size)
                                    QUERN_SAME(total_smem_size)
#undef QUERN_SAME
};

struct FixedRow {
  ptx::SpecialRegister ptx;
  std::uint64_t value;
};

// "Special Registers": the fourth component of %tid and %ctaid is 0, that of %ntid and %nctaid is unused
// (here 1, as for a dimension). Without clusters every block is a cluster by itself.
constexpr FixedRow kFixed[] = {
    {ptx::SpecialRegister::tid_w, 0},
    {ptx::SpecialRegister::ntid_w, 1},
    {ptx::SpecialRegister::ctaid_w, 0},
    {ptx::SpecialRegister::nctaid_w, 1},
    {ptx::SpecialRegister::WARP_SZ, kWarpSize},
    {ptx::SpecialRegister::is_explicit_cluster, 0},
    {ptx::SpecialRegister::clusterid_w, 0},
    {ptx::SpecialRegister::nclusterid_w, 1},
    {ptx::SpecialRegister::cluster_ctaid_x, 0},
    {ptx::SpecialRegister::cluster_ctaid_y, 0},
    {ptx::SpecialRegister::cluster_ctaid_z, 0},
    {ptx::SpecialRegister::cluster_ctaid_w, 0},
    {ptx::SpecialRegister::cluster_nctaid_x, 1},
    {ptx::SpecialRegister::cluster_nctaid_y, 1},
    {ptx::SpecialRegister::cluster_nctaid_z, 1},
    {ptx::SpecialRegister::cluster_nctaid_w, 1},
    {ptx::SpecialRegister::cluster_ctarank, 0},
    {ptx::SpecialRegister::cluster_nctarank, 1},
    {ptx::SpecialRegister::current_graph_exec, 0},
};

bool reads_a_clock(ir::Special which) {
  constexpr ir::Special kClocks[] = {ir::Special::clock,          ir::Special::clock_hi,
                                     ir::Special::clock64,        ir::Special::globaltimer,
                                     ir::Special::globaltimer_lo, ir::Special::globaltimer_hi};
  return std::find(std::begin(kClocks), std::end(kClocks), which) != std::end(kClocks);
}

std::optional<std::uint64_t> reserved_shared_register(ptx::SpecialRegister which, std::uint64_t begin) {
  switch (which) {
    case ptx::SpecialRegister::reserved_smem_offset_begin:
    case ptx::SpecialRegister::reserved_smem_offset_0:
      return begin;
    case ptx::SpecialRegister::reserved_smem_offset_1:
      return begin + kReservedSharedBytes / 2;
    case ptx::SpecialRegister::reserved_smem_offset_end:
      return begin + kReservedSharedBytes;
    case ptx::SpecialRegister::reserved_smem_offset_cap:
      return kReservedSharedBytes;
    default:
      return std::nullopt;
  }
}

}  // namespace

Value Operands::read_special(ptx::SpecialRegister which) {
  const ir::Type type = ir_type(ptx::type(which));
  for (const FixedRow& row : kFixed) {
    if (row.ptx == which) return constant(type, row.value);
  }
  for (const SpecialRow& row : kSpecials) {
    if (row.ptx != which) continue;
    const auto imm = static_cast<std::uint64_t>(row.ir);
    // A clock is read at its instruction. Other registers have the same value everywhere in a thread.
    if (reads_a_clock(row.ir))
      return builder().append(block(), {.op = Op::special, .type = type, .imm = imm, .location = location()});
    return builder().nullary(Op::special, type, imm);
  }
  if (const auto fixed = reserved_shared_register(which, program_.reserved_shared_offset))
    return constant(type, *fixed);
  // Performance counters are never configured here, and some registers are only set by a driver for its
  // tools.
  const bool counter = which >= ptx::SpecialRegister::pm0 && which <= ptx::SpecialRegister::pm7_64;
  const bool environment = which >= ptx::SpecialRegister::envreg0 && which <= ptx::SpecialRegister::envreg31;
  if (counter || environment) return constant(type, 0);
  refuse(fmt::format("special register {} is not implemented", ptx::name(which)));
  return builder().nullary(Op::undef, type, 0);
}

Value Operands::function_value(std::uint32_t function) {
  const std::uint32_t definition = program_.definition(function);
  if (definition != ptx::kNoIndex) return constant(ir::Type::i64, ir::function_address(definition));
  refuse(fmt::format("the module has no body for function '{}'", program_.ptx().functions.at(function).name));
  return constant(ir::Type::i64, 0);
}

Value Operands::symbol_address(const ptx::SymbolRef& symbol, std::int64_t offset) {
  const auto bits = static_cast<std::uint64_t>(offset);
  const ptx::Function& function = *frame_->function;
  const ptx::Variable* variable = nullptr;
  switch (symbol.kind) {
    case ptx::SymbolKind::module_variable:
      variable = &program_.ptx().variables.at(symbol.index);
      break;
    case ptx::SymbolKind::function_variable:
      variable = &function.variables.at(symbol.index);
      break;
    case ptx::SymbolKind::parameter:
      if (function.entry)
        return constant(ir::Type::i64, builder().function.params.at(symbol.index).offset + bits);
      if (const ParamArray& array = frame_->parameters.at(symbol.index); array.in_local) {
        return local_address(array.local_offset + bits);
      }
      break;
    case ptx::SymbolKind::function:
      return function_value(symbol.index);
    default:
      break;
  }
  switch (variable == nullptr ? ptx::Space::none : variable->space) {
    // Addresses of shared variables are known here; as constants they are known to every later stage.
    case ptx::Space::shared:
      return constant(ir::Type::i64, program_.shared_offset(*variable) + bits);
    case ptx::Space::local:
      if (symbol.kind == ptx::SymbolKind::function_variable) {
        return local_address(frame_->local_offsets.at(symbol.index) + bits);
      }
      break;
    case ptx::Space::global:
    case ptx::Space::const_: {
      const Value base = builder().nullary(Op::symbol, ir::Type::i64, program_.symbol(symbol.index));
      return emit(Op::iadd, ir::Type::i64, {base, constant(ir::Type::i64, bits)});
    }
    default:
      break;
  }
  refuse(variable == nullptr ? "the address of this symbol is not implemented"
                             : ".local variables outside of functions are not implemented");
  return constant(ir::Type::i64, 0);
}

}  // namespace quern::cpu::lower
