// SPDX-License-Identifier: Apache-2.0
// Time limits of launches and sessions, and cancelling of work by the host.
#include <doctest/doctest.h>
#include <quern/quern.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "../support/messages.hpp"

using namespace quern;
using namespace std::chrono_literals;
using quern::test::holds;
using quern::test::message;

namespace {

constexpr const char* kSource = R"(
extern "C" __global__ void endless(int* x) {
  x[threadIdx.x] = 7;
  for (volatile int on = 1; on;) {
  }
}
// Ends when the host sets the flag.
extern "C" __global__ void hold(const volatile int* go) {
  while (*go == 0) {
  }
}
extern "C" __global__ void sleep(int* x, unsigned nanoseconds) {
  x[threadIdx.x] = 7;
  for (volatile int on = 1; on;) __nanosleep(nanoseconds);
}
extern "C" __global__ void tell_time(int* x) {
  x[threadIdx.x] = 7;
  for (;;) asm volatile("{ .reg .u64 t; mov.u64 t, %%globaltimer; st.volatile.global.u64 [%0], t; }" ::"l"(x + 8));
}
extern "C" __global__ void swap_halves(int* x) {
  x[threadIdx.x] = 7;
  for (volatile int on = 1; on;) atomicCAS(reinterpret_cast<unsigned short*>(x + 8), 0, 0);
}
extern "C" __global__ void add(int* x) { x[threadIdx.x] += 1; }
)";

struct Bench {
  Session session;
  Module module = session.load_cuda(kSource);
  Kernel endless = module.kernel("endless"), add = module.kernel("add"), hold = module.kernel("hold");
  explicit Bench(const SessionOptions& options = {.device = "cpu", .isolated = true}) : session(options) {}

  DeviceArray<int> ones() const { return session.to_device(std::vector<int>(32, 1)); }
  static std::vector<int> values(const DeviceArray<int>& array) {
    std::vector<int> host(32);
    array.copy_to_host(host);
    return host;
  }
};

ErrorCode code_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::internal;  // nothing was thrown
}

LaunchConfig on(StreamView stream) { return {.grid = 1, .block = 32, .stream = stream}; }

/// Memory that the host accesses while a kernel runs.
struct Watched {
  MappedNDArray array;
  volatile int* const first;
  explicit Watched(const Session& session)
      : array(session.mapped_array({32}, Dtype::int32)),
        first(reinterpret_cast<volatile int*>(array.host().data())) {
    *first = 0;
  }
  /// Waits until `endless` has started on the array.
  void wait_for_kernel() const {
    while (*first != 7) std::this_thread::yield();
  }
};

}  // namespace

TEST_CASE("a cancelled stream's launches end, and stream, arrays and context go on") {
  const Bench bench;
  const Stream stream = bench.session.stream();
  const DeviceArray<int> running = bench.ones(), queued = bench.ones(), after = bench.ones();
  std::vector<int> copied(32);
  std::atomic<int> called{0};
  bench.endless(on(stream))(running);
  bench.add(on(stream))(queued);
  queued.copy_to_host(copied, stream);
  stream.add_callback([&] { ++called; });
  stream.cancel();
  stream.synchronize();  // work that was cancelled before the call is not reported
  CHECK(called == 1);
  CHECK(copied == std::vector<int>(32, 1));  // the copy ran, the launch did not
  bench.add(on(stream))(after);
  stream.synchronize();
  CHECK(Bench::values(after) == std::vector<int>(32, 2));
  CHECK(Bench::values(queued) == std::vector<int>(32, 1));
}

TEST_CASE("a kernel that is seldom in its own code is cancelled, and limited") {
  const Bench bench;
  const Stream stream = bench.session.stream();
  const Kernel sleep = bench.module.kernel("sleep");
  const DeviceArray<int> array = bench.ones();
  for (const unsigned nanoseconds : {0u, 20u, 1000u, 1000000000u}) {
    const Watched watched(bench.session);
    sleep(on(stream))(watched.array, nanoseconds);
    watched.wait_for_kernel();
    stream.cancel();
    bench.add(on(stream))(array);
    CHECK_NOTHROW(stream.synchronize());
  }
  for (const char* name : {"tell_time", "swap_halves"}) {
    const Watched watched(bench.session);
    bench.module.kernel(name)(on(stream))(watched.array);
    watched.wait_for_kernel();
    stream.cancel();
    CHECK_NOTHROW(stream.synchronize());
  }
  CHECK(Bench::values(array) == std::vector<int>(32, 5));
  sleep({.grid = 1, .block = 32, .timeout = 100ms})(array, 1000000u);
  CHECK(holds(message([&] { bench.session.synchronize(); }), "it ran for longer than 0.1 s"));
}

