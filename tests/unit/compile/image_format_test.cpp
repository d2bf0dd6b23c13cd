// SPDX-License-Identifier: Apache-2.0
#include "compile/image_format.hpp"

#include <doctest/doctest.h>

#include <random>

using namespace quern;

namespace {

Span span_of(const char* file, std::uint32_t line) { return {file, line, 3, 9}; }

/// An image in which no two fields of one type have the same value.
abi::PtxImage sample() {
  abi::PtxImage image;
  image.ptx = ".version 8.0\n.target sm_89\n";
  image.machine_code = {std::byte{0x7f}, std::byte{0}, std::byte{0xff}};
  abi::EntryInfo entry{"scale<float>", "_Z5scale", {}, 4096, 128};
  entry.parameters.push_back({"x", "const float*", 8, 16, 4, true, false, "float"});
  entry.parameters.push_back({"y", "int", 24, 5, 2, false, true, ""});
  image.entries = {entry, {"plain", "plain", {}, 0, 0}};
  image.variables = {{"ns::table", "_ZN2ns5tableE"}, {"gain", "gain_lowered"}};
  image.cuda_source = "extern \"C\" __global__ void plain() {}\n";
  image.of_python = true;
  Diagnostic warning;
  warning.severity = Severity::warning;
  warning.code = "nvrtc-177";
  warning.span = span_of("a.cu", 12);
  warning.message = "declared but never referenced";
  warning.notes = {{span_of("b.cuh", 7), "declared here"}, {{}, "another note"}};
  warning.hint = "remove it";
  warning.source_line = "  int unused;";
  Diagnostic note;
  note.severity = Severity::note;
  image.log = {warning, note};
  image.compile_ms = 12.25;
  return image;
}

void check_same(const Span& a, const Span& b) { CHECK(a == b); }

void check_same(const Diagnostic& a, const Diagnostic& b) {
  CHECK(a.severity == b.severity);
  CHECK(a.code == b.code);
  check_same(a.span, b.span);
  CHECK(a.message == b.message);
  REQUIRE(a.notes.size() == b.notes.size());
  for (std::size_t i = 0; i < a.notes.size(); ++i) {
    check_same(a.notes[i].span, b.notes[i].span);
    CHECK(a.notes[i].message == b.notes[i].message);
  }
  CHECK(a.hint == b.hint);
  CHECK(a.source_line == b.source_line);
}

void check_same(const abi::EntryInfo& a, const abi::EntryInfo& b) {
  CHECK(a.name == b.name);
  CHECK(a.lowered_name == b.lowered_name);
  CHECK(a.static_shared_bytes == b.static_shared_bytes);
  CHECK(a.max_threads == b.max_threads);
  REQUIRE(a.parameters.size() == b.parameters.size());
  for (std::size_t i = 0; i < a.parameters.size(); ++i) {
    const abi::ParameterInfo &p = a.parameters[i], &q = b.parameters[i];
    CHECK(p.name == q.name);
    CHECK(p.type == q.type);
    CHECK(p.offset == q.offset);
    CHECK(p.size == q.size);
    CHECK(p.align == q.align);
    CHECK(p.pointer == q.pointer);
    CHECK(p.read_only == q.read_only);
    CHECK(p.pointee == q.pointee);
  }
}

}  // namespace

TEST_SUITE_BEGIN("image format");

TEST_CASE("an image that was written is read as it was") {
  const abi::PtxImage image = sample();
  const Expected<abi::PtxImage> read = compile::read_image(compile::write_image(image));
  REQUIRE(read);
  CHECK(read->ptx == image.ptx);
  CHECK(read->machine_code == image.machine_code);
  REQUIRE(read->entries.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) check_same(read->entries[i], image.entries[i]);
  REQUIRE(read->variables.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(read->variables[i].name == image.variables[i].name);
    CHECK(read->variables[i].lowered_name == image.variables[i].lowered_name);
  }
  CHECK(read->cuda_source == image.cuda_source);
  CHECK(read->of_python);
  REQUIRE(read->log.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) check_same(read->log[i], image.log[i]);
  CHECK(read->compile_ms == image.compile_ms);
}

TEST_CASE("entries of Kernel Python have the facts that the PTX tells, and those of other languages do not") {
  abi::PtxImage image = sample();
  image.ptx += ".global .align 8 .b8 quern_failure[368];\nmov.u32 %r1, %envreg2;\n";
  for (const bool of_python : {true, false}) {
    image.of_python = of_python;
    const Expected<abi::PtxImage> read = compile::read_image(compile::write_image(image));
    REQUIRE(read);
    for (const abi::EntryInfo& entry : read->entries) {
      CHECK(entry.reports_failures == of_python);
      CHECK(entry.grid_wide == of_python);
    }
  }
  const Expected<abi::PtxImage> without = compile::read_image(compile::write_image(sample()));
  REQUIRE(without);
  for (const abi::EntryInfo& entry : without->entries)
    CHECK_FALSE((entry.reports_failures || entry.grid_wide));
}

TEST_CASE("an empty image is written and read") {
  const Expected<abi::PtxImage> read = compile::read_image(compile::write_image({}));
  REQUIRE(read);
  CHECK(read->ptx.empty());
  CHECK_FALSE(read->of_python);
}

TEST_CASE("an image that ends early, or goes on behind its end, is refused") {
  const std::string bytes = compile::write_image(sample());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const Expected<abi::PtxImage> read = compile::read_image(std::string_view(bytes).substr(0, size));
    REQUIRE_FALSE(read);
    CHECK(read.errors().front().code == "image-damaged");
  }
  CHECK_FALSE(compile::read_image(bytes + '\0'));
}

TEST_CASE("a format that is not known is refused by its number") {
  std::string bytes = compile::write_image(sample());
  bytes[0] = 77;
  const Expected<abi::PtxImage> read = compile::read_image(bytes);
  REQUIRE_FALSE(read);
  CHECK(read.errors().front().code == "image-version");
  CHECK(read.errors().front().message == "the compiled code has format 77, and this quern reads 1");
}

TEST_CASE("arbitrary changes give an image or an error, and take no more memory than the bytes have") {
  const std::string bytes = compile::write_image(sample());
  std::mt19937 random(20260101);
  std::size_t refused = 0;
  for (int round = 0; round < 10000; ++round) {
    std::string changed = bytes;
    for (std::uint32_t i = 0; i <= random() % 4; ++i)
      changed[random() % changed.size()] = static_cast<char>(random() & 0xff);
    refused += compile::read_image(changed) ? 0 : 1;
  }
  CHECK(refused > 1000);  // lengths and counts are half of the bytes
}

TEST_SUITE_END();
