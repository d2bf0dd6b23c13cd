// SPDX-License-Identifier: Apache-2.0
#include "compile/source/directives.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "compile/options.hpp"
#include "compile/toolkit/nvrtc_environment.hpp"

using namespace quern::compile;

namespace {

std::vector<std::string> names_of(const Directives& directives) {
  std::vector<std::string> names;
  for (const IncludeName& each : directives.includes) names.push_back(each.name);
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("includes are found in every spelling that needs no preprocessor") {
  for (const char* text :
       {"#include \"a.h\"\n", "  #\tinclude <a.h> // x\n", "/* x\n */ # include \"a.h\"",
        "#inc\\\nlude \"a.h\"\n", "#include \"a\\\n.h\"\n", "#include \\\r\n \"a.h\"\n",
        "#\v\finclude <a.h>\n", "#define G \"/*\"\n#include \"a.h\"\n",
        "#define G '\"'\n#include \"a.h\"\n// \"\n", "#error don't /* x */\n#include \"a.h\"\n",
        "#define N 1'000'000 /* ' */\n#include <a.h>\n",
        "const char* s = R\"(/*)\";\n#include \"a.h\"\n//*/\n", "#if __has_include(\"a.h\")\n",
        "#if defined(__has_include) && __has_include( <a.h> )\n", "#elif __has_include(<a.h>)\n",
        "#if __has_\\\ninclude(\"a.h\")\n", "#define HAVE __has_include(\"a.h\")\n"}) {
    CAPTURE(text);
    const Directives found = read_directives(text);
    CHECK(found.unsure == "");
    CHECK(names_of(found) == Names{"a.h"});
  }
  CHECK(read_directives("#include \"a.h\"\n").includes[0].quoted);
  CHECK_FALSE(read_directives("#include <a.h>\n").includes[0].quoted);
}

TEST_CASE("nothing is found where a preprocessor sees no directive") {
  for (const char* text :
       {"// #include \"a.h\"\n", "/*\n#include \"a.h\"\n*/\n",
        "const char* s = R\"(\n#include \"a.h\"\n)\";\n", "// comment \\\n#include \"a.h\"\n",
        "int x; #include \"a.h\"\n", "#ifdef __has_include\n#endif\n", "#if defined(__has_include)\n#endif\n",
        "#if defined __has_include\n#endif\n", "#pragma unroll\n"}) {
    CAPTURE(text);
    const Directives found = read_directives(text);
    CHECK(found.unsure == "");
    CHECK(found.includes.empty());
  }
}

TEST_CASE("a text that a preprocessor may read otherwise is reported as unsure") {
  for (const char* text : {"#include NAME\n",
                           "#include_next <a.h>\n",
                           "#embed \"a.bin\"\n",
                           "#import \"a.h\"\n",
                           "%:include \"a.h\"\n",
                           "%\\\n:include \"a.h\"\n",
                           "?\?=include \"a.h\"\n",
                           "#include \"a?\?/\n.h\"\n",
                           "#include /* x */ \"a.h\"\n",
                           "#define H __has_include\n#if H(\"a.h\")\n#endif\n",
                           "#if __has_include /*\n*/ (\"a.h\")\n",
                           "#if __has_include(NAME)\n",
                           "#if __has_include_next(<a.h>)\n",
                           "#if __has_embed(\"a.bin\")\n",
                           "#define CAT(a, b) a##b\n#if CAT(__has_, include)(\"a.h\")\n#endif\n",
                           "#define CAT(a, b) a##b\n#if CAT(__, has_include)(\"a.h\")\n#endif\n",
                           "const char* t = __TIME__;\n",
                           "#define WHEN __DATE__\n",
                           "#if __TIMESTAMP__\n",
                           "const char* s = R\"(\\\n)\";\n",
                           "int a; \\ int b;\n",
                           "#define R R\"(x)\"\n",
                           "\xef\xbb\xbf#include \"a.h\"\n",
                           "int a;\r#include \"a.h\"\n",
                           "#pragma include_alias(\"a.h\", \"b.h\")\n",
                           "#\\u0069nclude \"a.h\"\n"}) {
    CAPTURE(text);
    CHECK(read_directives(text).unsure != "");
  }
  CHECK(read_directives(std::string("int a;\0#include \"a.h\"\n", 22)).unsure != "");
}

TEST_CASE("C++03 has no raw strings") {
  const char* const text = "const char* s = R\"(/*\";\n#include \"a.h\"\n//)\"*/\n";
  CHECK(read_directives(text, false).unsure != "");
  const auto options = read_options({"--std=c++03"});
  REQUIRE(options);
  CHECK_FALSE(options->raw_strings);
  CHECK(read_options({"--std=c++17"})->raw_strings);
}

TEST_CASE("macros of options may ask for files") {
  for (const char* macro : {"H=__has_include(\"a.h\")", "H=__has_include", "P=__has_", "T=__TIME__"}) {
    CAPTURE(macro);
    CHECK(read_macro_option(macro).unsure != "");
  }
  for (const char* macro : {"N", "N=3", "NAME=\"text\"", "HEADER=<a.h>", "F(x)=x"}) {
    CAPTURE(macro);
    CHECK(read_macro_option(macro).unsure == "");
  }
}

TEST_CASE("blanks that NVRTC removes from an option are removed here") {
  for (const char* option : {"-I d1", " -Id1", "\t-Id1", "-Id1 "}) {
    CAPTURE(option);
    const auto options = read_options({option});
    REQUIRE(options);
    CHECK(options->include_directories == Names{"d1"});
    CHECK_FALSE(options->cacheable);
  }
  CHECK(read_options({"-Id1"})->cacheable);
  const auto apart = read_options({"-I", " d2", " -include", "a.h "});
  REQUIRE(apart);
  CHECK(apart->include_directories == Names{"d2"});
  CHECK(apart->pre_includes == Names{"a.h"});
  CHECK_FALSE(apart->cacheable);
  CHECK_FALSE(read_options({" -time=o.csv"})->cacheable);
}

TEST_CASE("variables that change what NVRTC does are noticed") {
  CHECK(nvrtc_environment().is_plain());
  ::setenv("NV_NVVM_VERSION", "1.0", 1);
  CHECK(nvrtc_environment().values == std::string("NV_NVVM_VERSION=1.0") + '\0');
  CHECK(nvrtc_environment().uncached == "");
  ::setenv("NVRTC_APPEND_FLAGS", "-DX", 1);
  CHECK(nvrtc_environment().uncached == "NVRTC_APPEND_FLAGS");
  ::unsetenv("NV_NVVM_VERSION");
  ::unsetenv("NVRTC_APPEND_FLAGS");
}
