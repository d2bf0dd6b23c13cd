// SPDX-License-Identifier: Apache-2.0
// Lowers calls: inlines the callee, calls a recursive function, or lets the host carry the call out.
#pragma once

#include <functional>

#include "cpu/lower/translate/activations.hpp"
#include "cpu/lower/translate/frames.hpp"

namespace quern::cpu::lower {

class Calls {
 public:
  /// `translate_body` translates the body of the current frame's function.
  Calls(Operands& translation, ParamArrays& params, Frames& frames, Activations& activations, CallForm form,
        std::function<void()> translate_body)
      : t_(translation),
        params_(params),
        frames_(frames),
        activations_(activations),
        form_(form),
        translate_body_(std::move(translate_body)) {}

  void call(const ptx::Instruction& instruction);

 private:
  using Arguments = std::vector<ptx::Operand>;
  void call_through(const ptx::Instruction& instruction, const Arguments& arguments,
                    const Arguments& results);
  void call_definition(const ptx::Instruction& instruction, std::uint32_t callee, const Arguments& arguments,
                       const Arguments& results);
  void inline_call(const ptx::Instruction& instruction, std::uint32_t callee, const Arguments& arguments,
                   const Arguments& results);
  void call_function(std::uint32_t callee, const Arguments& arguments, const Arguments& results);
  std::vector<ir::Value> argument_values(std::uint32_t callee, const Arguments& arguments);
  std::vector<ir::Value> emit_call(std::uint32_t callee, std::vector<ir::Value> values,
                                   const std::vector<ParamArray>& returned);
  void end_where(ir::Value ended);
  bool call_host(const ptx::Function& declared, const Arguments& arguments, const Arguments& results);

  Operands& t_;
  ParamArrays& params_;
  Frames& frames_;
  Activations& activations_;
  const CallForm form_;
  const std::function<void()> translate_body_;
  std::uint32_t depth_ = 0;
};

}  // namespace quern::cpu::lower
