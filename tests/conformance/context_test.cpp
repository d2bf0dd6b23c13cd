// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <thread>

#include "suite.hpp"

using namespace quern::conformance;

TEST_CASE("without a current context, what needs one is refused") {
  std::thread([] {
    CUdeviceptr pointer = 0;
    CUcontext context = reinterpret_cast<CUcontext>(1);
    CHECK(cu().cuMemAlloc_v2(&pointer, 16) == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(cu().cuCtxSynchronize() == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(cu().cuCtxGetCurrent(&context) == CUDA_SUCCESS);
    CHECK(context == nullptr);
    CHECK(cu().cuCtxPopCurrent_v2(&context) == CUDA_ERROR_INVALID_CONTEXT);
  }).join();
}

TEST_CASE("contexts stack on a thread") {
  CUcontext first = nullptr, second = nullptr, current = nullptr;
  REQUIRE(cu().cuCtxCreate_v4(&first, nullptr, 0, 0) == CUDA_SUCCESS);
  REQUIRE(cu().cuCtxCreate_v4(&second, nullptr, 0, 0) == CUDA_SUCCESS);
  CHECK(cu().cuCtxGetCurrent(&current) == CUDA_SUCCESS);
  CHECK(current == second);
  CHECK(cu().cuCtxPopCurrent_v2(&current) == CUDA_SUCCESS);
  CHECK(current == second);
  CHECK(cu().cuCtxGetCurrent(&current) == CUDA_SUCCESS);
  CHECK(current == first);
  CHECK(cu().cuCtxPushCurrent_v2(second) == CUDA_SUCCESS);
  CHECK(cu().cuCtxSetCurrent(first) == CUDA_SUCCESS);
  CHECK(cu().cuCtxGetCurrent(&current) == CUDA_SUCCESS);
  CHECK(current == first);
  CUdevice device = 7;
  CHECK(cu().cuCtxGetDevice(&device) == CUDA_SUCCESS);
  CHECK(device == 0);
  CHECK(cu().cuCtxDestroy_v2(second) == CUDA_SUCCESS);
  CHECK(cu().cuCtxDestroy_v2(first) == CUDA_SUCCESS);
  CHECK(cu().cuCtxSetCurrent(nullptr) == CUDA_SUCCESS);
}

TEST_CASE("a destroyed context can be current, and nothing works in it") {
  CUcontext context = nullptr, popped = nullptr;
  REQUIRE(cu().cuCtxCreate_v4(&context, nullptr, 0, 0) == CUDA_SUCCESS);
  REQUIRE(cu().cuCtxDestroy_v2(context) == CUDA_SUCCESS);
  REQUIRE(cu().cuCtxPushCurrent_v2(context) == CUDA_SUCCESS);
  CHECK(cu().cuCtxSetCurrent(context) == CUDA_SUCCESS);
  CUdevice device = 7;
  CHECK(cu().cuCtxGetDevice(&device) == CUDA_SUCCESS);
  CHECK(device == 0);
  CUdeviceptr pointer = 0;
  CHECK(cu().cuMemAlloc_v2(&pointer, 16) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CHECK(cu().cuCtxSynchronize() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CHECK(cu().cuCtxPopCurrent_v2(&popped) == CUDA_SUCCESS);
  CHECK(popped == context);
  CHECK(cu().cuCtxDestroy_v2(context) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(cu().cuCtxDestroy_v2(nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuCtxPushCurrent_v2(nullptr) == CUDA_ERROR_INVALID_VALUE);
  if (is_cpu())  // a GPU's driver reads what a wrong handle points to
    CHECK(cu().cuCtxPushCurrent_v2(reinterpret_cast<CUcontext>(0x1234)) == CUDA_ERROR_INVALID_CONTEXT);
}

TEST_CASE("a primary context that was reset is whole when it is retained again") {
  CUcontext primary = nullptr, again = nullptr;
  REQUIRE(cu().cuDevicePrimaryCtxRetain(&primary, 0) == CUDA_SUCCESS);
  REQUIRE(cu().cuCtxPushCurrent_v2(primary) == CUDA_SUCCESS);
  CUdeviceptr pointer = 0;
  REQUIRE(cu().cuMemAlloc_v2(&pointer, 16) == CUDA_SUCCESS);
  REQUIRE(cu().cuDevicePrimaryCtxReset_v2(0) == CUDA_SUCCESS);
  unsigned flags = 9;
  int active = 9;
  CHECK(cu().cuDevicePrimaryCtxGetState(0, &flags, &active) == CUDA_SUCCESS);
  CHECK(active == 0);
  CHECK(cu().cuMemAlloc_v2(&pointer, 16) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CHECK(cu().cuCtxSynchronize() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  REQUIRE(cu().cuDevicePrimaryCtxRetain(&again, 0) == CUDA_SUCCESS);
  CHECK(again == primary);
  CHECK(cu().cuMemAlloc_v2(&pointer, 16) == CUDA_SUCCESS);
  CHECK(cu().cuCtxPopCurrent_v2(nullptr) == CUDA_SUCCESS);
  if (is_cpu()) CHECK(cu().cuDevicePrimaryCtxRelease_v2(0) == CUDA_SUCCESS);
  CHECK(cu().cuDevicePrimaryCtxRelease_v2(0) == CUDA_SUCCESS);
}

TEST_CASE("destroying a context gives its memory back") {
  Fixture keeper;
  std::size_t before = 0, after = 0, total = 0;
  REQUIRE(cu().cuMemGetInfo_v2(&before, &total) == CUDA_SUCCESS);
  {
    Fixture other;
    other.allocate(8 << 20);
    REQUIRE(cu().cuMemGetInfo_v2(&after, &total) == CUDA_SUCCESS);
    CHECK(after + (8 << 20) <= before);
  }
  REQUIRE(cu().cuMemGetInfo_v2(&after, &total) == CUDA_SUCCESS);
  if (is_cpu()) CHECK(after == before);
}

TEST_CASE("the primary context is one, however often it is retained") {
  CUcontext first = nullptr, second = nullptr;
  unsigned flags = 99;
  int active = 0;
  REQUIRE(cu().cuDevicePrimaryCtxRetain(&first, 0) == CUDA_SUCCESS);
  REQUIRE(cu().cuDevicePrimaryCtxRetain(&second, 0) == CUDA_SUCCESS);
  CHECK(first == second);
  CHECK(cu().cuDevicePrimaryCtxGetState(0, &flags, &active) == CUDA_SUCCESS);
  CHECK(active == 1);
  CHECK(cu().cuDevicePrimaryCtxRelease_v2(0) == CUDA_SUCCESS);
  CHECK(cu().cuDevicePrimaryCtxRelease_v2(0) == CUDA_SUCCESS);
  CHECK(cu().cuDevicePrimaryCtxGetState(0, &flags, &active) == CUDA_SUCCESS);
  CHECK(active == 0);
  CHECK(cu().cuDevicePrimaryCtxRelease_v2(0) == CUDA_ERROR_INVALID_CONTEXT);
}

TEST_CASE_FIXTURE(Fixture, "limits can be read and set") {
  std::size_t value = 0;
  CHECK(cu().cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 16 << 20) == CUDA_SUCCESS);
  CHECK(cu().cuCtxGetLimit(&value, CU_LIMIT_MALLOC_HEAP_SIZE) == CUDA_SUCCESS);
  CHECK(value >= (16 << 20));
  CHECK(cu().cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE) == CUDA_SUCCESS);
  CHECK(value >= 1024);
  CHECK(cu().cuCtxGetLimit(&value, CU_LIMIT_MAX) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuCtxSetLimit(CU_LIMIT_STACK_SIZE, std::size_t{1} << 30) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1001) == CUDA_SUCCESS);
  CHECK(cu().cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE) == CUDA_SUCCESS);
  CHECK(value == 1008);
  CHECK(cu().cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 0) == CUDA_SUCCESS);
  CHECK(cu().cuCtxGetLimit(&value, CU_LIMIT_PRINTF_FIFO_SIZE) == CUDA_SUCCESS);
  CHECK(value == 512 << 10);
  CHECK(cu().cuCtxGetLimit(&value, CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH) == CUDA_ERROR_UNSUPPORTED_LIMIT);
  CHECK(cu().cuCtxGetLimit(&value, CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT) == CUDA_SUCCESS);
  CHECK(value == 2048);
  CHECK(cu().cuCtxGetLimit(&value, CU_LIMIT_MAX_L2_FETCH_GRANULARITY) == CUDA_SUCCESS);
  CHECK(value == 64);
  int least = -9, greatest = 9;
  CHECK(cu().cuCtxGetStreamPriorityRange(&least, &greatest) == CUDA_SUCCESS);
  CHECK(greatest <= least);
  if (is_cpu()) CHECK(least == 0);
  if (is_cpu()) CHECK(greatest == -5);
  CHECK(cu().cuCtxGetStreamPriorityRange(nullptr, nullptr) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Fixture, "a context can be used from another thread") {
  std::thread([this] {
    CHECK(cu().cuCtxSetCurrent(context) == CUDA_SUCCESS);
    CHECK(launch("empty", 4, 32, nullptr) == CUDA_SUCCESS);
    CHECK(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  }).join();
}

TEST_CASE("contexts of every version of cuCtxCreate") {
  CUcontext context = nullptr, current = nullptr;
  unsigned version = 0, flags = 99;
  REQUIRE(CU(cuCtxCreate)(&context, CU_CTX_SCHED_SPIN, 0) == CUDA_SUCCESS);
  CHECK(CU(cuCtxGetApiVersion)(context, &version) == CUDA_SUCCESS);
  if (is_cpu()) CHECK(version == 3010);
  CHECK(CU(cuCtxGetFlags)(&flags) == CUDA_SUCCESS);
  if (is_cpu()) CHECK(flags == CU_CTX_SCHED_SPIN);
  CHECK(CU(cuCtxPopCurrent)(&current) == CUDA_SUCCESS);
  CHECK(current == context);
  CHECK(CU(cuCtxPushCurrent)(context) == CUDA_SUCCESS);
  CHECK(CU(cuCtxDestroy)(context) == CUDA_SUCCESS);
  REQUIRE(CU(cuCtxCreate_v2)(&context, CU_CTX_MAP_HOST, 0) == CUDA_SUCCESS);
  CHECK(CU(cuCtxGetApiVersion)(nullptr, &version) == CUDA_SUCCESS);
  CHECK(version == 3020);
  CHECK(CU(cuCtxDestroy)(context) == CUDA_SUCCESS);
  REQUIRE(CU(cuCtxCreate_v3)(&context, nullptr, 0, 0, 0) == CUDA_SUCCESS);
  CHECK(CU(cuCtxDestroy)(context) == CUDA_SUCCESS);
  CHECK(CU(cuCtxCreate)(&context, CU_CTX_SCHED_SPIN | CU_CTX_SCHED_YIELD, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuCtxCreate_v2)(nullptr, 0, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuCtxCreate_v2)(&context, 0, 99) == CUDA_ERROR_INVALID_DEVICE);
  CUexecAffinityParam affinity{};
  affinity.type = CU_EXEC_AFFINITY_TYPE_SM_COUNT;
  affinity.param.smCount.val = 1;
  if (is_cpu())
    CHECK(CU(cuCtxCreate_v3)(&context, &affinity, 1, 0, 0) == CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
  CHECK(CU(cuCtxGetApiVersion)(nullptr, nullptr) == CUDA_ERROR_INVALID_CONTEXT);  // none is current
}

TEST_CASE("a context lives until its last use is detached") {
  CUcontext context = nullptr, attached = nullptr;
  CHECK(CU(cuCtxAttach)(&attached, 0) == CUDA_ERROR_INVALID_CONTEXT);
  REQUIRE(CU(cuCtxCreate_v2)(&context, 0, 0) == CUDA_SUCCESS);
  CHECK(CU(cuCtxAttach)(&attached, 1) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(CU(cuCtxAttach)(&attached, 0) == CUDA_SUCCESS);
  CHECK(attached == context);
  CHECK(CU(cuCtxDetach)(context) == CUDA_SUCCESS);
  CHECK(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(CU(cuCtxDetach)(context) == CUDA_SUCCESS);
  if (is_cpu()) CHECK(CU(cuCtxDetach)(context) == CUDA_ERROR_INVALID_CONTEXT);
}

TEST_CASE_FIXTURE(Fixture, "flags, identity and hints of a context") {
  unsigned flags = 99;
  CHECK(CU(cuCtxSetFlags)(CU_CTX_SCHED_BLOCKING_SYNC) == CUDA_SUCCESS);
  CHECK(CU(cuCtxGetFlags)(&flags) == CUDA_SUCCESS);
  CHECK((flags & CU_CTX_SCHED_MASK) == CU_CTX_SCHED_BLOCKING_SYNC);
  CHECK(CU(cuCtxSetFlags)(0x1000) == CUDA_ERROR_INVALID_VALUE);
  unsigned long long id = 0, same = 0, other = 0;
  CHECK(CU(cuCtxGetId)(context, &id) == CUDA_SUCCESS);
  CHECK(CU(cuCtxGetId)(nullptr, &same) == CUDA_SUCCESS);
  CHECK(id == same);
  CHECK(CU(cuCtxGetId)(context, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CUdevice device = 7;
  {
    const Fixture second;
    CHECK(CU(cuCtxGetId)(nullptr, &other) == CUDA_SUCCESS);
    CHECK(other != id);
    CHECK(CU(cuCtxGetDevice_v2)(&device, context) == CUDA_SUCCESS);
    CHECK(device == 0);
    CHECK(CU(cuCtxSynchronize_v2)(context) == CUDA_SUCCESS);
  }
  CHECK(CU(cuCtxSynchronize_v2)(nullptr) == CUDA_SUCCESS);
  if (is_cpu())
    CHECK(CU(cuCtxGetDevice_v2)(&device, reinterpret_cast<CUcontext>(0x1234)) == CUDA_ERROR_INVALID_CONTEXT);
  CUfunc_cache cache = CU_FUNC_CACHE_PREFER_L1;
  CHECK(CU(cuCtxGetCacheConfig)(&cache) == CUDA_SUCCESS);
  if (is_cpu()) CHECK(cache == CU_FUNC_CACHE_PREFER_NONE);
  CHECK(CU(cuCtxSetCacheConfig)(CU_FUNC_CACHE_PREFER_SHARED) == CUDA_SUCCESS);
  CHECK(CU(cuCtxGetCacheConfig)(&cache) == CUDA_SUCCESS);
  if (is_cpu()) CHECK(cache == CU_FUNC_CACHE_PREFER_SHARED);
  CUsharedconfig shared{};
  CHECK(CU(cuCtxSetSharedMemConfig)(CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE) == CUDA_SUCCESS);
  CHECK(CU(cuCtxGetSharedMemConfig)(&shared) == CUDA_SUCCESS);
  CHECK(shared == CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE);
  CUexecAffinityParam affinity{};
  CHECK(CU(cuCtxGetExecAffinity)(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT) == CUDA_SUCCESS);
  CHECK(CU(cuCtxResetPersistingL2Cache)() == CUDA_SUCCESS);
  CHECK(CU(cuProfilerStart)() == CUDA_SUCCESS);
  CHECK(CU(cuProfilerStop)() == CUDA_SUCCESS);
}

TEST_CASE("flags of the primary context hold whether it is active or not") {
  unsigned flags = 99;
  int active = 9;
  CHECK(CU(cuDevicePrimaryCtxSetFlags)(0, CU_CTX_SCHED_YIELD) == CUDA_SUCCESS);
  CHECK(cu().cuDevicePrimaryCtxGetState(0, &flags, &active) == CUDA_SUCCESS);
  CHECK((flags & CU_CTX_SCHED_MASK) == CU_CTX_SCHED_YIELD);
  CUcontext primary = nullptr;
  REQUIRE(cu().cuDevicePrimaryCtxRetain(&primary, 0) == CUDA_SUCCESS);
  CHECK(CU(cuDevicePrimaryCtxSetFlags_v2)(0, 0) == CUDA_SUCCESS);
  CHECK(cu().cuDevicePrimaryCtxGetState(0, &flags, &active) == CUDA_SUCCESS);
  CHECK((flags & CU_CTX_SCHED_MASK) == CU_CTX_SCHED_AUTO);
  CHECK(CU(cuDevicePrimaryCtxSetFlags_v2)(0, 7) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuDevicePrimaryCtxSetFlags_v2)(99, 0) == CUDA_ERROR_INVALID_DEVICE);
  CHECK(cu().cuCtxPushCurrent_v2(primary) == CUDA_SUCCESS);
  CUcontext attached = nullptr;
  CHECK(CU(cuCtxAttach)(&attached, 0) == CUDA_SUCCESS);
  CHECK(attached == primary);
  CHECK(CU(cuCtxDetach)(primary) == CUDA_SUCCESS);
  CHECK(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(cu().cuCtxPopCurrent_v2(&attached) == CUDA_SUCCESS);
  CHECK(CU(cuDevicePrimaryCtxReset)(0) == CUDA_SUCCESS);
  if (is_cpu()) CHECK(CU(cuDevicePrimaryCtxRelease)(0) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Fixture, "an event of a context is after all of its streams, and a context waits for one") {
  const CUstream first = stream(), second = stream();
  std::atomic<bool> go{false}, done{false};
  const auto wait = [](void* flag) {
    while (!static_cast<std::atomic<bool>*>(flag)->load()) std::this_thread::yield();
  };
  const CUevent all = event();
  REQUIRE(cu().cuLaunchHostFunc(first, wait, &go) == CUDA_SUCCESS);
  REQUIRE(CU(cuCtxRecordEvent)(context, all) == CUDA_SUCCESS);
  CHECK(cu().cuEventQuery(all) == CUDA_ERROR_NOT_READY);
  REQUIRE(CU(cuCtxWaitEvent)(context, all) == CUDA_SUCCESS);
  const auto note = [](void* flag) { static_cast<std::atomic<bool>*>(flag)->store(true); };
  REQUIRE(cu().cuLaunchHostFunc(second, note, &done) == CUDA_SUCCESS);
  const CUstream later = stream();  // work of streams that come later is future work, too
  CHECK(cu().cuStreamQuery(second) == CUDA_ERROR_NOT_READY);
  if (is_cpu()) CHECK(cu().cuStreamQuery(later) == CUDA_ERROR_NOT_READY);
  CHECK_FALSE(done);
  go = true;
  CHECK(cu().cuEventSynchronize(all) == CUDA_SUCCESS);
  CHECK(cu().cuStreamSynchronize(second) == CUDA_SUCCESS);
  CHECK(done);
  CHECK(cu().cuStreamSynchronize(later) == CUDA_SUCCESS);
  {
    const Fixture other;
    CHECK(CU(cuCtxRecordEvent)(other.context, all) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(CU(cuCtxWaitEvent)(other.context, all) == CUDA_SUCCESS);
  }
  if (is_cpu())
    CHECK(CU(cuCtxWaitEvent)(context, reinterpret_cast<CUevent>(0x1234)) == CUDA_ERROR_INVALID_HANDLE);
}
