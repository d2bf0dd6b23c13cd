// SPDX-License-Identifier: Apache-2.0
// Implements the pseudocode of "Video Instructions" in 128-bit arithmetic, and the integer instructions
// szext, bmsk, fns, dp4a, dp2a, cvt.pack.
#include <algorithm>

#include "handlers.hpp"

namespace quern::oracle {
namespace {

__extension__ using Wide = __int128;
__extension__ using UnsignedWide = unsigned __int128;
constexpr Type kWord{'b', 32};

std::uint64_t word(Thread& t, const Operand& operand) {
  Operand whole = operand;
  whole.negated = false;
  return t.get(whole, kWord);
}

Wide extend(std::uint64_t bits, unsigned width, bool is_signed) {
  bits &= mask_of(width);
  return is_signed ? static_cast<Wide>(sign_extend(bits, width)) : static_cast<Wide>(bits);
}

struct Selected {
  unsigned first = 0;
  unsigned width = 32;
};

Selected selected(const Operand& operand) {
  if (operand.name.size() < 2) return {};
  const auto index = static_cast<unsigned>(operand.name[1] - '0');
  return operand.name[0] == 'b' ? Selected{index * 8, 8} : Selected{index * 16, 16};
}

Wide select(Thread& t, const Operand& operand, bool is_signed) {
  const auto [first, width] = selected(operand);
  return extend(word(t, operand) >> first, width, is_signed);
}

Wide clamp(Wide value, unsigned width, bool is_signed) {
  const Wide high = (Wide{1} << (is_signed ? width - 1 : width)) - 1;
  return std::min(std::max(value, is_signed ? -high - 1 : Wide{0}), high);
}

bool compare(const Instruction& i, Wide a, Wide b) {
  if (i.has("eq")) return a == b;
  if (i.has("ne")) return a != b;
  if (i.has("lt")) return a < b;
  if (i.has("le")) return a <= b;
  if (i.has("gt")) return a > b;
  return a >= b;
}

/// `op`: the opcode without its leading v and number of lanes.
Wide operate(const Instruction& i, std::string_view op, Wide a, Wide b) {
  if (op == "add") return a + b;
  if (op == "sub") return a - b;
  if (op == "absdiff") return a > b ? a - b : b - a;
  if (op == "min") return std::min(a, b);
  if (op == "max") return std::max(a, b);
  if (op == "avrg") return a + b >= 0 ? (a + b + 1) >> 1 : (a + b) >> 1;
  return compare(i, a, b) ? 1 : 0;
}

/// optSaturate, optSecondaryOp, optMerge.
void finish(Thread& t, const Instruction& i, Wide tmp, bool is_signed) {
  const auto [first, width] = selected(i.operands[0]);
  if (i.has("sat")) tmp = clamp(tmp, width, is_signed);
  std::uint64_t c = 0;
  if (i.operands.size() > 3) {
    c = word(t, i.operands[3]);
    const Wide wide = extend(c, 32, is_signed);
    if (i.has("add")) tmp += wide;
    if (i.has("min")) tmp = std::min(tmp, wide);
    if (i.has("max")) tmp = std::max(tmp, wide);
  }
  const std::uint64_t part = (static_cast<std::uint64_t>(tmp) & mask_of(width)) << first;
  t.set(i.operands[0], (c & ~(mask_of(width) << first)) | part);
}

void scalar(Thread& t, const Instruction& i) {
  const std::string_view op = std::string_view(i.opcode).substr(1);
  const bool set = op == "set";  // it has no destination type
  const bool is_signed = !set && i.types[0].is_signed();
  const Type a_type = i.types[set ? 0 : 1], b_type = i.types[set ? 1 : 2];
  const Wide a = select(t, i.operands[1], a_type.is_signed());
  if (op == "shl" || op == "shr") {
    auto amount = static_cast<unsigned>(select(t, i.operands[2], false));
    amount = i.has("wrap") ? amount & 31 : std::min(amount, 32u);
    const Wide shifted =
        op == "shl" ? static_cast<Wide>(static_cast<UnsignedWide>(a) << amount) : a >> amount;
    return finish(t, i, shifted, is_signed);
  }
  finish(t, i, operate(i, op, a, select(t, i.operands[2], b_type.is_signed())), is_signed);
}

void multiply_add(Thread& t, const Instruction& i) {
  const bool a_signed = i.types[1].is_signed(), b_signed = i.types[2].is_signed();
  const bool product_negated = i.operands[1].negated != i.operands[2].negated;
  const bool is_signed = a_signed || b_signed || product_negated || i.operands[3].negated;
  UnsignedWide tmp = static_cast<UnsignedWide>(select(t, i.operands[1], a_signed)) *
                     static_cast<UnsignedWide>(select(t, i.operands[2], b_signed));
  std::uint64_t c = word(t, i.operands[3]);
  unsigned lsb = 0;
  if (i.has("po")) {
    lsb = 1;
  } else if (product_negated) {
    tmp = ~tmp, lsb = 1;
  } else if (i.operands[3].negated) {
    c = ~c & mask_of(32), lsb = 1;
  }
  tmp += static_cast<UnsignedWide>(extend(c, 32, is_signed)) + lsb;
  const unsigned scale = i.has("shr7") ? 7 : i.has("shr15") ? 15 : 0;
  Wide result = static_cast<Wide>(tmp) >> scale;
  if (i.has("sat")) result = clamp(result, 32, is_signed);
  t.set(i.operands[0], static_cast<std::uint64_t>(result));
}

/// The operand's suffix without its dot.
std::string_view selector(const Operand& operand, std::string_view otherwise) {
  return operand.name.size() < 2 ? otherwise : std::string_view(operand.name);
}

void simd(Thread& t, const Instruction& i) {
  const unsigned width = i.opcode.back() == '2' ? 16 : 8;
  const std::string_view op = std::string_view(i.opcode).substr(1, i.opcode.size() - 2);
  const bool set = op == "set";
  const bool is_signed = !set && i.types[0].is_signed();
  const std::uint64_t a = word(t, i.operands[1]), b = word(t, i.operands[2]), c = word(t, i.operands[3]);
  const std::uint64_t both = b << 32 | a;
  const unsigned lanes = 32 / width;
  const std::string_view identity = width == 16 ? "h10" : "b3210";
  const std::string_view to = selector(i.operands[0], identity);
  const std::string_view from_a = selector(i.operands[1], identity);
  const std::string_view from_b = selector(i.operands[2], width == 16 ? "h32" : "b7654");
  std::uint64_t merged = 0, sum = c;
  for (unsigned k = 0; k < lanes; ++k) {
    const unsigned first = k * width;
    const auto part = [&](std::string_view from, Type type) {
      const auto which =
          static_cast<unsigned>(from[from.size() - 1 - k] - '0');  // the last digit: the lowest lane
      return extend(both >> (which * width), width, type.is_signed());
    };
    Wide lane = operate(i, op, part(from_a, i.types[set ? 0 : 1]), part(from_b, i.types[set ? 1 : 2]));
    if (i.has("sat")) lane = clamp(lane, width, is_signed);
    if (to.find(static_cast<char>('0' + k)) == std::string_view::npos) {  // not in the mask
      merged |= c & mask_of(width) << first;
      continue;
    }
    merged |= (static_cast<std::uint64_t>(lane) & mask_of(width)) << first;
    sum += static_cast<std::uint64_t>(lane);
  }
  t.set(i.operands[0], i.has("add") ? sum : merged);
}

// ---- bit fields

void extend_bits(Thread& t, const Instruction& i) {
  const std::uint64_t a = word(t, i.operands[1]), b = word(t, i.operands[2]);
  const auto width = static_cast<unsigned>(b & 31);
  if (i.has("clamp") && b >= 32) return t.set(i.operands[0], a);
  if (width == 0) return t.set(i.operands[0], 0);
  t.set(i.operands[0], static_cast<std::uint64_t>(extend(a, width, i.types[0].is_signed())));
}

void mask_bits(Thread& t, const Instruction& i) {
  const std::uint64_t a = word(t, i.operands[1]), b = word(t, i.operands[2]);
  std::uint64_t result = 0;
  const bool clamped = i.has("clamp");
  if (!clamped || a < 32) {
    const std::uint64_t from = a & 31;
    const std::uint64_t count = clamped && b >= 32 ? 32 : b & 31;
    for (std::uint64_t k = from; k < 32 && k < from + count; ++k) result |= std::uint64_t{1} << k;
  }
  t.set(i.operands[0], result);
}

void find_set_bit(Thread& t, const Instruction& i) {
  const std::uint64_t mask = word(t, i.operands[1]);
  const std::int64_t base = sign_extend(word(t, i.operands[2]), 32);
  const std::int64_t offset = sign_extend(word(t, i.operands[3]), 32);
  std::uint64_t found = 0xffffffffu;
  const auto is_set = [&](std::int64_t at) { return (mask >> at & 1) != 0; };
  if (offset == 0) {
    if (base >= 0 && base < 32 && is_set(base)) found = static_cast<std::uint64_t>(base);
  } else {
    std::int64_t count = std::abs(offset);
    for (std::int64_t at = base; at >= 0 && at < 32; at += offset > 0 ? 1 : -1)
      if (is_set(at) && --count == 0) {
        found = static_cast<std::uint64_t>(at);
        break;
      }
  }
  t.set(i.operands[0], found);
}

void dot(Thread& t, const Instruction& i) {
  const std::uint64_t a = word(t, i.operands[1]), b = word(t, i.operands[2]);
  Wide sum = static_cast<Wide>(word(t, i.operands[3]));
  const unsigned terms = i.opcode == "dp4a" ? 4 : 2;
  for (unsigned k = 0; k < terms; ++k) {
    const unsigned from_b = 8 * k + (i.has("hi") ? 16 : 0);
    sum += extend(a >> (32 / terms * k), 32 / terms, i.types[0].is_signed()) *
           extend(b >> from_b, 8, i.types[1].is_signed());
  }
  t.set(i.operands[0], static_cast<std::uint64_t>(sum));
}

// cvt.pack.sat.to.s32 d, a, b{, c}
void pack(Thread& t, const Instruction& i) {
  const std::string& to = i.words.at(2);
  const auto width = static_cast<unsigned>(std::stoul(to.substr(1)));
  const auto part = [&](std::size_t k) {
    const Wide value = clamp(extend(word(t, i.operands[k]), 32, true), width, to[0] == 's');
    return static_cast<std::uint64_t>(value) & mask_of(width);
  };
  std::uint64_t result = part(2) | part(1) << width;
  if (i.operands.size() > 3) result |= word(t, i.operands[3]) << (2 * width);
  t.set(i.operands[0], result);
}

}  // namespace

Handler find_video_handler(const Instruction& i) {
  if (i.opcode == "szext") return extend_bits;
  if (i.opcode == "bmsk") return mask_bits;
  if (i.opcode == "fns") return find_set_bit;
  if (i.opcode == "dp4a" || i.opcode == "dp2a") return dot;
  if (i.opcode == "cvt" && i.has("pack")) return pack;
  for (const char* op : {"vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vset"})
    if (i.opcode == op) return scalar;
  if (i.opcode == "vmad") return multiply_add;
  for (const char* op : {"vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax", "vset"})
    for (const char lanes : {'2', '4'})
      if (i.opcode == op + std::string(1, lanes)) return simd;
  return nullptr;
}

}  // namespace quern::oracle
