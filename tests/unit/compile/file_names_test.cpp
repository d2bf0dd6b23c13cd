// SPDX-License-Identifier: Apache-2.0
#include "compile/source/file_names.hpp"

#include <doctest/doctest.h>

#include <filesystem>

using namespace quern::compile;

namespace {

std::string restored(const std::string& name, const std::vector<std::string>& absolute = {}) {
  std::string ptx = "}\n\t.file\t1 \"" + name + "\"\n";
  restore_file_names(ptx, absolute);
  const std::size_t quote = ptx.find('"');
  return ptx.substr(quote + 1, ptx.rfind('"') - quote - 1);
}

}  // namespace

TEST_CASE("what NVRTC completed with the working directory is relative again") {
  const std::string here = std::filesystem::current_path().string();
  CHECK(restored(here + "/k.cu") == "k.cu");
  CHECK(restored(here + "/../up/./k.cu") == "../up/./k.cu");
  CHECK(restored(here + "/<string>") == "<string>");
  CHECK(restored(here + "/a \\\"b\\\".cu") == "a \\\"b\\\".cu");
  CHECK(restored("/elsewhere/k.cu") == "/elsewhere/k.cu");
  CHECK(restored("k.cu") == "k.cu");
}

TEST_CASE("the working directory may be the root") {
  const std::filesystem::path here = std::filesystem::current_path();
  std::filesystem::current_path("/");
  const std::string relative = restored("/dir/k.cu"), given = restored("/inc/h.cuh", {"/inc"});
  std::filesystem::current_path(here);
  CHECK(relative == "dir/k.cu");
  CHECK(given == "/inc/h.cuh");
}

TEST_CASE("what was given with its whole path keeps it") {
  const std::string here = std::filesystem::current_path().string();
  CHECK(restored(here + "/k.cu", {here + "/k.cu"}) == here + "/k.cu");
  CHECK(restored(here + "/inc/h.cuh", {here + "/inc"}) == here + "/inc/h.cuh");
  CHECK(restored(here + "/include/h.cuh", {here + "/inc"}) == "include/h.cuh");
}

TEST_CASE("directives name files in quotes and in angle brackets") {
  CHECK(spelled_names(
            "#include <a/b.h>\n#include \"c.h\"\n#line 3 \"d.cu\"\n#define X 1\nint x;\n# 4 \"e.cu\"\n") ==
        std::vector<std::string>{"a/b.h", "c.h", "d.cu", "e.cu"});
}
