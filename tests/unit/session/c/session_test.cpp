// SPDX-License-Identifier: Apache-2.0
// Sessions, devices and memory management through the C functions.
#include <cuda.h>

#include <cstring>
#include <thread>

#include "support.hpp"

using namespace c;

namespace {

struct CountingAllocator {
  char* block = nullptr;  ///< of 4096 bytes, for one array at a time
  int live = 0, trimmed = 0, released = 0;
};
void* take(void* user, std::size_t bytes, std::size_t, void*) {
  auto& counts = *static_cast<CountingAllocator*>(user);
  if (bytes > 4096 || counts.live > 0) return nullptr;
  ++counts.live;
  return counts.block;
}
void give(void* user, void*, std::size_t, std::size_t, void*) {
  --static_cast<CountingAllocator*>(user)->live;
}
QuernAllocator allocator_of(CountingAllocator& counts) {
  QuernAllocator allocator{};
  allocator.struct_bytes = sizeof allocator;
  allocator.user = &counts;
  allocator.allocate = take;
  allocator.deallocate = give;
  allocator.release = [](void* user) { ++static_cast<CountingAllocator*>(user)->released; };
  allocator.trim = [](void* user) { ++static_cast<CountingAllocator*>(user)->trimmed; };
  allocator.memory_info = [](void*, std::size_t* free_bytes, std::size_t* total_bytes) {
    *free_bytes = 1000;
    *total_bytes = 4000;
    return 1;
  };
  return allocator;
}

}  // namespace

TEST_CASE("an isolated session has a context of its own") {
  Session first, second, shared;
  QUERN_GOOD(quern_session_open_isolated("cpu", first.place()));
  QUERN_GOOD(quern_session_open_isolated("cpu", second.place()));
  QUERN_GOOD(quern_session_open("cpu", shared.place()));
  void* contexts[3] = {};
  QUERN_GOOD(quern_session_context(first, &contexts[0]));
  QUERN_GOOD(quern_session_context(second, &contexts[1]));
  QUERN_GOOD(quern_session_context(shared, &contexts[2]));
  CHECK(contexts[0] != contexts[1]);
  CHECK(contexts[0] != contexts[2]);
  CHECK(contexts[1] != contexts[2]);
  QUERN_FAILS(QUERN_USAGE, "needs a pointer", quern_session_open_isolated("cpu", nullptr));
}

TEST_CASE("a session's time limit and a launch's end kernels that run for longer") {
  QuernSessionOptions options{};
  options.struct_bytes = sizeof options;
  options.isolated = 1;
  for (const bool by_launch : {false, true}) {
    CAPTURE(by_launch);
    options.launch_timeout_ns = by_launch ? 0 : 100'000'000;
    Session session;
    QUERN_GOOD(quern_session_open_with("cpu", &options, session.place()));
    const Kernel hold = kernel_of(session, kScalePtx, "hold");
    const Flag flag(session);
    QuernLaunch limited = launch_of(1, 1);
    if (by_launch) limited.timeout_ns = 100'000'000;
    QUERN_GOOD(launch(hold, limited, flag.arguments()));
    QUERN_FAILS(QUERN_DEVICE_FAULT, "it ran for longer than 0.1 s", quern_session_synchronize(session));
  }
  // For a caller that was compiled before limits existed, the bytes after its struct must have no meaning.
  const Session session = open_cpu();
  const Kernel scale = kernel_of(session, kScalePtx, "scale");
  const Array array = to_device(session, QUERN_FLOAT32, std::vector<float>{1});
  const float by = 3;
  QuernLaunch old = launch_of(1, 1);
  old.struct_bytes = offsetof(QuernLaunch, timeout_ns);
  old.timeout_ns = 1;
  QUERN_GOOD(launch(scale, old, {array_argument(array), scalar_argument(QUERN_FLOAT32, &by)}));
  QUERN_GOOD(quern_session_synchronize(session));
}

TEST_CASE("cancelling a session ends what its context runs") {
  Session session;
  QUERN_GOOD(quern_session_open_isolated("cpu", session.place()));
  const Kernel hold = kernel_of(session, kScalePtx, "hold");
  const Flag flag(session);
  QUERN_GOOD(launch(hold, launch_of(1, 1), flag.arguments()));
  QUERN_GOOD(quern_session_cancel(session));
  QUERN_GOOD(quern_session_synchronize(session));
  std::uint32_t count = 7;
  QUERN_GOOD(quern_array_to_host(flag.count, &count, sizeof count));
  CHECK(count == 0);
}

