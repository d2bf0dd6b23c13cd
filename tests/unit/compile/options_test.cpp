// SPDX-License-Identifier: Apache-2.0
#include "compile/options.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace quern;
using namespace quern::compile;

namespace {
using Options = std::vector<std::string>;
bool has(const Options& options, const std::string& option) {
  return std::find(options.begin(), options.end(), option) != options.end();
}
}  // namespace

TEST_CASE("include directories are read in every spelling, in order") {
  const auto read = read_options(
      {"-Ione", "-I=two", "-I", "three", "--include-path=four", "-include-path", "five", "-DI=no"});
  REQUIRE(read);
  CHECK(read->include_directories == Options{"one", "two", "three", "four", "five"});
}

TEST_CASE("options that would change the target or the output are refused, all of them at once") {
  const auto read = read_options({"-arch=sm_90", "--gpu-architecture", "compute_75", "-dlto", "--optix-ir"});
  REQUIRE_FALSE(read);
  REQUIRE(read.errors().size() == 4);
  CHECK(read.errors()[0].message.find("'-arch=sm_90'") != std::string::npos);
  CHECK_FALSE(read.errors()[0].hint.empty());
}

TEST_CASE("broken options are refused before they reach C strings") {
  CHECK_FALSE(read_options({""}));
  CHECK_FALSE(read_options({std::string("-D\0X", 4)}));
  CHECK_FALSE(read_options({"-I"}));
}

TEST_CASE("our options give way to the user's, which come after ours, and the toolkit's directories last") {
  const auto plain = read_options({});
  const Options defaults = nvrtc_options("compute_89", {}, *plain, {"/toolkit"});
  CHECK(defaults.front() == "--gpu-architecture=compute_89");
  CHECK(has(defaults, "--std=c++20"));
  CHECK(has(defaults, "--generate-line-info"));
  CHECK(defaults.back() == "--include-path=/toolkit");
  const Options user = {"-std=c++17", "-G", "-Imine", "--modify-stack-limit=true"};
  const auto read = read_options(user);
  REQUIRE(read);
  CHECK(read->debug);
  const Options merged = nvrtc_options("sm_90", user, *read, {"/toolkit"});
  CHECK_FALSE(has(merged, "--std=c++20"));
  CHECK_FALSE(has(merged, "--generate-line-info"));
  CHECK_FALSE(has(merged, "--modify-stack-limit=false"));
  CHECK(std::find(merged.begin(), merged.end(), "-Imine") <
        std::find(merged.begin(), merged.end(), "--include-path=/toolkit"));
}

TEST_CASE("what the key cannot cover is not cached, relocatable code has no machine code") {
  CHECK_FALSE(read_options({"--create-pch=x.pch"})->cacheable);
  CHECK(read_options({"-DX"})->cacheable);
  CHECK(read_options({"-rdc=true"})->relocatable);
  CHECK_FALSE(read_options({"-rdc=false"})->relocatable);
  CHECK(read_options({"-dc"})->relocatable);
}

TEST_CASE("a value that looks like an option is a value") {
  const auto read = read_options({"-D", "-arch=sm_90"});
  REQUIRE(read);
}
