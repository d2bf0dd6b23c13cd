// SPDX-License-Identifier: Apache-2.0
#include "ir_interpreter.hpp"

#include <bit>
#include <cstring>
#include <string>

namespace quern::test {

namespace ir = cpu::ir;
using ir::Op;

namespace {

std::uint64_t mask(std::uint32_t bits) {
  return bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
}

std::int64_t as_signed(std::uint64_t value, std::uint32_t bits) {
  const std::uint64_t sign = std::uint64_t{1} << (bits - 1);
  return static_cast<std::int64_t>((value ^ sign) - sign);
}

bool holds(ir::Icmp how, std::uint64_t a, std::uint64_t b, std::uint32_t bits) {
  const std::int64_t x = as_signed(a, bits);
  const std::int64_t y = as_signed(b, bits);
  const bool results[] = {a == b, a != b, x<y, x <= y, x> y, x >= y, a<b, a <= b, a> b, a >= b};
  return results[static_cast<int>(how)];
}

std::uint64_t high_product(std::uint64_t a, std::uint64_t b, std::uint32_t bits, bool is_signed) {
  const __int128 x = is_signed ? static_cast<__int128>(as_signed(a, bits)) : static_cast<__int128>(a);
  const __int128 y = is_signed ? static_cast<__int128>(as_signed(b, bits)) : static_cast<__int128>(b);
  return static_cast<std::uint64_t>(static_cast<unsigned __int128>(x) * static_cast<unsigned __int128>(y) >>
                                    bits);
}

}  // namespace

struct IrInterpreter::Activation {
  const ir::Function& function;
  Values values;
  std::vector<std::uint64_t> arguments;
  std::vector<std::uint64_t> results;
  std::vector<std::uint8_t> local;
};

std::uint32_t IrInterpreter::word(std::size_t index) const {
  std::uint32_t result = 0;
  std::memcpy(&result, global.data() + index * 4, 4);
  return result;
}

std::uint64_t IrInterpreter::double_word(std::size_t index) const {
  std::uint64_t result = 0;
  std::memcpy(&result, global.data() + index * 8, 8);
  return result;
}

void IrInterpreter::run() { call(0, {}); }

std::vector<std::uint64_t> IrInterpreter::call(std::uint32_t index,
                                               const std::vector<std::uint64_t>& arguments) {
  const ir::Function& function = module_.functions.at(index);
  if (++depth_ > 1000) throw std::runtime_error("calls are nested too deep");
  Activation frame{function,
                   Values(function.insts.size()),
                   arguments,
                   {},
                   std::vector<std::uint8_t>(function.local_bytes)};
  frame.results.resize(function.result_types.size());
  ir::BlockId from = ir::kNone;
  ir::BlockId block = 0;
  for (;;) {
    const ir::Block& b = function.blocks.at(block);
    // All phis are assigned at the same time.
    std::vector<std::pair<ir::Value, std::uint64_t>> phis;
    for (const ir::Value value : b.insts) {
      if (function[value].op != Op::phi) break;
      std::size_t pred = 0;
      while (b.preds.at(pred) != from) ++pred;
      phis.emplace_back(value, frame.values[function[value].args.at(pred)].at(0));
    }
    for (const auto& [phi, value] : phis) frame.values[phi] = {value};
    for (std::size_t i = phis.size(); i + 1 < b.insts.size(); ++i) execute(frame, b.insts[i]);
    if (steps_left-- == 0) throw std::runtime_error("too many steps");
    const ir::Inst& last = function[b.insts.back()];
    from = block;
    switch (last.op) {
      case Op::br:
        block = b.succs.at(0);
        break;
      case Op::cond_br:
        block = b.succs.at(frame.values[last.args[0]].at(0) != 0 ? 0 : 1);
        break;
      case Op::switch_br:
        block = b.succs.at(frame.values[last.args[0]].at(0));
        break;
      case Op::ret:
        --depth_;
        return frame.results;
      default:
        throw std::runtime_error("cannot run " + std::string(ir::name(last.op)));
    }
  }
}

std::vector<std::uint8_t>& IrInterpreter::memory(Activation& frame, ir::Space space) {
  switch (space) {
    case ir::Space::global:
      return global;
    case ir::Space::shared:
      return shared;
    case ir::Space::local:
      return frame.local;
    case ir::Space::param:
      return params;
    default:
      throw std::runtime_error("cannot access this space");
  }
}

void IrInterpreter::execute(Activation& frame, ir::Value value) {
  const ir::Inst& inst = frame.function[value];
  const std::uint32_t bits = ir::bit_size(inst.type);
  const auto arg = [&](std::size_t i) { return frame.values[inst.args.at(i)].at(0); };
  const auto arg_bits = [&](std::size_t i) { return ir::bit_size(frame.function[inst.args.at(i)].type); };
  const auto sarg = [&](std::size_t i) { return as_signed(arg(i), arg_bits(i)); };
  const auto set = [&](std::uint64_t result) { frame.values[value] = {result & mask(bits)}; };
  switch (inst.op) {
    case Op::constant:
      return set(inst.imm);
    case Op::undef:
      return set(0x5a5a5a5a5a5a5a5a);  // a recognisable value that no test expects
    case Op::param: {
      std::uint64_t result = 0;
      std::memcpy(&result, params.data() + inst.imm, ir::byte_size(inst.type));
      return set(result);
    }
    case Op::special:
      if (static_cast<ir::Special>(inst.imm) != ir::Special::tid_x)
        throw std::runtime_error("only %tid.x is known");
      return set(tid_x);
    case Op::arg:
      return set(frame.arguments.at(inst.imm));
    case Op::set_result:
      frame.results.at(inst.imm) = arg(0);
      return;
    case Op::local_address:
      return set(inst.imm);
    case Op::iadd:
      return set(arg(0) + arg(1));
    case Op::isub:
      return set(arg(0) - arg(1));
    case Op::imul:
      return set(arg(0) * arg(1));
    case Op::imulhi_s:
      return set(high_product(arg(0), arg(1), bits, true));
    case Op::imulhi_u:
      return set(high_product(arg(0), arg(1), bits, false));
    case Op::udiv:
      return set(arg(0) / arg(1));
    case Op::urem:
      return set(arg(0) % arg(1));
    case Op::sdiv:
      return set(static_cast<std::uint64_t>(sarg(0) / sarg(1)));
    case Op::srem:
      return set(static_cast<std::uint64_t>(sarg(0) % sarg(1)));
    case Op::smin:
      return set(sarg(0) < sarg(1) ? arg(0) : arg(1));
    case Op::smax:
      return set(sarg(0) > sarg(1) ? arg(0) : arg(1));
    case Op::umin:
      return set(arg(0) < arg(1) ? arg(0) : arg(1));
    case Op::umax:
      return set(arg(0) > arg(1) ? arg(0) : arg(1));
    case Op::and_:
      return set(arg(0) & arg(1));
    case Op::or_:
      return set(arg(0) | arg(1));
    case Op::xor_:
      return set(arg(0) ^ arg(1));
    case Op::shl:
      return set(arg(1) >= bits ? 0 : arg(0) << arg(1));
    case Op::lshr:
      return set(arg(1) >= bits ? 0 : arg(0) >> arg(1));
    case Op::ashr:
      return set(static_cast<std::uint64_t>(sarg(0) >> (arg(1) >= bits ? bits - 1 : arg(1))));
    case Op::popc:
      return set(static_cast<std::uint64_t>(std::popcount(arg(0))));
    case Op::dot4: {
      std::uint64_t sum = arg(2);
      for (unsigned at = 0; at < 32; at += 8) {
        const auto byte = [&](std::size_t index) {
          const auto raw = static_cast<std::uint8_t>(arg(index) >> at);
          return (inst.imm >> index & 1) != 0 ? static_cast<std::int8_t>(raw) : std::int64_t{raw};
        };
        sum += static_cast<std::uint64_t>(byte(0) * byte(1));
      }
      return set(sum);
    }
    case Op::add_carry:
      return set(arg(0) + arg(1) + arg(2));
    case Op::carry_of_add: {
      const auto sum = static_cast<unsigned __int128>(arg(0)) + arg(1) + arg(2);
      return set(static_cast<std::uint64_t>(sum >> arg_bits(0)));
    }
    case Op::icmp:
      return set(test::holds(inst.attr.icmp, arg(0), arg(1), arg_bits(0)) ? 1 : 0);
    case Op::select:
      return set(arg(0) != 0 ? arg(1) : arg(2));
    case Op::trunc:
    case Op::zext:
    case Op::bitcast:
      return set(arg(0));
    case Op::sext:
      return set(static_cast<std::uint64_t>(sarg(0)));
    case Op::extract:
      frame.values[value] = {frame.values[inst.args[0]].at(inst.imm) & mask(bits)};
      return;
    case Op::load: {
      const auto& bytes = memory(frame, inst.attr.space);
      const std::uint32_t size = ir::byte_size(inst.type);
      frame.values[value].clear();
      for (std::uint32_t i = 0; i < inst.attr.count; ++i) {
        std::uint64_t element = 0;
        const std::uint64_t at = arg(0) + inst.imm + i * size;
        if (at > bytes.size() || size > bytes.size() - at) throw std::runtime_error("load out of bounds");
        std::memcpy(&element, bytes.data() + at, size);
        frame.values[value].push_back(element);
      }
      return;
    }
    case Op::store: {
      auto& bytes = memory(frame, inst.attr.space);
      std::uint64_t at = arg(0) + inst.imm;
      for (std::size_t i = 1; i < inst.args.size(); ++i) {
        const std::uint64_t element = arg(i);
        const std::size_t size = (arg_bits(i) + 7) / 8;
        if (at > bytes.size() || size > bytes.size() - at) throw std::runtime_error("store out of bounds");
        std::memcpy(bytes.data() + at, &element, size);
        at += size;
      }
      return;
    }
    case Op::call: {
      std::vector<std::uint64_t> arguments;
      for (std::size_t i = 0; i < inst.args.size(); ++i) arguments.push_back(arg(i));
      frame.values[value] = call(static_cast<std::uint32_t>(inst.imm), arguments);
      return;
    }
    default:
      throw std::runtime_error("cannot run " + std::string(ir::name(inst.op)));
  }
}

}  // namespace quern::test
