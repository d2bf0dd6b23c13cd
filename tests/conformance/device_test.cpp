// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "suite.hpp"

using namespace quern::conformance;

namespace {
int attribute(CUdevice_attribute which) {
  int value = -1;
  REQUIRE(cu().cuDeviceGetAttribute(&value, which, 0) == CUDA_SUCCESS);
  return value;
}
}  // namespace

TEST_CASE("cuInit takes no flags and may be repeated") {
  CHECK(cu().cuInit(0) == CUDA_SUCCESS);
  CHECK(cu().cuInit(1) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("there is a driver version and at least one device with a name") {
  int version = 0, count = 0;
  CHECK(cu().cuDriverGetVersion(&version) == CUDA_SUCCESS);
  CHECK(version >= 11000);
  CHECK(cu().cuDriverGetVersion(nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuDeviceGetCount(&count) == CUDA_SUCCESS);
  CHECK(count >= 1);
  char name[256] = "";
  CHECK(cu().cuDeviceGetName(name, sizeof name, 0) == CUDA_SUCCESS);
  CHECK(std::strlen(name) > 0);
  char brief[4];
  CHECK(cu().cuDeviceGetName(brief, sizeof brief, 0) == CUDA_SUCCESS);
  CHECK(std::memchr(brief, '\0', sizeof brief) != nullptr);
}

TEST_CASE("a device beyond the last is invalid") {
  int count = 0, value = 0;
  REQUIRE(cu().cuDeviceGetCount(&count) == CUDA_SUCCESS);
  CUdevice device = 0;
  CHECK(cu().cuDeviceGet(&device, count) == CUDA_ERROR_INVALID_DEVICE);
  CHECK(cu().cuDeviceGet(&device, -1) == CUDA_ERROR_INVALID_DEVICE);
  CHECK(cu().cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, count) == CUDA_ERROR_INVALID_DEVICE);
}

TEST_CASE("attributes are those of a CUDA device") {
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE) == 32);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK) == 1024);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X) == 2147483647);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK) == 48 * 1024);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) >= 1);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING) == 1);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY) == 65536);
  int value = 0;
  CHECK(cu().cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(0), 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuDeviceGetAttribute(nullptr, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("every attribute that cuda.h names has an answer on the CPU device") {
  if (!is_cpu()) return;
  for (int which = 1; which < CU_DEVICE_ATTRIBUTE_MAX; ++which) {
    int value = 0;
    CHECK(cu().cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(which), 0) == CUDA_SUCCESS);
  }
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) == 8);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) == 9);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) == 99 * 1024);
}

TEST_CASE("memory and identity of a device") {
  std::size_t bytes = 0;
  CHECK(cu().cuDeviceTotalMem_v2(&bytes, 0) == CUDA_SUCCESS);
  CHECK(bytes >= std::size_t{16} << 20);
  CUuuid first{}, again{};
  CHECK(cu().cuDeviceGetUuid_v2(&first, 0) == CUDA_SUCCESS);
  CHECK(cu().cuDeviceGetUuid_v2(&again, 0) == CUDA_SUCCESS);
  CHECK(std::memcmp(first.bytes, again.bytes, sizeof first.bytes) == 0);
}

