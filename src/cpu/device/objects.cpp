// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/objects.hpp"

#include "cpu/device/failure.hpp"

namespace quern::cpu::device {

CUresult result_of(engine::FaultKind fault) noexcept {
  using engine::FaultKind;
  switch (fault) {
    case FaultKind::none:
      return CUDA_SUCCESS;
    case FaultKind::illegal_address:
      return CUDA_ERROR_ILLEGAL_ADDRESS;
    case FaultKind::misaligned_address:
      return CUDA_ERROR_MISALIGNED_ADDRESS;
    case FaultKind::stack_overflow:
      return CUDA_ERROR_HARDWARE_STACK_ERROR;
    case FaultKind::illegal_instruction:
      return CUDA_ERROR_ILLEGAL_INSTRUCTION;
    case FaultKind::assertion:
      return CUDA_ERROR_ASSERT;
    case FaultKind::out_of_memory:
      return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    case FaultKind::unreachable:
      return CUDA_ERROR_INVALID_PC;
    case FaultKind::launch_timeout:
      return CUDA_ERROR_LAUNCH_TIMEOUT;
    case FaultKind::peer_ended:
    case FaultKind::trap:
    case FaultKind::divergent_barrier:
    case FaultKind::no_such_barrier:
    case FaultKind::barrier_of_part:
      return CUDA_ERROR_LAUNCH_FAILED;
  }
  return CUDA_ERROR_LAUNCH_FAILED;
}

void check_fault(const ContextState& context) {
  const engine::FaultKind fault = context.domain->fault();
  require(fault == engine::FaultKind::none, result_of(fault));
}

void require_not_ended(const ContextState& context) {
  if (!context.ended.load()) return;
  const engine::FaultKind fault = context.domain->fault();
  fail(fault == engine::FaultKind::none ? CUDA_ERROR_CONTEXT_IS_DESTROYED : result_of(fault));
}

}  // namespace quern::cpu::device
