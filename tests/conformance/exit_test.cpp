// SPDX-License-Identifier: Apache-2.0
// The current context at the end of threads and of the process.
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "process.hpp"
#include "suite.hpp"

using namespace quern::conformance;

namespace {

/// A context and objects of it that are there until the process ends.
struct Kept {
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction count = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr word = 0;
};
Kept kept;

/// Ends the process unless the driver works.
void require_works(bool works, const char* call) {
  if (works) return;
  std::printf("at the end of the process, %s failed\n", call);
  std::fflush(stdout);
  ::_exit(3);
}

/// Uses the context, which is current, in every way that needs no new thread.
void use_context() {
  CUcontext current = nullptr;
  require_works(cu().cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == kept.context, "cuCtxGetCurrent");
  CUdeviceptr pointer = 0;
  require_works(cu().cuMemAlloc_v2(&pointer, 64) == CUDA_SUCCESS, "cuMemAlloc");
  void* parameters[] = {&kept.word};
  require_works(
      cu().cuLaunchKernel(kept.count, 1, 1, 1, 32, 1, 1, 0, kept.stream, parameters, nullptr) == CUDA_SUCCESS,
      "cuLaunchKernel");
  require_works(cu().cuCtxSynchronize() == CUDA_SUCCESS, "cuCtxSynchronize");
  require_works(cu().cuMemFree_v2(pointer) == CUDA_SUCCESS, "cuMemFree");
}

/// A static object that is destroyed at the end of the process.
struct Last {
  ~Last() {
    use_context();
    std::uint32_t count = 0;
    require_works(cu().cuMemcpyDtoH_v2(&count, kept.word, 4) == CUDA_SUCCESS && count == 3 * 32,
                  "cuMemcpyDtoH");
    require_works(cu().cuMemFree_v2(kept.word) == CUDA_SUCCESS, "cuMemFree");
    require_works(cu().cuStreamDestroy_v2(kept.stream) == CUDA_SUCCESS, "cuStreamDestroy");
    require_works(cu().cuModuleUnload(kept.module) == CUDA_SUCCESS, "cuModuleUnload");
    require_works(cu().cuCtxDestroy_v2(kept.context) == CUDA_SUCCESS, "cuCtxDestroy");
    std::printf("all was destroyed\n");
  }
};

/// The driver's answers at the end of a thread.
struct Answers {
  CUcontext context = nullptr;
  std::atomic<int> right{0};

  void ask() {
    CUcontext current = nullptr;
    CUdeviceptr pointer = 0;
    if (cu().cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == context &&
        cu().cuMemAlloc_v2(&pointer, 64) == CUDA_SUCCESS && cu().cuMemFree_v2(pointer) == CUDA_SUCCESS)
      ++right;
  }
};

struct AsksAtEnd {
  Answers* answers = nullptr;
  ~AsksAtEnd() {
    if (answers != nullptr) answers->ask();
  }
};

}  // namespace

TEST_CASE("part: a process uses its context until its end" * doctest::skip()) {
  {
    static Fixture& fixture = *new Fixture;  // its context is destroyed by Last
    kept = {fixture.context, fixture.module, fixture.function("count"), fixture.stream(),
            fixture.upload(std::vector<std::uint32_t>{0})};
  }
  use_context();  // before and after the handler that the first launch registers
  static const Last last;
  REQUIRE(std::atexit(&use_context) == 0);
}

TEST_CASE("exit handlers and destructors of static objects have the main thread's context") {
  Process child("part: a process uses its context until its end");
  CHECK(child.answers("all was destroyed"));
  CHECK(child.succeeds());
}

TEST_CASE_FIXTURE(Fixture, "a thread has its context until it has ended") {
  Answers answers;
  answers.context = context;
  pthread_key_t key{};
  REQUIRE(::pthread_key_create(&key, [](void* given) { static_cast<Answers*>(given)->ask(); }) == 0);
  std::thread([&] {
    static thread_local AsksAtEnd destroyed_last;
    destroyed_last.answers = &answers;
    REQUIRE(cu().cuCtxSetCurrent(context) == CUDA_SUCCESS);
    REQUIRE(::pthread_setspecific(key, &answers) == 0);
  }).join();
  CHECK(answers.right == 2);
  CHECK(::pthread_key_delete(key) == 0);
}
