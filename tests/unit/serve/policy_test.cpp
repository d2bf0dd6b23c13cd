// SPDX-License-Identifier: Apache-2.0
#include "serve/policy.hpp"

#include <doctest/doctest.h>

using namespace quern;
using namespace quern::serve;

namespace {

bool includes_refused(std::string_view text, const std::string& name = "",
                      const std::set<std::string, std::less<>>& headers = {}) {
  return !refused_includes(text, name, headers).empty();
}

}  // namespace

TEST_CASE("options in the table are taken in all spellings") {
  for (const std::vector<std::string>& options : {std::vector<std::string>{},
                                                  {"-DX"},
                                                  {"-D", "X=1"},
                                                  {"--define-macro=X"},
                                                  {"-D=X"},
                                                  {"--use_fast_math"},
                                                  {"-use_fast_math"},
                                                  {"--fmad=false"},
                                                  {"-fmad", "false"},
                                                  {"--split-compile=1"},
                                                  {"-G"},
                                                  {"--std=c++17", "-w"}})
    CHECK(refused_options(options).empty());
}

TEST_CASE("all other options are refused") {
  for (const std::vector<std::string>& options : {std::vector<std::string>{"-I/etc"},
                                                  {"--include-path=/etc"},
                                                  {"--pre-include=/x"},
                                                  {"--split-compile=8"},
                                                  {"-D"},
                                                  {""},
                                                  {"x.cu"},
                                                  {"@options"},
                                                  {"--maxrregcount", "-I/etc"},
                                                  {"--modify-stack-limit=true"},
                                                  {"-Gx"},
                                                  {"--wx"},
                                                  {"--use_fast_math=/etc"},
                                                  {"-ptxas-options=-v"}})
    CHECK_FALSE(refused_options(options).empty());
}

TEST_CASE("a path leaves its folder if it is absolute or leads up beyond its begin") {
  for (const char* path : {"/", "/a", "..", "../a", "a/../..", "a/../../b", "./../a", "a//../../b"})
    CHECK(leaves_its_folder(path));
  for (const char* path : {"", "a", "a/..", "a/../b", "./a", "..a", "a/b/../../c", "...", ".a"})
    CHECK_FALSE(leaves_its_folder(path));
}

TEST_CASE("operands that leave the request are refused where they can be read") {
  for (const char* text :
       {"#include \"/etc/passwd\"", "  #  include<../x>", "#include_next \"/a\"", "#import </a>",
        "#embed \"/a\"", "a\n#include \"/a\"\nb", "#if defined(A) || __has_include(</a>)",
        "#elif __has_include( \"../a\" )", "#include \"/unterminated", "#if __has_embed(\"/a\")"})
    CHECK(includes_refused(text));
  for (const char* text :
       {"#include \"a.h\"", "#include <cuda/std/array>", "x = \"/etc/passwd\";", "#define A \"/etc/passwd\"",
        "#include \"a/../b.h\"", "", "#", "#include", "#include \""})
    CHECK_FALSE(includes_refused(text));
}

TEST_CASE("an operand is judged from the folder of its header, and by the headers of the request") {
  CHECK_FALSE(includes_refused("#include \"../b.h\"", "dir/a.h"));
  CHECK(includes_refused("#include \"../../b.h\"", "dir/a.h"));
  CHECK_FALSE(includes_refused("#include \"../../b.h\"", "dir/a.h", {"../b.h"}));
  CHECK_FALSE(includes_refused("#include \"/opt/x.h\"", "", {"/opt/x.h"}));
  CHECK(includes_refused("#include \"/opt/y.h\"", "", {"/opt/x.h"}));
}

TEST_CASE("a refusal names the line") {
  const Diagnostics refused = refused_includes("a\nb\n#include \"/x\"\n", "h.h", {});
  REQUIRE_EQ(refused.size(), 1);
  CHECK_EQ(refused[0].span.file, "h.h");
  CHECK_EQ(refused[0].span.line, 3);
  CHECK_EQ(refused[0].source_line, "#include \"/x\"");
}
