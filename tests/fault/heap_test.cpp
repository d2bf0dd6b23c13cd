// SPDX-License-Identifier: Apache-2.0
// What needs no heap memory: launches after the first, views of arrays.
#include <doctest/doctest.h>
#include <quern/quern.hpp>

#include <functional>
#include <tuple>

#include "host_memory.hpp"

using namespace quern;

namespace {

constexpr const char* kPtx = R"(.version 6.0
.target sm_50
.address_size 64
.visible .entry plain(.param .u64 x, .param .u64 y, .param .u32 n, .param .f32 a) { ret; }
.visible .entry pair(.param .align 8 .b8 p[16]) { ret; }
.visible .entry four(.param .align 8 .b8 a[40], .param .align 8 .b8 b[40], .param .align 8 .b8 c[40],
                     .param .align 8 .b8 d[40]) { ret; }
)";

/// Allocations by this thread in the second of two calls. The CPU device's own count as well.
std::uint64_t allocations_of(const std::function<void()>& action) {
  action();
  const fault::ShortOfMemory scope(0);
  action();
  return fault::ShortOfMemory::count();
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
  const Session session("cpu");
  const Module module = session.load_ptx(kPtx);
  const Kernel plain = module.kernel("plain"), pair = module.kernel("pair"), four = module.kernel("four");
  const DeviceNDArray array = session.device_array({8, 8}, Dtype::float32);
  const Stream stream = session.stream();
  const LaunchConfig config = {.grid = 0, .block = 32, .stream = stream};  // all of it but the driver's call
  CHECK(allocations_of([&] { plain(config)(array, nullptr, 3, 2.0); }) == 0);
  CHECK(allocations_of([&] { pair(config)(std::tuple(1, 2.0)); }) == 0);
  CHECK(allocations_of([&] { four(config)(array, array, array(Slice{0, 4}), array.transpose()); }) == 0);
  CHECK(allocations_of([&] { plain.for_all(0)(array, array, 3, 2.0f); }) == 0);
}