TEST_CASE("whoever waits for the cancelled work is told, and nobody else") {
  const Bench bench;
  const Stream cancelled = bench.session.stream(), other = bench.session.stream({.non_blocking = true});
  const Watched watched(bench.session);
  const Watched go(bench.session);
  const DeviceArray<int> array = bench.ones();
  bench.endless(on(cancelled))(watched.array);
  const Event event = bench.session.event();
  event.record(cancelled);
  bench.hold({.grid = 1, .block = 1, .stream = other})(go.array);
  std::future<void> done = cancelled.async_done(), others = other.async_done();
  const std::function<void()> waits[] = {[&] { cancelled.synchronize(); }, [&] { event.synchronize(); },
                                         [&] { Bench::values(array); }, [&] { bench.session.synchronize(); }};
  std::vector<std::future<ErrorCode>> codes;
  for (const auto& wait : waits) codes.push_back(std::async(std::launch::async, code_of, wait));
  std::future<ErrorCode> other_code =
      std::async(std::launch::async, code_of, std::function<void()>([&] { other.synchronize(); }));
  watched.wait_for_kernel();
  std::this_thread::sleep_for(
      50ms);  // by then the threads wait, or the two below start during the cancellation
  cancelled.cancel();
  *go.first = 1;
  for (std::future<ErrorCode>& code : codes) CHECK(code.get() == ErrorCode::cancelled);
  CHECK(other_code.get() == ErrorCode::internal);
  CHECK(code_of([&] { done.get(); }) == ErrorCode::cancelled);
  CHECK_NOTHROW(others.get());
  CHECK_NOTHROW(bench.session.synchronize());
  CHECK_NOTHROW(cancelled.async_done().get());
}

TEST_CASE("the default stream does not wait for a non-blocking one, so its waiters are not told of that") {
  const Bench bench;
  const Stream apart = bench.session.stream({.non_blocking = true});
  const Watched go(bench.session), watched(bench.session);
  bench.hold({.grid = 1, .block = 1})(go.array);
  bench.endless(on(apart))(watched.array);
  watched.wait_for_kernel();
  std::future<ErrorCode> of_default =
      std::async(std::launch::async, code_of, [&] { bench.session.default_stream().synchronize(); });
  std::future<ErrorCode> of_all =
      std::async(std::launch::async, code_of, [&] { bench.session.synchronize(); });
  std::this_thread::sleep_for(50ms);
  apart.cancel();
  *go.first = 1;
  CHECK(of_default.get() == ErrorCode::internal);
  CHECK(of_all.get() == ErrorCode::cancelled);
}

TEST_CASE("cancelling a stream does not wait for another stream's kernel, whatever is to be released") {
  const Bench bench;
  const Stream stream = bench.session.stream({.non_blocking = true}),
               other = bench.session.stream({.non_blocking = true});
  bench.endless(on(other))(bench.ones());
  std::vector<std::vector<int>> host(20, std::vector<int>(32, 1));  // more than may be pending
  const Watched go(bench.session);
  std::atomic<bool> done{false};
  bench.hold(on(stream))(go.array);
  for (std::vector<int>& values : host) bench.add(on(stream))(values);
  stream.add_callback([&] { done = true; });
  *go.first = 1;
  while (!done) std::this_thread::yield();
  stream.cancel();
  CHECK_FALSE(other.query());
  other.cancel();
  bench.session.synchronize();
}

TEST_CASE("copies that need a kernel run behind cancelled launches") {
  const Bench bench;
  const Stream stream = bench.session.stream();
  const Session& session = bench.session;
  const DeviceNDArray square = session.device_array({32, 32}, Dtype::int32);
  square.assign(3);
  const NDArray zeros({32, 32}, Dtype::int32);
  zeros.assign(0);
  const NDArray column({32}, Dtype::int32);
  const auto behind_cancelled = [&](const std::function<void()>& queue) {
    bench.endless(on(stream))(session.device_array({32}, Dtype::int32));
    queue();
    stream.cancel();
    session.synchronize();
  };
  behind_cancelled([&] { square(Slice{}, 3).copy_to_host(column, stream); });
  CHECK(column.at<int>(17) == 3);
  behind_cancelled([&] { square.assign(8, stream); });
  CHECK(square(5, 5).item<int>() == 8);
  behind_cancelled(
      [&] { square(Slice{}, Slice{{}, {}, 2}).copy_to_device(zeros(Slice{}, Slice{{}, {}, 2}), stream); });
  CHECK(square(5, 4).item<int>() == 0);
  CHECK(square(5, 5).item<int>() == 8);
  behind_cancelled([&] { square(Slice{}, 1).assign(square(Slice{}, 0), stream); });
  CHECK(square(31, 1).item<int>() == 0);
}

