// SPDX-License-Identifier: Apache-2.0
// Section F: deallocation.
#include <spawn.h>
#include <sys/wait.h>

#include "suite.hpp"

extern char** environ;

using namespace quern;
using namespace quern::contract;

namespace {

/// Enough memory for one such array, but not for two. Other tests leave little in the shared session.
std::size_t most_of_memory(const Session& session) { return session.free_memory_bytes() / 3 * 2; }

void drop_arrays(const Session& session, int count, std::size_t bytes = 64) {
  for (int i = 0; i < count; ++i) (void)session.allocate(bytes);
}

}  // namespace

TEST_CASE(
    "F1: dropping the last reference schedules the release of memory, streams, events and modules; nothing "
    "is freed at once") {
  const OwnSession own;
  const std::uint64_t freed = calls_of("cuMemFree_v2");
  {
    const DeviceNDArray array = own.device_array({10});
    DeviceNDArray view = array(Slice{0, 5});
    (void)own.pinned_array({10});
    (void)own.mapped_array({10});
    (void)own.managed_array({10});
    (void)own.stream();
    (void)own.event();
    CHECK(own.pending_release_count() == 5);
    CHECK(own.memory_stats()[ResourceKind::device].live_count == 1);
  }
  (void)own.load_ptx(".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry k() { ret; }\n");
  CHECK(own.pending_release_count() == 7);
  const MemoryStats stats = own.memory_stats();
  for (const ResourceKind kind :
       {ResourceKind::device, ResourceKind::pinned, ResourceKind::mapped, ResourceKind::managed,
        ResourceKind::stream, ResourceKind::event, ResourceKind::module}) {
    CAPTURE(name(kind));
    CHECK(stats[kind].pending_count == 1);
    CHECK(stats[kind].live_count == 0);
  }
  CHECK(stats[ResourceKind::device].peak_bytes == 80);
  CHECK(own.leak_report().empty());
  CHECK(calls_of("cuMemFree_v2") == freed);
  own.release_pending();
  CHECK(own.pending_release_count() == 0);
  CHECK(calls_of("cuMemFree_v2") == freed + 2);  // device and managed memory
  CHECK(own.memory_stats().total().pending_count == 0);
  // The context has one queue, however many sessions use the context.
  shared().release_pending();
  (void)second_session().device_array({10});
  CHECK(shared().pending_release_count() == 1);
  // The peak over all kinds is not the sum of the peaks of the kinds.
  const std::size_t before = own.memory_stats().total().peak_bytes;
  (void)own.pinned_array({1000});
  own.release_pending();
  (void)own.device_array({1000});
  own.release_pending();
  CHECK(before < 8000);
  CHECK(own.memory_stats().total().peak_bytes == 8000);
  CHECK(own.memory_stats()[ResourceKind::pinned].peak_bytes == 8000);
}

TEST_CASE(
    "F2: more pending releases than the count limit are flushed; both names of the variable are honoured") {
  const OwnSession usual;
  drop_arrays(usual, 10);
  CHECK(usual.pending_release_count() == 10);
  drop_arrays(usual, 1);
  CHECK(usual.pending_release_count() == 0);
  {
    const Environment numba("NUMBA_CUDA_MAX_PENDING_DEALLOCS_COUNT", "3");
    const OwnSession three;
    drop_arrays(three, 3);
    CHECK(three.pending_release_count() == 3);
    drop_arrays(three, 1);
    CHECK(three.pending_release_count() == 0);
    const Environment ours("QUERN_MAX_PENDING_DEALLOCS_COUNT", "0");
    const OwnSession at_once;
    drop_arrays(at_once, 1);
    CHECK(at_once.pending_release_count() == 0);
  }
}

TEST_CASE(
    "F3: more pending bytes than the ratio of device memory are flushed; both names of the variable are "
    "honoured") {
  const OwnSession usual;
  const std::size_t total = usual.device().total_memory_bytes();
  drop_arrays(usual, 1, total / 10);
  CHECK(usual.pending_release_count() == 1);
  drop_arrays(usual, 1, total / 8);  // 22.5 %: above the default of 20 %
  CHECK(usual.pending_release_count() == 0);
  {
    const Environment numba("NUMBA_CUDA_MAX_PENDING_DEALLOCS_RATIO", "0.01");
    drop_arrays(OwnSession(), 1, total / 200);
    const OwnSession tight;
    drop_arrays(tight, 1, total / 200);
    CHECK(tight.pending_release_count() == 1);
    drop_arrays(tight, 1, total / 100);
    CHECK(tight.pending_release_count() == 0);
    const Environment ours("QUERN_MAX_PENDING_DEALLOCS_RATIO", "0.5");
    const OwnSession wide;
    drop_arrays(wide, 1, total / 10);
    drop_arrays(wide, 1, total / 8);
    CHECK(wide.pending_release_count() == 2);
  }
}

