// SPDX-License-Identifier: Apache-2.0
#include "serve/worker/frames.hpp"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "serve/worker/shared_messages.hpp"

using namespace quern;
using namespace quern::serve;

namespace {

struct Pair {
  Pair() { REQUIRE_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0); }
  ~Pair() {
    ::close(sockets[0]);
    if (sockets[1] >= 0) ::close(sockets[1]);
  }
  int sockets[2];
};

}  // namespace

TEST_CASE("a frame arrives whole, however large") {
  const Pair pair;
  const Frame sent{7, std::string(3'000'000, 't'), std::string("\0\1", 2)};
  std::thread sender([&] { CHECK(send_frame(pair.sockets[0], sent)); });
  Frame got;
  CHECK(receive_frame(pair.sockets[1], 4'000'000, [] { return true; }, got) == Receive::frame);
  sender.join();
  CHECK_EQ(got.status, 7);
  CHECK(got.text == sent.text);
  CHECK(got.bytes == sent.bytes);
}

TEST_CASE("a frame over the limit is refused by its head") {
  const Pair pair;
  CHECK(send_frame(pair.sockets[0], {0, std::string(600, 't'), std::string(600, 'b')}));
  Frame got;
  CHECK(receive_frame(pair.sockets[1], 1000, {}, got) == Receive::too_large);
  const Pair second;
  const std::uint64_t huge[3] = {UINT64_MAX, 2, 0};  // whose sum is small
  CHECK_EQ(::write(second.sockets[0], huge, sizeof huge), sizeof huge);
  CHECK(receive_frame(second.sockets[1], 1000, {}, got) == Receive::too_large);
}

TEST_CASE("a wait ends when the other side is gone, or when it is told to") {
  Pair pair;
  Frame got;
  CHECK(receive_frame(pair.sockets[0], 1000, [] { return false; }, got) == Receive::stopped);
  ::close(pair.sockets[1]);
  pair.sockets[1] = -1;
  CHECK(receive_frame(pair.sockets[0], 1000, [] { return true; }, got) == Receive::closed);
  CHECK_FALSE(send_frame(pair.sockets[0], {0, "x", ""}));
}

TEST_CASE("a worker's first message reads back") {
  WorkerHello hello{"/lib/libnvrtc.so",
                    "13.0",
                    "13.1",
                    "l",
                    "c",
                    "q",
                    {"/include"},
                    "no",
                    {3, true, true, false, "limits"}};
  const Expected<WorkerHello> again = read_hello(write_hello(hello));
  REQUIRE(again);
  CHECK_EQ(again->nvrtc_path, hello.nvrtc_path);
  CHECK_EQ(again->libraries + again->header_contents + again->quern, "lcq");
  CHECK(again->include_directories == hello.include_directories);
  CHECK_EQ(again->sandbox.landlock, 3);
  CHECK_FALSE(again->sandbox.limits);
  CHECK_EQ(again->sandbox.missing, "limits");
  CHECK_FALSE(read_hello("{}"));
  CHECK_FALSE(read_hello(""));
}
