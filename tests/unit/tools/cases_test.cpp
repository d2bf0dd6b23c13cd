// SPDX-License-Identifier: Apache-2.0
#include "cases.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "command.hpp"
#include "compare.hpp"
#include "options.hpp"
#include "values.hpp"

#include "../support/messages.hpp"

using namespace quern;
using quern::test::holds;
using quern::test::message;
using namespace quern::cli;

namespace {

namespace fs = std::filesystem;

struct Folder {
  fs::path path = fs::temp_directory_path() / ("quern_cases_" + std::to_string(::getpid()));
  Folder() { fs::create_directories(path / "deep"); }
  ~Folder() { fs::remove_all(path); }
  fs::path write(const std::string& name, const std::string& text) const {
    std::ofstream(path / name) << text;
    return path / name;
  }
};

Array array_of(const char* text) { return std::get<Array>(parse_argument(text).value); }

}  // namespace

TEST_CASE("a case file is read with what its cases share, files beside it") {
  const Folder folder;
  const fs::path file = folder.write("k.case.toml", R"(
kernel  = "k.cu::k"
options = ["--fmad=false"]
[[case]]
name   = "one"
args   = ["#1", "x.npy"]
grid   = "4"
block  = "16x16"
shared = 100
expect = { "y" = { file = "y.npy", rtol = 1e-5 }, "#2" = { value = [[1, 2.5], [true, 4]] } }
bench  = { flops = "2" }
[[case]]
name   = "two"
kernel = "other.cu"
error  = "shape"
)");
  const std::vector<Case> cases = read_cases(file);
  REQUIRE(cases.size() == 2);
  CHECK(cases[0].kernel == (folder.path / "k.cu::k").string());
  CHECK(cases[0].load.options == std::vector<std::string>{"--fmad=false"});
  CHECK(cases[0].launch.args == std::vector<std::string>{"#1", "x.npy"});
  CHECK(cases[0].launch.shared_bytes == 100);
  CHECK(cases[0].launch.folder == folder.path.string());
  REQUIRE(cases[0].bench.has_value());
  REQUIRE(cases[0].expectations.size() == 2);
  CHECK(std::get<ExpectedValues>(cases[0].expectations[0].expected).numbers.size() == 4);
  CHECK(std::get<ExpectedFile>(cases[0].expectations[1].expected).path == folder.path / "y.npy");
  CHECK(cases[0].expectations[1].rtol == 1e-5);
  CHECK(cases[1].kernel == (folder.path / "other.cu").string());
  CHECK(cases[1].error == "shape");
}

TEST_CASE("a broken case file is refused with file, line and what is wrong") {
  const Folder folder;
  const auto refused = [&](const std::string& text) {
    return message([&] { static_cast<void>(read_cases(folder.write("b.case.toml", text))); });
  };
  CHECK(holds(refused("kernel = \"k.cu\"\n[[case]]\nname = \"a\"\nepxect = {}\n"),
              "b.case.toml:4:1: the key 'epxect'"));
  CHECK(holds(refused("kernel = \"k.cu\"\n[[case]]\nname = \"a\"\n"), "expects nothing"));
  CHECK(holds(refused("kernel = \"k.cu\"\n"), "no [[case]]"));
  CHECK(holds(refused("[[case]]\nname = \"a\"\nerror = \"x\"\n"), "names a kernel"));
  CHECK(holds(
      refused("kernel = \"k.cu\"\n[[case]]\nname = \"a\"\nexpect = { y = { value = 1, sha256 = \"\" } }\n"),
      "exactly one"));
  CHECK(holds(refused("kernel = \n"), "b.case.toml:1"));
}

