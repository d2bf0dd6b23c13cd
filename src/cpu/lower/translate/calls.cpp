// SPDX-License-Identifier: Apache-2.0
#include "cpu/lower/translate/calls.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <iterator>
#include <utility>

namespace quern::cpu::lower {

using ir::Op;
using ir::Value;

namespace {

// The limit for inlining: much more than real kernels have, much less than would exhaust memory or the stack.
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

bool same_length(const std::vector<ptx::Operand>& actual, const std::vector<ptx::Variable>& formal) {
  return actual.size() == formal.size();
}

}  // namespace

void Calls::call(const ptx::Instruction& instruction) {
  const auto arguments =
      instruction.operands.size() > 2 ? list(instruction.operands[2]) : std::vector<ptx::Operand>{};
  const auto results = list(t_.operand(instruction, 0));
  const auto* callee = t_.operand(instruction, 1).as<ptx::SymbolOperand>();
  if (callee == nullptr) return call_through(instruction, arguments, results);
  if (callee->symbol.kind != ptx::SymbolKind::function)
    return t_.refuse("the target of the call is not a function");
  const ptx::Function& declared = t_.program().ptx().functions.at(callee->symbol.index);
  if (!same_length(arguments, declared.parameters) || !same_length(results, declared.returns)) {
    return t_.refuse(fmt::format("the call does not fit the parameters of '{}'", declared.name));
  }
  const std::uint32_t definition = t_.program().definition(callee->symbol.index);
  if (definition == ptx::kNoIndex) {
    if (!call_host(declared, arguments, results)) {
      t_.refuse(fmt::format(
          "the module has no body for function '{}', and it is none of those that the device provides "
          "(vprintf, __assertfail, malloc, free)",
          declared.name));
    }
  } else {
    call_definition(instruction, definition, arguments, results);
  }
}

void Calls::call_definition(const ptx::Instruction& instruction, std::uint32_t callee,
                            const Arguments& arguments, const Arguments& results) {
  if (t_.program().facts(callee).recursive)
    call_function(callee, arguments, results);
  else
    inline_call(instruction, callee, arguments, results);
}

void Calls::call_through(const ptx::Instruction& instruction, const Arguments& arguments,
                         const Arguments& results) {
  const auto targets = t_.program().indirect_targets(*t_.frame().function, instruction);
  const Value address =
      t_.resize(t_.read(t_.operand(instruction, 1), t_.register_type(t_.operand(instruction, 1))),
                ir::Type::i64, false);
  const ir::BlockId after = t_.new_block();
  for (const std::uint32_t target : targets) {
    const ptx::Function& function = t_.program().ptx().functions.at(target);
    if (!same_length(arguments, function.parameters) || !same_length(results, function.returns))
      return t_.refuse(fmt::format("the call does not fit the parameters of '{}'", function.name));
    const ir::BlockId chosen = t_.new_block();
    const ir::BlockId other = t_.new_block();
    t_.branch_if(t_.compare(ir::Icmp::eq, address, t_.constant(ir::Type::i64, ir::function_address(target))),
                 chosen, other);
    t_.set_block(chosen);
    call_definition(instruction, target, arguments, results);
    if (t_.block() != ir::kNone) t_.branch(after);
    t_.set_block(other);
  }
  // The register holds no function of this module that fits the call. The GPU would jump to an invalid
  // address.
  t_.fault(ir::Trap::unreachable);
  t_.branch(after);
  t_.set_block(after);
}

void Calls::inline_call(const ptx::Instruction& instruction, std::uint32_t callee, const Arguments& arguments,
                        const Arguments& results) {
  if (depth_ >= kMaxDepth) return t_.refuse(fmt::format("calls are nested more than {} deep", kMaxDepth));
  if (t_.builder().function.insts.size() > kMaxInstructions) {
    return t_.refuse(
        fmt::format("the kernel has more than {} instructions with its callees inlined", kMaxInstructions));
  }
  Frame* const caller = &t_.frame();
  Frame frame{.function = &t_.program().ptx().functions.at(callee),
              .facts = &t_.program().facts(callee),
              .caller = caller,
              .region = caller->region,
              .call_location = t_.location(),
              .return_block = t_.new_block(),
              .local_end = caller->local_end};
  frames_.set_up(frame);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    params_.store_argument(frame.parameters[i], frame.function->parameters[i], arguments[i]);
  }
  t_.set_frame(&frame);
  ++depth_;
  translate_body_();
  --depth_;
  t_.set_frame(caller);
  t_.set_block(frame.return_block);
  t_.resume(instruction, frame.call_location);
  for (std::size_t i = 0; i < results.size(); ++i)
    params_.fetch_result(frame.returns[i], frame.function->returns[i], results[i]);
}

