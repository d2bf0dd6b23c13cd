// SPDX-License-Identifier: Apache-2.0
#include "serve/auth.hpp"

#include <doctest/doctest.h>

using namespace quern;
using namespace quern::serve;

namespace {
constexpr const char* kFile = "# of ci\nabcdefghijklmnop\n\n  0123456789abcdef0123 \r\n";
}

TEST_CASE("without a token file everyone is accepted") {
  CHECK_FALSE(Tokens().required());
  CHECK(Tokens().accept(""));
}

TEST_CASE("a token of the file is accepted, and nothing like it") {
  const Expected<Tokens> tokens = Tokens::parse(kFile, "tokens");
  REQUIRE(tokens);
  CHECK(tokens->accept("Bearer abcdefghijklmnop"));
  CHECK(tokens->accept("Bearer 0123456789abcdef0123"));
  for (const char* wrong :
       {"", "Bearer ", "Bearer", "abcdefghijklmnop", "Bearer abcdefghijklmno", "Bearer abcdefghijklmnopq",
        "bearer abcdefghijklmnop", "Basic abcdefghijklmnop", "Bearer # of ci", "Bearer ABCDEFGHIJKLMNOP"})
    CHECK_FALSE(tokens->accept(wrong));
}

TEST_CASE("files that hold no tokens are refused") {
  for (const char* text : {"", "# nothing\n", "short\n", "abcdefghijklmnop with spaces\n",
                           "abcdefghijklmn\x01op\n", "abcdefghijkl%41mnop\n"})
    CHECK_FALSE(Tokens::parse(text, "tokens"));
}