TEST_CASE("properties and addresses of a device agree with its attributes") {
  int major = 0, minor = 0;
  CHECK(CU(cuDeviceComputeCapability)(&major, &minor, 0) == CUDA_SUCCESS);
  CHECK(major == attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  CHECK(minor == attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  CHECK(CU(cuDeviceComputeCapability)(&major, nullptr, 0) == CUDA_ERROR_INVALID_VALUE);
  CUdevprop properties{};
  CHECK(CU(cuDeviceGetProperties)(&properties, 0) == CUDA_SUCCESS);
  CHECK(properties.maxThreadsPerBlock == 1024);
  CHECK(properties.maxThreadsDim[2] == 64);
  CHECK(properties.maxGridSize[0] == 2147483647);
  CHECK(properties.SIMDWidth == 32);
  CHECK(properties.regsPerBlock == attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK));
  CHECK(CU(cuDeviceGetProperties)(&properties, 99) == CUDA_ERROR_INVALID_DEVICE);
  char text[32] = "";
  CHECK(CU(cuDeviceGetPCIBusId)(text, sizeof text, 0) == CUDA_SUCCESS);
  CHECK(std::strlen(text) == 12);
  char part[32] = "";
  CHECK(CU(cuDeviceGetPCIBusId)(part, 5, 0) == CUDA_ERROR_INVALID_VALUE);
  CUdevice device = 7;
  CHECK(CU(cuDeviceGetByPCIBusId)(&device, text) == CUDA_SUCCESS);
  CHECK(device == 0);
  if (is_cpu()) {
    CHECK(std::string(text) == "0000:00:00.0");
    for (const char* form : {"0000:00:00", "00:00.0", "0:0:0.0"})
      CHECK_MESSAGE(CU(cuDeviceGetByPCIBusId)(&device, form) == CUDA_SUCCESS, form);
    for (const char* form : {"", "0", "x:0:0.0", "0000:00:00.0z"})
      CHECK_MESSAGE(CU(cuDeviceGetByPCIBusId)(&device, form) == CUDA_ERROR_INVALID_VALUE, form);
    CHECK(CU(cuDeviceGetByPCIBusId)(&device, "0001:00:00.0") == CUDA_ERROR_INVALID_DEVICE);
  }
  unsigned brief = 0;
  CHECK(CU(cuDeviceTotalMem)(&brief, 0) == CUDA_SUCCESS);
  CHECK(brief > 0);
  int supported = 9;
  CHECK(CU(cuDeviceGetExecAffinitySupport)(&supported, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0) == CUDA_SUCCESS);
  if (is_cpu()) CHECK(supported == 0);
  CUuuid first{}, second{};
  CHECK(CU(cuDeviceGetUuid)(&first, 0) == CUDA_SUCCESS);
  CHECK(cu().cuDeviceGetUuid_v2(&second, 0) == CUDA_SUCCESS);
  if (is_cpu()) CHECK(std::memcmp(first.bytes, second.bytes, sizeof first.bytes) == 0);
}

TEST_CASE("the link to the host says which atomic operations it supports") {
  int count = 0;
  REQUIRE(cu().cuDeviceGetCount(&count) == CUDA_SUCCESS);
  const auto ask = CU(cuDeviceGetHostAtomicCapabilities);
  // The scalar instructions "atom" and "red" of the PTX ISA by their types; there are none for minima and
  // maxima of floating-point numbers, and inc and dec have .u32 only.
  constexpr unsigned kWidths = CU_ATOMIC_CAPABILITY_SCALAR_32 | CU_ATOMIC_CAPABILITY_SCALAR_64;
  constexpr unsigned kReduced = CU_ATOMIC_CAPABILITY_REDUCTION;
  constexpr unsigned kIntegers =
      kWidths | kReduced | CU_ATOMIC_CAPABILITY_SIGNED | CU_ATOMIC_CAPABILITY_UNSIGNED;
  constexpr unsigned kWrapped = CU_ATOMIC_CAPABILITY_SCALAR_32 | kReduced | CU_ATOMIC_CAPABILITY_UNSIGNED;
  constexpr struct {
    CUatomicOperation operation;
    unsigned on_cpu;
  } kRows[] = {
      {CU_ATOMIC_OPERATION_INTEGER_ADD, kIntegers},
      {CU_ATOMIC_OPERATION_INTEGER_MIN, kIntegers},
      {CU_ATOMIC_OPERATION_INTEGER_MAX, kIntegers},
      {CU_ATOMIC_OPERATION_INTEGER_INCREMENT, kWrapped},
      {CU_ATOMIC_OPERATION_INTEGER_DECREMENT, kWrapped},
      {CU_ATOMIC_OPERATION_AND, kIntegers},
      {CU_ATOMIC_OPERATION_OR, kIntegers},
      {CU_ATOMIC_OPERATION_XOR, kIntegers},
      {CU_ATOMIC_OPERATION_EXCHANGE, kWidths},
      {CU_ATOMIC_OPERATION_CAS, kWidths},
      {CU_ATOMIC_OPERATION_FLOAT_ADD, kWidths | kReduced},
      {CU_ATOMIC_OPERATION_FLOAT_MIN, 0},
      {CU_ATOMIC_OPERATION_FLOAT_MAX, 0},
  };
  std::vector<CUatomicOperation> operations;
  std::vector<unsigned> expected;
  for (const auto& row : kRows) {
    operations.push_back(row.operation);
    expected.push_back(row.on_cpu);
  }
  const auto size = static_cast<unsigned>(operations.size());
  REQUIRE(size == CU_ATOMIC_OPERATION_MAX);
  std::vector<unsigned> got(size, ~0u);
  CHECK(ask(got.data(), operations.data(), size, 0) == CUDA_SUCCESS);
  if (is_cpu()) CHECK(got == expected);
  CHECK(ask(got.data(), operations.data(), size, count) == CUDA_ERROR_INVALID_DEVICE);
  CHECK(ask(got.data(), operations.data(), size, -1) == CUDA_ERROR_INVALID_DEVICE);
  CHECK(ask(nullptr, operations.data(), size, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(ask(got.data(), nullptr, size, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(ask(got.data(), operations.data(), 0, 0) == CUDA_ERROR_INVALID_VALUE);
  operations.back() = CU_ATOMIC_OPERATION_MAX;
  CHECK(ask(got.data(), operations.data(), size, 0) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("results have names and sentences") {
  const char* text = nullptr;
  CHECK(cu().cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text) == CUDA_SUCCESS);
  CHECK(std::string(text) == "CUDA_ERROR_ILLEGAL_ADDRESS");
  CHECK(cu().cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text) == CUDA_SUCCESS);
  CHECK(std::string(text) == "out of memory");
  CHECK(cu().cuGetErrorName(static_cast<CUresult>(998), &text) == CUDA_ERROR_INVALID_VALUE);
  CHECK(text == nullptr);
}

TEST_CASE("functions are found by their unversioned names") {
  void* function = nullptr;
  CUdriverProcAddressQueryResult status{};
  CHECK(cu().cuGetProcAddress_v2("cuMemAlloc", &function, 13000, CU_GET_PROC_ADDRESS_DEFAULT, &status) ==
        CUDA_SUCCESS);
  CHECK(status == CU_GET_PROC_ADDRESS_SUCCESS);
  CHECK(function != nullptr);
  if (is_cpu()) CHECK(function == reinterpret_cast<void*>(cu().cuMemAlloc_v2));
  CHECK(cu().cuGetProcAddress_v2("cuNoSuchFunction", &function, 13000, CU_GET_PROC_ADDRESS_DEFAULT,
                                 nullptr) == CUDA_SUCCESS);  // a missing function is no error
  CHECK(function == nullptr);
  CHECK(cu().cuGetProcAddress_v2("cuNoSuchFunction", &function, 13000, CU_GET_PROC_ADDRESS_DEFAULT,
                                 &status) == CUDA_SUCCESS);
  CHECK(status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  CHECK(function == nullptr);
  if (is_cpu()) {
    const void* table = nullptr;
    const CUuuid id{};
    CHECK(cu().cuGetExportTable(&table, &id) == CUDA_ERROR_NOT_FOUND);
  }
}

TEST_CASE("a client is given only functions that its CUDA version has") {
  void* function = nullptr;
  CUdriverProcAddressQueryResult status{};
  const auto found = [&](const char* name, int version) {
    cu().cuGetProcAddress_v2(name, &function, version, CU_GET_PROC_ADDRESS_DEFAULT, &status);
    CHECK((function != nullptr) == (status == CU_GET_PROC_ADDRESS_SUCCESS));
    return status;
  };
  CHECK(found("cuFuncGetName", 12030) == CU_GET_PROC_ADDRESS_SUCCESS);
  CHECK(found("cuFuncGetName", 12020) == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  CHECK(found("cuLaunchKernelEx", 11060) == CU_GET_PROC_ADDRESS_SUCCESS);
  CHECK(found("cuLaunchKernelEx", 11050) == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  CHECK(found("cuEventElapsedTime", 12000) == CU_GET_PROC_ADDRESS_SUCCESS);  // version 1 is of the same type
  CHECK(found("cuDeviceGetUuid", 11030) == CU_GET_PROC_ADDRESS_SUCCESS);
  CHECK(found("cuMemAlloc", -1) == CU_GET_PROC_ADDRESS_SUCCESS);
  CHECK(found("cuMemAlloc_v2", 12000) == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);  // versions have no names
  int version = 0;
  REQUIRE(cu().cuDriverGetVersion(&version) == CUDA_SUCCESS);
  CHECK(cu().cuGetProcAddress_v2("cuMemAlloc", &function, version + 1, CU_GET_PROC_ADDRESS_DEFAULT,
                                 &status) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("the version of the client chooses the version of the function") {
  const auto find = [](const char* name, int version) {
    void* function = nullptr;
    CUdriverProcAddressQueryResult status{};
    cu().cuGetProcAddress_v2(name, &function, version, CU_GET_PROC_ADDRESS_DEFAULT, &status);
    return function;
  };
  CHECK(find("cuCtxCreate", 13000) != find("cuCtxCreate", 12000));
  CHECK(find("cuCtxGetDevice", 13000) != find("cuCtxGetDevice", 12080));
  CHECK(find("cuMemAlloc", 3020) == find("cuMemAlloc", 13000));
  if (is_cpu()) CHECK(find("cuCtxCreate", 12050) == reinterpret_cast<void*>(cu().cuCtxCreate_v4));
}

TEST_CASE("functions that the CPU device does not have answer CUDA_ERROR_NOT_SUPPORTED") {
  if (!is_cpu()) return;
  CUtexObject texture = 0;
  CHECK(CU(cuTexObjectCreate)(&texture, nullptr, nullptr, nullptr) == CUDA_ERROR_NOT_SUPPORTED);
}

TEST_CASE("the per-thread flag finds the variants for the thread's own default stream") {
  const auto find = [](const char* name) {
    void* function = nullptr;
    CUdriverProcAddressQueryResult status{};
    cu().cuGetProcAddress_v2(name, &function, 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status);
    CHECK((function != nullptr) == (status == CU_GET_PROC_ADDRESS_SUCCESS));
    return function;
  };
  for (const char* name : {"cuStreamCreate", "cuStreamCreateWithPriority", "cuStreamDestroy", "cuMemAlloc"})
    CHECK_MESSAGE(find(name) != nullptr, name);
  if (is_cpu()) CHECK(find("cuStreamDestroy") == reinterpret_cast<void*>(cu().cuStreamDestroy_v2));
  const Fixture fixture;
  // A kernel that waits on the legacy default stream does not hold up the thread's own.
  const auto get_flags = reinterpret_cast<decltype(&::cuStreamGetFlags)>(find("cuStreamGetFlags"));
  unsigned flags = 99;
  CHECK(get_flags(nullptr, &flags) == CUDA_SUCCESS);
  CHECK(flags == CU_STREAM_DEFAULT);
  const auto record = reinterpret_cast<decltype(&::cuEventRecord)>(find("cuEventRecord"));
  const auto launch = reinterpret_cast<decltype(&::cuLaunchHostFunc)>(find("cuLaunchHostFunc"));
  const auto query = reinterpret_cast<decltype(&::cuStreamQuery)>(find("cuStreamQuery"));
  const CUevent event = fixture.event();
  std::atomic<bool> go{false};
  const auto wait = [](void* flag) {
    while (!static_cast<std::atomic<bool>*>(flag)->load()) std::this_thread::yield();
  };
  REQUIRE(launch(nullptr, wait, &go) == CUDA_SUCCESS);
  CHECK(query(nullptr) == CUDA_ERROR_NOT_READY);
  CHECK(cu().cuStreamQuery(CU_STREAM_PER_THREAD) == CUDA_ERROR_NOT_READY);
  CHECK(record(event, nullptr) == CUDA_SUCCESS);
  CHECK(cu().cuEventQuery(event) == CUDA_ERROR_NOT_READY);
  go = true;
  CHECK(cu().cuStreamSynchronize(CU_STREAM_PER_THREAD) == CUDA_SUCCESS);
  CHECK(cu().cuEventQuery(event) == CUDA_SUCCESS);
}