std::vector<Value> Calls::argument_values(std::uint32_t callee, const Arguments& arguments) {
  const ptx::Function& function = t_.program().ptx().functions.at(callee);
  std::vector<Value> values;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (function.parameters[i].space == ptx::Space::reg) {
      for (const ptx::Operand& element : t_.elements(arguments[i]))
        values.push_back(t_.read(element, function.parameters[i].type));
      continue;
    }
    ParamArray array = params_.make(t_.program().facts(callee).parameters[i]);
    params_.store_argument(array, function.parameters[i], arguments[i]);
    for (const ParamArray::Slot& slot : array.slots) values.push_back(t_.read_variable(slot.variable));
  }
  return values;
}

void Calls::call_function(std::uint32_t callee, const Arguments& arguments, const Arguments& results) {
  const ptx::Function& function = t_.program().ptx().functions.at(callee);
  std::vector<Value> values = argument_values(callee, arguments);
  std::vector<ParamArray> returned;
  for (std::size_t i = 0; i < results.size(); ++i) {
    ParamUse use = t_.program().facts(callee).returns[i];
    if (function.returns[i].space == ptx::Space::reg) use.pieces = pieces_of_registers(function.returns[i]);
    returned.push_back(params_.make(use));
  }
  const std::vector<Value> got = form_ == CallForm::activations
                                     ? activations_.activate(callee, values)
                                     : emit_call(callee, std::move(values), returned);
  auto next = got.begin();
  for (const ParamArray& array : returned)
    for (const ParamArray::Slot& slot : array.slots) {
      if (next == got.end()) break;  // the call was refused
      t_.write_variable(slot.variable, t_.resize(*next++, t_.variable_type(slot.variable), false));
    }
  for (std::size_t i = 0; i < results.size(); ++i)
    params_.fetch_result(returned[i], function.returns[i], results[i]);
}

std::vector<Value> Calls::emit_call(std::uint32_t callee, std::vector<Value> values,
                                    const std::vector<ParamArray>& returned) {
  std::vector<ir::Type> types;
  for (const ParamArray& array : returned)
    for (const ParamArray::Slot& slot : array.slots) types.push_back(t_.variable_type(slot.variable));
  const bool ends_threads = t_.program().facts(callee).ends_threads;
  if (ends_threads) types.push_back(ir::Type::i32);
  if (types.size() > 255) {
    t_.refuse("a result of more than 255 parts is not implemented for recursive functions");
    return {};
  }
  const Value call =
      t_.emit(Op::call, ir::Type::none, std::move(values), {.count = static_cast<std::uint8_t>(types.size())},
              t_.program().function_index(callee));
  std::vector<Value> got;
  for (const ir::Type type : types) got.push_back(t_.emit(Op::extract, type, {call}, {}, got.size()));
  if (ends_threads) {
    end_where(got.back());
    got.pop_back();
  }
  return got;
}

void Calls::end_where(Value ended) {
  const ir::BlockId next = t_.new_block();
  t_.branch_if(t_.compare(ir::Icmp::ne, ended, t_.constant(ir::Type::i32, 0)), frames_.exit_block(), next);
  t_.set_block(next);
}

bool Calls::call_host(const ptx::Function& declared, const Arguments& arguments, const Arguments& results) {
  const auto row = std::find_if(std::begin(kHostFunctions), std::end(kHostFunctions),
                                [&](const HostFunction& f) { return f.name == declared.name; });
  if (row == std::end(kHostFunctions) || arguments.size() != row->arguments) return false;
  std::vector<Value> values;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const ptx::Variable& formal = declared.parameters[i];
    ParamArray array = params_.make({.pieces = {{0, ptx::byte_size(formal.type)}}});
    params_.store_argument(array, formal, arguments[i]);
    values.push_back(t_.resize(t_.read_variable(array.slots[0].variable), ir::Type::i64, false));
  }
  const ir::Type type = row->returns ? ir::Type::i64 : ir::Type::none;
  const Value result =
      t_.emit(Op::host_call, type, std::move(values), {}, static_cast<std::uint64_t>(row->call));
  if (!row->returns || results.empty()) return true;
  ParamArray array = params_.make({.pieces = {{0, ptx::byte_size(declared.returns[0].type)}}});
  t_.write_variable(array.slots[0].variable,
                    t_.resize(result, t_.variable_type(array.slots[0].variable), false));
  params_.fetch_result(array, declared.returns[0], results[0]);
  return true;
}

}  // namespace quern::cpu::lower