TEST_CASE(
    "F4: a failed allocation flushes the queue and tries again once, then it is a clear error with the "
    "sizes") {
  const Environment no_limit("QUERN_MAX_PENDING_DEALLOCS_RATIO", "1");
  const OwnSession own;
  const std::size_t large = most_of_memory(own);
  drop_arrays(own, 1, large);
  drop_arrays(own, 1);
  CHECK(own.pending_release_count() == 2);
  const std::uint64_t tried = calls_of("cuMemAlloc_v2");
  const DeviceBuffer fits = own.allocate(large);
  CHECK(calls_of("cuMemAlloc_v2") == tried + 2);
  CHECK(own.pending_release_count() == 0);
  try {
    (void)own.allocate(large);
    FAIL("nothing was thrown");
  } catch (const OutOfMemory& error) {
    CHECK(error.requested_bytes() == large);
    CHECK(error.free_bytes() < large);
    CHECK(error.total_bytes() == own.device().total_memory_bytes());
    CHECK(holds(error.what(), std::to_string(large)));
  }
  CHECK(calls_of("cuMemAlloc_v2") == tried + 4);
}

TEST_CASE(
    "F5: a failing release ends its flush: the item is dropped and reported, the rest stay, later work goes "
    "on") {
  const OwnSession own;
  drop_arrays(own, 10);
  calls().fail_call(3, CUDA_ERROR_INVALID_VALUE, "cuMemFree_v2");
  drop_arrays(own, 1);  // the eleventh: two are released, the third fails
  CHECK(own.pending_release_count() == 8);
  CHECK(own.to_device(counting(5)).copy_to_host() == counting(5));
  drop_arrays(own, 2);
  CHECK(own.pending_release_count() == 0);
}

TEST_CASE(
    "F6: defer_cleanup nests; nothing is released inside, out of memory included; cleanup follows the "
    "outermost") {
  const Environment no_limit("QUERN_MAX_PENDING_DEALLOCS_RATIO", "1");
  const OwnSession own;
  const std::uint64_t freed = calls_of("cuMemFree_v2");
  const std::size_t large = most_of_memory(own);
  {
    const DeferredCleanup outer = own.defer_cleanup();
    {
      const DeferredCleanup inner = own.defer_cleanup();
      drop_arrays(own, 20);
      drop_arrays(own, 1, large);
      CHECK_THROWS_AS((void)own.allocate(large), OutOfMemory);
    }
    drop_arrays(own, 5);
    CHECK(own.pending_release_count() == 26);
    CHECK(calls_of("cuMemFree_v2") == freed);
  }
  CHECK(own.pending_release_count() == 0);
  CHECK(calls_of("cuMemFree_v2") == freed + 26);
  {
    const DeferredCleanup few = own.defer_cleanup();
    drop_arrays(own, 3);
    CHECK(own.pending_release_count() == 3);
  }
  CHECK(own.pending_release_count() == 0);
  CHECK(calls_of("cuMemFree_v2") == freed + 29);
  // The memory of pools and the staging blocks of queued copies also count as memory.
  own.set_allocator(own.caching_pool());
  drop_arrays(own, 1);
  own.release_pending();  // the pool has it
  const std::uint64_t unlocked = calls_of("cuMemFreeHost");
  {
    const DeferredCleanup scope = own.defer_cleanup();
    const DeviceArray<float> array = own.to_device(counting(1000));
    const Stream stream = own.stream();
    array.copy_from_host(counting(1000), stream);
    stream.synchronize();
    const DeviceBuffer held = own.allocate(large);
    CHECK_THROWS_AS((void)own.allocate(large), OutOfMemory);
    CHECK_THROWS_AS((void)own.mapped_array({1LL << 50}), OutOfMemory);
    CHECK(calls_of("cuMemFree_v2") == freed + 29);
    CHECK(calls_of("cuMemFreeHost") == unlocked);
  }
  own.set_allocator(nullptr);
}

TEST_CASE("F7: a process may end with everything alive, queued and deferred") {
  const std::string device = is_cpu() ? "--device=cpu" : "--device=cuda";
  std::string program = program_path(), flag = "--exit-child", chosen = device;
  char* arguments[] = {program.data(), flag.data(), chosen.data(), nullptr};
  pid_t child = 0;
  REQUIRE(posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments, environ) == 0);
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
