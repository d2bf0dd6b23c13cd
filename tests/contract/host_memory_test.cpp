// SPDX-License-Identifier: Apache-2.0
// Section B: host memory.
#include <stdexcept>

#include "suite.hpp"

using namespace quern;
using namespace quern::contract;

TEST_CASE(
    "B1: pinned locks host arrays for a scope, exceptions included, and leaves nothing locked after a "
    "refusal") {
  std::vector<float> a = counting(1000), b(1000);
  const std::uint64_t registered = calls_of("cuMemHostRegister_v2");
  const std::uint64_t unregistered = calls_of("cuMemHostUnregister");
  {
    const PinnedScope scope = shared().pinned({NDArray::view(a), NDArray::view(b)});
    CHECK(shared().memory_stats()[ResourceKind::registered].live_bytes == 8000);
    CHECK(calls_of("cuMemHostUnregister") == unregistered);
  }
  CHECK(calls_of("cuMemHostRegister_v2") == registered + 2);
  CHECK(calls_of("cuMemHostUnregister") == unregistered + 2);  // immediately, not through the queue
  try {
    const PinnedScope scope = shared().pinned({NDArray::view(a)});
    throw std::runtime_error("inside");
  } catch (const std::runtime_error&) {
  }
  CHECK(calls_of("cuMemHostUnregister") == unregistered + 3);
  CHECK(holds(message([&] {
                (void)shared().pinned({NDArray::view(b), NDArray::view(a), NDArray::view(a)(Slice{10, 20})});
              }),
              "page-locked already"));
  CHECK(shared().memory_stats()[ResourceKind::registered].live_count == 0);
  CHECK_NOTHROW((void)shared().pinned({NDArray::view(a), NDArray::view(b)}));

  // A queued copy of an owned array that is pinned uses the array itself.
  const NDArray owned = counting_array({1000});
  const Stream stream = shared().stream();
  const DeviceNDArray device = shared().device_array_like(owned);
  {
    const PinnedScope scope = shared().pinned({owned});
    const std::uint64_t staged = calls_of("cuMemHostAlloc");
    device.copy_to_device(owned, stream);
    CHECK(calls_of("cuMemHostAlloc") == staged);
  }
  CHECK(shared().memory_stats()[ResourceKind::registered].live_count == 0);
  CHECK(device.copy_to_host().identical(owned));
}

TEST_CASE("B2: pinned_array is a page-locked host array of any layout") {
  const NDArray pinned = shared().pinned_array({4, 5}, Dtype::float32, {.order = Order::f});
  CHECK(pinned.is_page_locked());
  CHECK(pinned.is_f_contiguous());
  CHECK(shared().memory_stats()[ResourceKind::pinned].live_bytes == 80);
  pinned.assign(counting_array({4, 5}));
  const Stream stream = shared().stream();
  const DeviceNDArray device = shared().to_device(pinned, {.stream = stream.view()});
  const NDArray back = shared().pinned_array({4, 5}, Dtype::float32, {.order = Order::f});
  device.copy_to_host(back, stream);
  stream.synchronize();
  CHECK(back.identical(pinned));
  CHECK(shared()
            .pinned_array({3}, Dtype::int16, {.strides_bytes = std::vector<std::int64_t>{8}})
            .strides_bytes()[0] == 8);
  CHECK(shared().pinned_array({0}).size() == 0);
}

