// SPDX-License-Identifier: Apache-2.0
#include "runtime/context/stream.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "quern/error.hpp"
#include "runtime/array/buffer.hpp"
#include "runtime/context/module.hpp"
#include "tests/unit/support/fake_driver.hpp"

using namespace quern;
using quern::test::FakeDriver;

TEST_CASE("a dropped stream, event and module wait in the queue and are released in order") {
  FakeDriver fake;
  {
    const auto context = fake.context();
    {
      const Stream stream = runtime::make_stream(context);
    }
    {
      const Event event = runtime::make_event(context);
    }
    {
      const runtime::LoadOutcome outcome = runtime::load_image(context, "ptx");
    }
    CHECK(context->resources().queue().pending_count() == 3);
    CHECK(fake.released.empty());
  }
  CHECK(fake.released == std::vector<std::string>{"stream", "event", "module"});
}

TEST_CASE("assigning over an owner schedules what it held") {
  FakeDriver fake;
  const auto context = fake.context();
  Stream stream = runtime::make_stream(context);
  stream = runtime::make_stream(context);
  CHECK(context->resources().queue().pending_count() == 1);
}

TEST_CASE("what lives in a context keeps it alive") {
  FakeDriver fake;
  {
    Stream stream = runtime::make_stream(fake.context());
    CHECK(fake.retained == 1);
    CHECK_FALSE(stream.query());
  }
  CHECK(fake.retained == 0);
}

TEST_CASE("a stream of another context is refused") {
  FakeDriver fake;
  const auto one = fake.context();
  const auto other = fake.context();
  const Stream stream = runtime::make_stream(other);
  const DeviceBuffer buffer = runtime::make_buffer(one, 4);
  CHECK_THROWS_AS(buffer.fill(std::byte{0}, stream), Error);
}

TEST_CASE("waiting on a view of no session says what to do") {
  try {
    StreamView().synchronize();
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::usage);
    CHECK(std::string(error.what()).find("default_stream()") != std::string::npos);
  }
}

TEST_CASE("a device answers with its attributes") {
  FakeDriver fake;
  const Device device = fake.device();
  CHECK(device.name() == "fake device");
  CHECK(device.label() == "cuda:0");
  CHECK(device.compute_capability() == 89);
  CHECK(device.max_block() == std::array<std::uint32_t, 3>{1024, 1024, 64});
  CHECK(device.driver_version() == 13000);
}
