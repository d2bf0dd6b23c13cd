// SPDX-License-Identifier: Apache-2.0
// Streams of a context that is not current. Sources: cuda.h ("CUDA_ERROR_INVALID_CONTEXT (default stream
// specified with no current context)" of cuMemFreeAsync, the context of a CUkernel of cuLaunchKernel, the
// events of cuEventRecord and cuStreamWaitEvent), and "CUDA C++ Programming Guide", section "Stream and Event
// Behavior" of multi-device systems.
#include <atomic>
#include <functional>
#include <thread>

#include "kernels.hpp"
#include "suite.hpp"

using namespace quern::conformance;

namespace {

/// A stream, and all that a launch there needs, made while the context is current.
struct Elsewhere : Fixture {
  CUstream on = stream();
  CUevent done = event();
  CUfunction count_function = function("count");
  CUdeviceptr words = upload(std::vector<std::uint32_t>(64, 0));

  CUresult count(CUstream where, CUdeviceptr counter) const {
    void* parameters[] = {&counter};
    return cu().cuLaunchKernel(count_function, 1, 1, 1, 32, 1, 1, 0, where, parameters, nullptr);
  }
};

/// Runs it on a thread without a current context.
void without_context(const std::function<void()>& body) { std::thread(body).join(); }

/// Calls that take `there.on`, while its context is not current.
void use_stream(const Elsewhere& there) {
  const CUstream on = there.on;
  const CUdeviceptr words = there.words;
  std::uint32_t host[2] = {7, 0};
  std::atomic<int> calls{0};
  CHECK(cu().cuMemcpyHtoDAsync_v2(words, host, 4, on) == CUDA_SUCCESS);
  CHECK(there.count(on, words) == CUDA_SUCCESS);
  CHECK(cu().cuMemsetD32Async(words + 4, 5, 1, on) == CUDA_SUCCESS);
  CHECK(cu().cuMemcpyDtoDAsync_v2(words + 8, words, 8, on) == CUDA_SUCCESS);
  CHECK(CU(cuMemcpyAsync)(words + 16, words, 8, on) == CUDA_SUCCESS);
  CHECK(cu().cuMemcpyDtoHAsync_v2(host, words + 8, 8, on) == CUDA_SUCCESS);
  CHECK(CU(cuStreamWriteValue32_v2)(on, words + 24, 9, 0) == CUDA_SUCCESS);
  CHECK(CU(cuStreamWaitValue32_v2)(on, words + 24, 9, CU_STREAM_WAIT_VALUE_EQ) == CUDA_SUCCESS);
  const auto note = [](void* user) { static_cast<std::atomic<int>*>(user)->fetch_add(1); };
  CHECK(cu().cuLaunchHostFunc(on, note, &calls) == CUDA_SUCCESS);
  const auto call_back = [](CUstream, CUresult, void* user) {
    static_cast<std::atomic<int>*>(user)->fetch_add(1);
  };
  CHECK(CU(cuStreamAddCallback)(on, call_back, &calls, 0) == CUDA_SUCCESS);
  CHECK(cu().cuEventRecord(there.done, on) == CUDA_SUCCESS);
  CHECK(cu().cuStreamWaitEvent(on, there.done, 0) == CUDA_SUCCESS);
  CHECK(cu().cuEventSynchronize(there.done) == CUDA_SUCCESS);
  CHECK(cu().cuStreamSynchronize(on) == CUDA_SUCCESS);
  CHECK(cu().cuStreamQuery(on) == CUDA_SUCCESS);
  CHECK(calls == 2);
  CHECK(host[0] == 7 + 32);
  CHECK(host[1] == 5);
}

/// Calls that ask about `there.on` or set something there.
void examine_stream(const Elsewhere& there) {
  int priority = 9;
  unsigned flags = 9;
  CHECK(cu().cuStreamGetPriority(there.on, &priority) == CUDA_SUCCESS);
  CHECK(cu().cuStreamGetFlags(there.on, &flags) == CUDA_SUCCESS);
  CHECK(flags == CU_STREAM_NON_BLOCKING);
  CUstreamAttrValue value{};
  CHECK(CU(cuStreamGetAttribute)(there.on, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value) == CUDA_SUCCESS);
  CHECK(value.priority == priority);
  CHECK(CU(cuStreamSetAttribute)(there.on, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value) == CUDA_SUCCESS);
  CUcontext context = nullptr;
  CHECK(CU(cuStreamGetCtx)(there.on, &context) == CUDA_SUCCESS);
  CHECK(context == there.context);
}

/// The context of memory; null: it belongs to none.
CUcontext owner_of(CUdeviceptr pointer) {
  CUcontext owner = nullptr;
  CHECK(cu().cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, pointer) == CUDA_SUCCESS);
  return owner;
}

