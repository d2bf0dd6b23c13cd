// SPDX-License-Identifier: Apache-2.0
// Shifts, bit fields, permutations and truth tables. PTX ISA: "Logic and Shift Instructions", "Integer
// Arithmetic Instructions" (bfe, bfi, bfind, brev, popc, clz), "Data Movement and Conversion Instructions:
// prmt".
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <array>

#include "cpu/emit/operations/operands.hpp"
#include "cpu/emit/operations/vectors.hpp"

namespace quern::cpu::emit {
namespace {

using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

Value* all_ones(llvm::Type* type) { return bits(type, ~0ull); }
Value* zero(llvm::Type* type) { return bits(type, 0); }

/// Converts a shift amount (i32) to the width of the shifted value. A narrower type would lose high bits, so
/// the amount is clamped first.
Value* amount_in(Operands& o, Value* amount, llvm::Type* type) {
  const unsigned width = width_of(type);
  if (width < width_of(amount->getType()))
    amount = o.b.CreateBinaryIntrinsic(Intrinsic::umin, amount, bits(amount->getType(), width));
  return o.b.CreateZExtOrTrunc(amount, type);
}

/// Logical shift by any amount: amounts from the width on give 0. LLVM's shift is poison there, and the
/// select replaces it.
Value* shift_left(Operands& o, Value* value, Value* amount) {
  Value* const inside = o.b.CreateICmpULT(amount, bits(value->getType(), width_of(value->getType())));
  return o.b.CreateSelect(inside, o.b.CreateShl(value, amount), zero(value->getType()));
}
Value* shift_right(Operands& o, Value* value, Value* amount) {
  Value* const inside = o.b.CreateICmpULT(amount, bits(value->getType(), width_of(value->getType())));
  return o.b.CreateSelect(inside, o.b.CreateLShr(value, amount), zero(value->getType()));
}
Value* shift_right_signed(Operands& o, Value* value, Value* amount) {
  Value* const most = bits(value->getType(), width_of(value->getType()) - 1);
  return o.b.CreateAShr(value, o.b.CreateBinaryIntrinsic(Intrinsic::umin, amount, most));
}

Value* shl(Operands& o) { return shift_left(o, o[0], amount_in(o, o[1], o.type)); }
Value* lshr(Operands& o) { return shift_right(o, o[0], amount_in(o, o[1], o.type)); }
Value* ashr(Operands& o) { return shift_right_signed(o, o[0], amount_in(o, o[1], o.type)); }

template <Intrinsic::ID id>
Value* funnel(Operands& o) {
  constexpr bool left = id == Intrinsic::fshl;
  Value* const shifted =
      o.b.CreateIntrinsic(id, {o.type}, {o[1], o[0], o.b.CreateAnd(o[2], bits(o.type, 31))});
  if (!o.inst.attr.clamp) return shifted;
  // A clamped shift by 32 gives the other word.
  return o.b.CreateSelect(o.b.CreateICmpUGE(o[2], bits(o.type, 32)), left ? o[0] : o[1], shifted);
}

Value* popc(Operands& o) {
  return o.b.CreateZExtOrTrunc(o.b.CreateUnaryIntrinsic(Intrinsic::ctpop, o[0]), o.type);
}
Value* leading_zeros(Operands& o, Value* value) {
  return o.b.CreateZExtOrTrunc(o.b.CreateBinaryIntrinsic(Intrinsic::ctlz, value, o.b.getFalse()), o.type);
}
Value* clz(Operands& o) { return leading_zeros(o, o[0]); }
Value* brev(Operands& o) { return o.b.CreateUnaryIntrinsic(Intrinsic::bitreverse, o[0]); }

Value* bfind(Operands& o) {
  llvm::Type* const type = o[0]->getType();
  const unsigned width = width_of(type);
  Value* value = o[0];
  if (o.inst.attr.is_signed) value = o.b.CreateXor(value, o.b.CreateAShr(value, width - 1));
  Value* const zeros = leading_zeros(o, value);
  Value* const found = o.inst.attr.shiftamt ? zeros : o.b.CreateSub(bits(o.type, width - 1), zeros);
  return o.b.CreateSelect(o.b.CreateICmpEQ(value, zero(type)), all_ones(o.type), found);
}

/// The PTX ISA limits position and length to 255. GPUs take larger ones modulo 256 for words of 32 bits, and
/// as they are for words of 64 bits.
Value* field_number(Operands& o, Value* number) {
  if (width_of(o.type) == 32) number = o.b.CreateAnd(number, bits(number->getType(), 0xff));
  return amount_in(o, number, o.type);
}

/// Returns a value with the low `length` bits set.
Value* low_bits(Operands& o, Value* length) {
  Value* const inside = o.b.CreateICmpULT(length, bits(o.type, width_of(o.type)));
  Value* const mask = o.b.CreateSub(o.b.CreateShl(bits(o.type, 1), length), bits(o.type, 1));
  return o.b.CreateSelect(inside, mask, all_ones(o.type));
}

Value* bfe(Operands& o) {
  const unsigned width = width_of(o.type);
  Value* const position = field_number(o, o[1]);
  Value* const length = field_number(o, o[2]);
  if (!o.inst.attr.is_signed) return o.b.CreateAnd(shift_right(o, o[0], position), low_bits(o, length));
  // Positions above the top read sign bits. Then bit length - 1 is replicated upwards.
  Value* const moved = shift_right_signed(o, o[0], position);
  Value* const unused = o.b.CreateSub(bits(o.type, width), length);
  Value* const partial = o.b.CreateICmpULT(o.b.CreateSub(length, bits(o.type, 1)), bits(o.type, width - 1));
  Value* const spread = o.b.CreateAShr(o.b.CreateShl(moved, unused), unused);
  Value* const field = o.b.CreateSelect(partial, spread, moved);
  return o.b.CreateSelect(o.b.CreateICmpEQ(length, zero(o.type)), zero(o.type), field);
}

Value* bfi(Operands& o) {
  Value* const position = field_number(o, o[2]);
  Value* const mask = shift_left(o, low_bits(o, field_number(o, o[3])), position);
  Value* const kept = o.b.CreateAnd(o[1], o.b.CreateNot(mask));
  return o.b.CreateOr(kept, o.b.CreateAnd(shift_left(o, o[0], position), mask));
}

// --- prmt

/// Selectors of the modes other than index, by the low two bits of operand c.
constexpr std::array<std::array<std::uint16_t, 4>, 7> kModeSelectors = {{
    {},                                // index
    {0x3210, 0x4321, 0x5432, 0x6543},  // f4e
    {0x5670, 0x6701, 0x7012, 0x0123},  // b4e
    {0x0000, 0x1111, 0x2222, 0x3333},  // rc8
    {0x3210, 0x3211, 0x3222, 0x3333},  // ecl
    {0x0000, 0x1110, 0x2210, 0x3210},  // ecr
    {0x1010, 0x3232, 0x1010, 0x3232},  // rc16
}};

/// Permutes by one selector for all lanes, known at compile time: a byte shuffle of the two words.
Value* permute_bytes(Operands& o, std::uint64_t selector) {
  const unsigned words = o.is_vector() ? kWarpSize : 1;
  const auto bytes = llvm::FixedVectorType::get(o.b.getInt8Ty(), words * 4);
  llvm::SmallVector<int, kWarpSize * 4> lanes;
  std::uint32_t signs = 0;
  for (unsigned at = 0; at < words * 4; ++at) {
    const unsigned nibble = (selector >> (at % 4 * 4)) & 0xf;
    const unsigned source = nibble & 7;
    lanes.push_back(static_cast<int>(at / 4 * 4 + source % 4 + (source < 4 ? 0 : words * 4)));
    if ((nibble & 8) != 0) signs |= 0xffu << (at % 4 * 8);
  }
  Value* const moved =
      o.b.CreateShuffleVector(o.b.CreateBitCast(o[0], bytes), o.b.CreateBitCast(o[1], bytes), lanes);
  Value* const word = o.b.CreateBitCast(moved, o.type);
  if (signs == 0) return word;
  Value* const spread = o.b.CreateBitCast(o.b.CreateAShr(moved, bits(bytes, 7)), o.type);
  return o.b.CreateOr(o.b.CreateAnd(word, bits(o.type, ~signs)), o.b.CreateAnd(spread, bits(o.type, signs)));
}

Value* select_byte(Operands& o, Value* selector, unsigned at) {
  llvm::IRBuilder<>& b = o.b;
  Value* const nibble = b.CreateLShr(selector, at * 4);
  Value* const from_b = b.CreateICmpNE(b.CreateAnd(nibble, bits(o.type, 4)), zero(o.type));
  Value* const shift = b.CreateShl(b.CreateAnd(nibble, bits(o.type, 3)), 3);
  // Move the byte to the top of the word: an arithmetic shift then copies its sign to all bits.
  Value* const top = b.CreateShl(b.CreateLShr(b.CreateSelect(from_b, o[1], o[0]), shift), 24);
  Value* const sign = b.CreateICmpNE(b.CreateAnd(nibble, bits(o.type, 8)), zero(o.type));
  Value* const byte = b.CreateSelect(sign, b.CreateLShr(b.CreateAShr(top, 31), 24), b.CreateLShr(top, 24));
  return b.CreateShl(byte, at * 8);
}

Value* selector_of_mode(Operands& o, ir::PrmtMode mode) {
  const auto& choices = kModeSelectors[static_cast<std::size_t>(mode)];
  Value* const low = o.b.CreateAnd(o[2], bits(o.type, 3));
  Value* selector = bits(o.type, choices[3]);
  for (unsigned at = 0; at < 3; ++at)
    selector = o.b.CreateSelect(o.b.CreateICmpEQ(low, bits(o.type, at)), bits(o.type, choices[at]), selector);
  return selector;
}

/// The four selector fields of each lane as bytes.
Value* fields_as_bytes(Operands& o, Value* selector) {
  llvm::IRBuilder<>& b = o.b;
  llvm::Type* const type = selector->getType();
  Value* const low = b.CreateAnd(selector, bits(type, 0xffff));
  Value* const pairs = b.CreateAnd(b.CreateOr(low, b.CreateShl(low, 8)), bits(type, 0x00ff00ff));
  return b.CreateAnd(b.CreateOr(pairs, b.CreateShl(pairs, 4)), bits(type, 0x0f0f0f0f));
}

/// pshufb of the bytes of 32 words, by the widest instruction that there is. LLVM does not fold it for zeros,
/// which are a frequent operand.
Value* shuffle_bytes(Operands& o, Value* words, Value* places_in_words) {
  const auto type = llvm::FixedVectorType::get(o.b.getInt8Ty(), kWarpSize * 4);
  const auto* const constant = llvm::dyn_cast<llvm::Constant>(words);
  if (constant != nullptr && constant->isNullValue()) return zero(type);
  Value* const bytes = o.b.CreateBitCast(words, type);
  Value* const places = o.b.CreateBitCast(places_in_words, type);
  const bool wide = o.isa() == Isa::avx512;
  const unsigned width = wide ? 64 : 32;
  llvm::SmallVector<Value*, 4> parts;
  for (unsigned first = 0; first < kWarpSize * 4; first += width)
    parts.push_back(
        o.b.CreateIntrinsic(wide ? Intrinsic::x86_avx512_pshuf_b_512 : Intrinsic::x86_avx2_pshuf_b, {},
                            {slice(o.context, bytes, first, width), slice(o.context, places, first, width)}));
  return concat(o.context, parts);
}

/// Permutes by selectors that are known at run time only. pshufb takes bytes of the same 16-byte part by the
/// low four bits of a place, and gives 0 where its highest bit is set. `selector` may be a scalar.
Value* permute_bytes_by(Operands& o, Value* selector) {
  llvm::IRBuilder<>& b = o.b;
  const auto bytes = llvm::FixedVectorType::get(b.getInt8Ty(), kWarpSize * 4);
  const auto everywhere = [&](Value* value) {
    return value->getType()->isVectorTy() ? value : splat(o.context, value);
  };
  Value* const fields = fields_as_bytes(o, selector);
  llvm::Type* const type = fields->getType();
  Value* const of_b = b.CreateShl(b.CreateAnd(fields, bits(type, 0x04040404)), 5);
  Value* const places = b.CreateOr(b.CreateAnd(fields, bits(type, 0x03030303)), of_b);
  Value* const sign = b.CreateLShr(b.CreateAnd(fields, bits(type, 0x08080808)), 3);
  Value* const signs = everywhere(b.CreateMul(sign, bits(type, 0xff)));
  std::array<std::int64_t, kWarpSize> words{};
  for (std::size_t lane = 0; lane < words.size(); ++lane)
    words[lane] = static_cast<std::int64_t>(lane % 4 * 0x04040404);
  Value* const in_a = b.CreateOr(everywhere(places), lane_constant(o.context, 32, words));
  Value* const in_b = b.CreateXor(in_a, bits(o.type, 0x80808080));
  Value* const moved = b.CreateOr(shuffle_bytes(o, o[0], in_a), shuffle_bytes(o, o[1], in_b));
  Value* const spread = b.CreateBitCast(b.CreateAShr(moved, bits(bytes, 7)), o.type);
  return b.CreateOr(b.CreateAnd(b.CreateBitCast(moved, o.type), b.CreateNot(signs)),
                    b.CreateAnd(spread, signs));
}

Value* prmt(Operands& o) {
  const auto mode = static_cast<ir::PrmtMode>(o.inst.imm);
  const analysis::LanePattern& of_selector = o.context.pattern(o.inst.args[2]);
  const bool is_uniform = of_selector.kind == analysis::LanePatternKind::uniform;
  if (const auto& known = of_selector.constant; known && is_uniform)
    return permute_bytes(
        o, mode == ir::PrmtMode::index ? *known : kModeSelectors[static_cast<std::size_t>(mode)][*known & 3]);
  const bool by_shuffle = o.is_vector() && o.isa() != Isa::baseline;
  if (by_shuffle && is_uniform && mode == ir::PrmtMode::index)
    return permute_bytes_by(o, o.context.scalar(o.inst.args[2]));
  Value* const selector = mode == ir::PrmtMode::index ? o[2] : selector_of_mode(o, mode);
  if (by_shuffle) return permute_bytes_by(o, selector);
  Value* word = select_byte(o, selector, 0);
  for (unsigned at = 1; at < 4; ++at) word = o.b.CreateOr(word, select_byte(o, selector, at));
  return word;
}

// --- lop3

/// Two-variable function with truth table `table`: bit (y * 2 + z).
Value* logic2(Operands& o, unsigned table, Value* y, Value* z) {
  llvm::IRBuilder<>& b = o.b;
  switch (table & 0xf) {
    case 0x0:
      return zero(o.type);
    case 0x1:
      return b.CreateNot(b.CreateOr(y, z));
    case 0x2:
      return b.CreateAnd(b.CreateNot(y), z);
    case 0x3:
      return b.CreateNot(y);
    case 0x4:
      return b.CreateAnd(y, b.CreateNot(z));
    case 0x5:
      return b.CreateNot(z);
    case 0x6:
      return b.CreateXor(y, z);
    case 0x7:
      return b.CreateNot(b.CreateAnd(y, z));
    case 0x8:
      return b.CreateAnd(y, z);
    case 0x9:
      return b.CreateNot(b.CreateXor(y, z));
    case 0xa:
      return z;
    case 0xb:
      return b.CreateOr(b.CreateNot(y), z);
    case 0xc:
      return y;
    case 0xd:
      return b.CreateOr(y, b.CreateNot(z));
    case 0xe:
      return b.CreateOr(y, z);
    default:
      return all_ones(o.type);
  }
}

/// By Shannon's expansion over a: f = f0 if a is 0, f1 if a is 1.
Value* lop3(Operands& o) {
  llvm::IRBuilder<>& b = o.b;
  const unsigned f0 = o.inst.imm & 0xf;
  const unsigned f1 = (o.inst.imm >> 4) & 0xf;
  Value* const when0 = logic2(o, f0, o[1], o[2]);
  if (f0 == f1) return when0;
  if (f1 == (~f0 & 0xf)) return b.CreateXor(o[0], when0);
  if (f0 == 0) return b.CreateAnd(o[0], logic2(o, f1, o[1], o[2]));
  if (f1 == 0) return b.CreateAnd(b.CreateNot(o[0]), when0);
  if (f0 == 0xf) return b.CreateOr(b.CreateNot(o[0]), logic2(o, f1, o[1], o[2]));
  if (f1 == 0xf) return b.CreateOr(o[0], when0);
  return b.CreateXor(when0, b.CreateAnd(o[0], logic2(o, f0 ^ f1, o[1], o[2])));
}

constexpr Row kRows[] = {
    {ir::Op::shl, shl},
    {ir::Op::lshr, lshr},
    {ir::Op::ashr, ashr},
    {ir::Op::funnel_l, funnel<Intrinsic::fshl>},
    {ir::Op::funnel_r, funnel<Intrinsic::fshr>},
    {ir::Op::popc, popc},
    {ir::Op::clz, clz},
    {ir::Op::brev, brev},
    {ir::Op::bfind, bfind},
    {ir::Op::bfe, bfe},
    {ir::Op::bfi, bfi},
    {ir::Op::prmt, prmt},
    {ir::Op::lop3, lop3},
};

}  // namespace

std::span<const Row> bit_rows() { return kRows; }

}  // namespace quern::cpu::emit
