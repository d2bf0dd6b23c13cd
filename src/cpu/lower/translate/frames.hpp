// SPDX-License-Identifier: Apache-2.0
// Sets up the frames of functions: variables for registers, offsets in local memory, the parameter buffer of
// a kernel, and the arguments and results of functions that are not inlined.
#pragma once

#include "cpu/lower/translate/param_arrays.hpp"

namespace quern::cpu::lower {

class Frames {
 public:
  Frames(Operands& translation, ParamArrays& params) : t_(translation), params_(params) {}

  void set_up(Frame& frame);

  // Functions for the kernel.
  void lay_out_kernel_parameters(const ptx::Function& function);
  /// The parameter buffer has no generic address here. A kernel that takes the generic address of a parameter
  /// uses a copy in local memory.
  void copy_parameter_buffer(Frame& frame);
  /// The offset of that copy in local memory.
  std::uint32_t parameter_copy() const { return parameter_copy_; }
  /// 0 if no instruction takes the generic address of a parameter: then there is no copy.
  std::uint32_t parameter_copy_bytes() const { return parameter_copy_bytes_; }

  // Functions for a function of the IR that is called.
  void declare_arguments(Frame& frame);
  /// If a thread ends in a called function, the function returns, and its last result is 1. The caller then
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
  /// in a called function that may end threads: 1 in the lanes whose threads have ended
  Variable ended_ = 0;
  std::uint32_t parameter_copy_ = 0;
  std::uint32_t parameter_copy_bytes_ = 0;
};

}  // namespace quern::cpu::lower
