// SPDX-License-Identifier: Apache-2.0
// Images of machine code as bytes: written images can be read; other bytes are rejected.
#include <doctest/doctest.h>

#include <cstring>
#include <functional>
#include <random>
#include <string>

#include "cpu/code/image.hpp"

using namespace quern;
using namespace quern::cpu;

namespace {

/// An image in which every field has a value.
CodeImage full_image() {
  CodeImage image;
  CodeFacts& facts = image.facts;
  facts.frame_bytes = 4096;
  facts.waits = true;
  facts.calls = true;
  facts.local = {.bytes = 1000, .activation_bytes = 200, .calls = true};
  facts.symbols = {{"table", ir::Space::constant, 0}, {"tile", ir::Space::shared, 128}};
  facts.locations = {{.file = "a.cu", .line = 7, .column = 3, .ptx_line = 20, .inlined_at = ir::kNone},
                     {.file = "", .line = 0, .column = 0, .ptx_line = 21, .inlined_at = 0},
                     {.file = "a.cu", .line = 9, .column = 1, .ptx_line = 22, .inlined_at = 1}};
  facts.digest = 0x0123456789abcdefu;
  LinkedCode& code = image.code;
  code.bytes.assign(2 * kImageAlignment, '\x90');
  code.text_bytes = kImageAlignment;
  code.entry = 16;
  code.helpers = {"memcpy", "quern_cpu_trap"};
  code.addresses = {kImageAlignment + 8};
  const std::uint64_t target = 16;
  std::memcpy(code.bytes.data() + code.addresses[0], &target, sizeof target);
  return image;
}

bool same(const ir::Location& a, const ir::Location& b) {
  return a.file == b.file && a.line == b.line && a.column == b.column && a.ptx_line == b.ptx_line &&
         a.inlined_at == b.inlined_at;
}

/// The loader and the device depend on these conditions.
void check_sound(const CodeImage& image) {
  const LinkedCode& code = image.code;
  REQUIRE(code.bytes.size() % kImageAlignment == 0);
  REQUIRE(code.text_bytes <= code.bytes.size());
  REQUIRE(code.entry < code.text_bytes);
  for (const std::uint64_t at : code.addresses) {
    REQUIRE(at >= code.text_bytes);
    REQUIRE(at + 8 <= code.bytes.size());
  }
  for (std::uint32_t i = 0; i < image.facts.locations.size(); ++i) {
    const std::uint32_t outer = image.facts.locations[i].inlined_at;
    REQUIRE((outer == ir::kNone || outer < i));
  }
}

void check_refused(const std::function<void(CodeImage&)>& change) {
  CodeImage image = full_image();
  change(image);
  CHECK_FALSE(read_image(write_image(image)));
}

}  // namespace

TEST_CASE("an image that was written is read with all its fields") {
  const CodeImage image = full_image();
  const Expected<CodeImage> read = read_image(write_image(image));
  REQUIRE(read);
  const CodeFacts &facts = read->facts, &given = image.facts;
  CHECK(facts.frame_bytes == given.frame_bytes);
  CHECK(facts.waits == given.waits);
  CHECK(facts.calls == given.calls);
  CHECK(facts.local == given.local);
  CHECK(facts.symbols == given.symbols);
  CHECK(facts.digest == given.digest);
  REQUIRE(facts.locations.size() == given.locations.size());
  for (std::size_t i = 0; i < facts.locations.size(); ++i)
    CHECK(same(facts.locations[i], given.locations[i]));
  CHECK(read->code.bytes == image.code.bytes);
  CHECK(read->code.text_bytes == image.code.text_bytes);
  CHECK(read->code.entry == image.code.entry);
  CHECK(read->code.helpers == image.code.helpers);
  CHECK(read->code.addresses == image.code.addresses);
}

TEST_CASE("flags and counts keep apart: an image of another kind is read as such") {
  CodeImage image = full_image();
  image.facts = {};
  image.code.helpers.clear();
  image.code.addresses.clear();
  const Expected<CodeImage> read = read_image(write_image(image));
  REQUIRE(read);
  CHECK_FALSE(read->facts.waits);
  CHECK_FALSE(read->facts.calls);
  CHECK_FALSE(read->facts.local.calls);
  CHECK(read->facts.symbols.empty());
  CHECK(read->facts.locations.empty());
  CHECK(read->code.helpers.empty());
}

TEST_CASE("a truncated image is refused, wherever it ends, and one with bytes behind it") {
  const std::string bytes = write_image(full_image());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    CHECK_FALSE(read_image(std::string_view(bytes).substr(0, size)));
  CHECK_FALSE(read_image(bytes + '\0'));
  CHECK_FALSE(read_image(std::string(1000, '\xff')));
}

TEST_CASE("fields that contradict each other are refused") {
  check_refused([](CodeImage& image) { image.code.entry = image.code.text_bytes; });
  check_refused([](CodeImage& image) { image.code.text_bytes = image.code.bytes.size() + 1; });
  check_refused([](CodeImage& image) { image.code.bytes.pop_back(); });
  check_refused([](CodeImage& image) { image.code.addresses[0] = 8; });  // in the code
  check_refused([](CodeImage& image) { image.code.addresses[0] = image.code.bytes.size() - 7; });
  check_refused([](CodeImage& image) { image.code.addresses[0] = ~std::uint64_t{0}; });
  check_refused([](CodeImage& image) { image.code.bytes[image.code.addresses[0] + 7] = '\x7f'; });
  check_refused([](CodeImage& image) { image.facts.locations[1].inlined_at = 1; });  // itself
  check_refused([](CodeImage& image) { image.facts.locations[0].inlined_at = 2; });
  check_refused([](CodeImage& image) { image.facts.local.activation_bytes = 1001; });
  check_refused([](CodeImage& image) { image.facts.local.bytes = std::uint64_t{1} << 40; });
  check_refused([](CodeImage& image) { image.facts.frame_bytes = std::uint64_t{1} << 40; });
  check_refused([](CodeImage& image) { image.facts.symbols[0].space = static_cast<ir::Space>(99); });
}

TEST_CASE("bytes changed at random are refused or make a sound image") {
  const std::string bytes = write_image(full_image());
  std::mt19937 random(12);
  int refused = 0;
  for (int round = 0; round < 10000; ++round) {
    std::string changed = bytes;
    for (unsigned i = 0; i <= random() % 4; ++i)
      changed[random() % changed.size()] = static_cast<char>(random());
    const Expected<CodeImage> read = read_image(changed);
    if (read)
      check_sound(*read);
    else
      ++refused;
  }
  CHECK(refused > 1000);  // other changes affect numbers, names or code, which the store's checksum protects
}
