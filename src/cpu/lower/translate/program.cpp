// SPDX-License-Identifier: Apache-2.0
#include "cpu/lower/translate/program.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace quern::cpu::lower {
namespace {

/// Collects the accesses of one instruction to .param variables, and the symbols that it names.
class Examiner {
 public:
  Examiner(const ptx::Function& function, FunctionFacts& facts) : function_(function), facts_(facts) {}

  void run() {
    facts_.parameters.resize(function_.parameters.size());
    facts_.returns.resize(function_.returns.size());
    facts_.variables.resize(function_.variables.size());
    facts_.is_target.resize(function_.body.size() + 1);
    for (const ptx::Label& label : function_.labels) facts_.is_target[label.position] = true;
    for (const ptx::Instruction& instruction : function_.body) {
      if (instruction.opcode == ptx::Opcode::call) continue;
      for (const ptx::Operand& operand : instruction.operands) examine(instruction, operand);
    }
    split(facts_.parameters, function_.parameters);
    split(facts_.returns, function_.returns);
    split(facts_.variables, function_.variables);
    std::sort(facts_.module_variables.begin(), facts_.module_variables.end());
    const auto end = std::unique(facts_.module_variables.begin(), facts_.module_variables.end());
    facts_.module_variables.erase(end, facts_.module_variables.end());
  }

 private:
  void examine(const ptx::Instruction& instruction, const ptx::Operand& operand) {
    if (const auto* symbol = operand.as<ptx::SymbolOperand>()) {
      name(symbol->symbol);
      if (ParamUse* use = use_of(symbol->symbol)) use->address_taken = true;
    } else if (const auto* address = operand.as<ptx::AddressOperand>();
               address != nullptr && address->symbol) {
      name(*address->symbol);
      access(instruction, *address);
    } else if (const auto* special = operand.as<ptx::SpecialOperand>()) {
      using Register = ptx::SpecialRegister;
      facts_.reserved_shared |= special->which >= Register::reserved_smem_offset_begin &&
                                special->which <= Register::reserved_smem_offset_1;
    } else if (const auto* list = operand.as<ptx::VectorOperand>()) {
      for (const ptx::Operand& element : list->elements) examine(instruction, element);
    }
  }

  void name(const ptx::SymbolRef& symbol) {
    if (symbol.kind == ptx::SymbolKind::module_variable) facts_.module_variables.push_back(symbol.index);
  }

  ParamUse* use_of(const ptx::SymbolRef& symbol) {
    switch (symbol.kind) {
      case ptx::SymbolKind::parameter:
        return &facts_.parameters.at(symbol.index);
      case ptx::SymbolKind::return_parameter:
        return &facts_.returns.at(symbol.index);
      case ptx::SymbolKind::function_variable:
        return &facts_.variables.at(symbol.index);
      default:
        return nullptr;
    }
  }

  void access(const ptx::Instruction& instruction, const ptx::AddressOperand& address) {
    ParamUse* use = use_of(*address.symbol);
    if (use == nullptr) return;
    const std::uint32_t size = ptx::byte_size(instruction.type());
    for (unsigned i = 0; i < instruction.vector_count(); ++i) {
      use->pieces.push_back({static_cast<std::uint32_t>(address.offset) + i * size, size});
    }
  }

  /// Splits accesses into disjoint pieces: cuts at the begin and end of every access and keeps the accessed
  /// pieces.
  static void split(std::vector<ParamUse>& uses, const std::vector<ptx::Variable>& variables) {
    for (std::size_t i = 0; i < uses.size(); ++i) {
      ParamUse& use = uses[i];
      // Variables of other spaces are memory, not pieces.
      if (variables[i].space != ptx::Space::param) continue;
      const std::uint64_t bytes = variables[i].size_bytes();
      if (use.address_taken) use.pieces.push_back({0, static_cast<std::uint32_t>(bytes)});
      std::erase_if(use.pieces, [bytes](const Piece& p) {
        return p.size == 0 || std::uint64_t{p.offset} + p.size > bytes;
      });
      use.pieces = disjoint(use.pieces, use.address_taken);
    }
  }

