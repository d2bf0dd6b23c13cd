// SPDX-License-Identifier: Apache-2.0
#include "frontend/lexer.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace quern::frontend;

namespace {

std::string kinds(const std::string& text, std::size_t* errors = nullptr) {
  const SourceText source(text, "k.py");
  Report report(source);
  std::string result;
  for (const Token& token : read_tokens(source, report)) {
    if (!result.empty()) result += ' ';
    switch (token.kind) {
      case Tok::end:
        result += "end";
        break;
      case Tok::newline:
        result += "nl";
        break;
      case Tok::indent:
        result += "in";
        break;
      case Tok::dedent:
        result += "out";
        break;
      default:
        result += source.at(token.place);
    }
  }
  if (errors != nullptr) *errors = report.diagnostics().size();
  return result;
}

}  // namespace

TEST_SUITE_BEGIN("frontend");

TEST_CASE("indentation becomes blocks; blank lines and comments do not count") {
  CHECK(kinds("if a:\n  b\n\n    # comment\n  c\nd\n") == "if a : nl in b nl c nl out d nl end");
  CHECK(kinds("if a:\n\tif b:\n\t\tc") == "if a : nl in if b : nl in c nl out out end");
}

TEST_CASE("lines continue inside brackets and behind a backslash") {
  CHECK(kinds("f(a,\n  b)\nc \\\n  + d\n") == "f ( a , b ) nl c + d nl end");
}

TEST_CASE("operators are the longest that fit") {
  CHECK(kinds("a**=b//c>>=d->e:=f...") == "a **= b // c >>= d -> e := f ... nl end");
  CHECK(kinds("a<=b<<c!=d") == "a <= b << c != d nl end");
}

TEST_CASE("numbers of every form are one token") {
  CHECK(kinds("1_000 0xFF 0b101 0o17 1.5e-3 .5 1. 2j 1e5") ==
        "1_000 0xFF 0b101 0o17 1.5e-3 .5 1. 2j 1e5 nl end");
  std::size_t errors = 0;
  kinds("0x 12abc\n", &errors);
  CHECK(errors == 1);
}

TEST_CASE("strings end where Python ends them") {
  CHECK(kinds("'a\\'b' \"\"\"x\n'y\"\"\" r'\\n'") == "'a\\'b' \"\"\"x\n'y\"\"\" r'\\n' nl end");
  CHECK(kinds("f\"{d[\"k\"]:{w}}\" x") == "f\"{d[\"k\"]:{w}}\" x nl end");
  std::size_t errors = 0;
  CHECK(kinds("'open\nx", &errors) == "'open nl x nl end");
  CHECK(errors == 1);
}

TEST_CASE("a line that fits no block around it is reported") {
  std::size_t errors = 0;
  kinds("if a:\n    b\n  c\n", &errors);
  CHECK(errors == 1);
}

TEST_CASE("any bytes give tokens and an end") {
  for (int c = 0; c < 256; ++c) {
    const std::string text(3, static_cast<char>(c));
    CHECK(kinds("a " + text + " b").ends_with("end"));
  }
}

TEST_SUITE_END();