TEST_CASE("the default stream is cancelled as any other") {
  const Bench bench;
  const DeviceArray<int> array = bench.ones();
  const Watched watched(bench.session);
  bench.endless({.grid = 1, .block = 32})(watched.array);
  watched.wait_for_kernel();
  bench.session.default_stream().cancel();
  bench.add({.grid = 1, .block = 32})(array);
  CHECK(Bench::values(array) == std::vector<int>(32, 2));
}

TEST_CASE("cancelling a session ends its own context's launches") {
  const Bench one, other;
  const Stream first = one.session.stream(), second = one.session.stream({.non_blocking = true});
  const Watched go(other.session);
  const DeviceArray<int> array = other.ones();
  const Watched on_first(one.session), on_second(one.session);
  one.endless(on(first))(on_first.array);
  one.endless(on(second))(on_second.array);
  one.session.cancel();
  CHECK_NOTHROW(one.session.synchronize());
  other.hold({.grid = 1, .block = 1})(go.array);
  other.add({.grid = 1, .block = 32})(array);
  one.session.cancel();
  *go.first = 1;
  CHECK(Bench::values(array) == std::vector<int>(32, 2));
}

TEST_CASE("a stream is cancelled again and again while other threads launch on it and wait for it") {
  const Bench bench;
  const Stream stream = bench.session.stream();
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      const DeviceArray<int> array = bench.ones();
      while (!stop) {
        const ErrorCode code = code_of([&] {
          if (t == 0) bench.endless(on(stream))(array);
          if (t != 0) bench.add(on(stream))(array);
          stream.synchronize();
        });
        if (code != ErrorCode::internal && code != ErrorCode::cancelled) ++wrong;
      }
    });
  for (int i = 0; i < 200; ++i) stream.cancel();
  stop = true;
  for (std::thread& thread : threads) {
    while (thread.joinable()) {
      std::future<void> joined = std::async(std::launch::async, [&] { thread.join(); });
      while (joined.wait_for(1ms) != std::future_status::ready) stream.cancel();
    }
  }
  CHECK(wrong == 0);
  const DeviceArray<int> array = bench.ones();
  bench.add(on(stream))(array);
  stream.synchronize();
  CHECK(Bench::values(array) == std::vector<int>(32, 2));
}

TEST_CASE(
    "a launch that runs longer than its limit ends with its context, and the error says which and why") {
  const Bench bench, neighbour;
  const DeviceArray<int> array = bench.ones(), others = neighbour.ones();
  bench.add({.grid = 1, .block = 32, .timeout = 10s})(array);
  CHECK(Bench::values(array) == std::vector<int>(32, 2));
  bench.endless({.grid = 1, .block = 32, .timeout = 100ms})(array);
  try {
    bench.session.synchronize();
    FAIL("the kernel never ends");
  } catch (const DriverError& error) {
    CHECK(error.code() == ErrorCode::device_fault);
    CHECK(error.result_name() == "CUDA_ERROR_LAUNCH_TIMEOUT");
    CHECK(holds(error.what(), "by kernel endless (grid (1,1,1), block (32,1,1))"));
    CHECK(holds(error.what(), "it ran for longer than 0.1 s"));
    CHECK(error.fault().kernel == "endless");
  }
  neighbour.add({.grid = 1, .block = 32})(others);
  CHECK(Bench::values(others) == std::vector<int>(32, 2));
}

TEST_CASE("a session's limit holds for launches that have none") {
  const Bench bench({.device = "cpu", .isolated = true, .launch_timeout = 100ms});
  const Watched go(bench.session);
  bench.hold({.grid = 1, .block = 1, .timeout = 1h})(go.array);
  std::this_thread::sleep_for(300ms);
  *go.first = 1;
  CHECK_NOTHROW(bench.session.synchronize());
  bench.endless({.grid = 1, .block = 32})(bench.ones());
  CHECK(holds(message([&] { bench.session.synchronize(); }), "it ran for longer than 0.1 s"));
}

TEST_CASE("limits that are none are refused") {
  const Bench bench;
  const DeviceArray<int> array = bench.ones();
  CHECK(holds(message([&] { bench.add({.grid = 1, .block = 32, .timeout = -1ns})(array); }), "negative"));
  CHECK(holds(message([&] { Session({.device = "cpu", .launch_timeout = -1s}); }), "negative"));
  CHECK(code_of([] { StreamView().cancel(); }) == ErrorCode::usage);
}
