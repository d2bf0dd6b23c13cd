// SPDX-License-Identifier: Apache-2.0
// Rejects operations that the emitter does not support, before anything is emitted.
#include <string>

#include "cpu/emit/emit.hpp"
#include "cpu/emit/operations/context.hpp"

namespace quern::cpu::emit {
namespace {

/// True for operations that the code for control flow emits.
bool is_flow(ir::Op op) {
  switch (op) {
    case ir::Op::phi:
    case ir::Op::extract:
    case ir::Op::barrier:
    case ir::Op::barrier_arrive:
    case ir::Op::barrier_reduce:
    case ir::Op::br:
    case ir::Op::cond_br:
    case ir::Op::switch_br:
    case ir::Op::ret:
    case ir::Op::exit:
    case ir::Op::trap:
    case ir::Op::call:
    case ir::Op::arg:
    case ir::Op::set_result:
      return true;
    default:
      return false;
  }
}

class Checker {
 public:
  explicit Checker(const ir::Module& module) : module_(module) {}

  Expected<void> run() {
    for (const ir::Function& function : module_.functions) check(function);
    if (errors_.empty()) return {};
    return std::move(errors_);
  }

 private:
  void check(const ir::Function& function) {
    for (const ir::Block& block : function.blocks)
      for (const ir::Value value : block.insts) check(function, value);
  }

  void check(const ir::Function& function, ir::Value value) {
    const ir::Inst& inst = function[value];
    if (!is_flow(inst.op) && !can_emit(inst))
      refuse(function, value,
             "the operation '" + std::string(ir::name(inst.op)) + "'" +
                 (can_emit(inst.op) ? " in this form" : ""),
             "the CPU device has no code for it yet", "");
    else if (ir::is_barrier(inst.op) && !function.kernel)
      refuse(function, value, "a barrier in the recursive function " + function.name,
             "such functions are made parts of the kernel before (lower/activations)", "");
    else if (inst.op == ir::Op::exit && !function.kernel)
      refuse(function, value, "'exit' in the recursive function " + function.name,
             "a thread that ends there has returned to its kernel first (lower/params)", "");
  }

  void refuse(const ir::Function& function, ir::Value value, const std::string& what,
              const std::string& reason, const std::string& hint) {
    Diagnostic error;
    error.code = "ptx-unsupported";
    error.message = what + " in kernel " + module_.functions[0].name + ": " + reason;
    error.hint = hint;
    if (value != ir::kNone && function[value].location != ir::kNone) {
      const ir::Location& at = function.locations[function[value].location];
      error.span = {at.file, at.line, at.column, 0};
      if (at.ptx_line != 0) error.message += " (PTX line " + std::to_string(at.ptx_line) + ")";
    }
    errors_.push_back(std::move(error));
  }

  const ir::Module& module_;
  Diagnostics errors_;
};

}  // namespace

Expected<void> check_emittable(const ir::Module& module) { return Checker(module).run(); }

}  // namespace quern::cpu::emit
