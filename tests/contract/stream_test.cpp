// SPDX-License-Identifier: Apache-2.0
// Section C: streams and events.
#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>

#include "suite.hpp"

using namespace quern;
using namespace quern::contract;

TEST_CASE(
    "C1: streams are new, default, legacy, per-thread or external; events record, wait, query and measure") {
  const auto data = shared().to_device(std::vector<float>(64, 0.0f));
  const Stream made = shared().stream();
  const StreamView streams[] = {made, shared().default_stream(), shared().legacy_default_stream(),
                                shared().per_thread_default_stream(),
                                shared().external_stream(made.handle())};
  for (const StreamView stream : streams) {
    kernel("add_one")({.grid = 1, .block = 64, .stream = stream})(data);
    stream.synchronize();
    CHECK(stream.query());
  }
  CHECK(data.copy_to_host()[63] == 5);
  CHECK(made.handle() != nullptr);
  CHECK(shared().external_stream(made.handle()).handle() == made.handle());

  const Event start = shared().event(), end = shared().event();
  start.record(made);
  keep_busy(made);
  end.record(made);
  CHECK_FALSE(end.query());
  const Stream other = shared().stream();
  end.wait(other);
  data(0).assign(100.0f, other.view());
  CHECK_FALSE(other.query());
  end.synchronize();
  CHECK(end.query());
  CHECK(end.elapsed_ms_since(start) > 0);
  other.synchronize();
  CHECK(data[0].item() == 100);
  const Event external = shared().external_event(end.handle());
  CHECK(external.query());
  const Event untimed = shared().event(false);
  untimed.record(made);
  untimed.synchronize();
  CHECK_THROWS_AS((void)untimed.elapsed_ms_since(start), DriverError);

  std::atomic<int> called = 0;
  keep_busy(made);
  made.add_callback([&] { ++called; });
  made.add_callback([] { throw std::runtime_error("what a callback throws goes no further"); });
  made.add_callback([] { throw 5; });
  std::future<void> done = made.async_done();
  CHECK(called == 0);
  done.get();
  CHECK(called == 1);
  CHECK(holds(message([&] { (void)OwnSession().to_device(counting_array({3}), {.stream = made.view()}); }),
              "another session"));
}

TEST_CASE("C2: synchronize waits for all commands and commits pending transfers") {
  const Stream stream = shared().stream();
  const auto data = shared().to_device(counting(1000));
  std::vector<float> host(1000, -1.0f);
  std::vector<float> argument = counting(1000);
  kernel("add_one")({.grid = 1, .block = 32})(shared().to_device(counting(1)));  // compiling takes long
  keep_busy(stream);
  kernel("add_one")({.grid = 4, .block = 256, .stream = stream})(data);
  data.copy_to_host(host, stream);
  kernel("add_one")({.grid = 4, .block = 256, .stream = stream})(argument);
  CHECK(host[0] == -1);
  CHECK(argument[0] == 0);
  stream.synchronize();
  CHECK(stream.query());
  CHECK(host[999] == 1000);
  CHECK(argument[999] == 1000);
  CHECK(holds(message([] { StreamView().synchronize(); }), "default_stream()"));
}

TEST_CASE(
    "C3: auto_synchronize waits at the scope's end, and an exception inside is neither lost nor skips it") {
  const Stream stream = shared().stream();
  const auto data = shared().to_device(std::vector<float>(100, 1.0f));
  std::vector<float> host(100);
  {
    const AutoSynchronize scope = stream.auto_synchronize();
    keep_busy(scope.stream());
    data.copy_to_host(host, scope.stream());
  }
  CHECK(host[99] == 1);
  data.assign(2.0f);
  try {
    const AutoSynchronize scope = stream.auto_synchronize();
    keep_busy(stream);
    data.copy_to_host(host, stream);
    throw std::runtime_error("inside");
  } catch (const std::runtime_error& error) {
    CHECK(std::string(error.what()) == "inside");
    CHECK(stream.query());
    CHECK(host[99] == 2);
  }
  calls().fail_call(1, CUDA_ERROR_INVALID_VALUE, "cuStreamSynchronize");
  CHECK_THROWS_AS([&] { const AutoSynchronize scope = stream.auto_synchronize(); }(), DriverError);
  calls().fail_call(1, CUDA_ERROR_INVALID_VALUE, "cuStreamSynchronize");
  CHECK_THROWS_AS(
      [&] {
        const AutoSynchronize scope = stream.auto_synchronize();
        throw std::runtime_error("inside");
      }(),
      std::runtime_error);
}

TEST_CASE(
    "C4: work on one stream is ordered, work on two may overlap: a copy does not wait for another stream's "
    "kernel") {
  const Stream slow = shared().stream(), quick = shared().stream();
  const auto data = shared().to_device(std::vector<float>(1000, -1.0f));
  // Compiling takes longer than the work that keeps the stream busy.
  kernel("add_one")({.grid = 4, .block = 256, .stream = quick})(data);
  kernel("set")({.grid = 1, .block = 32, .stream = quick})(2, data, 0.0f);
  quick.synchronize();
  keep_busy(slow);
  for (int i = 0; i < 50; ++i) kernel("add_one")({.grid = 4, .block = 256, .stream = quick})(data);
  const NDArray result = data.copy_to_host(shared().pinned_array({1000}, Dtype::float32), quick);
  quick.synchronize();
  CHECK(result.at<float>(999) == 50);
  CHECK_FALSE(slow.query());
  // The legacy default stream waits for such streams, and copies without a stream run in it. A thread's own
  // default stream waits for neither.
  const StreamView own = shared().per_thread_default_stream();
  kernel("set")({.grid = 1, .block = 32, .stream = own})(1, data, 7.0f);
  own.synchronize();
  CHECK_FALSE(slow.query());
  shared().legacy_default_stream().synchronize();
  data(1).assign(8.0f);
  CHECK(slow.query());
  CHECK(data[0].item() == 7);
  keep_busy(own);
  std::thread([&] {
    const StreamView other = shared().per_thread_default_stream();  // another stream under the same handle
    kernel("set")({.grid = 1, .block = 32, .stream = other})(1, data(Slice{2, 3}), 9.0f);
    other.synchronize();
  }).join();
  CHECK_FALSE(own.query());
  own.synchronize();
  CHECK(data[2].item() == 9);
}
