// SPDX-License-Identifier: Apache-2.0
// Section A, rows 8 to 12: views, records, host arrays as arguments.
#include <algorithm>

#include "suite.hpp"

using namespace quern;
using namespace quern::contract;

TEST_CASE(
    "A8: ravel and reshape are NumPy's: views where the layout allows, a copy for ravel, an error for "
    "reshape") {
  const NDArray host = counting_array({4, 6});
  const DeviceNDArray a = shared().to_device(host);
  const std::uint64_t allocations = calls_of("cuMemAlloc_v2");
  CHECK(a.ravel().data() == a.data());
  CHECK(a.reshape({2, -1, 3}).copy_to_host().identical(host.reshape({2, -1, 3})));
  CHECK(a.reshape({3, 8}).data() == a.data());
  CHECK(a.transpose().reshape({24}, Order::f).data() == a.data());
  CHECK(calls_of("cuMemAlloc_v2") == allocations);
  CHECK(a.ravel(Order::f).copy_to_host().identical(host.ravel(Order::f)));
  CHECK(calls_of("cuMemAlloc_v2") > allocations);
  CHECK(a(Slice{0, 4, 2}).ravel().copy_to_host().identical(host(Slice{0, 4, 2}).ravel()));
  CHECK(holds(message([&] { (void)a(Slice{0, 4, 2}).reshape({12}); }), "without copying"));
  CHECK(holds(message([&] { (void)a.reshape({5, 5}); }), "24 elements"));
  CHECK(holds(message([&] { (void)a.reshape({-1, -1}); }), "one extent may be -1"));
  const Stream stream = shared().stream();
  const DeviceNDArray queued = a.transpose().ravel(Order::c, stream.view());
  stream.synchronize();
  CHECK(queued.copy_to_host().identical(host.transpose().ravel()));
}

TEST_CASE("A9: split gives equal sections and a shorter last one, as views; also of mapped arrays") {
  const DeviceNDArray a = shared().to_device(counting(10));
  const std::vector<DeviceNDArray> parts = a.split(4);
  REQUIRE(parts.size() == 3);
  CHECK(parts[2].size() == 2);
  CHECK(parts[1].copy_to_host().identical(NDArray::of({4.f, 5.f, 6.f, 7.f})));
  parts[1].assign(0.0f);
  CHECK(a.copy_to_host().at<float>(5) == 0);
  CHECK(a.split(10).size() == 1);
  const MappedNDArray mapped = shared().mapped_array({6}, Dtype::int32);
  mapped.assign(1);
  const std::vector<MappedNDArray> halves = mapped.split(3);
  REQUIRE(halves.size() == 2);
  halves[1].host().assign(9);
  CHECK(mapped.host().at<int>(2) == 1);
  CHECK(mapped.host().at<int>(3) == 9);
  CHECK(holds(message([&] { (void)a.split(0); }), "1 element or more"));
  CHECK(holds(message([&] { (void)a.reshape({2, 5}).split(2); }), "1-D"));
}

