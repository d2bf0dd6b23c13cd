// SPDX-License-Identifier: Apache-2.0
// Calls: inlined, or to a recursive function, or carried out by the host.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "cpu/lower/translator.hpp"

namespace quern::cpu::lower {

using ir::Op;
using ir::Value;

namespace {

// The limit for inlining: far above real kernels, far below sizes that would exhaust memory or the stack.
constexpr std::size_t kMaxInstructions = 500'000;
constexpr std::uint32_t kMaxDepth = 200;

struct HostFunction {
  std::string_view name;
  ir::HostCall call;
  std::size_t arguments;
  bool returns;
};
constexpr HostFunction kHostFunctions[] = {
    {"vprintf", ir::HostCall::vprintf, 2, true},
    {"__assertfail", ir::HostCall::assertfail, 5, false},
    {"malloc", ir::HostCall::malloc, 1, true},
    {"free", ir::HostCall::free, 1, false},
};

std::vector<ptx::Operand> list(const ptx::Operand& operand) {
  const auto* vector = operand.as<ptx::VectorOperand>();
  return vector == nullptr ? std::vector<ptx::Operand>{} : vector->elements;
}

bool has_vector_register(const std::vector<ptx::Variable>& variables) {
  return std::any_of(variables.begin(), variables.end(),
                     [](const ptx::Variable& v) { return v.space == ptx::Space::reg && v.vector > 1; });
}

bool same_length(const std::vector<ptx::Operand>& actual, const std::vector<ptx::Variable>& formal) {
  return actual.size() == formal.size();
}

}  // namespace

void Translator::call(const ptx::Instruction& instruction) {
  const auto arguments =
      instruction.operands.size() > 2 ? list(instruction.operands[2]) : std::vector<ptx::Operand>{};
  const auto results = list(operand(instruction, 0));
  const auto* callee = operand(instruction, 1).as<ptx::SymbolOperand>();
  if (callee == nullptr) return call_through(instruction, arguments, results);
  if (callee->symbol.kind != ptx::SymbolKind::function) return refuse("what is called is not a function");
  const ptx::Function& declared = program_.ptx().functions.at(callee->symbol.index);
  if (!same_length(arguments, declared.parameters) || !same_length(results, declared.returns)) {
    return refuse(fmt::format("the call does not fit the parameters of '{}'", declared.name));
  }
  if (has_vector_register(declared.parameters) || has_vector_register(declared.returns)) {
    return refuse("vector registers as parameters are not implemented");
  }
  const std::uint32_t definition = program_.definition(callee->symbol.index);
  if (definition == ptx::kNoIndex) {
    if (!call_host(declared, arguments, results)) {
      refuse(fmt::format(
          "the module has no body for function '{}', and it is none of those that the device provides "
          "(vprintf, __assertfail, malloc, free)",
          declared.name));
    }
  } else {
    call_definition(instruction, definition, arguments, results);
  }
}

void Translator::call_definition(const ptx::Instruction& instruction, std::uint32_t callee,
                                 const Operands& arguments, const Operands& results) {
  if (program_.facts(callee).recursive)
    call_function(callee, arguments, results);
  else
    inline_call(instruction, callee, arguments, results);
}

// A call through a register: the functions that it may reach are known, so it is a choice among calls.
void Translator::call_through(const ptx::Instruction& instruction, const Operands& arguments,
                              const Operands& results) {
  const auto targets = program_.indirect_targets(*frame_->function, instruction);
  const Value address =
      resize(read(operand(instruction, 1), register_type(operand(instruction, 1))), ir::Type::i64, false);
  const ir::BlockId after = new_block();
  for (const std::uint32_t target : targets) {
    const ptx::Function& function = program_.ptx().functions.at(target);
    if (!same_length(arguments, function.parameters) || !same_length(results, function.returns))
      return refuse(fmt::format("the call does not fit the parameters of '{}'", function.name));
    if (has_vector_register(function.parameters) || has_vector_register(function.returns))
      return refuse("vector registers as parameters are not implemented");
    const ir::BlockId chosen = new_block();
    const ir::BlockId other = new_block();
    branch_if(compare(ir::Icmp::eq, address, constant(ir::Type::i64, ir::function_address(target))), chosen,
              other);
    block_ = chosen;
    call_definition(instruction, target, arguments, results);
    if (block_ != ir::kNone) branch(after);
    block_ = other;
  }
  // Not a function of this module that fits: as a GPU's jump to nowhere.
  fault(ir::Trap::unreachable);
  branch(after);
  block_ = after;
}

void Translator::store_argument(ParamArray& to, const ptx::Variable& formal, const ptx::Operand& actual) {
  const auto* symbol = actual.as<ptx::SymbolOperand>();
  const ParamArray* from = symbol == nullptr ? nullptr : param_array(symbol->symbol);
  if (from == nullptr) return write_param(to, 0, read(actual, formal.type));
  for (const ParamArray::Slot& slot : to.slots) {
    write_param(to, slot.piece.offset,
                read_param(*from, slot.piece.offset, draft_.variable_types[slot.variable]));
  }
}

void Translator::fetch_result(const ParamArray& from, const ptx::Variable& formal,
                              const ptx::Operand& destination) {
  const auto* symbol = destination.as<ptx::SymbolOperand>();
  ParamArray* to = symbol == nullptr ? nullptr : param_array(symbol->symbol);
  if (to == nullptr)
    return write(destination, read_param(from, 0, ir_type(formal.type)), is_signed(formal.type));
  for (const ParamArray::Slot& slot : to->slots) {
    write_param(*to, slot.piece.offset,
                read_param(from, slot.piece.offset, draft_.variable_types[slot.variable]));
  }
}

void Translator::inline_call(const ptx::Instruction& instruction, std::uint32_t callee,
                             const Operands& arguments, const Operands& results) {
  if (depth_ >= kMaxDepth) return refuse(fmt::format("calls are nested more than {} deep", kMaxDepth));
  if (draft_.function.insts.size() > kMaxInstructions) {
    return refuse(
        fmt::format("the kernel has more than {} instructions with its callees inlined", kMaxInstructions));
  }
  Frame frame{.function = &program_.ptx().functions.at(callee),
              .facts = &program_.facts(callee),
              .caller = frame_,
              .call_location = location_,
              .return_block = new_block(),
              .local_end = frame_->local_end};
  set_up(frame);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    store_argument(frame.parameters[i], frame.function->parameters[i], arguments[i]);
  }
  Frame* const caller = std::exchange(frame_, &frame);
  ++depth_;
  translate_body();
  --depth_;
  frame_ = caller;
  block_ = frame.return_block;
  instruction_ = &instruction;
  location_ = frame.call_location;
  for (std::size_t i = 0; i < results.size(); ++i)
    fetch_result(frame.returns[i], frame.function->returns[i], results[i]);
}