TEST_CASE("a session works in the context that a program made, and leaves it alive") {
  const Session finder = open_cpu();  // only to find the driver
  const auto set_current = driver<decltype(cuCtxSetCurrent)>(finder, "cuCtxSetCurrent");
  const auto create = driver<decltype(cuCtxCreate_v4)>(finder, "cuCtxCreate_v4");
  const auto destroy = driver<decltype(cuCtxDestroy_v2)>(finder, "cuCtxDestroy_v2");
  const auto synchronize = driver<decltype(cuCtxSynchronize)>(finder, "cuCtxSynchronize");
  REQUIRE(set_current(nullptr) == CUDA_SUCCESS);
  Session session;
  QUERN_FAILS(QUERN_USAGE, "none is current on this thread", quern_session_adopt("cpu", session.place()));
  CHECK(session.id() == 0);
  QUERN_FAILS(QUERN_USAGE, "'gpu'", quern_session_adopt("gpu", session.place()));

  CUcontext context = nullptr;
  REQUIRE(create(&context, nullptr, 0, 0) == CUDA_SUCCESS);
  QUERN_GOOD(quern_session_adopt("cpu", session.place()));
  void* native = nullptr;
  QUERN_GOOD(quern_session_context(session, &native));
  CHECK(native == context);
  {
    const Kernel scale = kernel_of(session, kScalePtx, "scale");
    const Array array = to_device(session, QUERN_FLOAT32, std::vector<float>{1, 2, 3, 4});
    const float by = 3;
    QUERN_GOOD(launch(scale, launch_of(1, 4), {array_argument(array), scalar_argument(QUERN_FLOAT32, &by)}));
    CHECK(values_of<float>(array, 4) == std::vector<float>{3, 6, 9, 12});
  }
  session.reset();
  CHECK(synchronize() == CUDA_SUCCESS);  // it is still the program's
  CHECK(destroy(context) == CUDA_SUCCESS);
}

