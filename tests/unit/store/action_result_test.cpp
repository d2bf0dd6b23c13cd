// SPDX-License-Identifier: Apache-2.0
#include "store/action_result.hpp"

#include <doctest/doctest.h>

using namespace quern;
using namespace quern::store;

// The bytes follow from the definitions of ActionResult, OutputFile and Digest by the rules of Protocol
// Buffers: a tag of field number and wire type, then a length or a varint.
TEST_CASE("the message is one output file with its digest") {
  base::Digest digest;
  digest.bytes.fill(0xab);
  std::string hash;
  for (int i = 0; i < 32; ++i) hash += "ab";
  const std::string inner = "\x0a\x40" + hash + "\x10\xac\x02";
  const std::string file = std::string("\x0a\x05quern") + "\x12" + static_cast<char>(inner.size()) + inner;
  const std::string wanted = std::string("\x12") + static_cast<char>(file.size()) + file;
  CHECK(write_action_result(digest, 300) == wanted);
  CHECK(read_action_result(wanted) == hash);
  // Fields that others add are skipped.
  CHECK(read_action_result(std::string("\x20\x07\x2a\x02hi\x3d") + "abcd\x39" + "abcdefgh" + wanted) == hash);
}

TEST_CASE("bytes that are no such message are none") {
  base::Digest digest;
  const std::string good = write_action_result(digest, 1);
  for (std::size_t i = 0; i < good.size() - 2; ++i) CHECK_FALSE(read_action_result(good.substr(0, i)));
  CHECK_FALSE(read_action_result("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"));
  CHECK_FALSE(read_action_result("\x13\x01"));
  std::string path = good;
  path.replace(path.find("0000"), 4, "../.");
  CHECK_FALSE(read_action_result(path));
}
