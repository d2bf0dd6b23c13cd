// SPDX-License-Identifier: Apache-2.0
#include "serve/toolkit_identity.hpp"

#include <doctest/doctest.h>

#include "../support/scratch.hpp"

using namespace quern;
using namespace quern::serve;
using test::Scratch;

namespace {

/// An installation with a file of each kind.
struct Installation {
  Scratch scratch;
  WorkerHello hello;
  Installation() {
    hello.nvrtc_path = scratch.write("lib64/libnvrtc.so.13", "library");
    scratch.write("lib64/libnvrtc-builtins.so.13", "builtins");
    scratch.write("include/sub/a.h", "header");
    hello.include_directories = {(scratch.path / "include").string()};
    hello.quern = "one";
  }
  std::string digest() const { return identify_toolkit(hello, nullptr).identity.digest; }
};

}  // namespace

TEST_CASE("equal installations have one identity, wherever they are") {
  const Installation one, other;
  CHECK(one.digest() == other.digest());
  CHECK(toolkit_stamp(one.hello) != toolkit_stamp(other.hello));
}

TEST_CASE("each part of an installation, and quern's own part, is in its identity") {
  const Installation one;
  Installation other;
  SUBCASE("NVRTC") { other.scratch.write("lib64/libnvrtc.so.13", "another"); }
  SUBCASE("a library beside it") { other.scratch.write("lib64/libnvrtc-builtins.so.13", "others"); }
  SUBCASE("a header") { other.scratch.write("include/sub/a.h", "HEADER"); }
  SUBCASE("a new header") { other.scratch.write("include/b.h", ""); }
  SUBCASE("quern") { other.hello.quern = "two"; }
  CHECK(one.digest() != other.digest());
}
