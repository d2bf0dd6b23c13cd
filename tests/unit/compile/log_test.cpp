// SPDX-License-Identifier: Apache-2.0
// The logs here are NVRTC 13.0's, as it printed them.
#include "compile/source/log.hpp"

#include <doctest/doctest.h>

using namespace quern;
using compile::parse_log;

TEST_CASE("an error gives file, line, column, message and source line") {
  const Diagnostics found = parse_log(
      "c.cu(4): error: identifier \"bar\" is undefined\n"
      "    BAD(2); int z = bar; p[0] = z;\n"
      "                    ^\n"
      "\n"
      "1 error detected in the compilation of \"c.cu\".\n",
      "c.cu");
  REQUIRE(found.size() == 1);
  CHECK(found[0].severity == Severity::error);
  CHECK(found[0].code == "cuda-error");
  CHECK(found[0].span == Span{"c.cu", 4, 19, 22});
  CHECK(found[0].message == "identifier \"bar\" is undefined");
  CHECK(found[0].source_line == "  BAD(2); int z = bar; p[0] = z;");
}

TEST_CASE("a warning keeps its number and loses the advice to suppress it") {
  const Diagnostics found = parse_log(
      "c.cu(3): warning #177-D: variable \"unused\" was declared but never referenced\n"
      "  \tint unused;\n"
      "  \t    ^\n"
      "\n"
      "Remark: The warnings can be suppressed with \"-diag-suppress <warning-number>\"\n\n",
      "c.cu");
  REQUIRE(found.size() == 1);
  CHECK(found[0].severity == Severity::warning);
  CHECK(found[0].code == "cuda-177");
  CHECK(found[0].span == Span{"c.cu", 3, 6, 12});
  CHECK(found[0].source_line == "\tint unused;");
}

TEST_CASE("candidates of an overload become notes, argument types part of the message") {
  const Diagnostics found = parse_log(
      "d.cu(6): error: no instance of overloaded function \"f\" matches the argument list\n"
      "            argument types are: (const char [2], double, int)\n"
      "    f(\"x\", 2.0, 3); g(1, 2.0f);\n"
      "    ^\n"
      "d.cu(3): note #3322-D: number of parameters of function \"f(A, int)\" does not match the call\n"
      "  __device__ void f(float*, int); __device__ void f(A, int);\n"
      "                                                  ^\n"
      "d.cu(3): note #3322-D: number of parameters of function \"f(float *, int)\" does not match the call\n"
      "  __device__ void f(float*, int); __device__ void f(A, int);\n"
      "                  ^\n",
      "d.cu");
  REQUIRE(found.size() == 1);
  CHECK(found[0].message ==
        "no instance of overloaded function \"f\" matches the argument list; argument types are: (const char "
        "[2], double, int)");
  CHECK(found[0].span == Span{"d.cu", 6, 3, 4});
  REQUIRE(found[0].notes.size() == 2);
  CHECK(found[0].notes[0].span == Span{"d.cu", 3, 49, 50});
  CHECK(found[0].notes[1].span == Span{"d.cu", 3, 17, 18});
  CHECK(found[0].source_line == "  f(\"x\", 2.0, 3); g(1, 2.0f);");
}

TEST_CASE("a chain of instantiations becomes notes with places") {
  const Diagnostics found = parse_log(
      "i.h(1): error: expression must have class type but it has type \"int\"\n"
      "  T f(T t) { return t.foo; }\n"
      "                    ^\n"
      "          detected during:\n"
      "            instantiation of \"T S<T, N>::f(T) [with T=int,\n"
      "                      N=3]\" at line 3\n"
      "            instantiation of \"T outer<T,N>(T) [with T=int, N=3]\" at line 6 of \"i.cu\"\n"
      "            instantiation of \"void k(T *) [with T=int]\" \n"
      "\n"
      "i.h(9): error: detected during nothing\n",
      "i.cu");
  REQUIRE(found.size() == 2);
  REQUIRE(found[0].notes.size() == 3);
  CHECK(found[0].notes[0].span == Span{"i.h", 3, 0, 0});
  CHECK(found[0].notes[0].message == "in instantiation of \"T S<T, N>::f(T) [with T=int, N=3]\"");
  CHECK(found[0].notes[1].span == Span{"i.cu", 6, 0, 0});
  CHECK_FALSE(found[0].notes[2].span.known());
  CHECK(found[1].message == "detected during nothing");
  CHECK(found[1].notes.empty());
}

