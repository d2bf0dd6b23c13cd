// SPDX-License-Identifier: Apache-2.0
// "Control Flow Instructions", "Miscellaneous Instructions".
#include <algorithm>
#include <bit>

#include "cpu/lower/translate/translator.hpp"

#include "cpu/lower/instructions/rows.hpp"

namespace quern::cpu::lower {
namespace {

using In = const ptx::Instruction&;
using ir::BlockId;
using ir::Op;
using ir::Type;
using ir::Value;
using M = ptx::Modifier;

const ptx::SymbolOperand* symbol_operand(Translator& t, In in, std::size_t index, ptx::SymbolKind kind) {
  const auto* symbol = t.operand(in, index).as<ptx::SymbolOperand>();
  if (symbol != nullptr && symbol->symbol.kind == kind) return symbol;
  t.refuse("the target of the branch is not known");
  return nullptr;
}

void bra(Translator& t, In in) {
  const auto* target = symbol_operand(t, in, 0, ptx::SymbolKind::label);
  if (target == nullptr) return;
  const BlockId taken = t.label_block(target->symbol);
  if (!in.guard) return t.branch(taken);
  const Value condition =
      t.read({ptx::RegisterOperand{in.guard->register_index, false, -1}}, ptx::Type::pred);
  const BlockId next = t.new_block();
  if (in.guard->negated)
    t.branch_if(condition, next, taken);
  else
    t.branch_if(condition, taken, next);
  t.set_block(next);
}

void brx(Translator& t, In in) {
  const auto* symbol = symbol_operand(t, in, 1, ptx::SymbolKind::branch_table);
  if (symbol == nullptr) return;
  const ptx::BranchTable& table = t.frame().function->branch_tables.at(symbol->symbol.index);
  if (table.targets.empty()) return t.refuse("its table has no targets");
  const Value index = t.read(in, 0, ptx::Type::u32);
  std::vector<BlockId> targets;
  for (const ptx::SymbolRef& target : table.targets) targets.push_back(t.label_block(target));
  t.switch_to(index, targets);
}

void call(Translator& t, In in) { t.calls().call(in); }
void ret(Translator& t, In) { t.end_function(); }
void exit(Translator& t, In) { t.end_thread(); }
void trap(Translator& t, In) { t.fault(ir::Trap::trap); }
void nanosleep(Translator& t, In in) { t.emit(Op::nanosleep, Type::none, {t.read(in, 0, ptx::Type::u32)}); }
// --- "Stack Manipulation Instructions": a function that allocates has an area of local memory for its
// allocations, and a variable that holds the number of bytes in use.

Value below(Translator& t, Value value, std::uint64_t alignment) {
  return t.emit(Op::and_, Type::i64, {value, t.constant(Type::i64, ~(alignment - 1))});
}

void allocate(Translator& t, In in) {
  const auto* align = in.operands.size() > 2 ? in.operands[2].as<ptx::IntegerOperand>() : nullptr;
  const std::uint64_t alignment = align == nullptr ? 8 : std::max<std::uint64_t>(align->bits, 1);
  if (alignment > kStackAlign || !std::has_single_bit(alignment))
    return t.refuse("an alignment above 16 on the stack is not implemented");
  const Value taken = t.read_variable(t.frame().stack_taken);
  const Value limit = t.constant(Type::i64, kStackBytes);
  const Value begin =
      below(t, t.emit(Op::iadd, Type::i64, {taken, t.constant(Type::i64, alignment - 1)}), alignment);
  const Value size = t.resize(t.read(in, 1, in.type()), Type::i64, false);
  const Value fits = t.compare(ir::Icmp::ule, size, t.emit(Op::isub, Type::i64, {limit, begin}));
  const BlockId full = t.new_block();
  const BlockId next = t.new_block();
  t.branch_if(fits, next, full);
  t.set_block(full);
  t.fault(ir::Trap::stack_overflow);
  t.branch(next);
  t.set_block(next);
  t.write_variable(t.frame().stack_taken, t.emit(Op::iadd, Type::i64, {begin, size}));
  const Value base = t.local_address(t.frame().stack_offset);
  t.write(in, t.resize(t.emit(Op::iadd, Type::i64, {base, begin}), ir_type(in.type()), false));
}

void save_stack(Translator& t, In in) {
  t.write(in, t.resize(t.read_variable(t.frame().stack_taken), ir_type(in.type()), false));
}

void restore_stack(Translator& t, In in) {
  // A value that did not come from stacksave may be too large.
  const Value saved = t.resize(t.read(in, 0, in.type()), Type::i64, false);
  t.write_variable(t.frame().stack_taken,
                   t.emit(Op::umin, Type::i64, {saved, t.constant(Type::i64, kStackBytes)}));
}

void nothing(Translator&, In) {}

using Opcode = ptx::Opcode;
constexpr Row kRows[] = {
    {Opcode::bra, Kind::control, bra},
    {Opcode::brx, Kind::effect, brx},
    {Opcode::call, Kind::effect, call},
    {Opcode::ret, Kind::effect, ret},
    {Opcode::exit, Kind::effect, exit},
    {Opcode::trap, Kind::effect, trap},
    {Opcode::nanosleep, Kind::effect, nanosleep},
    // Without a debugger, as on a GPU.
    {Opcode::brkpt, Kind::effect, trap},
    // This only affects profilers.
    {Opcode::pmevent, Kind::pure, nothing},
    {Opcode::alloca, Kind::effect, allocate},
    {Opcode::stacksave, Kind::effect, save_stack},
    {Opcode::stackrestore, Kind::effect, restore_stack},
};

}  // namespace

std::span<const Row> control_rows() { return kRows; }

}  // namespace quern::cpu::lower
