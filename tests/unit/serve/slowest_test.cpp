// SPDX-License-Identifier: Apache-2.0
#include "serve/slowest.hpp"

#include <doctest/doctest.h>

using namespace quern::serve;

TEST_CASE("only the longest compiles are kept, the longest first") {
  SlowestCompiles slowest;
  // 7 and 40 have no common divisor: each of 0..39 once, in no order.
  for (int i = 0; i < 40; ++i) slowest.add({i * 7 % 40 + 0.5, 200, 0, "k.cu", "cuda", ""});
  const std::vector<SlowCompile> list = slowest.list();
  REQUIRE_EQ(list.size(), 16);
  for (std::size_t i = 0; i < list.size(); ++i) CHECK_EQ(list[i].ms, 39.5 - static_cast<double>(i));
}

TEST_CASE("of equally long compiles the earlier stay") {
  SlowestCompiles slowest;
  for (int i = 0; i < 20; ++i) slowest.add({5, 200, 0, std::to_string(i), "cuda", ""});
  const std::vector<SlowCompile> list = slowest.list();
  CHECK_EQ(list.front().name, "0");
  CHECK_EQ(list.back().name, "15");
}

TEST_CASE("a name is cut between two characters") {
  SlowestCompiles slowest;
  std::string name(127, 'a');
  slowest.add(
      {2, 200, 0, name + "\xC3\xA4" + "b", "cuda", ""});  // the two bytes of one letter are 128 and 129
  slowest.add({1, 200, 0, name + "bc", "cuda", ""});
  CHECK_EQ(slowest.list()[0].name, name);
  CHECK_EQ(slowest.list()[1].name, name + "b");
}
