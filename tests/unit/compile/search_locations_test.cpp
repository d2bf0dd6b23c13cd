// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>

#include "../support/scratch.hpp"
#include "compile/source/includes.hpp"
#include "compile/toolkit/toolkit.hpp"

using namespace quern;
using namespace quern::compile;
using test::Scratch;
namespace fs = std::filesystem;

namespace {

const Candidate* row(const std::vector<Candidate>& rows, std::string_view origin) {
  for (const Candidate& candidate : rows)
    if (candidate.origin == origin) return &candidate;
  return nullptr;
}

}  // namespace

TEST_CASE("places come in the documented order") {
  SearchInputs around;
  around.nvrtc_file = "/a/libnvrtc.so";
  around.cuda_home = "/home";
  around.cuda_path = "/path";
  around.system_roots = {"/usr/local/cuda"};
  around.loader_names = {"libnvrtc.so"};
  around.fetched_roots = {"/fetched"};
  around.python_roots = {"/site/nvidia/cu13"};
  std::vector<std::string> paths;
  for (const SearchLocation& place : search_locations(around)) paths.push_back(place.path);
  CHECK(paths == std::vector<std::string>{"/a/libnvrtc.so", "/home", "/path", "/usr/local/cuda",
                                          "libnvrtc.so", "/fetched", "/site/nvidia/cu13"});
}

TEST_CASE("a build finds what tools/setup fetched into its source tree") {
  const std::vector<std::string> roots = surroundings().fetched_roots;
  REQUIRE(roots.size() == 2);
  CHECK(roots[0] == QUERN_SOURCE_ROOT "/.quern/cuda");
  CHECK(roots[1].ends_with("/quern/cuda"));
}

TEST_CASE("quern in a Python environment finds the wheels beside it, with no variable set") {
  const Scratch scratch;
  const std::string site = (scratch.path / "lib/python3.11/site-packages").string();
  scratch.write("lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc.so.13", "");
  scratch.write("lib/python3.11/site-packages/quern/lib/libquern.so.0", "");
  const SearchEnvironment none;
  const std::vector<std::string> roots =
      surroundings_of(none, site + "/quern/lib/libquern.so.0").python_roots;
  REQUIRE_FALSE(roots.empty());
  CHECK(roots[0] == site + "/nvidia/cu13");
  const std::vector<std::string> elsewhere = surroundings_of(none, "/opt/lib/libquern.so.0").python_roots;
  CHECK(std::find(elsewhere.begin(), elsewhere.end(), roots[0]) == elsewhere.end());
}

TEST_CASE("hiding the toolkit passes over the variables and the system's directories and says so") {
  SearchInputs around;
  around.hide_toolkit = true;
  around.cuda_home = "/home";
  around.system_roots = {"/usr/local/cuda"};
  around.fetched_roots = {"/fetched"};
  const Toolkit toolkit = find_toolkit(around);
  CHECK(row(toolkit.nvrtc_candidates, "CUDA_HOME")->state == Candidate::State::hidden);
  CHECK(row(toolkit.nvrtc_candidates, "CUDA_PATH")->state == Candidate::State::not_set);
  CHECK(row(toolkit.nvrtc_candidates, "system toolkit")->state == Candidate::State::hidden);
  CHECK(row(toolkit.nvrtc_candidates, "fetched by tools/setup")->state == Candidate::State::missing);
  CHECK(toolkit.missing.code == "nvrtc-missing");
  CHECK(toolkit.missing.notes.size() == toolkit.nvrtc_candidates.size());
}

TEST_CASE("a library that is no NVRTC is unusable, and the reason is kept") {
  const Scratch scratch;
  scratch.write("lib64/libnvrtc.so", "not a library");
  SearchInputs around;
  around.cuda_home = scratch.path.string();
  const Toolkit toolkit = find_toolkit(around);
  REQUIRE(row(toolkit.nvrtc_candidates, "CUDA_HOME") != nullptr);
  CHECK(row(toolkit.nvrtc_candidates, "CUDA_HOME")->state == Candidate::State::unusable);
  CHECK(row(toolkit.nvrtc_candidates, "CUDA_HOME")->reason.find("libnvrtc.so") != std::string::npos);
  CHECK_FALSE(toolkit.nvrtc);
}

