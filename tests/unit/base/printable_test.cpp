// SPDX-License-Identifier: Apache-2.0
#include "base/printable.hpp"

#include <doctest/doctest.h>

using namespace quern::base;

TEST_CASE("text that a terminal shows stays as it is") {
  for (const char* text : {"", "a\tb\nc", "Größe → 3 ± 1", "日本語", "\xf0\x9f\x8e\x89", "\xe9 latin \xff"})
    CHECK(printable(text) == text);
}

TEST_CASE("what a terminal obeys becomes a question mark") {
  CHECK(printable("\x1b]0;title\x07") == "?]0;title?");
  CHECK(printable("a\r\x7f"
                  "b\x08") == "a??b?");
  CHECK(printable("\xc2\x9b"
                  "2J") == "?2J");  // U+009B, the eight-bit form of ESC [
  CHECK(printable("\x9b"
                  "2J") == "?2J");  // the same outside UTF-8
  CHECK(printable("\xe2\x80\xae"
                  "gpj") == "?gpj");                   // U+202E
  CHECK(printable("\xe2\x81\xa6x\xd8\x9c") == "?x?");  // U+2066, U+061C
  CHECK(printable(std::string_view("\0", 1)) == "?");
  CHECK(printable("\xe2\x80") == "\xe2?");  // cut in the middle: a byte of C1 remains
}

TEST_CASE("a line has no line feeds") { CHECK(printable_line("a\nquern: b\r\n") == "a quern: b? "); }
