// SPDX-License-Identifier: Apache-2.0
// Section A, rows 1 to 4 and 7: arrays and transfers.
#include <complex>
#include <numeric>

#include "suite.hpp"

using namespace quern;
using namespace quern::contract;

namespace {

using Strides = std::vector<std::int64_t>;

Shape shape_of(const StridedArray& array) { return {array.shape().begin(), array.shape().end()}; }
Strides strides_of(const StridedArray& array) {
  return {array.strides_bytes().begin(), array.strides_bytes().end()};
}

}  // namespace

TEST_CASE(
    "A1: device_array makes uninitialised arrays of any shape, order and strides, and refuses what cannot "
    "be") {
  const DeviceNDArray plain = shared().device_array({3, 4});
  CHECK(plain.dtype() == Dtype::float64);
  CHECK(strides_of(plain) == Strides{32, 8});
  const DeviceNDArray fortran = shared().device_array({3, 4}, Dtype::int16, {.order = Order::f});
  CHECK(strides_of(fortran) == Strides{2, 6});
  const DeviceNDArray strided =
      shared().device_array({3}, Dtype::float32, {.order = Order::f, .strides_bytes = Strides{16}});
  CHECK(strides_of(strided) == Strides{16});
  CHECK(strided.buffer().size_bytes() == 36);
  const DeviceNDArray empty = shared().device_array({3, 0, 2});
  CHECK(empty.size() == 0);
  CHECK(empty.copy_to_host().size() == 0);
  const DeviceNDArray scalar = shared().device_array(Shape{}, Dtype::int32);
  CHECK(scalar.size() == 1);
  scalar.assign(7);
  CHECK(scalar.item<int>() == 7);
  const std::uint64_t made = shared().memory_stats().total().made_count;
  CHECK(holds(message([] { (void)shared().device_array({2, -3}); }), "extent -3 is negative"));
  CHECK(holds(message([] { (void)shared().device_array({INT64_MAX, 8}); }), "larger than an address space"));
  CHECK(
      holds(message([] { (void)shared().device_array({4}, Dtype::float32, {.strides_bytes = Strides{-4}}); }),
            "before its memory"));
  CHECK(holds(
      message([] { (void)shared().device_array({4}, Dtype::float32, {.strides_bytes = Strides{4, 4}}); }),
      "one for each extent"));
  CHECK(shared().memory_stats().total().made_count == made);
}

TEST_CASE("A2: device_array_like takes shape, dtype and order from a host, device, pinned or mapped array") {
  const NDArray host({2, 3}, Dtype::int16, Order::f);
  const DeviceNDArray like_host = shared().device_array_like(host);
  CHECK(shape_of(like_host) == Shape{2, 3});
  CHECK(like_host.dtype() == Dtype::int16);
  CHECK(strides_of(like_host) == Strides{2, 4});
  const DeviceNDArray device = shared().device_array({4, 6}, Dtype::float32);
  CHECK(strides_of(shared().device_array_like(device)) == strides_of(device));
  CHECK(strides_of(shared().device_array_like(device(Slice{0, 4, 2}))) ==
        Strides{24, 4});  // neither C nor F: C
  CHECK(strides_of(shared().device_array_like(device.transpose())) == Strides{4, 24});
  CHECK(shape_of(shared().device_array_like(shared().pinned_array({5}, Dtype::uint8))) == Shape{5});
  CHECK(shared().device_array_like(shared().mapped_array({5}, Dtype::complex64)).dtype() == Dtype::complex64);
  const NDArray pinned = shared().pinned_array_like(host);
  CHECK(pinned.is_page_locked());
  CHECK(strides_of(pinned) == Strides{2, 4});
  const MappedNDArray mapped = shared().mapped_array_like(device.transpose(), {.write_combined = true});
  CHECK(strides_of(mapped) == Strides{4, 24});
  CHECK(host_alloc_flags(mapped.host().data()) == 6u);
}

