// SPDX-License-Identifier: Apache-2.0
// "Control Flow Instructions", special registers, and the reading and writing of operands.
#include "handlers.hpp"

namespace quern::oracle {
namespace {

void jump(Thread& t, const std::string& label) {
  const auto found = t.frame().function->labels.find(label);
  if (found == t.frame().function->labels.end()) throw Unsupported("oracle: no label " + label);
  t.frame().pc = found->second;
}

void branch(Thread& t, const Instruction& i) { jump(t, i.operands[0].name); }

// brx.idx index, table: the table's label precedes a .branchtargets line, which is read as an instruction.
void branch_indexed(Thread& t, const Instruction& i) {
  const Function& f = *t.frame().function;
  const auto table = f.labels.find(i.operands[1].name);
  if (table == f.labels.end()) throw Unsupported("oracle: no branch table");
  const std::uint64_t index = t.get(i.operands[0], {'u', 32});
  const Instruction& targets = f.body[table->second];
  if (index >= targets.operands.size())
    throw Unsupported("oracle: brx.idx beyond its table has no defined meaning");
  jump(t, targets.operands[static_cast<std::size_t>(index)].name);
}

void nothing(Thread&, const Instruction&) {}

/// The elements of a vector register; for a scalar operand, only itself.
const Operand& element_of(const Operand& operand, std::uint64_t element) {
  return operand.kind == Operand::Kind::vector ? operand.parts.at(element) : operand;
}

void call(Thread& t, const Instruction& i) {
  // call [(returns),] name [, (arguments)]
  std::size_t at = i.operands[0].kind == Operand::Kind::vector ? 1 : 0;
  const Program& program = t.block->program();
  const Function* callee = program.find(i.operands[at].name);
  if (i.operands[at].kind == Operand::Kind::reg)  // the operand after the arguments is the call's prototype
    for (const Function& function : program.functions)
      if (program.address_of(function.name) == t.get(i.operands[at], {'u', 64})) callee = &function;
  if (callee == nullptr || !callee->defined) throw Unsupported("oracle: call of " + i.operands[at].name);
  if (t.frames.size() > 1000) throw Fault{Outcome::illegal_address};
  Frame frame;
  frame.function = callee;
  frame.call = &i;
  frame.registers.resize(callee->registers.size());
  frame.local_base = t.local.size();
  const std::vector<Operand> none;
  const std::vector<Operand>& arguments = i.operands.size() > at + 1 ? i.operands[at + 1].parts : none;
  for (std::size_t k = 0; k < callee->params.size(); ++k) {
    const Variable& param = callee->params[k];
    if (param.space == Space::generic)
      for (std::uint64_t element = 0; element < param.count; ++element)
        frame.registers[param.offset + element] = t.get(element_of(arguments.at(k), element), param.type);
    else
      frame.params[param.name] = t.frame().params[arguments.at(k).name];
  }
  for (const Variable& result : callee->returns)
    if (result.space != Space::generic) frame.params[result.name].resize(result.size());
  for (const Variable& local : callee->locals)
    if (local.space == Space::param) frame.params[local.name].resize(local.size());
  t.local.resize(t.local.size() + callee->local_bytes);
  t.frames.push_back(std::move(frame));
}

void leave(Thread& t, const Instruction&) {
  if (t.frames.size() == 1) {
    t.state = Thread::State::exited;
    return;
  }
  Frame done = std::move(t.frames.back());
  t.frames.pop_back();
  t.local.resize(done.local_base);
  const std::vector<Variable>& returns = done.function->returns;
  for (std::size_t k = 0; k < returns.size(); ++k) {
    const Operand& target = done.call->operands[0].parts.at(k);
    if (returns[k].space == Space::generic)
      for (std::uint64_t element = 0; element < returns[k].count; ++element)
        t.set(element_of(target, element), done.registers[returns[k].offset + element]);
    else
      t.frame().params[target.name] = done.params[returns[k].name];
  }
}

void exit_thread(Thread& t, const Instruction&) { t.state = Thread::State::exited; }
void trap(Thread&, const Instruction&) { throw Fault{Outcome::trap}; }

std::uint64_t special(Thread& t, const std::string& name) {
  const Launch& launch = t.block->launch;
  static constexpr std::string_view kAxes = "xyz";
  if (name.size() > 2 && name[name.size() - 2] == '.') {
    const std::size_t axis = kAxes.find(name.back());
    const std::string base = name.substr(0, name.size() - 2);
    if (axis != std::string_view::npos) {
      if (base == "%tid") return t.index[axis];
      if (base == "%ntid") return launch.block[axis];
      if (base == "%ctaid") return t.block->index[axis];
      if (base == "%nctaid") return launch.grid[axis];
    }
  }
  const std::uint64_t lane = t.lane();
  if (name == "%laneid") return lane;
  if (name == "%lanemask_eq") return std::uint64_t{1} << lane;
  if (name == "%lanemask_lt") return mask_of(static_cast<unsigned>(lane));
  if (name == "%lanemask_le") return mask_of(static_cast<unsigned>(lane) + 1);
  if (name == "%lanemask_gt") return ~mask_of(static_cast<unsigned>(lane) + 1) & 0xffffffffu;
  if (name == "%lanemask_ge") return ~mask_of(static_cast<unsigned>(lane)) & 0xffffffffu;
  if (name == "WARP_SZ") return 32;
  if (name == "%dynamic_smem_size") return launch.dynamic_shared_bytes;
  throw Unsupported("oracle: special register " + name);
}

}  // namespace

std::uint64_t Thread::get(const Operand& operand, Type type) {
  std::uint64_t bits = operand.bits;
  switch (operand.kind) {
    case Operand::Kind::reg:
      bits = frame().registers[operand.reg];
      break;
    case Operand::Kind::special:
      bits = special(*this, operand.name);
      break;
    case Operand::Kind::symbol:
      bits = block->symbol_address(*this, operand.name, false) + operand.bits;
      break;
    case Operand::Kind::f64:
      if (type.bits == 32) bits = bits_as<std::uint32_t>(static_cast<float>(bits_as<double>(bits)));
      break;
    default:
      break;
  }
  if (operand.negated) bits ^= 1;
  return bits & mask_of(type.bits);
}

void Thread::set(const Operand& operand, std::uint64_t bits) {
  if (operand.kind == Operand::Kind::sink) return;
  if (operand.kind != Operand::Kind::reg) throw Unsupported("oracle: a destination that is no register");
  frame().registers[operand.reg] = bits & mask_of(frame().function->registers[operand.reg].bits);
}

float Thread::get_f32(const Operand& operand) {
  return bits_as<float>(static_cast<std::uint32_t>(get(operand, {'f', 32})));
}
double Thread::get_f64(const Operand& operand) {
  if (operand.kind == Operand::Kind::f32)
    return static_cast<double>(bits_as<float>(static_cast<std::uint32_t>(operand.bits)));
  return bits_as<double>(get(operand, {'f', 64}));
}

Handler find_control_handler(const Instruction& i) {
  static const std::map<std::string, Handler> kRows{{"callprototype", nothing},
                                                    {"calltargets", nothing},
                                                    {"bra", branch},
                                                    {"brx", branch_indexed},
                                                    {"branchtargets", nothing},
                                                    {"call", call},
                                                    {"ret", leave},
                                                    {"exit", exit_thread},
                                                    {"trap", trap},
                                                    {"nanosleep", nothing}};
  const auto found = kRows.find(i.opcode);
  return found == kRows.end() ? nullptr : found->second;
}

Handler find_handler(const Instruction& i) {
  for (const auto find : {find_wide_handler, find_control_handler, find_memory_handler, find_video_handler,
                          find_half_handler, find_float_handler, find_integer_handler})
    if (const Handler handler = find(i); handler != nullptr) return handler;
  return nullptr;
}

void prepare(Program& program) {
  for (Function& function : program.functions)
    for (Instruction& i : function.body) {
      if (is_warp_operation(i))
        i.kind = Instruction::Kind::warp_operation;
      else if (i.opcode == "bar" || i.opcode == "barrier")
        i.kind = Instruction::Kind::barrier;
      else
        i.handler = find_handler(i);
    }
}

}  // namespace quern::oracle
