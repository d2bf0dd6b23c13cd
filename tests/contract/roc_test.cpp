// SPDX-License-Identifier: Apache-2.0
// Section G: the host side of Numba's ROC target.
#include <quern/roc.hpp>

#include "suite.hpp"

using namespace quern;
using namespace quern::contract;

namespace {

void arrays_are_made_and_asked() {
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
  CHECK(roc::device_array(shared(), {2, 3}, Dtype::int8, {.order = Order::f}).is_f_contiguous());

  const std::vector<std::int64_t> strides = {40, 8};  // every other element of rows of 10
  const DeviceNDArray gaps =
      roc::device_array(shared(), {3, 4}, Dtype::float32, {.order = Order::f, .strides_bytes = strides});
  CHECK(std::vector(gaps.strides_bytes().begin(), gaps.strides_bytes().end()) == strides);
  CHECK_FALSE(gaps.is_c_contiguous());
  gaps.copy_to_device(counting_array({3, 4}));
  CHECK(gaps.copy_to_host().identical(counting_array({3, 4})));
  CHECK(gaps.ravel(Order::f).copy_to_host().at<float>(1) == 4);
  CHECK(holds(message([&] { (void)gaps.reshape({12}); }), "without copying"));
  CHECK(holds(
      message([&] { (void)roc::device_array(shared(), {3}, Dtype::float32, {.strides_bytes = {{-4}}}); }),
      "before its memory"));

  const auto typed = roc::to_device(counting(5), shared());
  CHECK(typed.copy_to_host() == counting(5));
  CHECK(roc::to_device(Point{1, 2}, shared()).get<Point>().y == 2);
  CHECK(roc::device_array<int>(shared(), {2, 2}).dtype() == Dtype::int32);
}

void copies_are_queued_where_a_stream_is_given() {
  const DeferredCleanup nothing_released = shared().defer_cleanup();  // releasing memory waits for its work
  const Stream stream = roc::stream(shared());
  keep_busy(stream);
  const NDArray host = counting_array({3, 8});
  const DeviceNDArray device = roc::to_device(host, shared(), stream);
  const DeviceNDArray like = roc::device_array_like(shared(), device, stream);
  CHECK(roc::to_device(host, shared(), true, like, stream.view()).data() == like.data());
  const auto typed = roc::to_device(counting(5), shared(), stream.view());
  const DeviceNDArray turned = device.transpose().ravel(Order::c, stream.view());
  const NDArray target({3, 8}, Dtype::float32), flat({24}, Dtype::float32), fifth({5}, Dtype::float32);
  device.copy_to_host(target, stream);
  turned.copy_to_host(flat, stream);
  static_cast<const DeviceNDArray&>(typed).copy_to_host(fifth, stream);
  CHECK_FALSE(stream.query());
  CHECK(target.at<float>(2, 7) == 0);  // not there yet
  stream.synchronize();
  CHECK(target.identical(counting_array({3, 8})));
  CHECK(flat.at<float>(1) == 8);
  CHECK(fifth.at<float>(4) == 4);
  CHECK(like.copy_to_host().identical(host));
}

}  // namespace

TEST_CASE(
    "G1: roc arrays are made, copied, reshaped and asked as in section A; copies are done on return or "
    "queued "
    "on a stream") {
  arrays_are_made_and_asked();
  copies_are_queued_where_a_stream_is_given();
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
