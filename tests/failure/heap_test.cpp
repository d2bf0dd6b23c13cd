// SPDX-License-Identifier: Apache-2.0
// Operations that need no heap memory: repeated launches, views of arrays.
#include <doctest/doctest.h>
#include <quern/quern.hpp>

#include <functional>
#include <tuple>
#include <vector>

#include "device.hpp"
#include "host_memory.hpp"

using namespace quern;

namespace {

constexpr const char* kPython = R"(
from numba import cuda

@cuda.jit
def total(out, a, b, c, d, e, points):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] + b[i] + c[i] + d[i] + e[i] + points[i].y
)";
constexpr const char* kPtx = R"(.version 6.0
.target sm_50
.address_size 64
.visible .entry plain(.param .u64 x, .param .u64 y, .param .u32 n, .param .f32 a) { ret; }
.visible .entry pair(.param .align 8 .b8 p[16]) { ret; }
.visible .entry four(.param .align 8 .b8 a[40], .param .align 8 .b8 b[40], .param .align 8 .b8 c[40],
                     .param .align 8 .b8 d[40]) { ret; }
)";

std::uint64_t launches() {
  const driver::FailingTable& table = *failure::AuditedDevice::get().table;
  return table.call_count("cuLaunchKernel") + table.call_count("cuLaunchKernelEx");
}

/// Counts the allocations of this thread in the second of two calls, excluding those of the driver.
std::uint64_t allocations_of(const std::function<void()>& action) {
  action();
  const failure::ShortOfMemory scope(0);
  action();
  return failure::ShortOfMemory::count();
}

}  // namespace

TEST_CASE("views of arrays need no heap memory up to four dimensions") {
  const Session session("cpu");
  const DeviceNDArray array = session.device_array({4, 6, 2}, Dtype::float32);
  const DeviceArray<float, 2> matrix = session.device_array<float, 2>({4, 6});
  const NDArray host({4, 6}, Dtype::float32);
  CHECK(allocations_of([&] { (void)array(Slice{1, 4, 2}, 3); }) == 0);
  CHECK(allocations_of([&] { (void)array(kEllipsis, kNewAxis, 1); }) == 0);
  CHECK(allocations_of([&] { (void)array.transpose(); }) == 0);
  CHECK(allocations_of([&] { (void)matrix(1, Slice{{}, {}, -1}); }) == 0);
  CHECK(allocations_of([&] { (void)host(Slice{0, 2}).at<float>(1, 1); }) == 0);
}

TEST_CASE("a launch after the first needs no heap memory of the layer's") {
  const Session session = failure::AuditedDevice::get().open_session();
  const Module module = session.load_ptx(kPtx);
  const Kernel plain = module.kernel("plain"), pair = module.kernel("pair"), four = module.kernel("four");
  const DeviceNDArray array = session.device_array({8, 8}, Dtype::float32);
  const Stream stream = session.stream();
  const LaunchConfig config = {.grid = 2, .block = 32, .stream = stream};
  const LaunchConfig large = {.grid = 2, .block = 32, .shared_bytes = 60000};
  const LaunchConfig together = {.grid = 2, .block = 32, .cooperative = true};
  const std::uint64_t launched = launches();
  CHECK(allocations_of([&] { plain(config)(array, nullptr, 3, 2.0); }) == 0);
  CHECK(allocations_of([&] { pair(config)(std::tuple(1, 2.0)); }) == 0);
  CHECK(allocations_of([&] { four(config)(array, array, array(Slice{0, 4}), array.transpose()); }) == 0);
  CHECK(allocations_of([&] { plain(large)(array, array, 3, 2.0f); }) == 0);
  CHECK(allocations_of([&] { plain(together)(array, array, 3, 2.0f); }) == 0);
  CHECK(allocations_of([&] { plain.for_all(100)(array, array, 3, 2.0f); }) == 0);
  CHECK(launches() == launched + 12);
}

TEST_CASE("SmartArrays that are on the device are launched with without heap memory") {
  const Session session = failure::AuditedDevice::get().open_session();
  const Kernel four = session.load_ptx(kPtx).kernel("four");
  const SmartArray smart = session.smart_array(NDArray({8, 8}, Dtype::float32));
  const Stream stream = session.stream();
  const std::uint64_t launched = launches();
  CHECK(allocations_of([&] { four({.grid = 1, .block = 32})(smart, smart, smart, smart); }) == 0);
  CHECK(allocations_of(
            [&] { four({.grid = 1, .block = 32, .stream = stream})(smart, smart, smart, smart); }) == 0);
  CHECK(launches() == launched + 4);
}

TEST_CASE("SmartArrays are launched with on a stream of the program's without heap memory or new events") {
  const Session session = failure::AuditedDevice::get().open_session();
  const driver::FailingTable& table = *failure::AuditedDevice::get().table;
  const Kernel four = session.load_ptx(kPtx).kernel("four");
  const SmartArray smart = session.smart_array(NDArray({8, 8}, Dtype::float32));
  const failure::ForeignStream one(session), two(session);
  const auto launch = [&](StreamView stream) {
    four({.grid = 1, .block = 32, .stream = stream})(smart, smart, smart, smart);
  };
  launch(one.view());
  launch(two.view());
  const std::uint64_t made = table.call_count("cuEventCreate");
  CHECK(allocations_of([&] { launch(one.view()), launch(two.view()); }) == 0);
  CHECK(table.call_count("cuEventCreate") == made);
  // The host side waits for both streams. The events that mark their ends are reused, also on a third stream.
  (void)smart.host();
  const failure::ForeignStream three(session);
  CHECK(allocations_of([&] { launch(three.view()), launch(one.view()); }) == 0);
  CHECK(table.call_count("cuEventCreate") == made);
}

TEST_CASE("memory of a pool's needs no heap memory in launches on the stream that it was made on") {
  const Session session = failure::AuditedDevice::get().open_session();
  const Kernel plain = session.load_ptx(kPtx).kernel("plain");
  const Stream stream = session.stream();
  session.set_allocator(session.stream_ordered_pool());
  {
    const DeviceNDArray array = session.device_array({8, 8}, Dtype::float32, {.stream = stream.view()});
    const LaunchConfig config = {.grid = 2, .block = 32, .stream = stream};
    CHECK(allocations_of([&] { plain(config)(array, array, 3, 2.0f); }) == 0);
  }
  session.set_allocator(nullptr);
}

TEST_CASE(
    "a kernel in Kernel Python finds its specialisation for many arrays and records without heap memory") {
  struct Point {
    float x, y;
  };
  const Session session = failure::AuditedDevice::get().open_session();
  const Kernel sum = session.load_python(kPython).kernel("total");
  const auto a = session.to_device(std::vector<float>(64, 1.0f));
  const auto out = session.to_device(std::vector<float>(64));
  const auto points = session.to_device(std::vector<Point>(64, Point{2, 3}));
  const LaunchConfig config = {.grid = 2, .block = 32};
  CHECK(allocations_of([&] { sum(config)(out, a, a, a, a, a, points); }) == 0);
  CHECK(out.copy_to_host() == std::vector<float>(64, 8.0f));
}
