// SPDX-License-Identifier: Apache-2.0
// Messages about errors that the layer cannot throw.
#include "quern/log.hpp"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "../support/captured_output.hpp"
#include "quern/error.hpp"
#include "runtime/array/buffer.hpp"
#include "runtime/context/stream.hpp"
#include "tests/unit/support/fake_driver.hpp"

using namespace quern;
using quern::test::FakeDriver;
using quern::test::output_of;

namespace {

struct Records {
  std::vector<LogRecord> all;
  Records() {
    set_log_handler([this](const LogRecord& record) { all.push_back(record); });
  }
  ~Records() { set_log_handler({}); }
};

void drop_a_buffer(FakeDriver& fake) {
  const auto context = fake.context();
  {
    const DeviceBuffer buffer = runtime::make_buffer(context, 4);
  }
  fake.free_result = CUDA_ERROR_INVALID_VALUE;
  context->resources().queue().flush();
  fake.free_result = CUDA_SUCCESS;
}

void throw_in_callbacks(FakeDriver& fake) {
  const Stream stream = runtime::make_stream(fake.context());
  stream.add_callback([] { throw std::runtime_error("no luck"); });
  stream.add_callback([] { throw 1; });
  fake.run_host_functions();
}

}  // namespace

TEST_CASE("a release that fails is a warning with the device's name") {
  FakeDriver fake;
  const std::string device = fake.context()->device().name;
  const std::string text = "cannot free device memory: cuMemFree_v2 answered CUresult 1";
  CHECK(output_of([&] { drop_a_buffer(fake); }) == "quern: warning: " + text + "\n");
  const Records records;
  CHECK(output_of([&] { drop_a_buffer(fake); }) == "");
  REQUIRE(records.all.size() == 1);
  CHECK(records.all[0].level == LogLevel::warning);
  CHECK(records.all[0].text == text);
  CHECK(records.all[0].field("device") == device);
}

TEST_CASE("what a stream's callback throws is a warning with the stream's handle") {
  FakeDriver fake;
  CHECK(output_of([&] { throw_in_callbacks(fake); }) ==
        "quern: warning: a stream's callback threw: no luck\n"
        "quern: warning: a stream's callback threw: the exception is not derived from std::exception\n");
  const Records records;
  CHECK(output_of([&] { throw_in_callbacks(fake); }) == "");
  REQUIRE(records.all.size() == 2);
  CHECK(records.all[0].text == "a stream's callback threw: no luck");
  CHECK(records.all[1].text == "a stream's callback threw: the exception is not derived from std::exception");
  CHECK(records.all[0].field("stream").substr(0, 2) == "0x");
  CHECK(records.all[0].field("device") == fake.context()->device().name);
}
