// SPDX-License-Identifier: Apache-2.0
// Section E: SmartArray, its transfers counted.
#include <algorithm>

#include "suite.hpp"

using namespace quern;
using namespace quern::contract;

namespace {

struct Copies {
  std::uint64_t to_device = calls_of("cuMemcpyHtoD_v2");
  std::uint64_t to_host = calls_of("cuMemcpyDtoH_v2");
  /// Copies since the last call of this function.
  std::pair<std::uint64_t, std::uint64_t> now() {
    const Copies before = std::exchange(*this, Copies());
    return {to_device - before.to_device, to_host - before.to_host};
  }
};
using Count = std::pair<std::uint64_t, std::uint64_t>;

}  // namespace

TEST_CASE("E1: a SmartArray adopts or copies an array, or is made new, first on the host or on the device") {
  const NDArray host = counting_array({4, 3}, Order::f);
  Copies copies;
  const SmartArray adopted = shared().smart_array(host, false);
  CHECK(adopted.host().data() == host.data());
  const SmartArray copied = shared().smart_array(host);
  CHECK(copied.host().data() != host.data());
  CHECK(copied.host().identical(host));
  CHECK(copies.now() == Count(0, 0));
  const SmartArray there = shared().smart_array(host, true, Where::device);
  CHECK(copies.now() == Count(1, 0));
  CHECK(there.is_current(Where::device));
  CHECK(there.device().is_f_contiguous());
  const DeviceNDArray device = shared().to_device(host);
  CHECK(shared().smart_array(device, false).device().data() == device.data());
  CHECK(shared().smart_array(device).device().data() != device.data());
  copies.now();
  const SmartArray fresh = shared().smart_array({5}, Dtype::int16, Order::c, Where::device);
  CHECK(fresh.is_current(Where::device));
  CHECK_FALSE(fresh.is_current(Where::host));
  CHECK(copies.now() == Count(0, 0));
  CHECK(fresh.element() == ElementType(Dtype::int16));
  // Read-only memory is copied, or rejected at once.
  const NDArray constant = host.as_read_only();
  CHECK(holds(message([&] { (void)shared().smart_array(constant, false); }), "read-only"));
  CHECK(shared().smart_array(constant).device().copy_to_host().identical(host));
  const MappedScope scope = shared().mapped({constant});
  CHECK(holds(message([&] { (void)shared().smart_array(scope[0], false); }), "read-only"));
  CHECK(shared().smart_array(scope[0]).host().identical(host));
}

TEST_CASE("E2: a side is brought up to date if and only if it is stale") {
  const SmartArray array = shared().smart_array(counting_array({100}));
  Copies copies;
  CHECK(array.device().copy_to_host().at<float>(99) == 99);
  CHECK(copies.now() == Count(1, 1));  // the second is this test's own
  (void)array.device();
  (void)array.host();
  (void)array.device();
  CHECK(copies.now() == Count(0, 0));
}

TEST_CASE("E3: mark_changed makes a side the newest, and updates the other one if something holds on to it") {
  const SmartArray array = shared().smart_array(counting_array({100}));
  (void)array.device();
  Copies copies;
  array.host().assign(5.0f);
  array.mark_changed(Where::host);
  CHECK(copies.now() == Count(0, 0));  // nobody holds the device side
  CHECK_FALSE(array.is_current(Where::device));
  CHECK(array.device()(7).item<float>() == 5);
  CHECK(copies.now() == Count(1, 1));
  const DeviceNDArray held = array.device();
  array.host().assign(6.0f);
  array.mark_changed(Where::host);
  CHECK(copies.now() == Count(1, 0));
  CHECK(held(99).item<float>() == 6);
  held.assign(7.0f);
  copies.now();
  array.mark_changed(Where::device);
  CHECK(copies.now() == Count(0, 0));
  CHECK(array.host().at<float>(0) == 7);
  CHECK(copies.now() == Count(0, 1));

  // A side that was out of date when it was written to is not updated later, because that would overwrite the
  // new values.
  const SmartArray filled = shared().smart_array(counting_array({100}));
  const std::span<float> memory = filled.host().values<float>();
  for (const float value : {10.0f, 20.0f, 30.0f}) {
    std::fill(memory.begin(), memory.end(), value);
    copies.now();
    filled.mark_changed(Where::host);
    CHECK(filled.is_current(Where::host));
    kernel("add_one")({.grid = 1, .block = 128})(filled);
    CHECK(copies.now() == Count(1, 0));
    CHECK(filled.device()(5).item<float>() == value + 1);
  }
  filled.mark_changed(Where::host);
  copies.now();
  filled.mark_changed(Where::device);
  CHECK(copies.now() == Count(0, 0));
  CHECK(filled.is_current(Where::device));
  CHECK_FALSE(filled.is_current(Where::host));
  CHECK(filled.device()(5).item<float>() == 31);
}

TEST_CASE(
    "E4: launches move it to the device once; the host side is refreshed only if something refers to it") {
  const SmartArray array = shared().smart_array(counting_array({100}));
  const Kernel add_one = kernel("add_one");
  Copies copies;
  add_one({.grid = 1, .block = 128})(array);
  add_one({.grid = 1, .block = 128})(array);
  CHECK(copies.now() == Count(1, 0));
  CHECK_FALSE(array.is_current(Where::host));
  CHECK(array.host().at<float>(99) == 101);
  CHECK(copies.now() == Count(0, 1));
  const NDArray held = array.host();
  add_one({.grid = 1, .block = 128})(array);
  CHECK(copies.now() == Count(0, 1));
  CHECK(held.at<float>(99) == 102);
  // Copies wait for a stream with which they are not ordered.
  const StreamView foreign = foreign_stream();
  const SmartArray other = shared().smart_array(counting_array({100}));
  keep_busy(foreign);
  add_one({.grid = 1, .block = 128, .stream = foreign})(other);
  CHECK(other.host().at<float>(99) == 100);
  // They wait for each of several such streams.
  const StreamView second = foreign_stream();
  keep_busy(foreign);
  add_one({.grid = 1, .block = 128, .stream = foreign})(other);
  kernel("set")({.grid = 1, .block = 32, .stream = second})(1, other, 7.0f);
  CHECK(other.host().at<float>(99) == 101);
  foreign.synchronize();

  // If a call around the launch fails, the kernel's results do not become the host's values.
  for (const char* call : {"cuEventCreate", "cuEventRecord"}) {
    const SmartArray one = shared().smart_array(counting_array({100}));
    const SmartArray two = shared().smart_array(counting_array({100}));
    keep_busy(foreign);
    calls().fail_call(1, CUDA_ERROR_INVALID_VALUE, call);
    (void)message([&] { kernel("sum")({.grid = 1, .block = 128, .stream = foreign})(100, one, one, two); });
    calls().clear_failures();
    CAPTURE(call);
    CHECK_FALSE(one.is_current(Where::host));
    CHECK_FALSE(two.is_current(Where::host));
    CHECK(two.host().at<float>(99) == 198);
    foreign.synchronize();
  }
}
