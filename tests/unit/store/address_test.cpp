// SPDX-License-Identifier: Apache-2.0
#include "store/address.hpp"

#include <doctest/doctest.h>

using namespace quern;
using namespace quern::store;

namespace {

Address read(std::string_view text) {
  const auto address = read_address(text);
  REQUIRE(address);
  return *address;
}

}  // namespace

TEST_CASE("each scheme has its engine, port and encryption") {
  const struct {
    const char* text;
    Engine engine;
    const char* port;
    bool tls;
  } rows[] = {
      {"redis://h", Engine::redis, "6379", false},       {"rediss://h", Engine::redis, "6379", true},
      {"http://h", Engine::http_cache, "80", false},     {"https://h", Engine::http_cache, "443", true},
      {"dav://h/x", Engine::dav, "80", false},           {"davs://h/x", Engine::dav, "443", true},
      {"redis://h:7000/2", Engine::redis, "7000", false}};
  for (const auto& row : rows) {
    const Address address = read(row.text);
    CHECK(address.engine == row.engine);
    CHECK(address.endpoint.host == "h");
    CHECK(address.endpoint.port == row.port);
    CHECK(address.endpoint.tls == row.tls);
  }
  CHECK(read("redis://h:7000/2").database == 2);
  CHECK(read("redis://[::1]:7000").endpoint.host == "::1");
  CHECK(read("http://h:1/a/b/").folder == "/a/b");
  CHECK(read("http://h:1/").folder.empty());
}

TEST_CASE("a socket has a path") {
  CHECK(read("redis+unix:/run/r.sock").endpoint.socket_path == "/run/r.sock");
  CHECK(read("redis+unix:///run/r.sock").endpoint.socket_path == "/run/r.sock");
  const Address address = read("redis+unix://user:pass@/run/r.sock");
  CHECK(address.endpoint.socket_path == "/run/r.sock");
  CHECK(address.user == "user");
  CHECK(address.password == "pass");
  CHECK_FALSE(read_address("redis+unix:r.sock"));
}

TEST_CASE("user and password are decoded, and stand in no text that is shown") {
  const Address address = read("rediss://fl%40et:s%3Acret%2f1@h:1/3");
  CHECK(address.user == "fl@et");
  CHECK(address.password == "s:cret/1");
  CHECK(address.endpoint.text == "rediss://h:1/3");
  CHECK(read("redis://:only@h").password == "only");
  CHECK(password_in("redis://u:se%20cret@h") == "se%20cret");
  CHECK(password_in("redis://u@h").empty());
  CHECK(password_in("tcp:1.2.3.4:5").empty());
  for (const char* wrong : {"redis://u:secret%zz@h", "redis://u:secret@", "redis://u:secret@h:port",
                            "redis://u:secret@h/x", "http://u:secret@h/a?b", "gopher://u:secret@h"}) {
    const auto refused = read_address(wrong);
    REQUIRE_FALSE(refused);
    CHECK(to_string(refused.errors()).find("secret") == std::string::npos);
  }
}

TEST_CASE("line breaks reach no header and no command") {
  for (const char* wrong : {"http://h/a\r\nX: y", "http://h/a b", "redis://u%0d:p@h", "redis://h\r\n"})
    CHECK_FALSE(read_address(wrong));
}
