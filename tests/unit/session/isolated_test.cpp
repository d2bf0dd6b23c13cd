// SPDX-License-Identifier: Apache-2.0
// Sessions with separate contexts: which sessions a fault ends, and which objects remain valid.
#include <doctest/doctest.h>
#include <quern/quern.hpp>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "../support/messages.hpp"
#include "../support/small_kernels.hpp"

using namespace quern;
using quern::test::holds;
using quern::test::kSmallKernels;
using quern::test::message;

namespace {

const SessionOptions kIsolated{.device = "cpu", .isolated = true};

void end_by_fault(const Session& session) {
  session.load_ptx(kSmallKernels).kernel("wild")({.grid = 1, .block = 32})();
  CHECK_THROWS_AS(session.synchronize(), DriverError);
}

std::vector<std::uint32_t> after_one_launch(const Session& session, const DeviceArray<std::uint32_t>& array) {
  session.load_ptx(kSmallKernels).kernel("add")({.grid = 1, .block = 32})(array);
  std::vector<std::uint32_t> values(32);
  array.copy_to_host(values);
  return values;
}

}  // namespace

TEST_CASE("a lost session's modules give no kernels") {
  const Session session(kIsolated);
  const Module module = session.load_ptx(kSmallKernels);
  static_cast<void>(module.kernel("add"));
  end_by_fault(session);
  for (const char* name : {"add", "wild", "missing"}) {
    try {
      static_cast<void>(module.kernel(name));
      FAIL("nothing was thrown");
    } catch (const DriverError& error) {
      CHECK(error.code() == ErrorCode::device_fault);
    }
  }
  CHECK_THROWS_AS(static_cast<void>(module.kernel()), DriverError);
}

TEST_CASE("the code of a kernel's block shapes takes few mappings of the process") {
  const auto mappings = [] {
    std::ifstream file("/proc/self/maps");
    return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
  };
  const Session session(kIsolated);
  const Kernel add = session.load_ptx(kSmallKernels).kernel("add");
  const auto array = session.device_array<std::uint32_t>(256);
  const auto launch = [&](std::uint32_t threads) { add({.grid = 1, .block = threads})(array); };
  launch(32);
  session.synchronize();
  const auto before = mappings();
  for (std::uint32_t threads = 33; threads < 133; ++threads) launch(threads);
  session.synchronize();
  CHECK(mappings() - before < 100);  // with one mapping each for code and constants there would be 200
}

TEST_CASE("a fault of an isolated session ends that session alone") {
  const Session shared("cpu");
  const Session one(kIsolated), other(kIsolated);
  const std::vector<std::uint32_t> fives(32, 5);
  const auto in_shared = shared.to_device(fives), in_one = one.to_device(fives),
             in_other = other.to_device(fives);
  end_by_fault(one);
  const std::vector<std::uint32_t> sixes(32, 6);
  CHECK(after_one_launch(shared, in_shared) == sixes);
  CHECK(after_one_launch(other, in_other) == sixes);
  const std::string refusal = message([&] { (void)in_one.copy_to_host(); });
  CHECK(holds(refusal, "CUDA_ERROR_ILLEGAL_ADDRESS"));
  const Session again(kIsolated);
  CHECK(after_one_launch(again, again.to_device(fives)) == sixes);
  CHECK_THROWS_AS(one.synchronize(), DriverError);
}

TEST_CASE("a fault in the primary context does not reach isolated sessions") {
  const Session isolated(kIsolated);
  const auto array = isolated.to_device(std::vector<std::uint32_t>(32, 1));
  {
    const Session shared("cpu");
    end_by_fault(shared);
  }
  const Session next("cpu");  // resets the primary context
  CHECK(after_one_launch(isolated, array) == std::vector<std::uint32_t>(32, 2));
}

