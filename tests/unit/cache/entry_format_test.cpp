// SPDX-License-Identifier: Apache-2.0
#include "cache/entry_format.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace quern;
using namespace quern::cache;

namespace {

base::Digest key() {
  base::Digest digest;
  for (std::size_t i = 0; i < digest.bytes.size(); ++i) digest.bytes[i] = static_cast<std::uint8_t>(0xa0 + i);
  return digest;
}

std::string entry(std::string_view components, std::string_view content) {
  return entry_header(EntryKind::failed_compile, key(), components, content) + std::string(components) +
         std::string(content);
}

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes)
    for (const int shift : {4, 0}) text += "0123456789abcdef"[(static_cast<unsigned char>(c) >> shift) & 15];
  return text;
}

}  // namespace

TEST_CASE("an entry is laid out as docs/cache-format.md says") {
  const std::string bytes = entry("", "");
  REQUIRE(bytes.size() == 96);
  CHECK(hex(bytes.substr(0, 8)) == "717565726e0d0a1a");
  CHECK(hex(bytes.substr(8, 2)) == "0100");       // the format's version
  CHECK(hex(bytes.substr(10, 2)) == "0100");      // failed_compile
  CHECK(hex(bytes.substr(12, 4)) == "01000000");  // its version
  CHECK(hex(bytes.substr(16, 32)) == "a0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebf");
  CHECK(hex(bytes.substr(48, 16)) == std::string(32, '0'));  // the lengths
  // XXH3's own test values: the 128-bit hash of nothing.
  CHECK(hex(bytes.substr(64, 16)) == "99aa06d3014798d86001c324468d497f");
  CHECK(hex(bytes.substr(80, 8)) == std::string(16, '0'));
  CHECK(hex(entry("abc", "de").substr(48, 16)) == "03000000000000000200000000000000");
}

TEST_CASE("an entry is read as it was written") {
  const std::string bytes = entry("what it was made of", std::string("con\0tent", 8));
  const Expected<EntryParts> parts = read_entry(bytes);
  REQUIRE(parts);
  CHECK(parts->kind == EntryKind::failed_compile);
  CHECK(parts->key == key());
  CHECK(parts->components == "what it was made of");
  CHECK(parts->content == std::string_view("con\0tent", 8));
}

TEST_CASE("an entry is rejected with any one bit changed, cut anywhere, or longer") {
  const std::string good = entry("components", "content");
  REQUIRE(read_entry(good));
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      CHECK_FALSE(read_entry(bad));
    }
    CHECK_FALSE(read_entry(good.substr(0, i)));
  }
  CHECK_FALSE(read_entry(good + '\0'));
}

TEST_CASE("the kinds of entries have names and versions of their own") {
  CHECK(entry_suffix(EntryKind::ptx_image) == ".ptx_image-1");
  CHECK(entry_suffix(EntryKind::machine_code) == ".machine_code-1");
}
