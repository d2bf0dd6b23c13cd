// SPDX-License-Identifier: Apache-2.0
#include "compile/source/hints.hpp"

#include <doctest/doctest.h>

using namespace quern;
using namespace quern::compile;

namespace {

std::string hint(const std::string& message, bool toolkit = true) {
  Diagnostic diagnostic;
  diagnostic.message = message;
  Diagnostics all{diagnostic};
  add_hints(all, {toolkit, {}, {}});
  REQUIRE(all.size() == 1);
  return all[0].hint;
}
bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("undefined names lead to their header or to the name that was meant") {
  CHECK(says(hint("identifier \"__half\" is undefined"), "#include <cuda_fp16.h>"));
  CHECK(says(hint("identifier \"uint32_t\" is undefined"), "<cuda/std/cstdint>"));
  CHECK(says(hint("identifier \"quern\" is undefined"), "#include <quern/device.cuh>"));
  CHECK(hint("identifier \"treadIdx\" is undefined") == "did you mean threadIdx?");
  CHECK(hint("identifier \"__syncthread\" is undefined") == "did you mean __syncthreads?");
  CHECK(hint("identifier \"my_own_thing\" is undefined").empty());
  CHECK(hint("identifier \"x\" is undefined").empty());
}

TEST_CASE("missing headers are told apart: the host's, the toolkit's, the user's") {
  CHECK(says(hint("cannot open source file \"vector\""), "header of the host"));
  CHECK(says(hint("cannot open source file \"cmath\""), "<cuda/std/cmath>"));
  CHECK(says(hint("could not open source file \"stdint.h\" (no directories in search list)"),
             "<cuda/std/cstdint>"));
  CHECK(says(hint("cannot open source file \"cuda_fp16.h\"", false), "tools/setup"));
  CHECK(says(hint("cannot open source file \"mine/own.h\""), "LoadOptions::include_dirs"));
}

TEST_CASE("a name before :: that is no namespace is looked at in the source's line") {
  const auto of_name = [](const std::string& line, std::uint32_t column) {
    Diagnostic diagnostic;
    diagnostic.message = "name followed by \"::\" must be a class or namespace name";
    diagnostic.source_line = line;
    diagnostic.span = {"k.cu", 1, column, 0};
    Diagnostics all{diagnostic};
    add_hints(all, {true, {}, {}});
    return all[0].hint;
  };
  CHECK(says(of_name("typedef cub::BlockReduce<float, 128> B;", 9), "#include <cub/block/block_reduce.cuh>"));
  CHECK(says(of_name("std::vector<int> v;", 1), "std:: is the host's library"));
  CHECK(says(of_name("cg::this_grid();", 1), "<cooperative_groups.h>"));
  CHECK(says(of_name("own::f();", 1), "declares own"));
  CHECK(says(of_name("", 0), "std:: is the host's library"));
}

TEST_CASE("the name map's two errors become one about the kernel") {
  Diagnostic reason, expression, other;
  reason.span.file = expression.span.file = "__nv_name_map";
  reason.message = "identifier \"nope\" is undefined";
  expression.message =
      "Error in parsing name expression for lowered name lookup. Input name expression was: \" nope < float "
      "> \"";
  other.span.file = "k.cu";
  other.message = "something else";
  Diagnostics all{other, reason, expression};
  add_hints(all, {true, read_kernels("__global__ void none(int a);"), {"nope<float>"}});
  REQUIRE(all.size() == 2);
  CHECK(all[0].message == "something else");
  CHECK(all[1].code == "unknown-kernel");
  CHECK(all[1].message == "cannot instantiate kernel 'nope<float>': identifier \"nope\" is undefined");
  CHECK(says(all[1].hint, "the source's kernels are: none"));
}