TEST_CASE(
    "B3: mapped_array is host memory that kernels write to; portable and write-combined reach the driver") {
  const MappedNDArray mapped = shared().mapped_array({1000}, Dtype::float32);
  mapped.host().assign(2.0f);
  kernel("set")({.grid = 2, .block = 256})(500, mapped, 7.0f);
  shared().synchronize();
  CHECK(mapped.host().at<float>(499) == 7);
  CHECK(mapped.host().at<float>(500) == 2);
  const NDArray view = mapped.host();
  kernel("add_one")({.grid = 4, .block = 256})(mapped(Slice{{}, {}, -1}));
  shared().synchronize();
  CHECK(view.at<float>(0) == 8);
  CHECK(view.at<float>(999) == 3);
  const MappedNDArray flagged = shared().mapped_array(
      {16}, Dtype::float32, {.order = Order::f, .portable = true, .write_combined = true});
  CHECK(flagged.is_f_contiguous());
  {  // the driver's flags come back; 1: portable, 2: mapped, 4: write-combined
    CHECK(host_alloc_flags(flagged.host().data()) == 7u);
    CHECK((host_alloc_flags(mapped.host().data()) & ~1u) ==
          2u);  // a GPU's driver takes a place in portable memory
  }
  const ManagedNDArray managed = shared().managed_array({100}, Dtype::float32);
  managed.host().assign(1.0f);
  kernel("add_one")({.grid = 1, .block = 128})(managed);
  shared().synchronize();
  CHECK(managed.host().at<float>(99) == 2);

  // Kernels of every context can access portable and managed memory. Other memory is only for the kernels of
  // its own context.
  const MappedNDArray portable = shared().mapped_array({100}, Dtype::float32, {.portable = true});
  portable.host().assign(1.0f);
  const OwnSession other;
  const Kernel add_one = kernel(other, "add_one");
  const LaunchConfig config = {.grid = 1, .block = 128};
  CHECK(message([&] { add_one(config)(portable); }) == "");
  CHECK(message([&] { add_one(config)(managed(Slice{50, 100})); }) == "");
  CHECK(holds(message([&] { add_one(config)(mapped(Slice{0, 100})); }), "portable"));
  CHECK(holds(message([&] { add_one(config)(shared().to_device(counting_array({100}))); }), "portable"));
  other.synchronize();
  CHECK(portable.host().at<float>(99) == 2);
  CHECK(managed.host().at<float>(49) == 2);
  CHECK(managed.host().at<float>(50) == 3);
  // The memory lives until that kernel has run, although the session that allocated it does not know of the
  // work.
  const Stream stream = other.stream();
  const Kernel busy = kernel(other, "busy"), set = kernel(other, "set");
  const DeferredCleanup deferred = shared().defer_cleanup();
  const std::uint64_t pending = shared().memory_stats()[ResourceKind::mapped].pending_count;
  busy({.grid = 1, .block = 32, .stream = stream})(100'000'000, other.device_array<unsigned>(32));
  set({.grid = 1, .block = 128, .stream = stream})(
      100, shared().mapped_array({100}, Dtype::float32, {.portable = true}), 5.0f);
  CHECK_FALSE(stream.query());
  CHECK(shared().memory_stats()[ResourceKind::mapped].pending_count == pending);
  stream.synchronize();
  CHECK(shared().memory_stats()[ResourceKind::mapped].pending_count == pending + 1);
}

TEST_CASE("B4: mapped lets kernels see existing host arrays for a scope") {
  std::vector<float> a = counting(5000);
  const NDArray b = counting_array({20, 10});
  const Stream stream = shared().stream();
  {
    const MappedScope scope = shared().mapped({NDArray::view(a), b(Slice{}, Slice{0, 10, 2})}, stream);
    REQUIRE(scope.views().size() == 2);
    kernel("set")({.grid = 4, .block = 256, .stream = stream})(1000, scope[0], -3.0f);
    stream.synchronize();
    CHECK(a[999] == -3);
    CHECK(a[1000] == 1000);
    a[1500] = 77;  // kernels see host writes between launches
    kernel("add_one")({.grid = 20, .block = 256, .stream = stream})(scope[0]);
    kernel("scale")({.grid = 1, .block = {8, 32}, .stream = stream})(scope[1], 2.0f);
  }  // waits
  CHECK(a[1500] == 78);
  CHECK(a[4999] == 5000);
  CHECK(b.at<float>(19, 8) == 396);
  CHECK(b.at<float>(19, 9) == 199);
  {  // const data is for kernels that only read
    const std::vector<float> constant(100, 1.0f);
    std::vector<float> sums(100);
    const MappedScope scope = shared().mapped({NDArray::view(constant), NDArray::view(sums)}, stream);
    CHECK(scope[0].is_read_only());
    CHECK(scope[0](Slice{5, 50}).host().is_read_only());
    CHECK_FALSE(scope[1].is_read_only());
    CHECK_FALSE(scope[1].host().is_read_only());
    CHECK(holds(message([&] { scope[0].assign(2.0f); }), "read-only"));
    CHECK(holds(message([&] { kernel("add_one")({.grid = 1, .block = 128})(scope[0]); }), "read-only"));
    kernel("sum")({.grid = 1, .block = 128, .stream = stream})(100, scope[0], scope[0], scope[1]);
    stream.synchronize();
    CHECK(sums[99] == 2);
    CHECK(*const_cast<const volatile float*>(constant.data()) == 1);
  }
  CHECK(shared().memory_stats()[ResourceKind::registered].live_count == 0);
}
