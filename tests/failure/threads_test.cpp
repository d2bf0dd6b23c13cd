// SPDX-License-Identifier: Apache-2.0
// Many threads on one context, many rounds, and a fork.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <quern/quern.hpp>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

using namespace quern;

namespace {

/// AddressSanitizer keeps freed memory for a while, to find uses of it. ThreadSanitizer keeps its own state.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define QUERN_TEST_SANITIZER
#endif
#endif
#ifdef QUERN_TEST_SANITIZER
constexpr bool kFreedMemoryStays = true;
#else
constexpr bool kFreedMemoryStays = false;
#endif

/// Set in a child process after a fork. The parent's other threads do not exist there, and a leak checker
/// reports their memory as leaks.
bool in_child = false;

constexpr const char* kTwice = R"(.version 6.0
.target sm_50
.address_size 64
.visible .entry twice(.param .u64 x)
{
  .reg .b32 %r; .reg .f32 %f; .reg .b64 %d<3>;
  mov.u32 %r, %tid.x;
  ld.param.u64 %d1, [x];
  mul.wide.u32 %d2, %r, 4;
  add.u64 %d1, %d1, %d2;
  ld.global.f32 %f, [%d1];
  add.f32 %f, %f, %f;
  st.global.f32 [%d1], %f;
  ret;
})";

unsigned long rounds(const char* variable, unsigned long otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::strtoul(text, nullptr, 10) : otherwise;
}

/// Resident memory of this process, KiB.
std::size_t resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:")) return std::stoul(line.substr(6));
  return 0;
}

void one_round(const Session& session, const Kernel& kernel, const Stream& stream, float value,
               std::atomic<int>& wrong) {
  const DeviceNDArray array = session.to_device(std::vector<float>(64, value), stream);
  kernel({.grid = 1, .block = 64, .stream = stream})(array);
  const DeviceNDArray odd = array(Slice{1, {}, 2});
  const NDArray result = odd.copy_to_host(stream);
  stream.synchronize();
  if (result.at<float>(31) != 2 * value) ++wrong;
}

}  // namespace

// Called by LeakSanitizer at the end of a process.
extern "C" int __lsan_is_turned_off();  // NOLINT(bugprone-reserved-identifier)
extern "C" int __lsan_is_turned_off() { return in_child ? 1 : 0; }

TEST_CASE("eight threads allocate, copy, launch and free on one context") {
  const Session session("cpu");
  const Kernel kernel = session.load_ptx(kTwice).kernel();
  std::atomic<int> wrong = 0;
  const unsigned long count = rounds("QUERN_THREAD_ROUNDS", 60);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      try {
        const Stream stream = session.stream();
        for (unsigned long i = 0; i < count; ++i) {
          one_round(session, kernel, stream, static_cast<float>(t * 1000) + static_cast<float>(i), wrong);
          if (i % 16 == 0) const DeferredCleanup deferred = session.defer_cleanup();
          if (i % 10 == 0) (void)session.memory_stats();
          std::vector<float> own(100, 1.0f);
          if (i % 8 == 0) const PinnedScope scope = session.pinned({NDArray::view(own)});
        }
      } catch (const Error& error) {
        std::fprintf(stderr, "thread %d: %s\n", t, error.what());
        ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  session.synchronize();
  CHECK(session.memory_stats()[ResourceKind::device].live_count == 0);
}

TEST_CASE("rounds of allocate, launch and free run at constant memory") {
  const Session session("cpu");
  const Kernel kernel = session.load_ptx(kTwice).kernel();
  const Stream stream = session.stream();
  std::atomic<int> wrong = 0;
  const unsigned long count = rounds("QUERN_SOAK_ROUNDS", 2000);
  for (unsigned long i = 0; i < 500; ++i) one_round(session, kernel, stream, 1.0f, wrong);
  const std::size_t free_before = session.free_memory_bytes(), resident_before = resident_kib();
  for (unsigned long i = 0; i < count; ++i)
    one_round(session, kernel, stream, static_cast<float>(i % 1000), wrong);
  session.synchronize();
  const std::size_t resident_after = resident_kib();
  CHECK(wrong == 0);
  CHECK(session.memory_stats()[ResourceKind::device].live_count == 0);
  // The memory that is queued for release may vary by as many small arrays as the count limit allows.
  CHECK(session.free_memory_bytes() + (std::size_t{1} << 20) >= free_before);
  if (!kFreedMemoryStays) CHECK(resident_after < resident_before + 4096);
  std::printf("soak: %lu rounds, resident memory %zu KiB before and %zu KiB after\n", count, resident_before,
              resident_after);
}

TEST_CASE("after a fork the child's calls answer that the driver is not initialised, and it can end") {
  const Session session("cpu");
  const DeviceNDArray array = session.to_device(std::vector<float>(100, 1.0f));
  std::fflush(nullptr);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    int status = 1;
    try {
      (void)array.copy_to_host();
    } catch (const DriverError& error) {
      status = error.result() == 3 ? 0 : 2;  // CUDA_ERROR_NOT_INITIALIZED
    }
    {
      const DeviceNDArray dropped = array;
    }
    _exit(status);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(array(99).item<float>() == 1);
}

TEST_CASE("a child of a fork ends by exit(), with objects that the parent made, without a hang") {
  static const Session session("cpu");
  static const DeviceNDArray array = session.to_device(std::vector<float>(100, 1.0f));
  std::fflush(nullptr);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    in_child = true;
    alarm(20);  // SIGALRM ends a hang
    std::exit(7);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 7);
}
