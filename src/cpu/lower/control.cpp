// SPDX-License-Identifier: Apache-2.0
// "Control Flow Instructions", "Miscellaneous Instructions".
#include "cpu/lower/translator.hpp"

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

void call(Translator& t, In in) { t.call(in); }
void ret(Translator& t, In) { t.end_function(); }
void exit(Translator& t, In) { t.end_thread(); }
void trap(Translator& t, In) { t.end(Op::trap, static_cast<std::uint64_t>(ir::Trap::trap)); }
void nanosleep(Translator& t, In in) { t.emit(Op::nanosleep, Type::none, {t.read(in, 0, ptx::Type::u32)}); }
void nothing(Translator&, In) {}

constexpr M kUniform[] = {M::uni};
constexpr M kIndexed[] = {M::uni, M::idx};

using Opcode = ptx::Opcode;
constexpr Row kRows[] = {
    {Opcode::bra, Kind::control, 0, bra, kUniform},
    {Opcode::brx, Kind::effect, 0, brx, kIndexed},
    {Opcode::call, Kind::effect, 0, call, kUniform},
    {Opcode::ret, Kind::effect, 0, ret, kUniform},
    {Opcode::exit, Kind::effect, 0, exit, {}},
    {Opcode::trap, Kind::effect, 0, trap, {}},
    {Opcode::nanosleep, Kind::effect, 1, nanosleep, {}},
    // For debuggers and profilers.
    {Opcode::brkpt, Kind::pure, 0, nothing, {}},
    {Opcode::pmevent, Kind::pure, 0, nothing, {}},
};

}  // namespace

std::span<const Row> control_rows() { return kRows; }

}  // namespace quern::cpu::lower
