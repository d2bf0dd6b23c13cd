// SPDX-License-Identifier: Apache-2.0
// Events of several processes.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "process.hpp"
#include "suite.hpp"

using namespace quern::conformance;

namespace {

constexpr unsigned kFlags = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;
constexpr const char* kMemory = "QUERN_TEST_MEMORY";
constexpr unsigned kCount = 4096;

/// A stream that waits until it is told to go on.
class Gate {
 public:
  explicit Gate(CUstream on) : on_(on) {
    const auto wait = [](void* open) {
      while (!static_cast<std::atomic<bool>*>(open)->load())
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    };
    REQUIRE(cu().cuLaunchHostFunc(on, wait, &open_) == CUDA_SUCCESS);
  }
  ~Gate() {
    open();
    cu().cuStreamSynchronize(on_);
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  void open() { open_ = true; }

 private:
  const CUstream on_;
  std::atomic<bool> open_{false};
};

CUipcEventHandle handle_of(CUevent event) {
  CUipcEventHandle handle{};
  REQUIRE(CU(cuIpcGetEventHandle)(&handle, event) == CUDA_SUCCESS);
  return handle;
}
CUevent open_handle(const CUipcEventHandle& handle) {
  CUevent event = nullptr;
  REQUIRE(CU(cuIpcOpenEventHandle)(&event, handle) == CUDA_SUCCESS);
  return event;
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "part: waits for the process above and works for it" * doctest::skip()) {
  CUdeviceptr pointer = 0;
  REQUIRE(CU(cuIpcOpenMemHandle_v2)(&pointer, from_hex<CUipcMemHandle>(environment(kMemory)),
                                    CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) == CUDA_SUCCESS);
  const CUevent shared = open_handle(from_hex<CUipcEventHandle>(environment(kHandle)));
  CHECK(cu().cuEventQuery(shared) == CUDA_ERROR_NOT_READY);
  const CUstream first = stream(), second = stream();
  const CUdeviceptr copy = allocate(kCount * 4);
  CHECK(cu().cuStreamWaitEvent(first, shared, 0) == CUDA_SUCCESS);
  CHECK(cu().cuMemcpyDtoDAsync_v2(copy, pointer, kCount * 4, first) == CUDA_SUCCESS);
  CHECK(cu().cuStreamQuery(first) == CUDA_ERROR_NOT_READY);
  if (is_cpu()) CHECK(CU(cuCtxWaitEvent)(context, shared) == CUDA_SUCCESS);
  CHECK(launch("empty", 1, 32, second) == CUDA_SUCCESS);
  if (is_cpu()) CHECK(cu().cuStreamQuery(second) == CUDA_ERROR_NOT_READY);
  std::printf("waits\n");
  std::fflush(stdout);
  CHECK(cu().cuEventSynchronize(shared) == CUDA_SUCCESS);
  CHECK(cu().cuEventQuery(shared) == CUDA_SUCCESS);
  CHECK(cu().cuStreamSynchronize(first) == CUDA_SUCCESS);
  CHECK(cu().cuStreamSynchronize(second) == CUDA_SUCCESS);
  CHECK(download<unsigned>(copy, kCount) == std::vector<unsigned>(kCount, 5u));

  // The other direction: what this process records, the other waits for.
  Gate gate(first);
  CHECK(launch("fill", kCount / 128, 128, first, pointer, kCount, 9u) == CUDA_SUCCESS);
  CHECK(cu().cuEventRecord(shared, first) == CUDA_SUCCESS);
  CHECK(cu().cuEventQuery(shared) == CUDA_ERROR_NOT_READY);
  std::printf("recorded\n");
  std::fflush(stdout);
  std::this_thread::sleep_for(
      std::chrono::milliseconds(150));  // longer than a wait looks for the end of a process
  gate.open();
  CHECK(cu().cuEventSynchronize(shared) == CUDA_SUCCESS);

  float milliseconds = 0;
  CHECK(cu().cuEventElapsedTime_v2(&milliseconds, shared, shared) == CUDA_ERROR_INVALID_HANDLE);
  CUipcEventHandle again{};
  if (is_cpu()) CHECK(CU(cuIpcGetEventHandle)(&again, shared) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(cu().cuEventDestroy_v2(shared) == CUDA_SUCCESS);
  if (is_cpu()) CHECK(cu().cuEventQuery(shared) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(CU(cuIpcCloseMemHandle)(pointer) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Fixture, "two processes wait for each other's work by an event") {
  const CUdeviceptr pointer = allocate(kCount * 4);
  const CUevent shared = event(kFlags);
  CUipcMemHandle memory{};
  REQUIRE(CU(cuIpcGetMemHandle)(&memory, pointer) == CUDA_SUCCESS);
  ::setenv(kMemory, to_hex(memory).c_str(), 1);
  ::setenv(kHandle, to_hex(handle_of(shared)).c_str(), 1);
  const CUstream on = stream();
  Gate gate(on);
  REQUIRE(launch("fill", kCount / 128, 128, on, pointer, kCount, 5u) == CUDA_SUCCESS);
  REQUIRE(cu().cuEventRecord(shared, on) == CUDA_SUCCESS);
  CHECK(cu().cuEventQuery(shared) == CUDA_ERROR_NOT_READY);
  Process child("part: waits for the process above and works for it");
  CHECK(child.answers("waits"));
  gate.open();
  REQUIRE(child.answers("recorded"));
  CHECK(cu().cuStreamWaitEvent(on, shared, 0) == CUDA_SUCCESS);
  const CUdeviceptr copy = allocate(kCount * 4);
  CHECK(cu().cuMemcpyDtoDAsync_v2(copy, pointer, kCount * 4, on) == CUDA_SUCCESS);
  CHECK(cu().cuStreamSynchronize(on) == CUDA_SUCCESS);
  CHECK(cu().cuEventQuery(shared) == CUDA_SUCCESS);
  CHECK(download<unsigned>(copy, kCount) == std::vector<unsigned>(kCount, 9u));
  CHECK(child.succeeds());
  CHECK(cu().cuEventRecord(shared, on) == CUDA_SUCCESS);
  CHECK(cu().cuEventSynchronize(shared) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Fixture, "part: an event that is not reached" * doctest::skip()) {
  const CUstream on = stream();
  const CUevent shared = event(kFlags);
  const std::string handle = to_hex(handle_of(shared));
  Gate gate(on);
  REQUIRE(cu().cuEventRecord(shared, on) == CUDA_SUCCESS);
  answer_and_wait("handle " + handle);
}

TEST_CASE_FIXTURE(Fixture, "a process that ends before its event is reached fails those that wait for it") {
  if (!is_cpu()) return;  // what libcuda does then is not documented
  Process child("part: an event that is not reached");
  const auto handle = from_hex<CUipcEventHandle>(child.answer("handle "));
  const CUevent shared = open_handle(handle), never = open_handle(handle);
  CHECK(cu().cuEventQuery(shared) == CUDA_ERROR_NOT_READY);
  const CUstream waits = stream();
  const CUdeviceptr pointer = allocate(4);
  REQUIRE(cu().cuMemsetD32_v2(pointer, 1, 1) == CUDA_SUCCESS);
  CHECK(cu().cuStreamWaitEvent(waits, shared, 0) == CUDA_SUCCESS);
  std::atomic<bool> runs{false};
  CHECK(cu().cuLaunchHostFunc(
            waits, [](void* flag) { static_cast<std::atomic<bool>*>(flag)->store(true); }, &runs) ==
        CUDA_SUCCESS);
  std::this_thread::sleep_for(std::chrono::milliseconds(120));
  CHECK(cu().cuStreamQuery(waits) == CUDA_ERROR_NOT_READY);
  child.kill();
  CHECK(cu().cuStreamSynchronize(waits) == CUDA_ERROR_LAUNCH_FAILED);
  CHECK_FALSE(runs.load());
  CHECK(cu().cuEventQuery(never) == CUDA_ERROR_LAUNCH_FAILED);

  // A context that has queued no wait stays usable.
  CUcontext other = nullptr;
  REQUIRE(cu().cuCtxCreate_v4(&other, nullptr, 0, 0) == CUDA_SUCCESS);
  CUevent late = nullptr;
  CHECK(CU(cuIpcOpenEventHandle)(&late, handle) == CUDA_ERROR_MAP_FAILED);
  CHECK(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(cu().cuCtxDestroy_v2(other) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Fixture, "a host that waits learns of the end of the recording process") {
  if (!is_cpu()) return;
  Process child("part: an event that is not reached");
  const CUevent shared = open_handle(from_hex<CUipcEventHandle>(child.answer("handle ")));
  std::thread killer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    child.kill();
  });
  CHECK(cu().cuEventSynchronize(shared) == CUDA_ERROR_LAUNCH_FAILED);
  killer.join();
  CHECK(cu().cuStreamWaitEvent(nullptr, shared, 0) == CUDA_ERROR_LAUNCH_FAILED);
  CHECK(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  // A record of one's own takes the place of the lost one.
  CHECK(cu().cuEventRecord(shared, nullptr) == CUDA_SUCCESS);
  CHECK(cu().cuEventSynchronize(shared) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Fixture, "part: an event behind a fault" * doctest::skip()) {
  const CUevent shared = event(kFlags);
  const std::string handle = to_hex(handle_of(shared));
  const CUstream on = stream();
  Gate gate(on);  // the fault must not come before the record, which would return it
  REQUIRE(launch("fill", 1, 32, on, CUdeviceptr{64}, 32u, 1u) == CUDA_SUCCESS);
  REQUIRE(cu().cuEventRecord(shared, on) == CUDA_SUCCESS);
  gate.open();
  CHECK(cu().cuEventSynchronize(shared) == CUDA_ERROR_ILLEGAL_ADDRESS);
  answer_and_wait("handle " + handle);
}

TEST_CASE_FIXTURE(Fixture, "work that a fault ends in one process fails those that wait for it in another") {
  if (!is_cpu()) return;
  Process child("part: an event behind a fault");
  const CUevent shared = open_handle(from_hex<CUipcEventHandle>(child.answer("handle ")));
  CHECK(cu().cuEventSynchronize(shared) == CUDA_ERROR_LAUNCH_FAILED);
  CHECK(cu().cuCtxSynchronize() == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Fixture, "an event for several processes is an event of its own process") {
  const CUevent shared = event(kFlags);
  CHECK(cu().cuEventQuery(shared) == CUDA_SUCCESS);
  CHECK(cu().cuEventSynchronize(shared) == CUDA_SUCCESS);
  const CUstream blocked = stream(), free = stream(), third = stream();
  constexpr int kMany = 3000;  // more than there is room for at a time
  {
    Gate gate(blocked);
    REQUIRE(cu().cuEventRecord(shared, blocked) == CUDA_SUCCESS);
    REQUIRE(cu().cuStreamWaitEvent(third, shared, 0) == CUDA_SUCCESS);
    CHECK(cu().cuEventQuery(shared) == CUDA_ERROR_NOT_READY);
    for (int i = 0; i < kMany; ++i) REQUIRE(cu().cuEventRecord(shared, free) == CUDA_SUCCESS);
    CHECK(cu().cuEventSynchronize(shared) == CUDA_SUCCESS);  // the last record counts
    CHECK(cu().cuStreamQuery(third) == CUDA_ERROR_NOT_READY);
  }
  CHECK(cu().cuStreamSynchronize(third) == CUDA_SUCCESS);
  {
    Gate gate(blocked);
    for (int i = 0; i < kMany; ++i) REQUIRE(cu().cuEventRecord(shared, blocked) == CUDA_SUCCESS);
    CHECK(cu().cuEventQuery(shared) == CUDA_ERROR_NOT_READY);
  }
  CHECK(cu().cuEventSynchronize(shared) == CUDA_SUCCESS);
  CHECK(cu().cuStreamSynchronize(blocked) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Fixture, "an event for several processes is captured as any other, but is no node") {
  if (!is_cpu()) return;
  const CUevent shared = event(kFlags);
  const CUstream first = stream(), second = stream();
  REQUIRE(CU(cuStreamBeginCapture_v2)(first, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  CHECK(CU(cuEventRecordWithFlags)(shared, first, CU_EVENT_RECORD_EXTERNAL) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cu().cuStreamWaitEvent(first, shared, CU_EVENT_WAIT_EXTERNAL) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cu().cuEventRecord(shared, first) == CUDA_SUCCESS);
  CHECK(cu().cuStreamWaitEvent(second, shared, 0) == CUDA_SUCCESS);
  CHECK(launch("empty", 1, 32, second) == CUDA_SUCCESS);
  const CUevent joined = event(CU_EVENT_DISABLE_TIMING);
  CHECK(cu().cuEventRecord(joined, second) == CUDA_SUCCESS);
  CHECK(cu().cuStreamWaitEvent(first, joined, 0) == CUDA_SUCCESS);
  CUgraph graph = nullptr;
  CHECK(CU(cuStreamEndCapture)(first, &graph) == CUDA_SUCCESS);
  CUgraphNode node = nullptr;
  CHECK(CU(cuGraphAddEventRecordNode)(&node, graph, nullptr, 0, shared) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(CU(cuGraphAddEventWaitNode)(&node, graph, nullptr, 0, shared) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(CU(cuGraphAddEventRecordNode)(&node, graph, nullptr, 0, joined) == CUDA_SUCCESS);
  CHECK(CU(cuGraphEventRecordNodeSetEvent)(node, shared) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(CU(cuGraphDestroy)(graph) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Fixture, "events that cannot be shared, and handles that name nothing") {
  CUevent it = nullptr;
  CHECK(cu().cuEventCreate(&it, CU_EVENT_INTERPROCESS) == CUDA_ERROR_INVALID_VALUE);
  CUipcEventHandle handle{};
  const CUevent plain = event(CU_EVENT_DISABLE_TIMING), shared = event(kFlags);
  if (is_cpu()) CHECK(CU(cuIpcGetEventHandle)(&handle, plain) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(CU(cuIpcGetEventHandle)(nullptr, shared) == CUDA_ERROR_INVALID_VALUE);
  float milliseconds = 0;
  CHECK(cu().cuEventElapsedTime_v2(&milliseconds, shared, shared) == CUDA_ERROR_INVALID_HANDLE);
  int supported = 0;
  CHECK(cu().cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, 0) == CUDA_SUCCESS);
  CHECK(supported == 1);
  if (!is_cpu()) return;
  handle = handle_of(shared);
  CHECK(CU(cuIpcOpenEventHandle)(nullptr, handle) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuIpcOpenEventHandle)(&it, handle) == CUDA_ERROR_INVALID_CONTEXT);  // its own
  CHECK(CU(cuIpcOpenEventHandle)(&it, CUipcEventHandle{}) == CUDA_ERROR_MAP_FAILED);
  CUipcMemHandle memory{};
  REQUIRE(CU(cuIpcGetMemHandle)(&memory, allocate(64)) == CUDA_SUCCESS);
  std::memcpy(&handle, &memory, sizeof handle);
  CHECK(CU(cuIpcOpenEventHandle)(&it, handle) == CUDA_ERROR_MAP_FAILED);
  CHECK(cu().cuEventDestroy_v2(shared) == CUDA_SUCCESS);
  CHECK(CU(cuIpcGetEventHandle)(&handle, shared) == CUDA_ERROR_INVALID_HANDLE);
}
