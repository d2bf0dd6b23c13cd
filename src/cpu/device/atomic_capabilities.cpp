// SPDX-License-Identifier: Apache-2.0
// The atomic operations on shared memory, after the rows of atom and red in ptx/isa.def that are lowered:
// exch and cas of .b128 are refused, and no minimum or maximum of floating-point numbers is scalar.
#include "cpu/device/atomic_capabilities.hpp"

#include "cpu/device/failure.hpp"

namespace quern::cpu::device {
namespace {

unsigned scalar_capabilities(CUatomicOperation operation) {
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

/// atom and red add vectors of four .f32, atomic for each element, in modules for sm_90 and later.
unsigned vector_capabilities(CUatomicOperation operation, std::uint32_t compute_capability) {
  const bool has = operation == CU_ATOMIC_OPERATION_FLOAT_ADD && compute_capability >= 90;
  return has ? CU_ATOMIC_CAPABILITY_VECTOR_32x4 : 0;
}

}  // namespace

unsigned atomic_capabilities(CUatomicOperation operation, std::uint32_t compute_capability) {
  return scalar_capabilities(operation) | vector_capabilities(operation, compute_capability);
}

}  // namespace quern::cpu::device
