// SPDX-License-Identifier: Apache-2.0
// Section G: the host side of Numba's ROC target.
#include <quern/roc.hpp>

#include "suite.hpp"

using namespace quern;
using namespace quern::contract;

TEST_CASE("G1: roc arrays are made, copied, reshaped and asked as in section A; copies are done on return") {
  const NDArray host = counting_array({4, 6}, Order::f);
  const DeviceNDArray device = roc::to_device(host, shared());
  CHECK(device.is_f_contiguous());
  CHECK_FALSE(device.is_c_contiguous());
  CHECK(device.copy_to_host().identical(host));
  const DeviceNDArray like = roc::device_array_like(shared(), host);
  CHECK(like.is_f_contiguous());
  CHECK(roc::to_device(host, shared(), true, like).data() == like.data());
  CHECK(like.copy_to_host().identical(host));
  CHECK(roc::to_device(host, shared(), false).size() == 24);
  const DeviceNDArray plain = roc::device_array(shared(), {3, 8}, Dtype::float32);
  plain.copy_to_device(counting_array({3, 8}));
  CHECK(plain.reshape({4, 6}).copy_to_host().identical(counting_array({4, 6})));
  CHECK(plain.ravel().copy_to_host().identical(counting_array({24})));
  CHECK(roc::device_array(shared(), {2}).dtype() == Dtype::float64);
  const Stream stream = roc::stream(shared());
  const NDArray target({3, 8}, Dtype::float32);
  plain.copy_to_host(target, stream);
  stream.synchronize();
  CHECK(target.identical(counting_array({3, 8})));
}

TEST_CASE(
    "G2: roc register_ and deregister make host memory known to the device's runtime, also for a scope") {
  std::vector<float> a = counting(100), b(100);
  const NDArray first = NDArray::view(a), second = NDArray::view(b);
  roc::register_(shared(), {first, second});
  CHECK(shared().memory_stats()[ResourceKind::registered].live_count == 2);
  CHECK(holds(message([&] { roc::register_(shared(), {first}); }), "page-locked already"));
  const auto device = shared().to_device(a);
  CHECK(device.copy_to_host() == a);
  roc::deregister(shared(), {first, second});
  CHECK(shared().memory_stats()[ResourceKind::registered].live_count == 0);
  CHECK(holds(message([&] { roc::deregister(shared(), {first}); }), "not registered"));
  {
    const PinnedScope scope = roc::registered(shared(), {first});
    CHECK(shared().memory_stats()[ResourceKind::registered].live_count == 1);
  }
  CHECK(shared().memory_stats()[ResourceKind::registered].live_count == 0);
}

TEST_CASE("G3: roc streams synchronise, also by themselves at a scope's end") {
  const Stream stream = roc::stream(shared());
  const auto data = shared().to_device(counting(100));
  std::vector<float> host(100);
  {
    const AutoSynchronize scope = stream.auto_synchronize();
    keep_busy(stream);
    data.copy_to_host(host, stream);
  }
  CHECK(host == counting(100));
  kernel("add_one")({.grid = 1, .block = 128, .stream = stream})(data);
  stream.synchronize();
  CHECK(data.copy_to_host()[99] == 100);
}