TEST_CASE(
    "A10: indexing and slicing from the host makes views that share memory and keep it alive; they can be "
    "assigned") {
  const NDArray host = counting_array({4, 6});
  DeviceNDArray a = shared().to_device(host);
  CHECK(a(2, 3).item<float>() == 15);
  CHECK(a(-1, -1).item<float>() == 23);
  CHECK(a[1].copy_to_host().identical(host[1].copy()));
  const std::vector<std::vector<Index>> cases = {{Slice{1, 3}},
                                                 {Slice{}, Slice{{}, {}, -1}},
                                                 {Slice{3, {}, -2}, Slice{1, 6, 2}},
                                                 {kEllipsis, 2},
                                                 {kNewAxis, 1},
                                                 {Slice{2, 2}}};
  const std::uint64_t allocations = calls_of("cuMemAlloc_v2");
  std::vector<DeviceNDArray> views;
  for (const auto& indices : cases) views.push_back(a.indexed(indices));
  CHECK(calls_of("cuMemAlloc_v2") == allocations);
  for (std::size_t i = 0; i < cases.size(); ++i)
    CHECK(views[i].copy_to_host().identical(host.indexed(cases[i]).copy()));
  CHECK(a.transpose().copy_to_host().identical(host.transpose().copy(Order::f)));
  CHECK(holds(message([&] { (void)a(4, 0); }), "outside axis 0"));
  CHECK(holds(message([&] { (void)a(0, 0, 0); }), "3 indices"));

  a(1, Slice{0, 6, 2}).assign(-1);                          // a scalar
  a(Slice{}, 5).assign(NDArray::of({1.f, 2.f, 3.f, 4.f}));  // a host array
  a(0).assign(shared().to_device(std::vector<float>(6, 8.0f)));
  a(Slice{2, 4}, Slice{0, 2}).assign(NDArray::of({7.f, 6.f}));  // broadcast over rows
  NDArray wanted = host.copy();
  wanted(1, Slice{0, 6, 2}).assign(-1);
  wanted(Slice{}, 5).assign(NDArray::of({1.f, 2.f, 3.f, 4.f}));
  wanted(0).assign(8);
  wanted(Slice{2, 4}, Slice{0, 2}).assign(NDArray::of({7.f, 6.f}));
  CHECK(a.copy_to_host().identical(wanted));
  CHECK(holds(message([&] { a(0).assign(NDArray::of({1.f, 2.f})); }), "broadcast"));
  CHECK(holds(message([&] { a(0).assign(1e300); }), "beyond the range"));

  const DeviceNDArray row = a(3);
  a = {};
  CHECK(row.copy_to_host().identical(wanted[3].copy()));
  const DeviceArray<int> typed = shared().to_device(std::vector<int>{1, 2, 3});
  CHECK(typed[1].item() == 2);
  CHECK(typed(Slice{{}, {}, -1}).copy_to_host() == std::vector<int>{3, 2, 1});
  // wide elements and many dimensions
  const NDArray deep = counting_array({2, 2, 2, 2, 2, 2, 2, 3});
  const std::vector<Index> reversed(8, Slice{{}, {}, -1});
  CHECK(shared()
            .to_device(deep)
            .indexed(reversed)(Slice{}, 1)
            .copy_to_host()
            .identical(deep.indexed(reversed)(Slice{}, 1).copy()));
}

TEST_CASE(
    "A11: records go both ways, their fields are views, kernels read and write them, structs describe "
    "themselves") {
  std::vector<Particle> particles(40);
  for (int i = 0; i < 40; ++i)
    particles[static_cast<std::size_t>(i)] = {i, {1.0 * i, 2.0 * i, 3.0 * i}, {{1, 2}, {3, 4}}};
  const DeviceArray<Particle> device = shared().to_device(particles);
  CHECK(device.element().record->field("position").offset_bytes == offsetof(Particle, position));
  CHECK(to_string(device.element()).find("corners: 8-byte record {x: float32, y: float32}(2,)") !=
        std::string::npos);
  kernel("move")({.grid = 1, .block = 64})(device, 40);
  const std::vector<Particle> moved = device.copy_to_host();
  CHECK(moved[7].kind == 17);
  CHECK(moved[7].position[1] == 28.0);
  CHECK(moved[7].corners[1].x == 2);

  const DeviceNDArray kinds = device.field("kind");
  CHECK(kinds.copy_to_host().at<int>(39) == 49);
  kinds.assign(5);
  CHECK(device.field("position").copy_to_host().at<double>(3, 2) == 9.0);
  CHECK(device.field("corners").field("y").copy_to_host().at<float>(0, 1) == 4);
  CHECK(device.copy_to_host()[20].kind == 5);
  CHECK(device.copy_to_host()[20].position[0] == 20);

  const DeviceRecord record = shared().to_device(Particle{1, {1, 2, 3}, {}});
  kernel("move")({.grid = 1, .block = 1})(record, 1);
  CHECK(record.get<Particle>().kind == 11);
  record.field("kind").assign(3);
  CHECK(record.get<Particle>().kind == 3);
  const DeviceRecord third(device[3]);
  third.set(Particle{99, {}, {}});
  CHECK(device.copy_to_host()[3].kind == 99);

  const auto out = shared().device_array<double>(1);
  kernel("take_particle")({.grid = 1, .block = 1})(Particle{1, {0, 0, 10}, {{}, {0, 100}}}, out);
  CHECK(out.copy_to_host()[0] == 111.0);
  // padding and offsets of one's own
  const RecordType sparse({{"a", Dtype::int8, 1, {}}, {"b", Dtype::float32, 8, {2}}}, 20);
  const NDArray host({3}, sparse);
  host.field("b").assign(1.5f);
  host.field("a").assign(4);
  CHECK(shared().to_device(host).copy_to_host().identical(host));
  CHECK(shared().to_device(host).field("b")(2, 1).item<float>() == 1.5f);
}