void allocate_there(const Elsewhere& there) {
  CUdeviceptr made = 0;
  REQUIRE(cu().cuMemAllocAsync(&made, 4096, there.on) == CUDA_SUCCESS);
  CHECK(cu().cuMemsetD32Async(made, 3, 1024, there.on) == CUDA_SUCCESS);
  std::uint32_t last = 0;
  CHECK(cu().cuMemcpyDtoHAsync_v2(&last, made + 4092, 4, there.on) == CUDA_SUCCESS);
  CHECK(cu().cuMemFreeAsync(made, there.on) == CUDA_SUCCESS);
  CHECK(cu().cuStreamSynchronize(there.on) == CUDA_SUCCESS);
  CHECK(last == 3);
}

/// A capture of the stream, and a launch of its graph there.
void capture_there(const Elsewhere& there) {
  REQUIRE(CU(cuStreamBeginCapture_v2)(there.on, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  CHECK(cu().cuMemsetD32Async(there.words, 1, 1, there.on) == CUDA_SUCCESS);
  CHECK(there.count(there.on, there.words) == CUDA_SUCCESS);
  CHECK(CU(cuStreamWriteValue32_v2)(there.on, there.words + 4, 8, 0) == CUDA_SUCCESS);
  CUdeviceptr made = 0;
  CHECK(cu().cuMemAllocAsync(&made, 64, there.on) == CUDA_SUCCESS);
  CHECK(cu().cuMemFreeAsync(made, there.on) == CUDA_SUCCESS);
  CUstreamCaptureStatus status{};
  CHECK(CU(cuStreamIsCapturing)(there.on, &status) == CUDA_SUCCESS);
  CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CUgraph graph = nullptr;
  REQUIRE(CU(cuStreamEndCapture)(there.on, &graph) == CUDA_SUCCESS);
  CUgraphExec exec = nullptr;
  REQUIRE(CU(cuGraphInstantiateWithFlags)(&exec, graph, 0) == CUDA_SUCCESS);
  CHECK(CU(cuGraphUpload)(exec, there.on) == CUDA_SUCCESS);
  CHECK(CU(cuGraphLaunch)(exec, there.on) == CUDA_SUCCESS);
  std::uint32_t host[2] = {0, 0};
  CHECK(cu().cuMemcpyDtoHAsync_v2(host, there.words, 8, there.on) == CUDA_SUCCESS);
  CHECK(cu().cuStreamSynchronize(there.on) == CUDA_SUCCESS);
  CHECK(host[0] == 1 + 32);
  CHECK(host[1] == 8);
  CHECK(CU(cuGraphExecDestroy)(exec) == CUDA_SUCCESS);
  CHECK(CU(cuGraphDestroy)(graph) == CUDA_SUCCESS);
}

}  // namespace

TEST_CASE_FIXTURE(Elsewhere, "a stream takes work of its context while another one is current") {
  const Fixture current;
  use_stream(*this);
  examine_stream(*this);
  allocate_there(*this);
  capture_there(*this);
  CUdeviceptr made = 0;
  REQUIRE(cu().cuMemAllocAsync(&made, 64, on) == CUDA_SUCCESS);
  if (is_cpu()) CHECK(owner_of(made) == context);  // a GPU's pools belong to no context
  CHECK(cu().cuMemFreeAsync(made, on) == CUDA_SUCCESS);
  CUcontext still = nullptr;
  CHECK(cu().cuCtxGetCurrent(&still) == CUDA_SUCCESS);
  CHECK(still == current.context);
}

TEST_CASE_FIXTURE(Elsewhere, "a stream takes work of its context while none is current") {
  without_context([this] {
    use_stream(*this);
    examine_stream(*this);
    allocate_there(*this);
    if (is_cpu()) capture_there(*this);
  });
}

TEST_CASE_FIXTURE(Elsewhere, "default streams are those of the current context") {
  {
    const Fixture current;
    CHECK(count(nullptr, words) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(count(CU_STREAM_PER_THREAD, words) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(cu().cuEventRecord(done, nullptr) == CUDA_ERROR_INVALID_HANDLE);
  }
  without_context([this] {
    for (const CUstream special : {CUstream{nullptr}, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD}) {
      CHECK(count(special, words) == CUDA_ERROR_INVALID_CONTEXT);
      CHECK(cu().cuMemsetD32Async(words, 1, 1, special) == CUDA_ERROR_INVALID_CONTEXT);
      CHECK(cu().cuStreamSynchronize(special) == CUDA_ERROR_INVALID_CONTEXT);
      CHECK(cu().cuMemFreeAsync(words, special) == CUDA_ERROR_INVALID_CONTEXT);
    }
  });
}

TEST_CASE_FIXTURE(Elsewhere, "a stream takes no kernels and records no events of another context") {
  const Elsewhere current;
  CHECK(count(current.on, words) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(current.count(on, words) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(cu().cuEventRecord(done, current.on) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(cu().cuEventRecord(current.done, on) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(CU(cuStreamCopyAttributes)(on, current.on) == CUDA_ERROR_INVALID_VALUE);
  // It waits for one.
  REQUIRE(count(on, words) == CUDA_SUCCESS);
  REQUIRE(cu().cuEventRecord(done, on) == CUDA_SUCCESS);
  CHECK(cu().cuStreamWaitEvent(current.on, done, 0) == CUDA_SUCCESS);
  REQUIRE(cu().cuMemcpyDtoDAsync_v2(current.words, words, 4, current.on) == CUDA_SUCCESS);
  REQUIRE(cu().cuStreamSynchronize(current.on) == CUDA_SUCCESS);
  CHECK(download<std::uint32_t>(current.words, 1)[0] == 32);
}

TEST_CASE_FIXTURE(Elsewhere, "a CUkernel runs in the context of the stream") {
  constexpr const char* kText = R"(.version 7.0
.target sm_50
.address_size 64
.visible .global .align 4 .u32 total = 1;
.visible .entry add()
{
  .reg .b32 %r<2>;
  atom.global.add.u32 %r1, [total], 1;
  ret;
}
)";
  CUlibrary library = nullptr;
  REQUIRE(CU(cuLibraryLoadData)(&library, kText, nullptr, nullptr, 0, nullptr, nullptr, 0) == CUDA_SUCCESS);
  CUkernel kernel = nullptr;
  REQUIRE(CU(cuLibraryGetKernel)(&kernel, library, "add") == CUDA_SUCCESS);
  CUdeviceptr total = 0;
  REQUIRE(CU(cuLibraryGetGlobal)(&total, nullptr, library, "total") == CUDA_SUCCESS);
  {
    const Fixture current;
    CUdeviceptr other_total = 0;
    REQUIRE(CU(cuLibraryGetGlobal)(&other_total, nullptr, library, "total") == CUDA_SUCCESS);
    REQUIRE(other_total != total);
    const auto function = reinterpret_cast<CUfunction>(kernel);
    CHECK(cu().cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, on, nullptr, nullptr) == CUDA_SUCCESS);
    CHECK(cu().cuStreamSynchronize(on) == CUDA_SUCCESS);
    CHECK(current.download<std::uint32_t>(other_total, 1)[0] == 1);
  }
  CHECK(download<std::uint32_t>(total, 1)[0] == 1 + 32);
  CHECK(CU(cuLibraryUnload)(library) == CUDA_SUCCESS);
}

TEST_CASE("the fault that counts is that of the stream's context") {
  const Elsewhere sound;
  const Elsewhere faulty;
  REQUIRE(faulty.launch("trap_here", 1, 1, faulty.on) == CUDA_SUCCESS);
  CHECK(cu().cuStreamSynchronize(faulty.on) == CUDA_ERROR_LAUNCH_FAILED);
  if (!is_cpu()) return;  // a GPU may lose all contexts of a process
  use_stream(sound);
  REQUIRE(cu().cuCtxSetCurrent(sound.context) == CUDA_SUCCESS);
  CHECK(cu().cuStreamSynchronize(faulty.on) == CUDA_ERROR_LAUNCH_FAILED);
  CHECK(cu().cuMemsetD32Async(sound.words, 1, 1, faulty.on) == CUDA_ERROR_LAUNCH_FAILED);
  CHECK(cu().cuMemsetD32Async(sound.words, 1, 1, sound.on) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Fixture, "a stream ends with its context") {
  if (!is_cpu()) return;  // a GPU's driver need not recognise its handle
  CUstream ended = nullptr;
  {
    const Elsewhere other;
    ended = other.on;
  }
  REQUIRE(cu().cuCtxSetCurrent(context) == CUDA_SUCCESS);
  CHECK(launch("empty", 1, 1, ended) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(cu().cuStreamSynchronize(ended) == CUDA_ERROR_INVALID_HANDLE);
  without_context([&] { CHECK(cu().cuStreamQuery(ended) != CUDA_SUCCESS); });
}

TEST_CASE("memory that a stream allocates is that of the stream's device") {
  int count = 0;
  REQUIRE(cu().cuDeviceGetCount(&count) == CUDA_SUCCESS);
  if (count < 2) return;
  CUcontext there = nullptr;
  REQUIRE(cu().cuCtxCreate_v4(&there, nullptr, 0, 1) == CUDA_SUCCESS);
  CUstream on = nullptr;
  REQUIRE(cu().cuStreamCreate(&on, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  {
    const Fixture current;
    CUdeviceptr made = 0;
    REQUIRE(cu().cuMemAllocAsync(&made, 4096, on) == CUDA_SUCCESS);
    int ordinal = 9;
    CHECK(cu().cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, made) == CUDA_SUCCESS);
    CHECK(ordinal == 1);
    CUmemoryPool usual = nullptr, pool = nullptr;
    REQUIRE(cu().cuDeviceGetDefaultMemPool(&usual, 1) == CUDA_SUCCESS);
    CHECK(cu().cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, made) == CUDA_SUCCESS);
    CHECK(pool == usual);
    CHECK(cu().cuMemFreeAsync(made, on) == CUDA_SUCCESS);
    CHECK(cu().cuStreamSynchronize(on) == CUDA_SUCCESS);
  }
  CHECK(cu().cuCtxDestroy_v2(there) == CUDA_SUCCESS);
}
