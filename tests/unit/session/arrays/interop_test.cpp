// SPDX-License-Identifier: Apache-2.0
// Driver calls of a host program, and allocators, with libquern only.
#include <cuda.h>
#include <doctest/doctest.h>
#include <quern/quern.hpp>

#include <map>
#include <string>
#include <vector>

#include "../../support/arrays.hpp"
#include "../../support/messages.hpp"

using namespace quern;
using quern::test::counting;
using quern::test::holds;
using quern::test::message;

namespace {

template <class F>
F* driver(const Session& session, const char* name) {
  return reinterpret_cast<F*>(driver_function(session.device(), name));
}

/// An allocator of the program that uses the driver's functions and counts calls.
struct Counting {
  struct Counts {
    std::map<void*, std::size_t> live;
    int made = 0;
    std::shared_ptr<DeviceAllocator> upstream;
  };
  std::shared_ptr<Counts> counts = std::make_shared<Counts>();
  void* allocate(std::size_t bytes, std::size_t alignment, StreamView stream) {
    void* const memory = counts->upstream->allocate(bytes, alignment, stream);
    counts->live[memory] = bytes;
    ++counts->made;
    return memory;
  }
  void deallocate(void* memory, std::size_t bytes, std::size_t alignment, StreamView stream) {
    CHECK(counts->live.at(memory) == bytes);
    counts->live.erase(memory);
    counts->upstream->deallocate(memory, bytes, alignment, stream);
  }
};

}  // namespace

TEST_CASE(
    "a session adopts the context that a program made, its streams, events and memory, and leaves them "
    "alive") {
  const Session finder("cpu");  // only to find the driver
  const auto create = driver<decltype(cuCtxCreate_v4)>(finder, "cuCtxCreate_v4");
  const auto destroy = driver<decltype(cuCtxDestroy_v2)>(finder, "cuCtxDestroy_v2");
  const auto allocate = driver<decltype(cuMemAlloc_v2)>(finder, "cuMemAlloc_v2");
  const auto make_stream = driver<decltype(cuStreamCreate)>(finder, "cuStreamCreate");
  const auto make_event = driver<decltype(cuEventCreate)>(finder, "cuEventCreate");
  const auto record = driver<decltype(cuEventRecord)>(finder, "cuEventRecord");
  const auto fill = driver<decltype(cuMemsetD32Async)>(finder, "cuMemsetD32Async");
  const auto synchronize = driver<decltype(cuCtxSynchronize)>(finder, "cuCtxSynchronize");
  REQUIRE((create != nullptr));
  CHECK(driver_function(finder.device(), "cuNothing") == nullptr);
  CHECK(holds(message([] { Session({"cpu", ContextChoice::current}); }), "none is current"));

  CUcontext context = nullptr;
  REQUIRE(create(&context, nullptr, 0, 0) == CUDA_SUCCESS);
  CUdeviceptr memory = 0;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  REQUIRE(allocate(&memory, 400) == CUDA_SUCCESS);
  REQUIRE(make_stream(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  REQUIRE(make_event(&event, 0) == CUDA_SUCCESS);
  {
    const Session session({"cpu", ContextChoice::current});
    CHECK(session.native_context() == context);
    CHECK(fill(memory, 7, 100, stream) == CUDA_SUCCESS);
    CHECK(record(event, stream) == CUDA_SUCCESS);
    session.external_event(event).synchronize();
    CudaArrayInterface description;
    description.shape = {100};
    description.typestr = "<i4";
    description.data = reinterpret_cast<void*>(memory);
    description.stream = reinterpret_cast<std::uintptr_t>(stream);
    const DeviceNDArray view = session.adopt(description, nullptr);
    CHECK(view(99).item<int>() == 7);
    const StreamView external = session.external_stream(stream);
    view.assign(8, external);
    external.synchronize();
    CHECK(view(0).item<int>() == 8);
    const auto own = session.to_device(std::vector<int>(10, 1));
    CHECK(own.copy_to_host()[9] == 1);
  }
  CHECK(synchronize() == CUDA_SUCCESS);  // the context is still the program's
  CHECK(destroy(context) == CUDA_SUCCESS);
}

TEST_CASE("device memory comes from a program's own allocator, the stream-ordered pool or the caching pool") {
  const Session session("cpu");
  Counting counting_allocator;
  counting_allocator.counts->upstream = session.caching_pool();
  const auto counts = counting_allocator.counts;
  session.set_allocator(make_allocator(counting_allocator));
  const Stream stream = session.stream();
  for (int i = 0; i < 30; ++i) {
    const DeviceNDArray array = session.to_device(counting({100}), {.stream = stream.view()});
    CHECK(array.copy_to_host(stream).size() == 100);
  }
  stream.synchronize();
  CHECK(counts->made == 30);
  CHECK(counts->live.size() <= 10);
  CHECK(session.memory_stats()[ResourceKind::pooled].made_count == 30);
  CHECK(session.memory_stats()[ResourceKind::device].made_count == 0);

  session.set_allocator(session.stream_ordered_pool());
  const Stream other = session.stream();
  for (int i = 0; i < 30; ++i) {  // used on a stream that it was not allocated on, dropped at once
    const DeviceNDArray array = session.to_device(counting({100}), {.stream = stream.view()});
    const Event ready = session.event();
    ready.record(stream);
    ready.wait(other);
    const NDArray back = array.copy_to_host(other);
    other.synchronize();
    CHECK(back.identical(counting({100})));
  }
  session.set_allocator(nullptr);
  CHECK(session.to_device(counting({5})).copy_to_host().identical(counting({5})));
}

TEST_CASE(
    "what pools keep is given back with their context, also by one that is held longer and no longer in "
    "use") {
  Counting counting_allocator;
  const auto counts = counting_allocator.counts;
  std::shared_ptr<DeviceAllocator> held;
  {
    const Session session("cpu");
    counts->upstream = session.caching_pool();
    held = session.caching_pool(make_allocator(counting_allocator));
    session.set_allocator(held);
    session.to_device(counting({100}));
    session.release_pending();
    session.set_allocator(nullptr);
    CHECK(counts->live.size() == 1);
  }
  CHECK(counts->live.empty());
}
