// SPDX-License-Identifier: Apache-2.0
// Devices as peers; most of it needs two devices (QUERN_CPU_DEVICES=2).
#include "suite.hpp"

using namespace quern::conformance;

TEST_CASE_FIXTURE(Fixture, "a device is no peer of itself") {
  int value = 7;
  CHECK(CU(cuDeviceCanAccessPeer)(&value, 0, 0) == CUDA_SUCCESS);
  CHECK(value == 0);
  CHECK(CU(cuDeviceCanAccessPeer)(&value, 0, 99) == CUDA_ERROR_INVALID_DEVICE);
  CHECK(CU(cuDeviceGetP2PAttribute)(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 0) ==
        CUDA_ERROR_INVALID_DEVICE);
  CHECK(CU(cuCtxEnablePeerAccess)(context, 0) == CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
  CHECK(CU(cuCtxEnablePeerAccess)(nullptr, 0) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(CU(cuCtxDisablePeerAccess)(nullptr) == CUDA_ERROR_INVALID_CONTEXT);
}

TEST_CASE_FIXTURE(Fixture, "two devices are peers, and copy and compute in each other's memory") {
  int count = 0;
  REQUIRE(cu().cuDeviceGetCount(&count) == CUDA_SUCCESS);
  if (count < 2) return;
  int value = 0;
  CHECK(CU(cuDeviceCanAccessPeer)(&value, 0, 1) == CUDA_SUCCESS);
  if (value == 0) return;
  CHECK(CU(cuDeviceGetP2PAttribute)(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1) == CUDA_SUCCESS);
  CHECK(value == 1);
  CHECK(CU(cuDeviceGetP2PAttribute)(nullptr, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuDeviceGetP2PAttribute)(&value, static_cast<CUdevice_P2PAttribute>(7), 0, 1) ==
        CUDA_ERROR_INVALID_VALUE);
  CUcontext other = nullptr;
  REQUIRE(cu().cuCtxCreate_v4(&other, nullptr, 0, 1) == CUDA_SUCCESS);
  CUdeviceptr there = 0;
  REQUIRE(cu().cuMemAlloc_v2(&there, 4096) == CUDA_SUCCESS);
  REQUIRE(cu().cuCtxSetCurrent(context) == CUDA_SUCCESS);
  CHECK(CU(cuCtxDisablePeerAccess)(other) == CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  CHECK(CU(cuCtxEnablePeerAccess)(other, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuCtxEnablePeerAccess)(other, 0) == CUDA_SUCCESS);
  CHECK(CU(cuCtxEnablePeerAccess)(other, 0) == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  REQUIRE(launch("fill", 8, 128, nullptr, there, 1024u, 5u) == CUDA_SUCCESS);
  REQUIRE(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  const CUdeviceptr here = allocate(4096);
  CHECK(CU(cuMemcpyPeer)(here, context, there, other, 4096) == CUDA_SUCCESS);
  CHECK(download<unsigned>(here, 1024) == std::vector<unsigned>(1024, 5u));
  CHECK(CU(cuCtxDisablePeerAccess)(other) == CUDA_SUCCESS);
  CHECK(cu().cuCtxDestroy_v2(other) == CUDA_SUCCESS);
  CHECK(CU(cuCtxEnablePeerAccess)(other, 0) == CUDA_ERROR_INVALID_CONTEXT);
}

TEST_CASE_FIXTURE(Fixture, "the link of two devices has vector atomics from compute capability 9.0 on") {
  int count = 0, major = 0;
  REQUIRE(cu().cuDeviceGetCount(&count) == CUDA_SUCCESS);
  if (count < 2 || !is_cpu()) return;  // of GPUs it depends on the link
  REQUIRE(cu().cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0) == CUDA_SUCCESS);
  const auto ask = CU(cuDeviceGetP2PAtomicCapabilities);
  constexpr CUatomicOperation kOperations[] = {CU_ATOMIC_OPERATION_INTEGER_INCREMENT,
                                               CU_ATOMIC_OPERATION_FLOAT_ADD, CU_ATOMIC_OPERATION_FLOAT_MIN};
  unsigned got[3] = {~0u, ~0u, ~0u};
  REQUIRE(ask(got, kOperations, 3, 0, 1) == CUDA_SUCCESS);
  constexpr unsigned k32 = CU_ATOMIC_CAPABILITY_SCALAR_32 | CU_ATOMIC_CAPABILITY_REDUCTION;
  const unsigned vectors = major >= 9 ? unsigned{CU_ATOMIC_CAPABILITY_VECTOR_32x4} : 0;
  CHECK(got[0] == (k32 | CU_ATOMIC_CAPABILITY_UNSIGNED));
  CHECK(got[1] == (k32 | CU_ATOMIC_CAPABILITY_SCALAR_64 | vectors));
  CHECK(got[2] == 0);
  CHECK(ask(got, kOperations, 3, 0, 0) == CUDA_ERROR_INVALID_DEVICE);
  CHECK(ask(got, kOperations, 0, 0, 1) == CUDA_ERROR_INVALID_VALUE);
}
