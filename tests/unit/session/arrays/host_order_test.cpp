// SPDX-License-Identifier: Apache-2.0
// A host array that queued work will fill is passed to further work: the values arrive first, as in CUDA,
// where a copy to pageable memory is complete when its call returns.
#include <cuda.h>
#include <doctest/doctest.h>
#include <quern/quern.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "../../support/messages.hpp"
#include "../../support/small_kernels.hpp"

using namespace quern;
using namespace std::chrono_literals;
using quern::test::holds;
using quern::test::kSmallKernels;
using quern::test::message;

namespace {

constexpr std::int64_t kCount = 100;

struct Bench {
  Session session = Session({.device = "cpu", .isolated = true});
  Module module = session.load_ptx(kSmallKernels);
  Kernel add = module.kernel("add");

  DeviceNDArray filled(int value) const {
    DeviceNDArray array = session.device_array({kCount}, Dtype::int32);
    array.assign(value);
    return array;
  }
  static LaunchConfig on(StreamView stream, unsigned threads = kCount) {
    return {.grid = 1, .block = threads, .stream = stream};
  }
  template <class F>
  F* driver(const char* name) const {
    return reinterpret_cast<F*>(driver_function(session.device(), name));
  }
};

/// Stops a stream. A thread opens it again: at once when requested, otherwise after some time, so that calls
/// may wait for the stream's work. A call that does not wait has returned by then.
class Hold {
 public:
  Hold(const Bench& bench, StreamView stream)
      : flag_(bench.session.mapped_array({1}, Dtype::int32)), kernel_(bench.module.kernel("hold")) {
    flag_.host().assign(0);
    kernel_({.grid = 1, .block = 1, .stream = stream})(flag_);
  }
  ~Hold() {
    open();
    if (opener_.joinable()) opener_.join();
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  void open_later() {
    opener_ = std::thread([this] {
      std::this_thread::sleep_for(100ms);
      open();
    });
  }
  void open() const { *reinterpret_cast<volatile int*>(flag_.host().data()) = 1; }

 private:
  MappedNDArray flag_;
  Kernel kernel_;
  std::thread opener_;
};

NDArray host_array(int value) {
  NDArray array({kCount}, Dtype::int32);
  array.assign(value);
  return array;
}
int first(const DeviceNDArray& array) { return array(0).item<int>(); }
int last(const DeviceNDArray& array) { return array(-1).item<int>(); }

/// Two launches on one stream. The second one changes only the first half.
template <class Array>
void launch_twice(const Bench& bench, StreamView stream, Array& array) {
  Hold hold(bench, stream);
  bench.add(Bench::on(stream))(array);
  hold.open_later();
  bench.add(Bench::on(stream, kCount / 2))(array);
  bench.session.synchronize();
}

}  // namespace

TEST_CASE("a host array is given to two launches on one stream") {
  const Bench bench;
  const Stream stream = bench.session.stream(), apart = bench.session.stream({.non_blocking = true});
  const StreamView streams[] = {stream, apart, bench.session.default_stream(),
                                bench.session.legacy_default_stream(),
                                bench.session.per_thread_default_stream()};
  for (const StreamView on : streams) {
    std::vector<int> vector(kCount, 1);
    launch_twice(bench, on, vector);
    CHECK(vector.front() == 3);
    CHECK(vector.back() == 2);
    NDArray owning = host_array(1);
    launch_twice(bench, on, owning);
    CHECK(owning.at<int>(0) == 3);
    CHECK(owning.at<int>(kCount - 1) == 2);
    NDArray pinned = bench.session.pinned_array({kCount}, Dtype::int32);
    pinned.assign(1);
    launch_twice(bench, on, pinned);
    CHECK(pinned.at<int>(0) == 3);
    CHECK(pinned.at<int>(kCount - 1) == 2);
  }
}

TEST_CASE("a launch without a stream follows one on a stream that it is not ordered with") {
  const Bench bench;
  const Stream apart = bench.session.stream({.non_blocking = true});
  std::vector<int> values(kCount, 1);
  {
    Hold hold(bench, apart);
    bench.add(Bench::on(apart))(values);
    hold.open_later();
    bench.add({.grid = 1, .block = kCount})(values);
    apart.synchronize();
  }
  CHECK(values == std::vector<int>(kCount, 3));
}

TEST_CASE("a host array passes values from one device array to another") {
  const Bench bench;
  const DeviceNDArray from = bench.filled(5), to = bench.filled(0);
  const NDArray host = host_array(1);
  const auto pass = [&](StreamView stream, const NDArray& target, const std::function<void()>& take) {
    host.assign(1);
    to.assign(0);
    Hold hold(bench, stream);
    from(Slice{0, target.size()}).copy_to_host(target, stream);
    hold.open_later();
    take();
    bench.session.synchronize();
  };
  const Stream stream = bench.session.stream(), apart = bench.session.stream({.non_blocking = true}),
               other = bench.session.stream();
  SUBCASE("on one stream") {
    pass(stream, host, [&] { to.copy_to_device(host, stream); });
    CHECK(first(to) == 5);
    CHECK(last(to) == 5);
  }
  SUBCASE("on another stream, which waits for the first") {
    const Event event = bench.session.event();
    pass(stream, host, [&] {
      event.record(stream);
      event.wait(other);
      to.copy_to_device(host, other);
    });
    CHECK(last(to) == 5);
  }
  SUBCASE("the second copy at once") {
    pass(apart, host, [&] { to.copy_to_device(host); });
    CHECK(last(to) == 5);
  }
  SUBCASE("the second copy at once, of a view with gaps") {
    pass(stream, host, [&] { to(Slice{0, 50}).copy_to_device(host(Slice{0, {}, 2})); });
    CHECK(to(49).item<int>() == 5);
    CHECK(last(to) == 0);
  }
  SUBCASE("views overlap partly") {
    pass(stream, host(Slice{40, 60}), [&] { to(Slice{0, 50}).copy_to_device(host(Slice{50, 100}), stream); });
    CHECK(to(9).item<int>() == 5);
    CHECK(to(10).item<int>() == 1);
  }
  SUBCASE("every other element, backwards, which the copy fills one by one") {
    pass(stream, host(Slice{{}, {}, -2}), [&] { to.copy_to_device(host, stream); });
    CHECK(to(99).item<int>() == 5);
    CHECK(to(1).item<int>() == 5);
    CHECK(first(to) == 1);
  }
  SUBCASE("to a variable of a module") {
    const auto table = bench.module.global<int[]>("table");
    const std::span<const int> values = host.values<int>();
    pass(stream, host, [&] { table.copy_from_host(values, stream); });
    std::vector<int> back(kCount);
    table.copy_to_host(back);
    CHECK(back == std::vector<int>(kCount, 5));
  }
  SUBCASE("to every element of an array") {
    pass(stream, host(Slice{0, 1}), [&] { to.assign(host(Slice{0, 1}), stream); });
    CHECK(last(to) == 5);
  }
  SUBCASE("by a SmartArray of it") {
    const SmartArray smart = bench.session.smart_array(host, false);
    pass(apart, host, [&] { bench.add({.grid = 1, .block = kCount})(smart); });
    CHECK(smart.host().at<int>(0) == 6);
  }
}

TEST_CASE("of two copies into one host array the later call's values stay") {
  const Bench bench;
  const Stream stream = bench.session.stream(), other = bench.session.stream(),
               apart = bench.session.stream({.non_blocking = true});
  const NDArray host = host_array(1);
  const DeviceNDArray early = bench.filled(5), late = bench.filled(6);
  const auto copy_twice = [&](StreamView first, const std::function<void()>& copy_late) {
    host.assign(1);
    Hold hold(bench, first);
    early.copy_to_host(host, first);
    hold.open_later();
    copy_late();
    bench.session.synchronize();
    CHECK(host.at<int>(0) == 6);
    CHECK(host.at<int>(kCount - 1) == 6);
  };
  copy_twice(stream, [&] { late.copy_to_host(host, other); });
  copy_twice(apart, [&] { late.copy_to_host(host, stream); });
  copy_twice(apart, [&] {
    late.copy_to_host(host);
    CHECK(host.at<int>(0) == 6);
  });
  copy_twice(stream, [&] { late.copy_to_host(host(Slice{{}, {}, -1}), apart); });
  copy_twice(stream, [&] { late.copy_to_host(host, bench.session.per_thread_default_stream()); });
}

TEST_CASE("a launch that only writes a host array follows earlier copies into it") {
  const Bench bench;
  const Stream stream = bench.session.stream(), other = bench.session.stream();
  const NDArray host = host_array(1);
  const DeviceNDArray early = bench.filled(5);
  Hold hold(bench, stream);
  early.copy_to_host(host, stream);
  hold.open_later();
  bench.module.kernel("fill")(Bench::on(other))(Out(host), 7);
  bench.session.synchronize();
  CHECK(host.at<int>(0) == 7);
}

TEST_CASE("a SmartArray that copies host memory copies what is queued into it") {
  const Bench bench;
  const Stream apart = bench.session.stream({.non_blocking = true});
  const NDArray host = host_array(1);
  Hold hold(bench, apart);
  bench.filled(5).copy_to_host(host, apart);
  hold.open_later();
  const std::span<int> values = host.values<int>();
  CHECK(bench.session.smart_array(NDArray::view(values)).host().at<int>(0) == 5);
}

TEST_CASE("a SmartArray of host memory comes back from a stream that the default stream does not wait for") {
  const Bench bench;
  const Stream apart = bench.session.stream({.non_blocking = true});
  const NDArray host = host_array(5);
  const SmartArray smart = bench.session.smart_array(host, false);
  Hold hold(bench, apart);
  hold.open_later();
  bench.add(Bench::on(apart))(smart);
  CHECK(smart.host().at<int>(0) == 6);
}

TEST_CASE("page-locked memory that the device fills itself is read after that") {
  const Bench bench;
  const Stream stream = bench.session.stream();
  const NDArray pinned = bench.session.pinned_array({kCount}, Dtype::int32);
  pinned.assign(1);
  const DeviceNDArray from = bench.filled(5), to = bench.filled(0);
  Hold hold(bench, stream);
  from.copy_to_host(pinned, stream);
  hold.open_later();
  const std::span<int> values = pinned.values<int>();
  to.copy_to_device(NDArray::view(values), stream);
  stream.synchronize();
  CHECK(last(to) == 5);
}

TEST_CASE("page-locked memory is copied on its stream, and nobody waits") {
  const Bench bench;
  const Stream stream = bench.session.stream();
  const NDArray pinned = bench.session.pinned_array({kCount}, Dtype::int32);
  pinned.assign(1);
  const DeviceNDArray from = bench.filled(5), to = bench.filled(0);
  const Hold hold(bench, stream);
  from.copy_to_host(pinned, stream);
  to.copy_to_device(pinned, stream);
  CHECK_FALSE(stream.query());
  hold.open();
  stream.synchronize();
  CHECK(last(to) == 5);
}

TEST_CASE("what lies beside the memory, and what is queued after the copy, is not waited for") {
  const Bench bench;
  const Stream stream = bench.session.stream(), apart = bench.session.stream({.non_blocking = true});
  const NDArray host = host_array(1);
  const DeviceNDArray from = bench.filled(5), to = bench.filled(0);
  from(Slice{50, 100}).copy_to_host(host(Slice{50, 100}), apart);
  const Hold later(bench, apart);
  to.copy_to_device(host, stream);  // would never return
  from(Slice{50, 100}).copy_to_host(host(Slice{50, 100}), apart);
  to(Slice{0, 50}).copy_to_device(host(Slice{0, 50}), stream);
  stream.synchronize();
  CHECK(first(to) == 1);
  CHECK(last(to) == 5);
  CHECK_FALSE(apart.query());
}

TEST_CASE("a stream that is destroyed before its copy has run is waited for") {
  const Bench bench;
  CUcontext popped = nullptr;
  CUstream mine = nullptr;
  REQUIRE(bench.driver<decltype(cuCtxPushCurrent_v2)>("cuCtxPushCurrent_v2")(
              static_cast<CUcontext>(bench.session.native_context())) == CUDA_SUCCESS);
  REQUIRE(bench.driver<decltype(cuStreamCreate)>("cuStreamCreate")(&mine, CU_STREAM_NON_BLOCKING) ==
          CUDA_SUCCESS);
  const NDArray host = host_array(1);
  const DeviceNDArray from = bench.filled(5), to = bench.filled(0);
  const StreamView stream = bench.session.external_stream(mine);
  Hold hold(bench, stream);
  from.copy_to_host(host, stream);
  CHECK(bench.driver<decltype(cuStreamDestroy_v2)>("cuStreamDestroy_v2")(mine) == CUDA_SUCCESS);
  CHECK(bench.driver<decltype(cuCtxPopCurrent_v2)>("cuCtxPopCurrent_v2")(&popped) == CUDA_SUCCESS);
  hold.open_later();
  to.copy_to_device(host);
  CHECK(last(to) == 5);
}

TEST_CASE("a fault of the work that was to fill a host array shows in the call that reads it") {
  const Bench bench;
  const Stream stream = bench.session.stream();
  const NDArray host = host_array(1);
  const DeviceNDArray from = bench.filled(5), to = bench.filled(0);
  Hold hold(bench, stream);
  bench.module.kernel("wild")(Bench::on(stream))();
  from.copy_to_host(host, stream);
  hold.open_later();
  CHECK(holds(message([&] { to.copy_to_device(host, stream); }), "CUDA_ERROR_ILLEGAL_ADDRESS"));
}

TEST_CASE("cancelled work that was to fill a host array is reported to the call that reads it") {
  const Bench bench;
  const Stream stream = bench.session.stream();
  const NDArray host = host_array(1);
  const DeviceNDArray from = bench.filled(5), to = bench.filled(0);
  bench.module.kernel("endless")({.grid = 1, .block = 1, .stream = stream})();
  from.copy_to_host(host, stream);
  std::thread canceller([&] {
    std::this_thread::sleep_for(100ms);
    stream.cancel();
  });
  CHECK(holds(message([&] { to.copy_to_device(host, stream); }), "cancelled"));
  canceller.join();
}
