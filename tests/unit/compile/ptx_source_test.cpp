// SPDX-License-Identifier: Apache-2.0
#include "compile/ptx/ptx_source.hpp"

#include <doctest/doctest.h>

using namespace quern;
using namespace quern::compile;

namespace {
abi::KernelRequest ptx(std::string text) {
  abi::KernelRequest request;
  request.source = {abi::Language::ptx, std::move(text), "k.ptx"};
  return request;
}
constexpr const char* kText =
    ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry _Z5scaleIfEvPT_(.param .u64 p) { ret; "
    "}\n";
}  // namespace

TEST_CASE("PTX passes through unchanged, with its entries listed") {
  const auto image = pass_ptx(ptx(kText));
  REQUIRE(image);
  CHECK(image->ptx == kText);
  REQUIRE(image->entries.size() == 1);
  CHECK(image->entries[0].lowered_name == "_Z5scaleIfEvPT_");
  CHECK(image->entries[0].name == "scale<float>");
  CHECK(image->entries[0].parameters[0].size == 8);
}

TEST_CASE("what cannot be PTX is refused with what to do") {
  for (const std::string& text : {std::string(), std::string("hello"), std::string("__global__ void k() {}"),
                                  std::string(".version 8.0\n\0binary", 20),
                                  std::string("\x7f"
                                              "ELF\0\0",
                                              6)}) {
    const auto refused = pass_ptx(ptx(text));
    REQUIRE_FALSE(refused);
    CHECK(refused.errors()[0].code == "ptx-text");
    CHECK(refused.errors()[0].span.file == "k.ptx");
    CHECK_FALSE(refused.errors()[0].hint.empty());
  }
}

TEST_CASE("compile options and name expressions mean nothing to PTX and are refused") {
  abi::KernelRequest options = ptx(kText);
  options.options = {"--fmad=false"};
  CHECK(pass_ptx(options).errors()[0].code == "ptx-options");
  abi::KernelRequest expressions = ptx(kText);
  expressions.name_expressions = {"scale<float>"};
  CHECK(pass_ptx(expressions).errors()[0].code == "unknown-kernel");
}

TEST_CASE("PTX that is newer than the driver is lowered or refused like NVRTC's") {
  abi::KernelRequest request = ptx(kText);
  request.target.driver_version = 11080;
  const auto image = pass_ptx(request);
  REQUIRE(image);
  CHECK(image->ptx.starts_with(".version 7.8\n"));
}