TEST_CASE("another library under NVRTC's name is refused by the function it lacks") {
  const auto opened = Nvrtc::open("libm.so.6");
  REQUIRE_FALSE(opened);
  CHECK(opened.errors()[0].message.find("it has no function nvrtc") != std::string::npos);
}

TEST_CASE("QUERN_NVRTC names the only library that is tried") {
  SearchInputs around = surroundings();
  around.nvrtc_file = "/nonexistent/libnvrtc.so";
  const Toolkit toolkit = find_toolkit(around);
  CHECK_FALSE(toolkit.nvrtc);
  CHECK(row(toolkit.nvrtc_candidates, "QUERN_NVRTC")->state == Candidate::State::unusable);
  CHECK(row(toolkit.nvrtc_candidates, "loader path")->state == Candidate::State::not_tried);
}

TEST_CASE("include directories are found with the libraries' own beside them, and tell their version") {
  const Scratch scratch;
  scratch.write("include/cuda_fp16.h", "");
  scratch.write("include/cuda.h", "#define OTHER 1\n#define CUDA_VERSION 12040\n");
  scratch.write("include/cccl/cuda/std/array", "");
  const auto found = include_directories_under(scratch.path.string());
  REQUIRE(found.size() == 2);
  CHECK(found[1].ends_with("include/cccl"));
  CHECK(cuda_version_of(found[0]) == 12040);
  CHECK(cuda_version_of(scratch.path.string()) == 0);
  CHECK(include_directories_under("/nonexistent").empty());
}

TEST_CASE("an include's contents are part of the digest, wherever it may be found") {
  const Scratch scratch;
  const std::string main = (scratch.path / "kernel.cu").string();
  scratch.write("inc/a.h", "#include \"b.h\"\n");
  const std::string inner = scratch.write("inc/b.h", "int b = 1;\n");
  const IncludeSearch search{{(scratch.path / "inc").string()}, {}, {}};
  const std::string source = "#include <a.h>\n";
  const IncludeScan first = scan_includes(source, main, search);
  CHECK(first.complete);
  CHECK(scan_includes(source, main, search).digest == first.digest);
  scratch.write("inc/b.h", "int b = 2;\n");
  const IncludeScan changed = scan_includes(source, main, search);
  CHECK(changed.digest != first.digest);
  // A file that could shadow it also counts as a change, and so does a file that was missing before.
  scratch.write("a.h", "");
  CHECK(scan_includes(source, main, search).digest != changed.digest);
  fs::remove(inner);
  CHECK(scan_includes(source, main, search).digest != changed.digest);
}

TEST_CASE("a header that is missing now and there later changes the digest") {
  const Scratch scratch;
  const std::string main = (scratch.path / "kernel.cu").string();
  const std::string source = "#if __has_include(<opt.h>)\n#include <opt.h>\n#endif\n#include \"x/y.h\"\n";
  const IncludeSearch search{{(scratch.path / "inc").string()}, {}, {}};
  const IncludeScan before = scan_includes(source, main, search);
  CHECK(before.complete);
  scratch.write("inc/opt.h", "");
  const IncludeScan after = scan_includes(source, main, search);
  CHECK(after.digest != before.digest);
  scratch.write("x/y.h", "");
  CHECK(scan_includes(source, main, search).digest != after.digest);
}

TEST_CASE("what only a preprocessor can name makes the scan incomplete") {
  for (const char* source : {"#define H <a.h>\n#include H\n", "#include_next <a.h>\n", "#include\n"})
    CHECK_FALSE(scan_includes(source, "k.cu", {}).complete);
  CHECK(scan_includes("// #include H\nconst char* s = \"#include H\";\n", "k.cu", {}).complete);
}

TEST_CASE("files that include each other end the scan") {
  const Scratch scratch;
  scratch.write("a.h", "#include \"b.h\"\n");
  scratch.write("b.h", "#include \"a.h\"\n");
  CHECK(scan_includes("#include \"a.h\"\n", (scratch.path / "k.cu").string(), {}).complete);
}

TEST_CASE("the toolkit's directories are not read file by file") {
  const Scratch scratch;
  scratch.write("toolkit/cuda/std/array", "#include H\n");
  const std::string toolkit = (scratch.path / "toolkit").string();
  CHECK(scan_includes("#include <cuda/std/array>\n", "k.cu", {{toolkit + "/cuda"}, {}, {toolkit}}).complete);
}