TEST_CASE("a chain on one line is one note") {
  const Diagnostics found = parse_log(
      "d.cu(4): error: no\n  x\n  ^\n          detected during instantiation of \"T g(T, T) [with T=int]\" "
      "at line 7\n",
      "d.cu");
  REQUIRE(found.size() == 1);
  REQUIRE(found[0].notes.size() == 1);
  CHECK(found[0].notes[0].message == "in instantiation of \"T g(T, T) [with T=int]\"");
  CHECK(found[0].notes[0].span == Span{"d.cu", 7, 0, 0});
}

TEST_CASE("an error at the end of the source names the file") {
  const Diagnostics found = parse_log(
      "At end of source: error: expected a \"}\"\n"
      "h.cu(1): note #3196-D: to match this \"{\"\n"
      "  __global__ void z(int a){ q; \n"
      "                          ^\n",
      "h.cu");
  REQUIRE(found.size() == 1);
  CHECK(found[0].span == Span{"h.cu", 0, 0, 0});
  CHECK(found[0].message == "expected a \"}\"");
  REQUIRE(found[0].notes.size() == 1);
  CHECK(found[0].notes[0].span == Span{"h.cu", 1, 25, 26});
}

TEST_CASE("messages of NVRTC itself and of ptxas say who speaks") {
  const Diagnostics found = parse_log(
      "nvrtc: error: unrecognized option --foo found\n"
      "ptxas application ptx input, line 42; error   : Not a name of any known instruction: 'blah'\n"
      "ptxas fatal   : Ptx assembly aborted due to errors\n"
      "ptxas error   : Entry function 'k' uses too much shared data (0x10000 bytes, 0xc000 max)\n",
      "g.cu");
  REQUIRE(found.size() == 4);
  CHECK(found[0].code == "nvrtc-option");
  CHECK(found[0].message == "nvrtc: unrecognized option --foo found");
  CHECK(found[1].code == "ptxas");
  CHECK(found[1].span == Span{"<generated PTX>", 42, 0, 0});
  CHECK(found[1].message == "ptxas: Not a name of any known instruction: 'blah'");
  CHECK(found[3].severity == Severity::error);
}

TEST_CASE("a file name may hold parentheses and colons") {
  const Diagnostics found =
      parse_log("a (1): b(2).cu(7): catastrophic error: #error directive: \"hey\"\n", "x");
  REQUIRE(found.size() == 1);
  CHECK(found[0].span.file == "a (1): b(2).cu");
  CHECK(found[0].span.line == 7);
}

TEST_CASE("a line of unknown form is kept") {
  const Diagnostics alone = parse_log("something nobody expected\n", "x");
  REQUIRE(alone.size() == 1);
  CHECK(alone[0].severity == Severity::note);
  CHECK(alone[0].message == "something nobody expected");
  const Diagnostics after = parse_log("x(1): error: no\nsomething more\n", "x");
  REQUIRE(after.size() == 1);
  REQUIRE(after[0].notes.size() == 1);
  CHECK(after[0].notes[0].message == "something more");
}

TEST_CASE("an empty log has no messages, and a log may end anywhere") {
  CHECK(parse_log("", "x").empty());
  CHECK(parse_log("\n\n", "x").empty());
  const std::string whole =
      "c.cu(4): error: no\n    text\n    ^\n          detected during instantiation of \"f\" at line "
      "8\nnvrtc: error: x\n";
  for (std::size_t end = 0; end <= whole.size(); ++end) (void)parse_log(whole.substr(0, end), "c.cu");
}

TEST_CASE("an error for lack of memory is not the source's") {
  const Diagnostics found = parse_log("k.cu(1): error: out of memory\n  int a;\n      ^\n\n", "k.cu");
  REQUIRE(found.size() == 1);
  CHECK(found[0].code == "nvrtc-failed");
  CHECK(found[0].hint.find("memory") != std::string::npos);
  const Diagnostics own =
      parse_log("k.cu(1): error: static assertion failed with \"out of memory\"\n", "k.cu");
  REQUIRE(own.size() == 1);
  CHECK(own[0].code == "cuda-error");
}
