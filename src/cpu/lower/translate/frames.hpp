// SPDX-License-Identifier: Apache-2.0
// Sets up the frames of functions: variables for registers, offsets in local memory, a kernel's parameter
// buffer, and the arguments and results of functions that stay functions of the IR.
#pragma once

#include "cpu/lower/translate/param_arrays.hpp"

namespace quern::cpu::lower {

class Frames {
 public:
  Frames(Operands& translation, ParamArrays& params) : t_(translation), params_(params) {}

  void set_up(Frame& frame);

  // For the kernel.
  void lay_out_kernel_parameters(const ptx::Function& function);
  /// The parameter buffer has no generic address here. A kernel that takes one works on a copy in local
  /// memory.
  void copy_parameter_buffer(Frame& frame);
  /// The offset of that copy in local memory.
  std::uint32_t parameter_copy() const { return parameter_copy_; }
  /// 0 if no instruction takes a generic address of a parameter: there is no copy.
  std::uint32_t parameter_copy_bytes() const { return parameter_copy_bytes_; }

  // For a function of the IR that is called.
  void declare_arguments(Frame& frame);
  /// A thread that ends in a called function returns, and the function's last result is 1: the caller then
  /// returns, too.
  void declare_end(Frame& frame);
  void emit_results(Frame& frame);

  /// The block in which threads end.
  ir::BlockId exit_block() const { return exit_block_; }
  void set_exit_block(ir::BlockId block) { exit_block_ = block; }

 private:
  void set_up_params(Frame& frame, std::vector<ParamArray>& arrays,
                     const std::vector<ptx::Variable>& variables, const std::vector<ParamUse>& uses);
  std::uint32_t reserve_local(Frame& frame, std::uint64_t size, std::uint32_t align);

  Operands& t_;
  ParamArrays& params_;
  ir::BlockId exit_block_ = ir::kNone;
  Variable ended_ = 0;  ///< of a function that is called and may end threads: 1 in those that have ended
  std::uint32_t parameter_copy_ = 0;
  std::uint32_t parameter_copy_bytes_ = 0;
};

}  // namespace quern::cpu::lower
