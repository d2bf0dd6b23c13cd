// SPDX-License-Identifier: Apache-2.0
#include "atomic_check.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "narrow.hpp"

namespace quern::cpu::emit::testing {
namespace {

using ir::AtomicOp;
using ir::Op;
using ir::Space;
using ir::Type;

std::int64_t number(std::uint64_t value, unsigned width) {
  return static_cast<std::int64_t>(value << (64 - width)) >> (64 - width);
}

std::uint64_t apply_real(AtomicOp op, Type type, std::uint64_t old, std::uint64_t operand) {
  const auto value = [&](std::uint64_t bits) {
    return type == Type::f32 ? f32(bits) : type == Type::f64 ? f64(bits) : narrow_value(type, bits);
  };
  const double a = value(old);
  const double b = value(operand);
  if (op == AtomicOp::fmin) return std::isnan(a) || b < a || (a == b && std::signbit(b)) ? operand : old;
  if (op == AtomicOp::fmax) return std::isnan(a) || b > a || (a == b && !std::signbit(b)) ? operand : old;
  if (type == Type::f32) return bits_of(f32(old) + f32(operand));
  return type == Type::f64 ? bits_of(a + b) : narrow_exact(type, Op::fadd, a, b, 0);
}

std::uint64_t apply(AtomicOp op, Type type, std::uint64_t old, std::uint64_t operand, std::uint64_t second) {
  const unsigned width = ir::bit_size(type);
  const std::uint64_t mask = width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
  switch (op) {
    case AtomicOp::add:
      return (old + operand) & mask;
    case AtomicOp::and_:
      return old & operand;
    case AtomicOp::or_:
      return old | operand;
    case AtomicOp::xor_:
      return old ^ operand;
    case AtomicOp::exch:
      return operand;
    case AtomicOp::cas:
      return old == operand ? second : old;
    case AtomicOp::smin:
      return number(operand, width) < number(old, width) ? operand : old;
    case AtomicOp::smax:
      return number(operand, width) > number(old, width) ? operand : old;
    case AtomicOp::umin:
      return std::min(old, operand);
    case AtomicOp::umax:
      return std::max(old, operand);
    case AtomicOp::inc:
      return old >= operand ? 0 : old + 1;
    case AtomicOp::dec:
      return old == 0 || old > operand ? operand : old - 1;
    default:
      return apply_real(op, type, old, operand);
  }
}

std::uint64_t operand_of(const Setting& setting, std::size_t lane) {
  const bool is_real =
      setting.op == AtomicOp::fadd || setting.op == AtomicOp::fmin || setting.op == AtomicOp::fmax;
  const double value = (static_cast<double>(lane * 7 % 32) - 12) * 0.5;
  if (is_real && setting.type == Type::f32) return bits_of(static_cast<float>(value));
  if (is_real && setting.type == Type::f64) return bits_of(value);
  if (is_real) return round_narrow(setting.type, value);
  if (setting.op == AtomicOp::cas || setting.op == AtomicOp::inc || setting.op == AtomicOp::dec)
    return lane % 5 + 3;
  const unsigned width = ir::bit_size(setting.type);
  return (0x9e3779b97f4a7c15u * (lane + 1)) &
         (width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1);
}

/// True if the operation is gathered: not if the lanes have consecutive addresses, which differ from block to
/// block, and all run.
bool needs_window(const Setting& setting, bool full) {
  return setting.consecutive_from.empty() || setting.same_places || !full;
}

/// `from`: the byte of lane 0, if the lanes have consecutive addresses.
std::size_t place_of(const Setting& setting, std::size_t from, std::size_t lane) {
  if (setting.one_address || setting.meet) return 64;
  if (!setting.consecutive_from.empty()) return from + lane * ir::byte_size(setting.type);
  return 64 + lane % 6 * 8;  // some lanes have equal addresses
}

analysis::LanePattern pattern_of_address(const Setting& setting) {
  if (setting.one_address) return uniform();
  if (setting.consecutive_from.empty()) return {.kind = analysis::LanePatternKind::varying};
  analysis::LaneOffsets offsets{};
  for (std::size_t lane = 0; lane < 32; ++lane)
    offsets[lane] = static_cast<std::int64_t>(lane * ir::byte_size(setting.type));
  return affine(offsets);
}

Operation operation_of(const Setting& setting) {
  Operation operation{.op = Op::atomic, .type = setting.type};
  operation.attr = {.space = setting.space, .atomic = setting.op, .unused_result = setting.unused};
  operation.attr.scope = setting.scope;
  operation.attr.gathers = setting.gathered_rounds != 0 ? 1 : 0;
  operation.attr.same_places = setting.same_places;
  operation.inputs = {
      {Type::i64, pattern_of_address(setting)},
      {setting.type,
       setting.one_operand ? uniform() : analysis::LanePattern{.kind = analysis::LanePatternKind::varying}}};
  if (setting.op == AtomicOp::cas) operation.inputs.push_back({setting.type});
  return operation;
}

void check_run(const Setting& setting, const Compiled& code, const Machine& machine, std::uint32_t mask,
               std::size_t from) {
  Memory memory;
  std::vector<Lanes> inputs(code.input_types.size());
  std::array<std::size_t, 32> places{};
  for (std::size_t lane = 0; lane < 32; ++lane) {
    places[lane] = place_of(setting, from, lane);
    inputs[0][lane] =
        places[lane] +
        (setting.space == Space::shared ? 0 : reinterpret_cast<std::uint64_t>(memory.bytes.data()));
    inputs[1][lane] = operand_of(setting, setting.one_operand ? 0 : lane);
    if (setting.op == AtomicOp::cas) inputs[2][lane] = lane % 5 + 4;
  }
  const std::uint64_t start = setting.op == AtomicOp::cas ? 3 : 5;
  for (std::size_t at = 0; at < kBytes; at += 8)
    std::memcpy(memory.bytes.data() + at, &start, ir::byte_size(setting.type));
  Memory expected = memory;
  Lanes old{};
  std::vector<Lanes> got;
  Surroundings around = memory.around();
  for (unsigned round = 0; round < std::max(1u, setting.gathered_rounds); ++round) {
    for (std::size_t lane = 0; lane < 32; ++lane) {
      if ((mask >> lane & 1) == 0) continue;
      old[lane] = read(expected, places[lane], setting.type);
      const std::uint64_t next =
          apply(setting.op, setting.type, old[lane], inputs[1][lane], inputs.back()[lane]);
      std::memcpy(expected.bytes.data() + places[lane], &next, ir::byte_size(setting.type));
    }
    got = code.run(inputs, mask, around);
  }
  // The first round opens the window, and the later ones are gathered.
  const unsigned rounds = setting.gathered_rounds;
  if (rounds != 0 && needs_window(setting, machine.full)) CHECK(around.worker.pending[0].hits == rounds - 1);
  apply_all_pending(around.worker);
  bool good = memory.bytes == expected.bytes;
  for (std::size_t lane = 0; lane < 32 && !setting.unused; ++lane)
    good = good && ((mask >> lane & 1) == 0 || got[0][lane] == old[lane]);
  CHECK_MESSAGE(good, "op ", static_cast<int>(setting.op), " ", ir::name(setting.type), " ",
                name_of(machine.isa), machine.full ? " full" : " masked",
                setting.one_address ? " one address" : "", setting.alone ? " alone" : "",
                setting.unused ? " unused" : "", setting.space == Space::shared ? " shared " : " ", mask,
                " from ", from);
}

}  // namespace

std::uint64_t read(const Memory& memory, std::size_t at, Type type) {
  std::uint64_t value = 0;
  std::memcpy(&value, memory.bytes.data() + at, ir::byte_size(type));
  return value;
}

void check(const Setting& setting) {
  const std::vector<std::size_t> starts =
      setting.consecutive_from.empty() ? std::vector<std::size_t>{0} : setting.consecutive_from;
  for (const Isa isa : {isas().front(), isas().back()})
    for (const bool full : {true, false}) {
      const Machine machine{.isa = isa, .full = full, .alone = setting.alone};
      const Compiled code = compile(operation_of(setting), machine);
      for (const std::uint32_t mask : kMasks) {
        if (full && mask != 0xffffffffu) continue;
        for (const std::size_t from : starts) check_run(setting, code, machine, mask, from);
      }
    }
}

}  // namespace quern::cpu::emit::testing