/// A .param array of the caller for the bytes that `use` describes.
ParamArray Translator::exchange_array(const ParamUse& use) {
  ParamArray array;
  for (const Piece& piece : use.pieces)
    array.slots.push_back({piece, draft_.new_variable(integer_type(piece.size * 8))});
  return array;
}

std::vector<Value> Translator::argument_values(std::uint32_t callee, const Operands& arguments) {
  const ptx::Function& function = program_.ptx().functions.at(callee);
  std::vector<Value> values;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (function.parameters[i].space == ptx::Space::reg) {
      values.push_back(read(arguments[i], function.parameters[i].type));
      continue;
    }
    ParamArray array = exchange_array(program_.facts(callee).parameters[i]);
    store_argument(array, function.parameters[i], arguments[i]);
    for (const ParamArray::Slot& slot : array.slots) values.push_back(read_variable(slot.variable));
  }
  return values;
}

void Translator::call_function(std::uint32_t callee, const Operands& arguments, const Operands& results) {
  const ptx::Function& function = program_.ptx().functions.at(callee);
  std::vector<Value> values = argument_values(callee, arguments);
  std::vector<ParamArray> returned;
  for (std::size_t i = 0; i < results.size(); ++i) {
    ParamUse use = program_.facts(callee).returns[i];
    if (function.returns[i].space == ptx::Space::reg)
      use.pieces = {{0, ptx::byte_size(function.returns[i].type)}};
    returned.push_back(exchange_array(use));
  }
  const std::vector<Value> got = calls_ == CallForm::activations
                                     ? activate(callee, values)
                                     : emit_call(callee, std::move(values), returned);
  auto next = got.begin();
  for (const ParamArray& array : returned)
    for (const ParamArray::Slot& slot : array.slots) {
      if (next == got.end()) break;  // refused
      write_variable(slot.variable, resize(*next++, draft_.variable_types[slot.variable], false));
    }
  for (std::size_t i = 0; i < results.size(); ++i) fetch_result(returned[i], function.returns[i], results[i]);
}

/// Calls the callee as a function of the IR; returns its results, part by part.
std::vector<Value> Translator::emit_call(std::uint32_t callee, std::vector<Value> values,
                                         const std::vector<ParamArray>& returned) {
  std::vector<ir::Type> types;
  for (const ParamArray& array : returned)
    for (const ParamArray::Slot& slot : array.slots) types.push_back(draft_.variable_types[slot.variable]);
  const bool ends_threads = program_.facts(callee).ends_threads;
  if (ends_threads) types.push_back(ir::Type::i32);
  if (types.size() > 255) {
    refuse("a result of more than 255 parts is not implemented for recursive functions");
    return {};
  }
  const Value call =
      emit(Op::call, ir::Type::none, std::move(values), {.count = static_cast<std::uint8_t>(types.size())},
           program_.function_index(callee));
  std::vector<Value> got;
  for (const ir::Type type : types) got.push_back(emit(Op::extract, type, {call}, {}, got.size()));
  if (ends_threads) {
    end_where(got.back());
    got.pop_back();
  }
  return got;
}

/// Those of the callers' threads that have ended in the call go no further.
void Translator::end_where(Value ended) {
  const ir::BlockId next = new_block();
  branch_if(compare(ir::Icmp::ne, ended, constant(ir::Type::i32, 0)), exit_block_, next);
  block_ = next;
}

bool Translator::call_host(const ptx::Function& declared, const Operands& arguments,
                           const Operands& results) {
  const auto row = std::find_if(std::begin(kHostFunctions), std::end(kHostFunctions),
                                [&](const HostFunction& f) { return f.name == declared.name; });
  if (row == std::end(kHostFunctions) || arguments.size() != row->arguments) return false;
  std::vector<Value> values;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const ptx::Variable& formal = declared.parameters[i];
    ParamArray array = exchange_array({.pieces = {{0, ptx::byte_size(formal.type)}}});
    store_argument(array, formal, arguments[i]);
    values.push_back(resize(read_variable(array.slots[0].variable), ir::Type::i64, false));
  }
  const ir::Type type = row->returns ? ir::Type::i64 : ir::Type::none;
  const Value result =
      emit(Op::host_call, type, std::move(values), {}, static_cast<std::uint64_t>(row->call));
  if (!row->returns || results.empty()) return true;
  ParamArray array = exchange_array({.pieces = {{0, ptx::byte_size(declared.returns[0].type)}}});
  write_variable(array.slots[0].variable,
                 resize(result, draft_.variable_types[array.slots[0].variable], false));
  fetch_result(array, declared.returns[0], results[0]);
  return true;
}

}  // namespace quern::cpu::lower