  static std::vector<Piece> disjoint(const std::vector<Piece>& accesses, bool words) {
    std::set<std::uint32_t> cuts;
    for (const Piece& access : accesses) {
      cuts.insert(access.offset);
      cuts.insert(access.offset + access.size);
      for (std::uint32_t at = 8; words && at < access.size; at += 8) cuts.insert(access.offset + at);
    }
    std::map<std::uint32_t, int> change;  // the number of accesses that begin minus those that end at a cut
    for (const Piece& access : accesses) {
      ++change[access.offset];
      --change[access.offset + access.size];
    }
    std::vector<Piece> pieces;
    int covering = 0;
    for (auto cut = cuts.begin(); cut != cuts.end(); ++cut) {
      if (const auto found = change.find(*cut); found != change.end()) covering += found->second;
      if (covering > 0) add_powers_of_two(pieces, *cut, *std::next(cut));
    }
    return pieces;
  }

  static void add_powers_of_two(std::vector<Piece>& pieces, std::uint32_t begin, std::uint32_t end) {
    while (begin < end) {
      std::uint32_t size = 8;
      while (size > end - begin) size /= 2;
      pieces.push_back({begin, size});
      begin += size;
    }
  }

  const ptx::Function& function_;
  FunctionFacts& facts_;
};

/// True if a caller can pass these parameters in the same way.
bool same_layout(const std::vector<ptx::Variable>& a, const std::vector<ptx::Variable>& b) {
  const auto same = [](const ptx::Variable& x, const ptx::Variable& y) {
    const bool same_elements = x.space != ptx::Space::reg || x.vector == y.vector;
    return x.space == y.space && x.size_bytes() == y.size_bytes() && same_elements;
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

}  // namespace

std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) {
  return alignment <= 1 ? value : (value + alignment - 1) / alignment * alignment;
}

bool is_dynamic_shared(const ptx::Variable& variable) {
  return variable.space == ptx::Space::shared &&
         (variable.linkage == ptx::Linkage::extern_ || variable.element_count() == 0);
}

Program::Program(const ptx::Module& module, std::uint32_t kernel) : module_(module), functions_{kernel} {
  std::vector<std::uint32_t> work{kernel};
  while (!work.empty()) {
    const std::uint32_t function = work.back();
    work.pop_back();
    if (facts_.contains(function)) continue;
    examine(function);
    const auto& callees = facts_.at(function).callees;
    work.insert(work.end(), callees.begin(), callees.end());
  }
  find_recursion(kernel);
  find_exits();
  lay_out_shared();
}

/// Finds the functions whose addresses are taken anywhere in the module, in ascending order. Called only if a
/// call needs them, since otherwise every kernel would scan the whole module.
void Program::find_address_taken() {
  if (std::exchange(address_taken_known_, true)) return;
  const auto add = [&](std::uint32_t function) {
    if (const std::uint32_t index = definition(function); index != ptx::kNoIndex)
      address_taken_.push_back(index);
  };
  for (const ptx::Variable& variable : module_.variables)
    for (const ptx::Initializer& initializer : variable.initializer) {
      const ptx::Function* function =
          initializer.symbol.empty() ? nullptr : module_.find_function(initializer.symbol);
      if (function != nullptr) add(static_cast<std::uint32_t>(function - module_.functions.data()));
    }
  for (const ptx::Function& function : module_.functions)
    for (const ptx::Instruction& instruction : function.body) {
      if (instruction.opcode == ptx::Opcode::call) continue;
      for (const ptx::Operand& operand : instruction.operands)
        if (const auto* symbol = operand.as<ptx::SymbolOperand>();
            symbol != nullptr && symbol->symbol.kind == ptx::SymbolKind::function)
          add(symbol->symbol.index);
    }
  std::sort(address_taken_.begin(), address_taken_.end());
  address_taken_.erase(std::unique(address_taken_.begin(), address_taken_.end()), address_taken_.end());
}

std::vector<std::uint32_t> Program::indirect_targets(const ptx::Function& caller,
                                                     const ptx::Instruction& call) {
  const auto* named = call.operands.size() > 3 ? call.operands[3].as<ptx::SymbolOperand>() : nullptr;
  if (named == nullptr) return {};
  std::vector<std::uint32_t> result;
  if (named->symbol.kind == ptx::SymbolKind::branch_table) {
    for (const ptx::SymbolRef& target : caller.branch_tables.at(named->symbol.index).targets)
      if (const std::uint32_t index = definition(target.index); index != ptx::kNoIndex)
        result.push_back(index);
    return result;
  }
  if (named->symbol.kind != ptx::SymbolKind::call_prototype) return {};
  find_address_taken();
  const ptx::CallPrototype& prototype = caller.prototypes.at(named->symbol.index);
  for (const std::uint32_t index : address_taken_) {
    const ptx::Function& function = module_.functions[index];
    if (!function.entry && same_layout(function.parameters, prototype.parameters) &&
        same_layout(function.returns, prototype.returns))
      result.push_back(index);
  }
  return result;
}

void Program::examine(std::uint32_t function) {
  FunctionFacts& facts = facts_[function];
  order_.push_back(function);
  const ptx::Function& f = module_.functions[function];
  Examiner(f, facts).run();
  for (const ptx::Instruction& instruction : f.body) {
    facts.ends_threads |= instruction.opcode == ptx::Opcode::exit;
    if (instruction.opcode != ptx::Opcode::call || instruction.operands.size() < 2) continue;
    const auto* callee = instruction.operands[1].as<ptx::SymbolOperand>();
    if (callee == nullptr) {
      const std::vector<std::uint32_t> targets = indirect_targets(f, instruction);
      facts.callees.insert(facts.callees.end(), targets.begin(), targets.end());
      continue;
    }
    if (callee->symbol.kind != ptx::SymbolKind::function) continue;
    if (const std::uint32_t index = definition(callee->symbol.index); index != ptx::kNoIndex)
      facts.callees.push_back(index);
  }
  std::sort(facts.callees.begin(), facts.callees.end());
  facts.callees.erase(std::unique(facts.callees.begin(), facts.callees.end()), facts.callees.end());
}

// Tarjan's strongly connected components, with an explicit stack, since the input determines the depth of the
// call graph.
void Program::find_recursion(std::uint32_t kernel) {
  struct Node {
    std::uint32_t index = 0;
    std::uint32_t low = 0;
    bool on_stack = false;
  };
  struct Step {
    std::uint32_t function;
    std::size_t next;
  };
  std::map<std::uint32_t, Node> nodes;
  std::vector<std::uint32_t> stack;
  std::vector<Step> steps;
  const auto enter = [&](std::uint32_t function) {
    const auto index = static_cast<std::uint32_t>(nodes.size() + 1);
    nodes[function] = {index, index, true};
    stack.push_back(function);
    steps.push_back({function, 0});
  };
  enter(kernel);
  while (!steps.empty()) {
    const std::uint32_t function = steps.back().function;
    FunctionFacts& facts = facts_.at(function);
    Node& node = nodes[function];
    if (steps.back().next < facts.callees.size()) {
      const std::uint32_t callee = facts.callees[steps.back().next++];
      if (callee == function) facts.recursive = true;
      const auto known = nodes.find(callee);
      if (known == nodes.end()) {
        enter(callee);
      } else if (known->second.on_stack) {
        node.low = std::min(node.low, known->second.index);
      }
      continue;
    }
    steps.pop_back();
    if (!steps.empty()) {
      Node& caller = nodes[steps.back().function];
      caller.low = std::min(caller.low, node.low);
    }
    if (node.low != node.index) continue;
    const bool several = stack.back() != function;
    for (bool last = false; !last;) {
      last = stack.back() == function;
      nodes[stack.back()].on_stack = false;
      if (several) facts_.at(stack.back()).recursive = true;
      stack.pop_back();
    }
  }
}

void Program::find_exits() {
  for (bool changed = true; changed;) {
    changed = false;
    for (auto& [function, facts] : facts_) {
      const auto ends = [&](std::uint32_t callee) { return facts_.at(callee).ends_threads; };
      if (facts.ends_threads || std::none_of(facts.callees.begin(), facts.callees.end(), ends)) continue;
      facts.ends_threads = changed = true;
    }
  }
}

void Program::lay_out_shared() {
  std::set<std::uint32_t> used;
  for (const auto& [function, facts] : facts_)
    used.insert(facts.module_variables.begin(), facts.module_variables.end());
  for (const std::uint32_t index : used) place_shared(module_.variables[index]);
  for (const std::uint32_t function : order_) {
    for (const ptx::Variable& variable : module_.functions[function].variables) place_shared(variable);
  }
  declared_shared_bytes = static_shared_bytes;
  const auto reserves = [](const auto& entry) { return entry.second.reserved_shared; };
  if (std::any_of(facts_.begin(), facts_.end(), reserves)) {
    reserved_shared_offset = align_up(static_shared_bytes, 128);
    static_shared_bytes = reserved_shared_offset + kReservedSharedBytes;
  }
  // Dynamic shared memory starts after all static variables, aligned to 16, the size of PTX's largest access.
  if (dynamic_align_ != 0) static_shared_bytes = align_up(static_shared_bytes, dynamic_align_);
  for (auto& [variable, offset] : shared_offsets_) {
    if (is_dynamic_shared(*variable)) offset = static_shared_bytes;
  }
  for (const std::uint32_t index : used) {
    if (module_.variables[index].space == ptx::Space::shared) symbol(index);
  }
}

void Program::place_shared(const ptx::Variable& variable) {
  if (variable.space != ptx::Space::shared) return;
  if (is_dynamic_shared(variable)) {
    dynamic_align_ = std::max<std::uint64_t>({dynamic_align_, 16, variable.align});
    shared_offsets_[&variable] = 0;
    return;
  }
  const std::uint64_t offset = align_up(static_shared_bytes, variable.align);
  shared_offsets_[&variable] = offset;
  static_shared_bytes = offset + variable.size_bytes();
}

std::uint64_t Program::shared_offset(const ptx::Variable& variable) const {
  return shared_offsets_.at(&variable);
}

std::uint32_t Program::symbol(std::uint32_t module_variable) {
  if (const auto known = symbol_of_.find(module_variable); known != symbol_of_.end()) return known->second;
  const ptx::Variable& variable = module_.variables[module_variable];
  ir::Symbol symbol{.name = variable.name, .size = variable.size_bytes(), .align = variable.align};
  if (variable.space == ptx::Space::const_) symbol.space = ir::Space::constant;
  if (variable.space == ptx::Space::shared) {
    symbol.space = ir::Space::shared;
    symbol.shared_offset = shared_offset(variable);
    if (is_dynamic_shared(variable)) symbol.size = 0;
  }
  const auto index = static_cast<std::uint32_t>(symbols.size());
  symbols.push_back(std::move(symbol));
  symbol_of_[module_variable] = index;
  return index;
}

std::uint32_t Program::function_index(std::uint32_t function) {
  const auto known = std::find(functions_.begin(), functions_.end(), function);
  if (known != functions_.end()) return static_cast<std::uint32_t>(known - functions_.begin());
  functions_.push_back(function);
  return static_cast<std::uint32_t>(functions_.size() - 1);
}

}  // namespace quern::cpu::lower
