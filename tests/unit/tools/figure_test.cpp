// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <quern/error.hpp>

#include <string>

#include "arrays/figure.hpp"
#include "terminal/progress.hpp"

using namespace quern;
using namespace quern::cli;

TEST_CASE("figures are computed as Python computes them") {
  CHECK(evaluate_figure("2 * 1024**3") == 2147483648.0);
  CHECK(evaluate_figure(" 3*4*2 ** 24 ") == 201326592.0);
  CHECK(evaluate_figure("2**3**2") == 512);
  CHECK(evaluate_figure("-2**2 + (1 + 2) * 3") == 5);
  CHECK(evaluate_figure("1e3 / 4 - 50") == 200);
  CHECK(evaluate_figure("2**-1") == 0.5);
}

TEST_CASE("what is no arithmetic is refused") {
  for (const char* text : {"", "2 *", "(2", "2)", "two", "2 3", "2 ***3", "1+", "**2"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(evaluate_figure(text), Error);
  }
  CHECK_THROWS_AS(evaluate_figure(std::string(100000, '(')), Error);
  CHECK_THROWS_AS(evaluate_figure(std::string(100000, '-')), Error);
}

TEST_CASE("a progress bar grows, says what is done, and fits the line") {
  CHECK(progress_text(0, 4, "a", 80) == "[>                       ] 0/4 a");
  CHECK(progress_text(2, 4, "b", 80) == "[============>           ] 2/4 b");
  CHECK(progress_text(4, 4, "c", 80) == "[========================] 4/4 c");
  CHECK(progress_text(1, 3, std::string(200, 'x'), 40).size() == 39);
  CHECK(progress_text(1, 3, "x", 0).empty());
}