TEST_CASE("case files are found in folders, in order") {
  const Folder folder;
  folder.write("b.case.toml", "");
  folder.write("deep/a.case.toml", "");
  folder.write("other.toml", "");
  const std::vector<fs::path> found = find_case_files(folder.path);
  CHECK(found == std::vector<fs::path>{folder.path / "b.case.toml", folder.path / "deep" / "a.case.toml"});
  CHECK(holds(message([&] { static_cast<void>(find_case_files(folder.path / "none")); }),
              "no such file or folder"));
}

TEST_CASE("arrays are compared by dtype, shape and value, and the first difference is told") {
  CHECK_FALSE(difference(array_of("arange(6, float32)"), array_of("arange(6, float32)"), 0, 0));
  CHECK(difference(array_of("arange(6, float32)"), array_of("arange(6, float64)"), 0, 0) ==
        "it holds float32, expected float64");
  CHECK(difference(array_of("zeros((2,3), int8)"), array_of("zeros((3,2), int8)"), 0, 0) ==
        "its shape is (2, 3), expected (3, 2)");
  CHECK(difference(array_of("full((2,2), 3, int32)"), array_of("full((2,2), 4, int32)"), 0, 0) ==
        "[0, 0] is 3, expected 4; 4 of 4 values are wrong");
}

TEST_CASE("bounds are relative to what is expected, and NaN equals NaN") {
  CHECK_FALSE(difference(array_of("full(3, 1.00001, float64)"), array_of("ones(3)"), 1e-4, 0));
  CHECK(difference(array_of("full(3, 1.001, float64)"), array_of("ones(3)"), 1e-4, 0));
  CHECK_FALSE(difference(array_of("full(3, 0.001, float64)"), array_of("zeros(3)"), 0, 0.01));
  CHECK_FALSE(difference(array_of("full(3, nan, float32)"), array_of("full(3, nan, float32)"), 0, 0));
  CHECK(difference(array_of("full(3, inf, float32)"), array_of("ones(3, float32)"), 1e9, 1e9));
}

TEST_CASE("numbers are compared after rounding to the array's type") {
  CHECK_FALSE(difference(array_of("full(4, 0.1, float32)"), ExpectedValues{{Scalar{0.1, {}}}, true}, 0, 0));
  CHECK(difference(array_of("full(4, 0.1, float32)"), ExpectedValues{{Scalar{0.1, {}}}, false}, 0, 0) ==
        "it has 4 values, expected 1");
}

TEST_CASE("JSON values keep what JSON lacks as strings, and complex numbers as pairs") {
  const auto value = [](const char* text) {
    const Array array = array_of(text);
    return json_value(array.element, array.data()).dump();
  };
  CHECK(value("full(1, nan, float32)") == "\"nan\"");
  CHECK(value("full(1, -inf, float64)") == "\"-inf\"");
  CHECK(value("full(1, 18446744073709551615, uint64)") == "18446744073709551615");
  CHECK(value("ones(1, bool)") == "true");
  CHECK(value("full(1, 2, complex64)") == "[2.0,0.0]");
  CHECK(value("full(1, 2.5, bfloat16)") == "2.5");
}

TEST_CASE("SHA-256 is what sha256sum prints") {
  const char text[] = "abc";
  CHECK(sha256_hex(std::as_bytes(std::span(text, 3))) ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_CASE("negative numbers pass the option parser") {
  for (const char* number : {"-2.5", "-1", "-.5", "-inf", "-nan"}) {
    CHECK(mark_negative(number) != number);
    CHECK(unmark_negative(mark_negative(number)) == number);
  }
  for (const char* word : {"-D", "--grid", "-", "3", ""}) CHECK(mark_negative(word) == word);
}

TEST_CASE("a kernel's name follows its file") {
  using Pair = std::pair<std::string, std::string>;
  CHECK(split_kernel("a/b.cu::k<ns::T>") == Pair{"a/b.cu", "k<ns::T>"});
  CHECK(split_kernel("a::b/c.ptx::k") == Pair{"a::b/c.ptx", "k"});
  CHECK(split_kernel("c.cu") == Pair{"c.cu", ""});
}
