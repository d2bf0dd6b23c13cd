// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "kernels.hpp"
#include "suite.hpp"

using namespace quern::conformance;

namespace {

/// A flag that host and device see.
struct MappedFlag {
  MappedFlag() {
    REQUIRE(cu().cuMemHostAlloc(&memory, 64, CU_MEMHOSTALLOC_DEVICEMAP) == CUDA_SUCCESS);
    set(0);
    REQUIRE(cu().cuMemHostGetDevicePointer_v2(&device, memory, 0) == CUDA_SUCCESS);
  }
  void set(std::uint32_t value) const { static_cast<std::atomic<std::uint32_t>*>(memory)->store(value); }
  void* memory = nullptr;
  CUdeviceptr device = 0;
};

bool becomes_idle(CUstream stream) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (std::chrono::steady_clock::now() < limit) {
    if (cu().cuStreamQuery(stream) == CUDA_SUCCESS) return true;
    std::this_thread::yield();
  }
  return false;
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "streams are made, used and destroyed; a destroyed one is invalid") {
  const CUstream on = stream();
  CHECK(cu().cuStreamQuery(on) == CUDA_SUCCESS);
  CHECK(launch("empty", 10, 32, on) == CUDA_SUCCESS);
  CHECK(cu().cuStreamSynchronize(on) == CUDA_SUCCESS);
  CHECK(cu().cuStreamDestroy_v2(on) == CUDA_SUCCESS);
  if (is_cpu()) {
    CHECK(cu().cuStreamSynchronize(on) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(cu().cuStreamDestroy_v2(on) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(launch("empty", 1, 1, on) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(cu().cuStreamQuery(reinterpret_cast<CUstream>(function("empty"))) == CUDA_ERROR_INVALID_HANDLE);
  }
  CUstream none = nullptr;
  CHECK(cu().cuStreamCreate(&none, 0x100) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Fixture, "a launch starts without a synchronisation") {
  const CUstream on = stream();
  REQUIRE(launch("empty", 1, 32, on) == CUDA_SUCCESS);
  CHECK(becomes_idle(on));
}

TEST_CASE_FIXTURE(
    Fixture, "a kernel that waits for the host holds up neither the launch nor copies on another stream") {
  CUmodule waiting = nullptr;
  REQUIRE(cu().cuModuleLoadData(&waiting, kWaitingModule) == CUDA_SUCCESS);
  CUfunction spin = nullptr;
  REQUIRE(cu().cuModuleGetFunction(&spin, waiting, "spin") == CUDA_SUCCESS);
  MappedFlag flag;
  const CUstream busy = stream(), other = stream();
  void* parameters[] = {&flag.device};
  REQUIRE(cu().cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, busy, parameters, nullptr) == CUDA_SUCCESS);
  const CUdeviceptr pointer = allocate(4096);
  CHECK(cu().cuMemsetD32Async(pointer, 5, 1024, other) == CUDA_SUCCESS);
  CHECK(cu().cuStreamSynchronize(other) == CUDA_SUCCESS);
  CHECK(cu().cuStreamQuery(busy) == CUDA_ERROR_NOT_READY);
  flag.set(1);
  CHECK(cu().cuStreamSynchronize(busy) == CUDA_SUCCESS);
  CHECK(download<std::uint32_t>(pointer, 1024).back() == 5);
}

TEST_CASE_FIXTURE(Fixture, "a kernel may wait for what the host writes to memory that it registered") {
  CUmodule waiting = nullptr;
  REQUIRE(cu().cuModuleLoadData(&waiting, kWaitingModule) == CUDA_SUCCESS);
  CUfunction spin = nullptr;
  REQUIRE(cu().cuModuleGetFunction(&spin, waiting, "spin") == CUDA_SUCCESS);
  alignas(4096) static std::atomic<std::uint32_t> flag[1024];
  flag[0] = 0;
  REQUIRE(cu().cuMemHostRegister_v2(flag, sizeof flag, CU_MEMHOSTREGISTER_DEVICEMAP) == CUDA_SUCCESS);
  CUdeviceptr device = 0;
  REQUIRE(cu().cuMemHostGetDevicePointer_v2(&device, flag, 0) == CUDA_SUCCESS);
  const CUstream busy = stream();
  void* parameters[] = {&device};
  REQUIRE(cu().cuLaunchKernel(spin, 3, 1, 1, 64, 1, 1, 0, busy, parameters, nullptr) == CUDA_SUCCESS);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(cu().cuStreamQuery(busy) == CUDA_ERROR_NOT_READY);
  flag[0] = 1;
  CHECK(cu().cuStreamSynchronize(busy) == CUDA_SUCCESS);
  CHECK(cu().cuMemHostUnregister(flag) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Fixture,
                  "the default stream waits for blocking streams, and they for it; other streams do not") {
  std::atomic<bool> go{false};
  const CUstream blocking = stream(CU_STREAM_DEFAULT), free_stream = stream();
  const CUdeviceptr pointer = allocate(12);
  REQUIRE(cu().cuMemsetD8_v2(pointer, 0, 12) == CUDA_SUCCESS);
  REQUIRE(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  REQUIRE(cu().cuLaunchHostFunc(
              blocking,
              [](void* user) {
                while (!static_cast<std::atomic<bool>*>(user)->load()) std::this_thread::yield();
              },
              &go) == CUDA_SUCCESS);
  REQUIRE(launch("count", 1, 1, nullptr, pointer) == CUDA_SUCCESS);
  REQUIRE(launch("count", 1, 1, blocking, pointer + 4) == CUDA_SUCCESS);
  REQUIRE(launch("count", 1, 1, free_stream, pointer + 8) == CUDA_SUCCESS);
  CHECK(cu().cuStreamSynchronize(free_stream) == CUDA_SUCCESS);
  CHECK(cu().cuStreamQuery(CU_STREAM_LEGACY) == CUDA_ERROR_NOT_READY);
  CHECK(cu().cuStreamQuery(blocking) == CUDA_ERROR_NOT_READY);
  go = true;
  CHECK(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(download<std::uint32_t>(pointer, 3) == std::vector<std::uint32_t>{1, 1, 1});
}

TEST_CASE_FIXTURE(Fixture, "host functions run in stream order") {
  const CUstream on = stream();
  const CUdeviceptr pointer = allocate(4);
  struct Seen {
    std::atomic<int> calls{0};
    std::atomic<int> wrong{0};
  } seen;
  for (int i = 0; i < 10; ++i) {
    REQUIRE(launch("count", 1, 32, on, pointer) == CUDA_SUCCESS);
    REQUIRE(cu().cuLaunchHostFunc(
                on, [](void* user) { static_cast<Seen*>(user)->calls.fetch_add(1); }, &seen) == CUDA_SUCCESS);
  }
  CHECK(cu().cuStreamSynchronize(on) == CUDA_SUCCESS);
  CHECK(seen.calls.load() == 10);
  CHECK(cu().cuLaunchHostFunc(on, nullptr, nullptr) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Fixture, "host functions and callbacks may not call the driver") {
  struct Calls {
    CUstream stream = nullptr;
    CUdeviceptr memory = 0;
    CUresult query = CUDA_SUCCESS;
    std::vector<CUresult> others;
  } calls;
  calls.stream = stream();
  calls.memory = allocate(4);
  const CUhostFn call = [](void* user) {
    auto& in = *static_cast<Calls*>(user);
    CUdeviceptr more = 0;
    CUcontext now = nullptr;
    std::uint32_t word = 0;
    in.query = cu().cuStreamQuery(in.stream);
    in.others = {cu().cuMemAlloc_v2(&more, 16), cu().cuCtxGetCurrent(&now),
                 cu().cuStreamSynchronize(in.stream), cu().cuCtxSynchronize(),
                 cu().cuMemcpyDtoH_v2(&word, in.memory, 4)};
  };
  const CUstreamCallback callback = [](CUstream, CUresult, void* user) {
    auto& in = *static_cast<std::pair<CUhostFn, Calls*>*>(user);
    in.first(in.second);
  };
  std::pair<CUhostFn, Calls*> both{call, &calls};
  for (const bool old : {false, true}) {
    CAPTURE(old);
    calls.query = CUDA_SUCCESS;
    calls.others.clear();
    REQUIRE((old ? CU(cuStreamAddCallback)(calls.stream, callback, &both, 0)
                 : cu().cuLaunchHostFunc(calls.stream, call, &calls)) == CUDA_SUCCESS);
    REQUIRE(cu().cuStreamSynchronize(calls.stream) == CUDA_SUCCESS);
    CHECK(calls.query == CUDA_ERROR_NOT_READY);  // its own function is not finished
    REQUIRE(calls.others.size() == 5);
    for (const CUresult result : calls.others) CHECK(result == CUDA_ERROR_NOT_PERMITTED);
  }
}

TEST_CASE_FIXTURE(Fixture, "the per-thread default stream is a stream of this thread") {
  const CUdeviceptr pointer = allocate(4);
  REQUIRE(cu().cuMemsetD8_v2(pointer, 0, 4) == CUDA_SUCCESS);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      cu().cuCtxSetCurrent(context);
      for (int i = 0; i < 10; ++i)
        CHECK(launch("count", 1, 32, CU_STREAM_PER_THREAD, pointer) == CUDA_SUCCESS);
      CHECK(cu().cuStreamSynchronize(CU_STREAM_PER_THREAD) == CUDA_SUCCESS);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(download<std::uint32_t>(pointer, 1)[0] == 3 * 10 * 32);
}

TEST_CASE_FIXTURE(Fixture,
                  "a stream has the priority it was made with, taken into the range, and its flags") {
  int least = 0, greatest = 0;
  REQUIRE(cu().cuCtxGetStreamPriorityRange(&least, &greatest) == CUDA_SUCCESS);
  const auto priority_of = [](CUstream of) {
    int priority = 99;
    CHECK(cu().cuStreamGetPriority(of, &priority) == CUDA_SUCCESS);
    return priority;
  };
  const auto flags_of = [](CUstream of) {
    unsigned flags = 99;
    CHECK(cu().cuStreamGetFlags(of, &flags) == CUDA_SUCCESS);
    return flags;
  };
  const auto made = [](unsigned flags, int priority) {
    CUstream on = nullptr;
    REQUIRE(cu().cuStreamCreateWithPriority(&on, flags, priority) == CUDA_SUCCESS);
    return on;
  };
  CHECK(priority_of(made(CU_STREAM_DEFAULT, greatest)) == greatest);
  CHECK(priority_of(made(CU_STREAM_NON_BLOCKING, greatest - 100)) == greatest);
  CHECK(priority_of(made(CU_STREAM_NON_BLOCKING, least + 100)) == least);
  CHECK(flags_of(made(CU_STREAM_NON_BLOCKING, 0)) == CU_STREAM_NON_BLOCKING);
  CHECK(flags_of(made(CU_STREAM_DEFAULT, 0)) == CU_STREAM_DEFAULT);
  CHECK(flags_of(stream(CU_STREAM_NON_BLOCKING)) == CU_STREAM_NON_BLOCKING);
  CHECK(priority_of(stream()) == 0);
  for (const CUstream special : {CUstream{nullptr}, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD}) {
    CHECK(priority_of(special) == 0);
    CHECK(flags_of(special) == CU_STREAM_DEFAULT);
  }
  CUstream none = nullptr;
  CHECK(cu().cuStreamCreateWithPriority(&none, 0x100, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuStreamCreateWithPriority(nullptr, 0, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuStreamGetPriority(nullptr, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuStreamGetFlags(nullptr, nullptr) == CUDA_ERROR_INVALID_VALUE);
  const CUdeviceptr pointer = allocate(4096);
  const CUstream first = made(CU_STREAM_NON_BLOCKING, greatest);
  CHECK(cu().cuMemsetD32Async(pointer, 5, 1024, first) == CUDA_SUCCESS);
  CHECK(cu().cuStreamSynchronize(first) == CUDA_SUCCESS);
  CHECK(download<std::uint32_t>(pointer, 1024).back() == 5);
}
