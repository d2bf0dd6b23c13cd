// SPDX-License-Identifier: Apache-2.0
#include "remote/endpoint.hpp"

#include <doctest/doctest.h>

using namespace quern::remote;

TEST_CASE("a port is a number from 1 to 65535") {
  CHECK(read_endpoint("http://host:65535")->port == "65535");
  CHECK(read_endpoint("http://host")->port == "80");
  for (const char* text : {"http://host:0", "http://host:65536", "http://host:99999", "http://host:8x",
                           "http://host:", "http://host:+80", "http://host:-1", "http://host: 80"}) {
    CAPTURE(text);
    CHECK_FALSE(read_endpoint(text));
  }
}
