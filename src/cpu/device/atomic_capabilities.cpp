// SPDX-License-Identifier: Apache-2.0
// The atomic operations on shared memory, after the rows of atom and red in ptx/isa.def that are lowered:
// exch and cas of .b128 are refused, and no minimum or maximum of floating-point numbers is scalar.
#include "cpu/device/atomic_capabilities.hpp"

#include "cpu/device/failure.hpp"

unsigned quern::cpu::device::scalar_atomic_capabilities(CUatomicOperation operation) {
  constexpr unsigned kBothWidths = CU_ATOMIC_CAPABILITY_SCALAR_32 | CU_ATOMIC_CAPABILITY_SCALAR_64;
  constexpr unsigned kIntegers =
      CU_ATOMIC_CAPABILITY_SIGNED | CU_ATOMIC_CAPABILITY_UNSIGNED | CU_ATOMIC_CAPABILITY_REDUCTION;
  switch (operation) {
    case CU_ATOMIC_OPERATION_INTEGER_ADD:
    case CU_ATOMIC_OPERATION_INTEGER_MIN:
    case CU_ATOMIC_OPERATION_INTEGER_MAX:
    case CU_ATOMIC_OPERATION_AND:
    case CU_ATOMIC_OPERATION_OR:
    case CU_ATOMIC_OPERATION_XOR:
      return kIntegers | kBothWidths;
    case CU_ATOMIC_OPERATION_INTEGER_INCREMENT:
    case CU_ATOMIC_OPERATION_INTEGER_DECREMENT:
      return CU_ATOMIC_CAPABILITY_UNSIGNED | CU_ATOMIC_CAPABILITY_REDUCTION | CU_ATOMIC_CAPABILITY_SCALAR_32;
    case CU_ATOMIC_OPERATION_EXCHANGE:
    case CU_ATOMIC_OPERATION_CAS:
      return kBothWidths;
    case CU_ATOMIC_OPERATION_FLOAT_ADD:
      return CU_ATOMIC_CAPABILITY_REDUCTION | kBothWidths;
    case CU_ATOMIC_OPERATION_FLOAT_MIN:
    case CU_ATOMIC_OPERATION_FLOAT_MAX:
      return 0;
    case CU_ATOMIC_OPERATION_MAX:
      break;
  }
  fail(CUDA_ERROR_INVALID_VALUE);
}
