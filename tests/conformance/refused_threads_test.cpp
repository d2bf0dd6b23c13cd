// SPDX-License-Identifier: Apache-2.0
// Programs that can start no thread, so that their calls do all the work.
#include <atomic>
#include <vector>

#include "../refused_threads.hpp"
#include "graph_fixture.hpp"
#include "kernels.hpp"
#include "process.hpp"
#include "suite.hpp"

using namespace quern::conformance;

namespace {

bool refused = false;

struct WithoutThreads : GraphFixture {
  WithoutThreads() {
    REQUIRE(quern::test::refuse_threads());
    refused = true;
  }

  /// A stream that counts once, when the flag is 1.
  CUstream waits_for(CUdeviceptr flag) const {
    const CUstream on = stream();
    REQUIRE(CU(cuStreamWaitValue32_v2)(on, flag, 1, CU_STREAM_WAIT_VALUE_EQ) == CUDA_SUCCESS);
    REQUIRE(launch("count", 1, 1, on, counter) == CUDA_SUCCESS);
    return on;
  }
  /// Calls `check(flag, write)` for each way in which a stream may write 1 to the flag.
  template <class Check>
  void for_each_write(const Check& check) const {
    const CUdeviceptr one = upload(std::vector<unsigned>{1});
    const CUstream writer = stream();
    void* host = nullptr;
    REQUIRE(cu().cuMemHostAlloc(&host, 64, CU_MEMHOSTALLOC_DEVICEMAP) == CUDA_SUCCESS);
    auto& word = *static_cast<std::atomic<unsigned>*>(host);
    const auto flag = reinterpret_cast<CUdeviceptr>(host);
    const auto set = [](void* at) { static_cast<std::atomic<unsigned>*>(at)->store(1); };
    unsigned expected = download<unsigned>(counter, 1)[0];
    for (unsigned way = 0; way < 5; ++way) {
      CAPTURE(way);
      word = 0;
      check(flag, [&] {
        if (way == 0) CHECK(CU(cuStreamWriteValue32_v2)(writer, flag, 1, 0) == CUDA_SUCCESS);
        if (way == 1) CHECK(cu().cuMemsetD32Async(flag, 1, 1, writer) == CUDA_SUCCESS);
        if (way == 2) CHECK(cu().cuMemcpyDtoHAsync_v2(host, one, 4, writer) == CUDA_SUCCESS);
        if (way == 3) CHECK(launch("store_to", 1, 1, writer, flag) == CUDA_SUCCESS);
        if (way == 4) CHECK(cu().cuLaunchHostFunc(writer, set, host) == CUDA_SUCCESS);
      });
      CHECK(download<unsigned>(counter, 1)[0] == ++expected);
    }
  }

  const CUdeviceptr counter = upload(std::vector<unsigned>{0});
};

}  // namespace

/// LeakSanitizer starts a thread at the end of a program.
extern "C" int __lsan_is_turned_off();  // NOLINT(bugprone-reserved-identifier)
extern "C" int __lsan_is_turned_off() { return refused ? 1 : 0; }

TEST_CASE_FIXTURE(WithoutThreads, "part: calls that wait do the work of other streams" * doctest::skip()) {
  for_each_write([&](CUdeviceptr flag, const auto& write) {
    const CUstream waits = waits_for(flag);
    write();
    CHECK(cu().cuStreamSynchronize(waits) == CUDA_SUCCESS);
  });
  for_each_write([&](CUdeviceptr flag, const auto& write) {
    const CUevent done = event();
    CHECK(cu().cuEventRecord(done, waits_for(flag)) == CUDA_SUCCESS);
    write();
    CHECK(cu().cuEventSynchronize(done) == CUDA_SUCCESS);
  });
  for_each_write([&](CUdeviceptr flag, const auto& write) {
    waits_for(flag);
    write();
    CHECK(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  });
  for_each_write([&](CUdeviceptr flag, const auto& write) {
    const CUstream waits = waits_for(flag);
    write();
    unsigned copy = 0;
    CHECK(cu().cuMemcpyDtoHAsync_v2(&copy, counter, 4, waits) == CUDA_SUCCESS);  // waits for the stream
    CHECK(copy > 0);
  });
  for_each_write([&](CUdeviceptr flag, const auto& write) {
    const CUstream waits = waits_for(flag);
    write();
    while (cu().cuStreamQuery(waits) == CUDA_ERROR_NOT_READY) {
    }
  });
}

TEST_CASE_FIXTURE(WithoutThreads, "part: graphs wait for values" * doctest::skip()) {
  const CUstream on = stream();
  for_each_write([&](CUdeviceptr flag, const auto& write) {
    CUgraph waiting = nullptr;
    REQUIRE(CU(cuStreamBeginCapture_v2)(on, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
    REQUIRE(CU(cuStreamWaitValue32_v2)(on, flag, 1, CU_STREAM_WAIT_VALUE_EQ) == CUDA_SUCCESS);
    REQUIRE(launch("count", 1, 1, on, counter) == CUDA_SUCCESS);
    REQUIRE(CU(cuStreamEndCapture)(on, &waiting) == CUDA_SUCCESS);
    CUgraphExec exec = nullptr;
    REQUIRE(CU(cuGraphInstantiateWithFlags)(&exec, waiting, 0) == CUDA_SUCCESS);
    REQUIRE(CU(cuGraphLaunch)(exec, on) == CUDA_SUCCESS);
    write();
    CHECK(cu().cuStreamSynchronize(on) == CUDA_SUCCESS);
  });
}

TEST_CASE_FIXTURE(WithoutThreads, "part: kernels wait for values" * doctest::skip()) {
  CUmodule waiting = nullptr;
  CUfunction spin = nullptr;
  REQUIRE(cu().cuModuleLoadDataEx(&waiting, kWaitingModule, 0, nullptr, nullptr) == CUDA_SUCCESS);
  REQUIRE(cu().cuModuleGetFunction(&spin, waiting, "spin") == CUDA_SUCCESS);
  const CUstream on = stream();
  for_each_write([&](CUdeviceptr flag, const auto& write) {
    void* parameters[] = {&flag};
    REQUIRE(cu().cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, on, parameters, nullptr) == CUDA_SUCCESS);
    REQUIRE(launch("count", 1, 1, on, counter) == CUDA_SUCCESS);
    write();
    CHECK(cu().cuStreamSynchronize(on) == CUDA_SUCCESS);
  });
}

TEST_CASE("a program that can start no thread waits for what its other streams do") {
  if (!is_cpu()) return;
  CHECK(Process("part: calls that wait do the work of other streams").succeeds());
  CHECK(Process("part: graphs wait for values").succeeds());
  // A second worker for the kernel that writes, also on a machine with one processor.
  const char* const workers = std::getenv("QUERN_CPU_WORKERS");
  if (workers == nullptr) ::setenv("QUERN_CPU_WORKERS", "2", 1);
  // The dispatcher takes every kernel for one that waits, and such a kernel runs no other one (docs/host.md).
  if (std::getenv("QUERN_CPU_DISPATCH") == nullptr)
    CHECK(Process("part: kernels wait for values").succeeds());
  if (workers == nullptr) ::unsetenv("QUERN_CPU_WORKERS");
}
