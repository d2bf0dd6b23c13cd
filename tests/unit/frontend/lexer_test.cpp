// SPDX-License-Identifier: Apache-2.0
#include "frontend/syntax/lexer.hpp"
#include "helpers.hpp"

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

TEST_CASE("blocks that depend on the width of a tab are refused, as Python does") {
  const auto said = [](const std::string& body) {
    const auto source = quern::frontend::translate(
        quern::test::python("from numba import cuda\n\n@cuda.jit(\"void(int64[::1])\")\ndef k(a):\n" + body),
        "", "");
    return source ? std::string("good") : to_string(source.errors());
  };
  for (const char* bad :
       {"        a[0] = 1\n\ta[1] = 2\n", "\tif a[0]:\n        \ta[1] = 2\n        a[2] = 3\n",
        " if a[0]:\n\ta[1] = 2\n\tif a[1]:\n            a[2] = 3\n\t    a[2] = 3\n"})
    CHECK(quern::test::holds(said(bad), "Python's TabError"));
  for (const char* good : {"\ta[0] = 1\n\ta[1] = 2\n", "\tif a[0]:\n\t\ta[1] = 2\n\ta[2] = 3\n",
                           "    if a[0]:\n    \ta[1] = 2\n    a[2] = 3\n", "\f    a[0] = 1\n    a[1] = 2\n"})
    CHECK(said(good) == "good");
}

TEST_CASE("bytes that are no UTF-8 need a line that says how the file is coded") {
  const auto said = [](const std::string& head) {
    const auto source = quern::frontend::translate(
        quern::test::python(
            head + "from numba import cuda\n\n@cuda.jit(\"void(int64[::1])\")\ndef k(a):\n    a[0] = 1\n"),
        "", "");
    return source ? std::string("good") : to_string(source.errors());
  };
  CHECK(quern::test::holds(said("x = 1\n# caf\xe9\n"), "k.py:2:6: error: byte 0xe9 is no UTF-8"));
  CHECK(quern::test::holds(said("# coding: utf-8\n# caf\xe9\n"), "no UTF-8"));
  CHECK(quern::test::holds(said("x = 1\ny = 2\n# coding: latin-1\n# caf\xe9\n"), "no UTF-8"));
  for (const char* broken :
       {"# \xc0\x80\n", "# \xed\xa0\x80\n", "# \xf5\x80\x80\x80\n", "# \xe2\x82\n", "# \x80\n"})
    CHECK(quern::test::holds(said(broken), "no UTF-8"));
  CHECK(said("#!/usr/bin/python\n# -*- coding: latin-1 -*-\n# caf\xe9\n") == "good");
  CHECK(said("# vim: set fileencoding=cp1252 :\n# caf\xe9\n") == "good");
  CHECK(said("# caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\n") == "good");
}

TEST_CASE("lines end in CR, LF or both") {
  std::string text =
      "from numba import cuda\n# a comment\n\n@cuda.jit(\"void(int64[::1])\")\ndef k(a):\n    a[0] = x\n";
  const auto said = [&] {
    const auto source = quern::frontend::translate(quern::test::python(text), "", "");
    return source ? std::string("good") : to_string(source.errors());
  };
  const std::string expected = said();
  CHECK(expected.starts_with("k.py:6:12: error: the name 'x' is not defined\n"));
  for (char& c : text)
    if (c == '\n') c = '\r';
  CHECK(said() == expected);
  for (std::size_t at = text.find('\r'); at != std::string::npos; at = text.find('\r', at + 2))
    text.insert(at + 1, "\n");
  CHECK(said() == expected);
}

TEST_CASE("any bytes give tokens and an end") {
  for (int c = 0; c < 256; ++c) {
    const std::string text(3, static_cast<char>(c));
    CHECK(kinds("a " + text + " b").ends_with("end"));
  }
}

TEST_SUITE_END();
