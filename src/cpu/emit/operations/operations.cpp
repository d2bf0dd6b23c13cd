// SPDX-License-Identifier: Apache-2.0
// The table of operations, and code that all elementwise operations share.
#include "cpu/emit/operations/atomic/settle.hpp"
#include "cpu/emit/operations/operands.hpp"

#include <llvm/IR/Constants.h>

#include <algorithm>
#include <array>
#include <cassert>

#include "cpu/analysis/halves.hpp"
#include "cpu/emit/operations/vectors.hpp"

namespace quern::cpu::emit {
namespace {

constexpr std::size_t kOpCount = 0
#define QUERN_IR_OP(name, types, traits, folded, meaning) +1
#include "cpu/ir/ops.def"
    ;

using Table = std::array<const Row*, kOpCount>;

const Table& table() {
  static const Table rows = [] {
    Table made{};
    for (const auto family :
         {value_rows(), integer_rows(), bit_rows(), compare_rows(), floating_rows(), convert_rows(),
          approx_rows(), load_rows(), store_rows(), atomic_rows(), warp_rows(), system_rows()})
      for (const Row& row : family) made[static_cast<std::size_t>(row.op)] = &row;
    return made;
  }();
  return rows;
}

const Row* row_of(ir::Op op) { return table()[static_cast<std::size_t>(op)]; }

/// A uniform result may have operands that differ between lanes (a xor a). Then the operand of any running
/// lane is correct.
llvm::Value* scalar_operand(Context& context, ir::Value arg) {
  if (context.pattern(arg).scalar()) return context.scalar(arg);
  return extract_lane(context, context.vector(arg), first_lane(context));
}

/// True for an operation on 64-bit vectors whose numbers all fit 32 bits. Python's integers and counts have
/// 64 bits whatever they hold.
bool fits_words(const Context& context, ir::Value value) {
  const ir::Inst& inst = context.function()[value];
  const auto fits = [&](ir::Value of) {
    const analysis::LanePattern& pattern = context.pattern(of);
    return context.function()[of].type != ir::Type::i64 ||
           (pattern.min >= INT32_MIN && pattern.max <= INT32_MAX);
  };
  return analysis::may_narrow(inst.op) && context.function()[inst.args.back()].type == ir::Type::i64 &&
         fits(value) && std::ranges::all_of(inst.args, fits);
}

/// The width with which vectors of integers of a larger one are computed; 0: with their own.
unsigned narrow_bits(const Context& context, ir::Value value) {
  const ir::Op op = context.function()[value].op;
  if (context.analysis().halves[value]) return op == ir::Op::sext || op == ir::Op::zext ? 0 : 16;
  return fits_words(context, value) ? 32 : 0;
}

void emit_elementwise(Context& context, ir::Value value, Elementwise emit) {
  const ir::Inst& inst = context.function()[value];
  const analysis::LanePattern& pattern = context.pattern(value);
  if (pattern.scalar() && pattern.constant) {
    context.define(value, constant_of(context, inst.type, *pattern.constant));
    return;
  }
  if (context.analysis().below[value]) return context.define(value, context.scalar(inst.args[0]));
  Operands operands{context, inst, context.builder(), {}, nullptr};
  operands.type = pattern.scalar() ? context.type_of(inst.type) : context.vector_type_of(inst.type);
  for (const ir::Value arg : inst.args) {
    const bool keep_scalar =
        pattern.scalar() || (inst.op == ir::Op::select && operands.args.empty() &&
                             context.pattern(arg).kind == analysis::LanePatternKind::uniform);
    operands.args.push_back(keep_scalar ? scalar_operand(context, arg) : context.vector(arg));
  }
  const unsigned narrow = operands.is_vector() ? narrow_bits(context, value) : 0;
  if (narrow == 0) return context.define(value, emit(operands));
  llvm::IRBuilder<>& b = context.builder();
  const auto narrowed = [&](llvm::Type* type) {
    return width_of(type) > narrow ? with_element(type, b.getIntNTy(narrow)) : type;
  };
  llvm::Type* const wide = operands.type;
  for (llvm::Value*& arg : operands.args) arg = b.CreateTrunc(arg, narrowed(arg->getType()));
  operands.type = narrowed(wide);
  context.define(value, b.CreateSExt(emit(operands), wide));
}

/// True for the widening that starts an offset32 address: the index is stored separately, so the base is 0.
bool begins_offset(const Context& context, ir::Value value) {
  const ir::Op op = context.function()[value].op;
  return (op == ir::Op::sext || op == ir::Op::zext) &&
         context.pattern(value).kind == analysis::LanePatternKind::offset32;
}

}  // namespace

llvm::Type* as_integer(llvm::Type* type) {
  return with_element(type, llvm::IntegerType::get(type->getContext(), type->getScalarSizeInBits()));
}

llvm::Constant* bits(llvm::Type* type, std::uint64_t value) {
  return llvm::ConstantInt::get(type, llvm::APInt(64, value).zextOrTrunc(type->getScalarSizeInBits()));
}

llvm::Constant* constant_of(Context& context, ir::Type type, std::uint64_t value) {
  llvm::Type* const to = context.type_of(type);
  llvm::Constant* const integer = bits(as_integer(to), value);
  return to->isIntegerTy() ? integer : llvm::ConstantExpr::getBitCast(integer, to);
}

void emit_operation(Context& context, ir::Value value) {
  const Row* const row = row_of(context.function()[value].op);
  assert(row != nullptr && "refused at load: can_emit");
  settle(context, value);
  if (row->emitter != nullptr) {
    row->emitter(context, value);
  } else if (begins_offset(context, value)) {
    context.define(value, bits(context.type_of(ir::Type::i64), 0));
  } else {
    emit_elementwise(context, value, row->elementwise);
  }
}

bool can_emit(ir::Op op) noexcept { return row_of(op) != nullptr; }

bool can_emit(const ir::Inst& inst) noexcept {
  const Row* const row = row_of(inst.op);
  return row != nullptr && (row->accepts == nullptr || row->accepts(inst));
}

}  // namespace quern::cpu::emit