TEST_CASE("an isolated session gives all its memory back, also after a fault") {
  const Session shared("cpu");
  const std::size_t before = shared.free_memory_bytes();
  for (const bool faulty : {false, true}) {
    const Session isolated(kIsolated);
    const auto array = isolated.to_device(std::vector<std::uint32_t>(100000, 1));
    const NDArray pinned = isolated.pinned_array({100000}, Dtype::float32);
    CHECK(shared.free_memory_bytes() < before);
    if (faulty) end_by_fault(isolated);
  }
  CHECK(shared.free_memory_bytes() == before);
}

TEST_CASE("host memory of a lost session stays readable while its arrays live") {
  NDArray pinned;
  {
    const Session session("cpu");
    pinned = session.pinned_array({1000}, Dtype::uint32);
    for (std::size_t i = 0; i < 1000; ++i) pinned.at<std::uint32_t>(i) = static_cast<std::uint32_t>(i);
    end_by_fault(session);
  }
  const Session next("cpu");
  const NDArray other = next.pinned_array({1000}, Dtype::uint32);
  for (std::size_t i = 0; i < 1000; ++i) other.at<std::uint32_t>(i) = 0;
  for (std::size_t i = 0; i < 1000; ++i) CHECK(pinned.at<std::uint32_t>(i) == i);
}

TEST_CASE("a fault ends what else runs in its context, without end as it may be") {
  const Session session(kIsolated);
  const Module module = session.load_ptx(kSmallKernels);
  const Stream one = session.stream(), other = session.stream();
  module.kernel("endless")({.grid = 1, .block = 32, .stream = one})();
  module.kernel("wild")({.grid = 1, .block = 32, .stream = other})();
  CHECK_THROWS_AS(other.synchronize(), DriverError);
  CHECK_THROWS_AS(one.synchronize(), DriverError);
}

TEST_CASE("isolated sessions keep apart what they have") {
  const Session one(kIsolated), other(kIsolated);
  const auto array = one.to_device(std::vector<std::uint32_t>(32, 1));
  const std::string refusal =
      message([&] { other.load_ptx(kSmallKernels).kernel("add")({.grid = 1, .block = 32})(array); });
  CHECK(holds(refusal, "another session"));
  CHECK(holds(message([] {
                const Session wrong({.device = "cpu", .context = ContextChoice::current, .isolated = true});
              }),
              "isolated"));
}

TEST_CASE("arrays that another session cannot use are refused at their import as well") {
  const Session shared("cpu"), again("cpu"), one(kIsolated), other(kIsolated);
  const std::vector<std::uint32_t> ones(32, 1);
  const MappedOptions portable{.portable = true};
  const auto taken = [](const Session& by, const DeviceNDArray& array) {
    const std::string refusal = message([&] { (void)by.as_cuda_array(array); });
    CHECK(message([&] { (void)from_dlpack(by, to_dlpack(array)); }) == refusal);
    return refusal;
  };
  const DeviceNDArray in_shared = shared.to_device(ones), in_one = one.to_device(ones);
  const DeviceNDArray pooled = [&] {
    one.set_allocator(one.caching_pool());
    return one.to_device(ones);
  }();
  const DeviceNDArray mapped = one.mapped_array({32}, Dtype::uint32);
  const DeviceNDArray refused[] = {in_shared, in_one, pooled, mapped};
  for (const DeviceNDArray& array : refused) {
    CHECK(holds(taken(other, array), "it belongs to another session"));
    CHECK(holds(taken(other, array), "a portable mapped_array()"));
  }
  CHECK(holds(taken(shared, in_one), "another session"));
  CHECK(holds(message([&] { other.to_device(ones).copy_to_device(to_dlpack(in_one)); }), "another session"));
  CHECK(taken(again, in_shared).empty());
  CHECK(taken(one, in_one).empty());
  CHECK(taken(other, one.mapped_array({32}, Dtype::uint32, portable)).empty());
  CHECK(taken(other, one.managed_array({32}, Dtype::uint32)).empty());
  CHECK(taken(other, shared.managed_array({32}, Dtype::uint32)).empty());
}
