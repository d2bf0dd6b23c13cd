// SPDX-License-Identifier: Apache-2.0
// Values that streams wait for and write, callbacks, and what streams tell of themselves.
#include <atomic>
#include <chrono>
#include <thread>

#include "suite.hpp"

using namespace quern::conformance;

namespace {

struct Word {
  Word() {
    REQUIRE(cu().cuMemHostAlloc(&memory, 64, CU_MEMHOSTALLOC_DEVICEMAP) == CUDA_SUCCESS);
    set(0);
    REQUIRE(cu().cuMemHostGetDevicePointer_v2(&device, memory, 0) == CUDA_SUCCESS);
  }
  void set(std::uint32_t value) const { static_cast<std::atomic<std::uint32_t>*>(memory)->store(value); }
  std::uint32_t get() const { return static_cast<std::atomic<std::uint32_t>*>(memory)->load(); }
  void* memory = nullptr;
  CUdeviceptr device = 0;
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "a stream waits until memory has a value that the host or another stream writes") {
  const Word flag;
  const CUstream waits = stream(), writes = stream();
  const CUdeviceptr words = upload(std::vector<std::uint32_t>(2, 0));
  REQUIRE(CU(cuStreamWaitValue32_v2)(waits, flag.device, 3, CU_STREAM_WAIT_VALUE_GEQ) == CUDA_SUCCESS);
  REQUIRE(launch("count", 1, 1, waits, words) == CUDA_SUCCESS);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(cu().cuStreamQuery(waits) == CUDA_ERROR_NOT_READY);
  REQUIRE(CU(cuStreamWriteValue32_v2)(writes, flag.device, 2, 0) == CUDA_SUCCESS);
  REQUIRE(cu().cuStreamSynchronize(writes) == CUDA_SUCCESS);
  CHECK(flag.get() == 2);
  CHECK(cu().cuStreamQuery(waits) == CUDA_ERROR_NOT_READY);
  flag.set(5);
  CHECK(cu().cuStreamSynchronize(waits) == CUDA_SUCCESS);
  CHECK(download<std::uint32_t>(words, 1)[0] == 1);
}

TEST_CASE_FIXTURE(Fixture, "the legacy stream is done when the streams are that it waits for") {
  for (const unsigned kind : {unsigned{CU_STREAM_DEFAULT}, unsigned{CU_STREAM_NON_BLOCKING}}) {
    CAPTURE(kind);
    const Word flag;
    const CUstream other = stream(kind);
    const CUresult expected = kind == CU_STREAM_DEFAULT ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
    REQUIRE(CU(cuStreamWaitValue32_v2)(other, flag.device, 1, CU_STREAM_WAIT_VALUE_EQ) == CUDA_SUCCESS);
    CHECK(cu().cuStreamQuery(nullptr) == expected);
    CHECK(cu().cuStreamQuery(CU_STREAM_LEGACY) == expected);
    CHECK(cu().cuStreamQuery(CU_STREAM_PER_THREAD) == CUDA_SUCCESS);
    CHECK(cu().cuStreamSynchronize(CU_STREAM_PER_THREAD) == CUDA_SUCCESS);
    std::atomic<bool> is_written{false};
    std::thread program([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      is_written = true;
      flag.set(1);
    });
    CHECK(cu().cuStreamSynchronize(nullptr) == CUDA_SUCCESS);
    CHECK(is_written == (kind == CU_STREAM_DEFAULT));
    program.join();
    CHECK(cu().cuStreamSynchronize(other) == CUDA_SUCCESS);
    CHECK(cu().cuStreamQuery(nullptr) == CUDA_SUCCESS);
  }
}

TEST_CASE_FIXTURE(Fixture, "values are compared as cuda.h says") {
  const Word flag;
  const CUstream on = stream();
  const auto passes_within = [&](std::chrono::milliseconds limit, std::uint32_t memory, std::uint32_t value,
                                 unsigned relation) {
    flag.set(memory);
    REQUIRE(CU(cuStreamWaitValue32)(on, flag.device, value, relation) == CUDA_SUCCESS);
    const auto end = std::chrono::steady_clock::now() + limit;
    bool idle = false;
    while (!idle && std::chrono::steady_clock::now() < end) idle = cu().cuStreamQuery(on) == CUDA_SUCCESS;
    return idle;
  };
  const auto passes = [&](std::uint32_t memory, std::uint32_t value, unsigned relation) {
    return passes_within(std::chrono::seconds(20), memory, value, relation);  // a busy machine takes its time
  };
  const auto waits = [&](std::uint32_t memory, std::uint32_t value, unsigned relation) {
    return !passes_within(std::chrono::milliseconds(30), memory, value, relation);
  };
  CHECK(passes(5, 5, CU_STREAM_WAIT_VALUE_GEQ));
  CHECK(passes(0x80000000u, 0x7fffffffu, CU_STREAM_WAIT_VALUE_GEQ));  // (int32_t)(memory - value) >= 0
  CHECK(passes(1, 0xffffffffu, CU_STREAM_WAIT_VALUE_GEQ));
  CHECK(passes(7, 7, CU_STREAM_WAIT_VALUE_EQ));
  CHECK(passes(6, 2, CU_STREAM_WAIT_VALUE_AND));
  CHECK(passes(6, 8, CU_STREAM_WAIT_VALUE_NOR));
  CHECK(waits(4, 5, CU_STREAM_WAIT_VALUE_GEQ));
  flag.set(5);
  REQUIRE(cu().cuStreamSynchronize(on) == CUDA_SUCCESS);
  CHECK(waits(8, 7, CU_STREAM_WAIT_VALUE_EQ));
  flag.set(7);
  REQUIRE(cu().cuStreamSynchronize(on) == CUDA_SUCCESS);
  CHECK(waits(4, 3, CU_STREAM_WAIT_VALUE_AND));
  flag.set(1);
  REQUIRE(cu().cuStreamSynchronize(on) == CUDA_SUCCESS);
  CHECK(waits(0xfffffff0u, 0xf, CU_STREAM_WAIT_VALUE_NOR));
  flag.set(0);
  REQUIRE(cu().cuStreamSynchronize(on) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Fixture, "many streams wait for values at the same time") {
  const Word flag;
  const CUdeviceptr words = upload(std::vector<std::uint32_t>(1, 0));
  std::vector<CUstream> streams;
  for (unsigned i = 0; i < 100; ++i) {
    streams.push_back(stream());
    REQUIRE(CU(cuStreamWaitValue32_v2)(streams.back(), flag.device, 1 + i, CU_STREAM_WAIT_VALUE_GEQ) ==
            CUDA_SUCCESS);
    REQUIRE(launch("count", 1, 1, streams.back(), words) == CUDA_SUCCESS);
  }
  flag.set(50);
  for (unsigned i = 0; i < 50; ++i) CHECK(cu().cuStreamSynchronize(streams[i]) == CUDA_SUCCESS);
  CHECK(cu().cuStreamQuery(streams[50]) == CUDA_ERROR_NOT_READY);
  flag.set(100);
  CHECK(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(download<std::uint32_t>(words, 1)[0] == 100);
}

TEST_CASE_FIXTURE(Fixture, "several operations on values are one call, also in a graph") {
  const CUdeviceptr words = upload(std::vector<std::uint64_t>(4, 0));
  const CUstream on = stream();
  CUstreamBatchMemOpParams operations[3]{};
  operations[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
  operations[0].writeValue.address = words;
  operations[0].writeValue.value64 = 0x123456789abcdefull;
  operations[1].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64;
  operations[1].waitValue.address = words;
  operations[1].waitValue.value64 = 0x123456789abcdefull;
  operations[1].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
  operations[2].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  operations[2].writeValue.address = words + 8;
  operations[2].writeValue.value = 77;
  REQUIRE(CU(cuStreamBatchMemOp_v2)(on, 3, operations, 0) == CUDA_SUCCESS);
  REQUIRE(cu().cuStreamSynchronize(on) == CUDA_SUCCESS);
  CHECK(download<std::uint64_t>(words, 2) == std::vector<std::uint64_t>{0x123456789abcdefull, 77});
  operations[2].writeValue.value = 78;
  CUgraph graph = nullptr;
  REQUIRE(CU(cuStreamBeginCapture_v2)(on, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  REQUIRE(CU(cuStreamBatchMemOp)(on, 3, operations, 0) == CUDA_SUCCESS);
  REQUIRE(CU(cuStreamEndCapture)(on, &graph) == CUDA_SUCCESS);
  CUgraphExec exec = nullptr;
  REQUIRE(CU(cuGraphInstantiateWithFlags)(&exec, graph, 0) == CUDA_SUCCESS);
  REQUIRE(CU(cuGraphLaunch)(exec, on) == CUDA_SUCCESS);
  REQUIRE(cu().cuStreamSynchronize(on) == CUDA_SUCCESS);
  CHECK(download<std::uint64_t>(words, 2)[1] == 78);
  CHECK(CU(cuStreamBatchMemOp_v2)(on, 1, nullptr, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuStreamBatchMemOp_v2)(on, 3, operations, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuStreamWriteValue64_v2)(on, words + 4, 1, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuStreamWriteValue32_v2)(on, 16, 1, 0) == CUDA_ERROR_INVALID_VALUE);
  constexpr unsigned kNoBarrier = CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER;  // of the first version alone
  CHECK(CU(cuStreamWriteValue32_v2)(on, words, 1, kNoBarrier) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuStreamWaitValue32_v2)(on, words, 1, 0x20) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Fixture, "callbacks are told the stream and its result, also of a fault") {
  struct Seen {
    std::atomic<int> calls{0};
    std::atomic<CUstream> stream{};
    std::atomic<CUresult> result{};
  } seen;
  const CUstreamCallback callback = [](CUstream of, CUresult result, void* user) {
    auto& to = *static_cast<Seen*>(user);
    to.stream = of;
    to.result = result;
    to.calls.fetch_add(1);
  };
  const CUstream on = stream();
  REQUIRE(CU(cuStreamAddCallback)(on, callback, &seen, 0) == CUDA_SUCCESS);
  REQUIRE(cu().cuStreamSynchronize(on) == CUDA_SUCCESS);
  CHECK(seen.calls == 1);
  CHECK(seen.stream == on);
  CHECK(seen.result == CUDA_SUCCESS);
  CHECK(CU(cuStreamAddCallback)(on, nullptr, &seen, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuStreamAddCallback)(on, callback, &seen, 1) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(CU(cuStreamBeginCapture_v2)(on, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  CHECK(CU(cuStreamAddCallback)(on, callback, &seen, 0) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CUgraph none = nullptr;
  CHECK(CU(cuStreamEndCapture)(on, &none) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  const Word go;
  REQUIRE(CU(cuStreamWaitValue32_v2)(on, go.device, 1, CU_STREAM_WAIT_VALUE_GEQ) == CUDA_SUCCESS);
  REQUIRE(launch("store_to", 1, 1, on, CUdeviceptr{8}) == CUDA_SUCCESS);
  REQUIRE(CU(cuStreamAddCallback)(on, callback, &seen, 0) == CUDA_SUCCESS);
  go.set(1);
  CHECK(cu().cuStreamSynchronize(on) == CUDA_ERROR_ILLEGAL_ADDRESS);
  for (int i = 0; i < 2000 && seen.calls < 2; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(seen.calls == 2);
  CHECK(seen.result == CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_CASE_FIXTURE(Fixture, "a stream has an id, a context, a device and attributes") {
  const CUstream on = stream(), other = stream();
  unsigned long long id = 0, other_id = 0, legacy = 0;
  REQUIRE(CU(cuStreamGetId)(on, &id) == CUDA_SUCCESS);
  REQUIRE(CU(cuStreamGetId)(other, &other_id) == CUDA_SUCCESS);
  REQUIRE(CU(cuStreamGetId)(nullptr, &legacy) == CUDA_SUCCESS);
  CHECK(id != other_id);
  CHECK(legacy != id);
  CHECK(CU(cuStreamGetId)(on, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CUcontext its_context = nullptr;
  REQUIRE(CU(cuStreamGetCtx)(on, &its_context) == CUDA_SUCCESS);
  CHECK(its_context == context);
  CUgreenCtx green = reinterpret_cast<CUgreenCtx>(1);
  REQUIRE(CU(cuStreamGetCtx_v2)(CU_STREAM_LEGACY, &its_context, &green) == CUDA_SUCCESS);
  CHECK(its_context == context);
  CHECK(green == nullptr);
  CUdevice device = 99;
  REQUIRE(CU(cuStreamGetDevice)(on, &device) == CUDA_SUCCESS);
  CHECK(device == 0);
  CUstreamAttrValue value{}, told{};
  value.syncPolicy = CU_SYNC_POLICY_YIELD;
  REQUIRE(CU(cuStreamSetAttribute)(on, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value) == CUDA_SUCCESS);
  REQUIRE(CU(cuStreamGetAttribute)(other, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &told) == CUDA_SUCCESS);
  CHECK(told.syncPolicy == CU_SYNC_POLICY_AUTO);
  REQUIRE(CU(cuStreamCopyAttributes)(other, on) == CUDA_SUCCESS);
  REQUIRE(CU(cuStreamGetAttribute)(other, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &told) == CUDA_SUCCESS);
  CHECK(told.syncPolicy == CU_SYNC_POLICY_YIELD);
  CHECK(CU(cuStreamGetAttribute)(on, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &told) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuStreamSetAttribute)(on, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, nullptr) ==
        CUDA_ERROR_INVALID_VALUE);
  REQUIRE(cu().cuStreamDestroy_v2(on) == CUDA_SUCCESS);
  CHECK(CU(cuStreamGetId)(on, &id) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(CU(cuStreamGetCtx)(on, &its_context) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE_FIXTURE(Fixture, "managed memory is attached to streams as a whole") {
  CUdeviceptr managed = 0;
  REQUIRE(cu().cuMemAllocManaged(&managed, 256, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
  const CUstream on = stream();
  CHECK(CU(cuStreamAttachMemAsync)(on, managed, 0, CU_MEM_ATTACH_SINGLE) == CUDA_SUCCESS);
  CHECK(CU(cuStreamAttachMemAsync)(on, managed, 256, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
  CHECK(CU(cuStreamAttachMemAsync)(on, managed, 128, CU_MEM_ATTACH_GLOBAL) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuStreamAttachMemAsync)(nullptr, managed, 0, CU_MEM_ATTACH_SINGLE) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuStreamAttachMemAsync)(on, managed, 0, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuStreamAttachMemAsync)(on, allocate(64), 0, CU_MEM_ATTACH_GLOBAL) == CUDA_ERROR_INVALID_VALUE);
}