TEST_CASE(
    "A12: host arrays go to the device for a launch and come back after it; In, Out and InOut narrow that") {
  const Kernel sum = kernel("sum");
  std::vector<float> a = counting(100), b(100, 1.0f), out(100, -1.0f);
  sum({.grid = 1, .block = 128})(100, a, b, out);  // no stream: complete on return
  CHECK(out[99] == 100);
  const auto copied = [](const std::function<void()>& launch) {
    const std::uint64_t in = calls_of("cuMemcpyHtoD_v2"), back = calls_of("cuMemcpyDtoH_v2");
    launch();
    return std::pair(calls_of("cuMemcpyHtoD_v2") - in, calls_of("cuMemcpyDtoH_v2") - back);
  };
  CHECK(copied([&] { sum({.grid = 1, .block = 128})(100, a, b, out); }) ==
        std::pair<std::uint64_t, std::uint64_t>(3, 3));
  CHECK(copied([&] { sum({.grid = 1, .block = 128})(100, In(a), In(b), Out(out)); }) ==
        std::pair<std::uint64_t, std::uint64_t>(2, 1));
  CHECK(copied([&] { sum({.grid = 1, .block = 128})(100, std::as_const(a), In(b), InOut(out)); }) ==
        std::pair<std::uint64_t, std::uint64_t>(3, 1));

  const Stream stream = shared().stream();
  const NDArray owned({100}, Dtype::float32);
  kernel("add_one")({.grid = 1, .block = 128})(NDArray({100}, Dtype::float32));  // compiling takes long
  keep_busy(stream);
  std::fill(out.begin(), out.end(), -1.0f);
  sum({.grid = 1, .block = 128, .stream = stream})(100, In(a), In(b), Out(out));
  kernel("add_one")({.grid = 1, .block = 128, .stream = stream})(owned);
  CHECK(out[0] == -1.0f);  // the copy back waits for its stream
  stream.synchronize();
  CHECK(out[50] == 51);
  CHECK(owned.at<float>(99) == 1);
  // strided and 2-D
  const NDArray grid = counting_array({3, 8});
  kernel("scale")({.grid = 1, .block = {8, 4}})(grid(Slice{}, Slice{0, 8, 2}), 10.0f);
  CHECK(grid.at<float>(1, 2) == 100);
  CHECK(grid.at<float>(1, 3) == 11);
  // tuples and structs by value
  const auto result = shared().device_array<double>(1);
  kernel("take_pair")({.grid = 1, .block = 1})(std::tuple(3, 0.5), result);
  CHECK(result.copy_to_host()[0] == 3.5);
  CHECK(holds(message([&] { sum({.block = 1})(100, NDArray({100}, Dtype::float64), b, out); }), "float64"));
}
