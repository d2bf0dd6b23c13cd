// SPDX-License-Identifier: Apache-2.0
#include "runtime/array/buffer.hpp"

#include <doctest/doctest.h>

#include <numeric>
#include <string>
#include <vector>

#include "tests/unit/support/fake_driver.hpp"

#include "../support/messages.hpp"

using namespace quern;
using quern::test::FakeDriver;
using quern::test::holds;
using quern::test::message;

TEST_CASE("the last reference to a buffer schedules its release, and the context's end releases it") {
  FakeDriver fake;
  {
    const auto context = fake.context();
    DeviceBuffer buffer = runtime::make_buffer(context, 100);
    DeviceBuffer copy = buffer;
    buffer = {};
    CHECK(context->resources().queue().pending_count() == 0);
    copy = {};
    CHECK(context->resources().queue().pending_count() == 1);
    CHECK(fake.released.empty());
  }
  CHECK(fake.released == std::vector<std::string>{"memory"});
  CHECK(fake.retained == 0);
  CHECK(fake.used_bytes == 0);
}

TEST_CASE("out of memory releases what waits and tries again") {
  FakeDriver fake;
  const auto context = fake.context();
  const auto half = fake.total_bytes / 8;
  for (int i = 0; i < 20; ++i) CHECK(runtime::make_buffer(context, half).size_bytes() == half);
}

TEST_CASE("memory that is truly exhausted is an OutOfMemory with the sizes") {
  FakeDriver fake;
  const auto context = fake.context();
  const DeviceBuffer held = runtime::make_buffer(context, 1000);
  try {
    runtime::make_buffer(context, fake.total_bytes);
    FAIL("nothing was thrown");
  } catch (const OutOfMemory& error) {
    CHECK(error.code() == ErrorCode::out_of_memory);
    CHECK(error.requested_bytes() == fake.total_bytes);
    CHECK(error.free_bytes() == fake.total_bytes - 1000);
    CHECK(error.total_bytes() == fake.total_bytes);
    CHECK(holds(error.what(), std::to_string(fake.total_bytes)));
  }
}

TEST_CASE("nothing is released for out-of-memory while cleanup is deferred") {
  FakeDriver fake;
  const auto context = fake.context();
  context->resources().queue().defer();
  runtime::make_buffer(context, fake.total_bytes / 2 + 1);
  CHECK_THROWS_AS(runtime::make_buffer(context, fake.total_bytes / 2 + 1), OutOfMemory);
  context->resources().queue().resume();
  CHECK_NOTHROW(runtime::make_buffer(context, fake.total_bytes / 2 + 1));
}

TEST_CASE(
    "staging blocks too stay while cleanup is deferred: out of memory, and those that are too large to "
    "keep") {
  FakeDriver fake;
  fake.total_bytes = std::size_t{100} << 20;
  const std::size_t large = std::size_t{70} << 20;
  const auto context = fake.context();
  const DeviceBuffer buffer = runtime::make_buffer(context, large);
  const std::vector<std::byte> values(large);
  const auto send = [&](std::size_t bytes) {
    buffer.copy_from_host(std::span(values).first(bytes), 0, StreamView());
    fake.run_host_functions();
    context->work().reap();
  };
  context->defer();
  context->defer();
  send(1000);
  send(large);
  CHECK(fake.host_frees == 0);
  CHECK_THROWS_AS(runtime::make_buffer(context, fake.total_bytes), OutOfMemory);
  CHECK(fake.host_frees == 0);
  context->resume();
  CHECK(fake.host_frees == 0);
  context->resume();
  CHECK(fake.host_frees == 1);  // it is larger than the blocks that the pool keeps
  CHECK_THROWS_AS(runtime::make_buffer(context, fake.total_bytes), OutOfMemory);
  CHECK(fake.host_frees == 2);
  send(large);
  CHECK(fake.host_frees == 3);
}

TEST_CASE("values survive the way to the device and back") {
  FakeDriver fake;
  const auto context = fake.context();
  std::vector<int> values(100);
  std::iota(values.begin(), values.end(), 0);
  const DeviceArray<int> array(runtime::make_buffer(context, 400), {100});
  array.copy_from_host(values);
  CHECK(array.copy_to_host() == values);
  CHECK_FALSE(fake.current);
}

TEST_CASE("a copy that does not fit names both sides") {
  FakeDriver fake;
  const auto context = fake.context();
  const DeviceArray<int> array(runtime::make_buffer(context, 400), {100});
  const std::string text = message([&] { array.copy_from_host(std::vector<int>(99)); });
  CHECK(holds(text, "int32 with shape (100,)"));
  CHECK(holds(text, "400"));
  CHECK(holds(text, "396"));
  CHECK(holds(message([&] { array.buffer().copy_from_host(std::vector<std::byte>(8), 396); }), "offset 396"));
}

TEST_CASE("a copy on a stream is staged: the source may go before it has run") {
  FakeDriver fake;
  const auto context = fake.context();
  const DeviceArray<int> array(runtime::make_buffer(context, 12), {3});
  array.copy_from_host(std::vector<int>{1, 2, 3}, StreamView());
  CHECK(fake.host_functions.size() == 1);
  fake.run_host_functions();
  CHECK(array.copy_to_host() == std::vector<int>{1, 2, 3});
}

TEST_CASE("filling a buffer without a stream waits for it") {
  FakeDriver fake;
  const auto context = fake.context();
  const DeviceBuffer buffer = runtime::make_buffer(context, 12);
  buffer.fill(std::byte{7});
  CHECK(fake.stream_waits == 1);  // of device memory cuMemsetD8 only queues
  std::vector<std::byte> bytes(12);
  buffer.copy_to_host(bytes);
  CHECK(bytes == std::vector<std::byte>(12, std::byte{7}));
}

TEST_CASE("arrays of no elements and of rank 0 are legal") {
  FakeDriver fake;
  const auto context = fake.context();
  const DeviceArray<float> empty(runtime::make_buffer(context, 0), {0, 5});
  CHECK(empty.size() == 0);
  CHECK(empty.data() == nullptr);
  CHECK(empty.copy_to_host().empty());
  empty.copy_from_host({});
  const DeviceArray<float> scalar(runtime::make_buffer(context, 4), {});
  CHECK(scalar.size() == 1);
  CHECK(scalar.ndim() == 0);
  CHECK(fake.memory.size() == 1);
}

TEST_CASE("strides are those of C order, in bytes") {
  FakeDriver fake;
  const auto context = fake.context();
  const DeviceArray<double> array(runtime::make_buffer(context, 2 * 3 * 4 * 8), {2, 3, 4});
  const std::vector<std::int64_t> strides(array.strides_bytes().begin(), array.strides_bytes().end());
  CHECK(strides == std::vector<std::int64_t>{96, 32, 8});
}

TEST_CASE("a failing release is reported and does not stop the next") {
  FakeDriver fake;
  {
    const auto context = fake.context();
    fake.free_result = CUDA_ERROR_INVALID_VALUE;
    runtime::make_buffer(context, 10);
    runtime::make_buffer(context, 10);
  }
  CHECK(fake.released == std::vector<std::string>{"memory"});
}