TEST_CASE(
    "A3: to_device takes host arrays of any layout, spans and structs, re-uses arrays, and queues on "
    "streams") {
  const NDArray host = counting_array({4, 6});
  CHECK(shared().to_device(host).copy_to_host().identical(host));
  const NDArray every_other = host(Slice{0, 4, 2}, Slice{{}, {}, -2});
  const DeviceNDArray packed = shared().to_device(every_other);
  CHECK(packed.is_c_contiguous());
  CHECK(packed.copy_to_host().identical(every_other.copy()));
  const NDArray fortran = counting_array({4, 6}, Order::f);
  CHECK(shared().to_device(fortran).is_f_contiguous());
  CHECK(shared().to_device(fortran).copy_to_host().identical(host));

  const std::vector<float> values = counting(10);
  CHECK(shared().to_device(values).copy_to_host() == values);
  const int c_array[] = {1, 2, 3};
  CHECK(shared().to_device(c_array).copy_to_host() == std::vector<int>{1, 2, 3});
  const DeviceRecord record = shared().to_device(Particle{3, {1, 2, 3}, {{4, 5}, {6, 7}}});
  CHECK(record.get<Particle>().corners[1].y == 7);

  const std::uint64_t copies = calls_of("cuMemcpyHtoD_v2");
  CHECK(shape_of(shared().to_device(host, {.copy = false})) == Shape{4, 6});
  CHECK(calls_of("cuMemcpyHtoD_v2") == copies);
  const DeviceNDArray target = shared().device_array({4, 6}, Dtype::float32);
  CHECK(shared().to_device(host, {.to = target}).data() == target.data());
  CHECK(target.copy_to_host().identical(host));
  const std::string refused = message([&] { (void)shared().to_device(host, {.to = packed}); });
  CHECK(holds(refused, "(4, 6)"));
  CHECK(holds(refused, "(2, 3)"));

  const Stream stream = shared().stream();
  keep_busy(stream);
  std::vector<float> changing = counting(100);
  const auto queued = shared().to_device(changing, stream);
  // staged: the device gets the values at the time of the call
  std::fill(changing.begin(), changing.end(), -1.0f);
  std::vector<float> back(100);
  queued.copy_to_host(back, stream);
  stream.synchronize();
  CHECK(back == counting(100));
}

TEST_CASE(
    "A4: copy_to_host gives a new array or fills the given one, at once or on a stream, and names both sides "
    "of a mismatch") {
  const NDArray values = counting_array({3, 5});
  const DeviceNDArray device = shared().to_device(values);
  CHECK(device.copy_to_host().identical(values));
  const NDArray target({3, 5}, Dtype::float32);
  CHECK(device.copy_to_host(target).data() == target.data());
  CHECK(target.identical(values));
  const NDArray gaps = NDArray({3, 10}, Dtype::float32)(kEllipsis, Slice{{}, {}, 2});
  CHECK(device.copy_to_host(gaps).copy().identical(values));
  CHECK(device(1, Slice{4, 0, -2}).copy_to_host().identical(values(1, Slice{4, 0, -2}).copy()));

  const std::string wrong_type = message([&] { device.copy_to_host(NDArray({3, 5}, Dtype::int32)); });
  CHECK(holds(wrong_type, "float32 with shape (3, 5)"));
  CHECK(holds(wrong_type, "int32 with shape (3, 5)"));
  CHECK(holds(message([&] { device.copy_to_host(NDArray({5, 3}, Dtype::float32)); }), "(5, 3)"));
  const std::string wrong_order =
      message([&] { device.copy_to_host(NDArray({3, 5}, Dtype::float32, Order::f)); });
  CHECK(holds(wrong_order, "in C order"));
  CHECK(holds(wrong_order, "in Fortran order"));

  const Stream stream = shared().stream();
  keep_busy(stream);
  std::weak_ptr<const void> memory;
  {
    const NDArray dropped({3, 5}, Dtype::float32);  // owned: lives until the copy has run
    memory = dropped.owner();
    device.copy_to_host(dropped, stream);
    const NDArray source = counting_array({3, 5});
    device.copy_to_device(source, stream);
  }
  CHECK_FALSE(memory.expired());
  const NDArray later = device.copy_to_host(stream);
  stream.synchronize();
  CHECK(memory.expired());
  CHECK(later.identical(values));

  const DeviceRecord record = shared().to_device(Point{1, 2});
  CHECK(record.copy_to_host().item<Point>().y == 2);
  const MappedNDArray mapped = shared().mapped_array({4}, Dtype::float32);
  mapped.assign(2.5f);
  CHECK(mapped.copy_to_host().at<float>(3) == 2.5f);
}

TEST_CASE("A7: is_c_contiguous and is_f_contiguous follow NumPy's rules on device arrays") {
  const DeviceNDArray a = shared().device_array({3, 4}, Dtype::float32);
  CHECK(a.is_c_contiguous());
  CHECK_FALSE(a.is_f_contiguous());
  CHECK(a.transpose().is_f_contiguous());
  CHECK_FALSE(a(Slice{}, Slice{0, 2}).is_c_contiguous());
  CHECK(a(Slice{0, 1}).is_c_contiguous());
  CHECK(a(Slice{0, 1}).is_f_contiguous());
  CHECK(a(Slice{}, Slice{1, 2})(0).is_c_contiguous());
  CHECK(shared().device_array({1, 4}, Dtype::int8).is_f_contiguous());
  CHECK(shared().device_array({0, 4}, Dtype::int8).is_f_contiguous());
  CHECK(shared().device_array({5}, Dtype::int8).is_f_contiguous());
}
