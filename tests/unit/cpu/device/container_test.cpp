// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <zstd.h>

#include <cstring>
#include <string>

#include "cpu/device/module/container.hpp"
#include "cpu/device/module/lz4.hpp"

using namespace quern::cpu::device;

namespace {

std::string unpacked(std::string_view block, std::size_t bytes) {
  std::string text(bytes, '?');
  return decompress_lz4(block, text) ? text : "damaged";
}

/// A fat binary with one entry of PTX that is compressed with zstd (flag 0x8000).
std::string zstd_fat_binary(const std::string& text, std::uint64_t said_bytes) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  std::string bytes;
  const auto put = [&](auto value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); };
  put(std::uint32_t{0xba55ed50});
  put(std::uint16_t{1});
  put(std::uint16_t{16});
  put(std::uint64_t{64 + packed.size()});
  put(std::uint16_t{1});
  put(std::uint16_t{0x101});
  put(std::uint32_t{64});
  put(std::uint64_t{packed.size()});
  put(static_cast<std::uint32_t>(packed.size()));
  put(std::uint32_t{0});
  put(std::uint32_t{0});
  put(std::uint32_t{80});
  put(std::uint64_t{0});
  put(std::uint64_t{0x8011});
  put(std::uint64_t{0});
  put(said_bytes);
  return bytes + packed;
}

}  // namespace

TEST_CASE("LZ4 blocks: literals, matches, matches that overlap what they make, long lengths") {
  using namespace std::string_view_literals;
  CHECK(unpacked("\x30"
                 "abc"sv,
                 3) == "abc");
  // 3 literals, a match of 4 from 3 back; then 1 literal
  CHECK(unpacked("\x30"
                 "abc\x03\x00\x10"
                 "d"sv,
                 8) == "abcabcad");
  // a match of 4 + 15 + 1 from 1 back
  CHECK(unpacked("\x1f"
                 "x\x01\x00\x01\x10"
                 "y"sv,
                 22) == std::string(21, 'x') + "y");
  // 15 + 2 literals
  CHECK(unpacked("\xf0\x02"
                 "0123456789abcdefg"sv,
                 17) == "0123456789abcdefg");
}

TEST_CASE("damaged LZ4 blocks are refused") {
  using namespace std::string_view_literals;
  CHECK(unpacked("\x30"
                 "ab"sv,
                 3) == "damaged");  // fewer literals than it says
  CHECK(unpacked("\x30"
                 "abc"sv,
                 4) == "damaged");  // a shorter result
  CHECK(unpacked("\x30"
                 "abc"sv,
                 2) == "damaged");  // a longer one
  CHECK(unpacked("\x30"
                 "abc\x04\x00\x10"
                 "d"sv,
                 8) == "damaged");  // a match before the beginning
  CHECK(unpacked("\x30"
                 "abc\x00\x00\x10"
                 "d"sv,
                 8) == "damaged");  // no distance
  CHECK(unpacked("\x30"
                 "abc\x03"sv,
                 8) == "damaged");                  // half a distance
  CHECK(unpacked("\xf0\xff"sv, 400) == "damaged");  // a length without end
  CHECK(unpacked(""sv, 1) == "damaged");
}

TEST_CASE("PTX is taken out of entries that zstd compressed") {
  const std::string text = ".version 7.0\n.target sm_80\n" + std::string(5000, ' ') + '\0';
  auto found = ptx_of_fat_binaries(zstd_fat_binary(text, text.size()), "x.fatbin");
  REQUIRE(std::holds_alternative<std::vector<NamedPtx>>(found));
  CHECK(std::get<std::vector<NamedPtx>>(found).front().text == text.substr(0, text.size() - 1));
  CHECK(std::holds_alternative<Refusal>(ptx_of_fat_binaries(zstd_fat_binary(text, 100), "x.fatbin")));
  CHECK(std::holds_alternative<Refusal>(
      ptx_of_fat_binaries(zstd_fat_binary(text, std::uint64_t{1} << 60), "x.fatbin")));
}
