// SPDX-License-Identifier: Apache-2.0
// Lanes with consecutive addresses. Where no lock is needed, vectors are updated. Otherwise one compare and
// swap of 16 bytes replaces two or four locked instructions: accesses of different sizes to the same bytes
// are coherent on x86, so other threads observe operations on the elements.
#include <algorithm>
#include <bit>

#include "cpu/emit/operations/atomic/atomic.hpp"
#include "cpu/emit/operations/operands.hpp"
#include "cpu/emit/operations/vectors.hpp"

namespace quern::cpu::emit {
namespace {

using llvm::Value;

constexpr unsigned kPieceBytes = 16;

struct Piece {
  Value* pointer;
  unsigned first;  ///< its first lane
};

unsigned lanes_of_piece(const Access& access) { return kPieceBytes / access.element_bytes; }

std::vector<Piece> pieces_of(const Access& access) {
  const std::vector<Value*> bases = base_pointers(access);
  std::vector<Piece> pieces;
  for (const Segment& segment : access.layout.segments)
    for (unsigned lane = 0; lane < segment.count; lane += lanes_of_piece(access))
      pieces.push_back({advance(access.context, bases[segment.base],
                                segment.offset + std::int64_t{lane} * access.element_bytes),
                        segment.first + lane});
  return pieces;
}

Value* are_aligned(const Access& access, const std::vector<Piece>& pieces) {
  llvm::IRBuilder<>& b = access.context.builder();
  Value* bits_of_all = b.getInt64(0);
  for (const Piece& piece : pieces)
    bits_of_all = b.CreateOr(bits_of_all, b.CreatePtrToInt(piece.pointer, b.getInt64Ty()));
  return b.CreateICmpEQ(b.CreateAnd(bits_of_all, kPieceBytes - 1), b.getInt64(0));
}

/// Emits a loop that ends when no other thread has written between the read and the exchange. Returns the old
/// values of the piece's lanes.
Value* update_piece(const Access& access, const Piece& piece, Value* seen, Value* operands, Value* seconds) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  const unsigned count = lanes_of_piece(access);
  Value* const operand = slice(c, operands, piece.first, count);
  Value* const second = seconds == nullptr ? nullptr : slice(c, seconds, piece.first, count);
  llvm::BasicBlock* const before = b.GetInsertBlock();
  llvm::BasicBlock* const loop = c.new_block("piece");
  llvm::IRBuilder<>(before).CreateBr(loop);
  llvm::PHINode* const old = b.CreatePHI(seen->getType(), 2);
  old->addIncoming(seen, before);
  Value* const lanes = b.CreateBitCast(old, llvm::FixedVectorType::get(access.memory_type(), count));
  Value* const next = combine(b, access.inst.attr.atomic, lanes, operand, second);
  const Exchange made = exchange(access, piece.pointer, old, b.CreateBitCast(next, old->getType()));
  old->addIncoming(made.old, loop);
  llvm::BasicBlock* const done = c.new_block("piece_done");
  llvm::IRBuilder<>(loop).CreateCondBr(made.done, done, loop);
  return lanes;
}

/// The values of a segment's lanes after the operation.
Value* combine_segment(const Access& access, const Segment& segment, Value* old) {
  Context& c = access.context;
  const bool is_cas = access.inst.attr.atomic == ir::AtomicOp::cas;
  Value* const operand = slice(c, vector_of_operand(access, 1), segment.first, segment.count);
  Value* const second =
      is_cas ? slice(c, vector_of_operand(access, 2), segment.first, segment.count) : nullptr;
  return combine(c.builder(), access.inst.attr.atomic, old, operand, second);
}

llvm::Type* type_of(const Access& access, const Segment& segment) {
  return llvm::FixedVectorType::get(access.memory_type(), segment.count);
}

/// Updates the lanes of a segment by vector instructions. Returns their old values.
Value* update_segment(const Access& access, const Segment& segment, Value* pointer) {
  llvm::IRBuilder<>& b = access.context.builder();
  // Volatile: the host may read the memory meanwhile.
  const bool is_volatile = access.space != ir::Space::shared;
  llvm::LoadInst* const old =
      b.CreateAlignedLoad(type_of(access, segment), pointer, access.align(), is_volatile);
  annotate(access, old);
  Value* const next = combine_segment(access, segment, old);
  annotate(access, b.CreateAlignedStore(next, pointer, access.align(), is_volatile));
  return old;
}

Value* update_pieces(const Access& access, const std::vector<Piece>& pieces) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  llvm::Type* const whole = b.getIntNTy(kPieceBytes * 8);
  Value* const operands = vector_of_operand(access, 1);
  Value* const seconds =
      access.inst.attr.atomic == ir::AtomicOp::cas ? vector_of_operand(access, 2) : nullptr;
  // All pieces are read before the first exchange: a locked instruction waits for the ones before it, and so
  // would its cache miss. The reads are volatile, since LLVM could otherwise read a piece twice.
  std::vector<Value*> seen;
  for (const Piece& piece : pieces) {
    llvm::LoadInst* const load = b.CreateAlignedLoad(whole, piece.pointer, llvm::Align(kPieceBytes), true);
    annotate(access, load);
    seen.push_back(load);
  }
  std::vector<Value*> old;
  for (std::size_t at = 0; at < pieces.size(); ++at)
    old.push_back(update_piece(access, pieces[at], seen[at], operands, seconds));
  return access.inst.attr.unused_result ? nullptr : concat(c, old);
}

}  // namespace

bool is_consecutive(const Access& access) {
  const bool fits = access.element_bytes == 4 || access.element_bytes == 8;
  if (!fits || !access.context.full() || access.layout.kind != LayoutKind::segments) return false;
  const unsigned count = access.layout.segments[0].count;
  return std::has_single_bit(count) &&
         std::ranges::all_of(access.layout.segments, [&](const Segment& segment) {
           return segment.step == 1 && segment.count == count;
         });
}

bool has_pieces(const Access& access) {
  // The instruction is part of the class of AVX2, and of no lower one.
  if (!is_consecutive(access) || access.context.specialisation().isa == Isa::baseline) return false;
  return access.layout.segments[0].count * access.element_bytes >= kPieceBytes;
}

Value* emit_consecutive(const Access& access) {
  Context& c = access.context;
  if (!is_relaxed(access)) compiler_barrier(c);
  const std::vector<Value*> bases = base_pointers(access);
  std::vector<Value*> old;
  for (const Segment& segment : access.layout.segments)
    old.push_back(update_segment(access, segment, advance(c, bases[segment.base], segment.offset)));
  if (!is_relaxed(access)) compiler_barrier(c);
  return access.inst.attr.unused_result ? nullptr : concat(c, old);
}

void emit_consecutive_at(const Access& access, const std::function<Value*(Value*)>& moved) {
  llvm::IRBuilder<>& b = access.context.builder();
  const std::vector<Value*> bases = base_pointers(access);
  for (const Segment& segment : access.layout.segments) {
    Value* const place = moved(advance(access.context, bases[segment.base], segment.offset));
    Value* const old = b.CreateAlignedLoad(type_of(access, segment), place, access.align());
    b.CreateAlignedStore(combine_segment(access, segment, old), place, access.align());
  }
}

Value* emit_pieces(const Access& access, const Side& otherwise) {
  const std::vector<Piece> pieces = pieces_of(access);
  return emit_either(
      access.context, are_aligned(access, pieces), "pieces", [&] { return update_pieces(access, pieces); },
      otherwise);
}

}  // namespace quern::cpu::emit