TEST_CASE("devices are counted and described, each under the label that opens it") {
  std::size_t count = 0;
  QUERN_GOOD(quern_device_count(&count));
  REQUIRE(count >= 1);
  QuernDeviceInfo info{};
  info.struct_bytes = sizeof info;
  QUERN_FAILS(QUERN_NOT_FOUND, "there is no device", quern_device_info(count, &info));
  QUERN_GOOD(quern_device_info(count - 1, &info));  // the CPU device comes last
  CHECK(info.kind == QUERN_DEVICE_CPU);
  CHECK(std::strcmp(info.label, "cpu") == 0);
  Session session;
  QUERN_GOOD(quern_session_open(info.label, session.place()));
  QuernDeviceInfo same{};
  same.struct_bytes = sizeof same;
  QUERN_GOOD(quern_session_device(session, &same));
  CHECK(std::memcmp(&info, &same, sizeof info) == 0);

  // Compares with the same facts from the driver.
  const auto attribute = driver<decltype(cuDeviceGetAttribute)>(session, "cuDeviceGetAttribute");
  const auto asked = [&](CUdevice_attribute which) {
    int value = 0;
    CHECK(attribute(&value, which, 0) == CUDA_SUCCESS);
    return value;
  };
  CHECK(info.compute_capability == 10 * asked(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                                       asked(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  CHECK(info.multiprocessor_count == asked(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  CHECK(info.warp_size == asked(CU_DEVICE_ATTRIBUTE_WARP_SIZE));
  CHECK(static_cast<int>(info.max_threads_per_block) == asked(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
  CHECK(static_cast<int>(info.max_block[2]) == asked(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z));
  CHECK(static_cast<int>(info.max_grid[0]) == asked(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X));
  CHECK(static_cast<int>(info.max_shared_bytes_per_block) ==
        asked(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
  int version = 0;
  CHECK(driver<decltype(cuDriverGetVersion)>(session, "cuDriverGetVersion")(&version) == CUDA_SUCCESS);
  CHECK(info.driver_version == version);
  void* function = nullptr;
  QUERN_FAILS(QUERN_NOT_FOUND, "'cuNothing'", quern_session_driver_function(session, "cuNothing", &function));
  QUERN_FAILS(QUERN_NOT_FOUND, "cuda", quern_session_open("cuda:77", session.place()));
}

TEST_CASE("while cleanup is deferred, in scopes that nest, nothing is released; memory is counted by kind") {
  const Session session = open_cpu();
  const auto pending = [&] { return stats_of(session, QUERN_MEMORY_DEVICE).pending_count; };
  CHECK(stats_of(session, QUERN_MEMORY_ALL).live_count == 0);
  Deferral outer, inner;
  QUERN_GOOD(quern_defer_begin(session, outer.place()));
  QUERN_GOOD(quern_defer_begin(session, inner.place()));
  for (int i = 0; i < 40; ++i) new_array(session, QUERN_UINT8, {1000});
  CHECK(pending() == 40);
  QUERN_GOOD(quern_session_release_pending(session));
  CHECK(pending() == 40);
  QUERN_GOOD(quern_defer_end(inner));
  CHECK(quern_defer_end(inner) == QUERN_BAD_HANDLE);
  CHECK(pending() == 40);
  QuernMemoryStats device = stats_of(session, QUERN_MEMORY_DEVICE);
  CHECK(device.live_count == 0);
  CHECK(device.pending_bytes == 40000);
  CHECK(device.peak_bytes == 40000);
  CHECK(device.made_count == 40);
  QUERN_GOOD(quern_defer_end(outer));
  CHECK(pending() == 0);

  const Array array = new_array(session, QUERN_UINT8, {3000});
  Stream stream;
  Pin pin;
  void* memory = nullptr;
  QUERN_GOOD(quern_stream_new(session, stream.place()));
  QUERN_GOOD(quern_pinned_new(session, 500, pin.place(), &memory));
  device = stats_of(session, QUERN_MEMORY_DEVICE);
  CHECK(device.live_bytes == 3000);
  CHECK(device.live_count == 1);
  CHECK(device.peak_bytes == 40000);
  CHECK(stats_of(session, QUERN_MEMORY_PINNED).live_bytes == 500);
  CHECK(stats_of(session, QUERN_MEMORY_STREAM).live_count == 1);
  CHECK(stats_of(session, QUERN_MEMORY_EVENT).made_count == 0);
  CHECK(stats_of(session, QUERN_MEMORY_ALL).live_bytes == 3500);
  std::size_t needed = 0;
  char report[400];
  QUERN_GOOD(quern_session_leak_report(session, report, sizeof report, &needed));
  CHECK(needed > 1);
  CHECK(holds(report, "pinned"));
}

TEST_CASE("a deferral that is let go of as any handle ends as well") {
  const Session session = open_cpu();
  Deferral deferral;
  QUERN_GOOD(quern_defer_begin(session, deferral.place()));
  new_array(session, QUERN_UINT8, {10});
  CHECK(stats_of(session, QUERN_MEMORY_ALL).pending_count == 1);
  deferral.reset();
  CHECK(stats_of(session, QUERN_MEMORY_ALL).pending_count == 0);
}

TEST_CASE("device memory comes from a program's allocator, which is trimmed when it has none left") {
  const Session session = open_cpu();
  const Array block = new_array(session, QUERN_UINT8, {4096});
  CountingAllocator counts;
  counts.block = static_cast<char*>(description_of(block).data);
  QuernAllocator allocator = allocator_of(counts);
  QUERN_GOOD(quern_session_set_allocator(session, &allocator));
  Array array = to_device(session, QUERN_INT32, std::vector<int>{1, 2, 3});
  CHECK(counts.live == 1);
  CHECK(values_of<int>(array, 3) == std::vector<int>{1, 2, 3});
  CHECK(stats_of(session, QUERN_MEMORY_POOLED).live_count == 1);
  Array none;
  const std::int64_t large[] = {100000};
  QUERN_FAILS(QUERN_OUT_OF_MEMORY, "allocator",
              quern_array_new(session, QUERN_INT32, 1, large, none.place()));
  CHECK(counts.trimmed == 1);
  std::size_t free_bytes = 0, total_bytes = 0;
  QUERN_GOOD(quern_session_memory(session, &free_bytes, &total_bytes));
  QUERN_GOOD(quern_session_set_allocator(session, nullptr));
  CHECK(counts.released == 0);  // its array is still there
  array.reset();
  QUERN_GOOD(quern_session_release_pending(session));
  CHECK(counts.live == 0);
  CHECK(counts.released == 1);
  allocator.deallocate = nullptr;
  QUERN_FAILS(QUERN_USAGE, "both functions", quern_session_set_allocator(session, &allocator));
}

TEST_CASE("device memory comes from the driver's pool, whose handle is given out, or from a caching one") {
  const Session session = open_cpu();
  void* pool = nullptr;
  QUERN_FAILS(QUERN_UNSUPPORTED, "no pool of the driver's", quern_session_memory_pool(session, &pool));
  QUERN_GOOD(quern_session_use_stream_ordered_pool(session, 1 << 20));
  QUERN_GOOD(quern_session_memory_pool(session, &pool));
  CUmemoryPool expected = nullptr;
  CHECK(driver<decltype(cuDeviceGetDefaultMemPool)>(session, "cuDeviceGetDefaultMemPool")(&expected, 0) ==
        CUDA_SUCCESS);
  CHECK(pool == expected);
  Array array = to_device(session, QUERN_INT32, std::vector<int>{5, 6});
  CHECK(values_of<int>(array, 2) == std::vector<int>{5, 6});
  CHECK(stats_of(session, QUERN_MEMORY_POOLED).live_count == 1);
  array.reset();

  QUERN_GOOD(quern_session_use_caching_pool(session, 1 << 20));
  QUERN_FAILS(QUERN_UNSUPPORTED, "no pool of the driver's", quern_session_memory_pool(session, &pool));
  array = to_device(session, QUERN_INT32, std::vector<int>{7});
  void* const before = description_of(array).data;
  array.reset();
  QUERN_GOOD(quern_session_release_pending(session));
  array = to_device(session, QUERN_INT32, std::vector<int>{8});
  CHECK(description_of(array).data == before);
}
