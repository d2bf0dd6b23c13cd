// SPDX-License-Identifier: Apache-2.0
#include "compile/source/line_map.hpp"

#include <doctest/doctest.h>

using namespace quern::compile;

TEST_CASE("without directives the lines are the file's own") {
  const LineMap map("first\r\nsecond\nthird", "k.cu");
  CHECK(map.text_of("k.cu", 1) == "first");
  CHECK(map.text_of("k.cu", 3) == "third");
  CHECK_FALSE(map.text_of("k.cu", 4));
  CHECK_FALSE(map.text_of("k.cu", 0));
  CHECK_FALSE(map.text_of("other.cu", 1));
}

TEST_CASE("a #line directive names and numbers what follows it") {
  const LineMap map("own\n#line 10 \"a/b.cu\"\nten\neleven\n# 3\nthree\n  #  line 7 \\\n \"q\\\"q\"\nseven\n",
                    "k.cu");
  CHECK(map.text_of("k.cu", 1) == "own");
  CHECK_FALSE(map.text_of("k.cu", 3));
  CHECK(map.text_of("a/b.cu", 11) == "eleven");
  CHECK(map.text_of("a/b.cu", 3) == "three");
  CHECK(map.text_of("q\"q", 7) == "seven");
  CHECK(map.file_names() == std::vector<std::string>{"k.cu", "a/b.cu", "q\"q"});
}

TEST_CASE("a line that the source has twice, or that only a preprocessor knows, has no text") {
  const LineMap twice("#line 5\none\n#line 5\nother\n", "k.cu");
  CHECK_FALSE(twice.text_of("k.cu", 5));
  const LineMap conditional("#if 0\n#line 9\n#endif\nfour\n", "k.cu");
  CHECK_FALSE(conditional.text_of("k.cu", 4));
  CHECK_FALSE(conditional.text_of("k.cu", 10));
  const LineMap macro("#line N\nx\n", "k.cu");
  CHECK_FALSE(macro.text_of("k.cu", 2));
  const LineMap harmless("#ifndef A\n#define A\n#endif\nfour\n", "k.cu");
  CHECK(harmless.text_of("k.cu", 4) == "four");
}
