// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "reading.hpp"
#include "top_view.hpp"

using namespace quern::cli;

namespace {

Reading reading(double started_s, double uptime_s, std::uint64_t requests, std::uint64_t memory) {
  Reading made;
  made.started_s = started_s;
  made.uptime_s = uptime_s;
  made.requests = requests;
  made.hits = {{"memory", memory}};
  return made;
}

}  // namespace

TEST_CASE("rates are of one life of a server, and never negative") {
  const Reading before = reading(100, 10, 50, 20);
  const auto rates = rates_between(before, reading(100, 14, 70, 30));
  REQUIRE(rates);
  CHECK_EQ(rates->requests, 5);
  CHECK_EQ(rates->hits[0].second, 2.5);
  CHECK_FALSE(rates_between(before, reading(200, 14, 70, 30)));  // started again
  CHECK_FALSE(rates_between(before, reading(100, 10, 50, 20)));  // the same reading
  CHECK_EQ(rates_between(before, reading(100, 14, 3, 1))->requests, 0);
}

TEST_CASE("a sum has the servers that answered") {
  const ServerRow up{"a", reading(1, 2, 30, 3), Rates{1.5, 0, 0, {{"memory", 1}}}, ""};
  ServerRow down = up;
  down.problem = "Connection refused";
  CHECK_EQ(sum_of({up, down, up}).now->requests, 60);
  CHECK_EQ(sum_of({up, down, up}).rates->requests, 3);
  CHECK_EQ(sum_of({up, down, up}).rates->hits[0].second, 2);
  CHECK_FALSE(sum_of({down}).now);
  ServerRow fresh = up;
  fresh.rates.reset();
  CHECK_FALSE(sum_of({up, fresh}).rates);
}

TEST_CASE("nothing that is printed controls a terminal") {
  CHECK_EQ(printable("a\x1b[31mb\n\t\x7f", 20), "a?[31mb???");
  CHECK_EQ(printable("\xC2\x9B"
                     "31m",
                     20),
           "?31m");                                    // CSI in one character
  CHECK_EQ(printable("x\xE2\x80\xAEy", 20), "x?y");    // right-to-left override
  CHECK_EQ(printable("\xF3\xA0\x81\x81z", 20), "?z");  // an invisible tag
  // Not UTF-8: a byte, a cut-off letter before "(", a surrogate, two bytes of an overlong zero.
  CHECK_EQ(printable("\xFF\xC3(\xED\xA0\x80\xC0\x80", 20), "\?\?(\?\?\?");
  CHECK_EQ(printable("\xE2\x82", 20), "?");
}

TEST_CASE("a text is cut to the columns of the terminal") {
  CHECK_EQ(printable("abcdef", 6), "abcdef");
  CHECK_EQ(printable("abcdefg", 6), "abc...");
  CHECK_EQ(printable("\xE6\xBC\xA2\xE5\xAD\x97kernel", 6), "\xE6\xBC\xA2...");  // two columns each
  CHECK_EQ(printable("abc", 2), "..");
  CHECK_EQ(printable("abc", 0), "");
}

TEST_CASE("a picture has at most the lines and columns of the terminal") {
  ServerRow row{"http://a-rather-long-name.example.org:8471", reading(1, 2, 30, 3), {}, ""};
  for (int i = 0; i < 16; ++i)
    row.now->slowest.push_back({5.0 + i, 200, 0, std::string(200, 'n'), "cuda", "id", ""});
  for (const std::size_t height : {1u, 2u, 3u, 5u, 12u, 100u})
    for (const std::size_t width : {1u, 10u, 79u, 300u}) {
      const auto lines = top_lines({{row, row}, 1e9, "note", width, height});
      CHECK_LE(lines.size(), height);
      for (const std::string& line : lines) CHECK_LE(line.size(), width);
    }
}
