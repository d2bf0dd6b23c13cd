// SPDX-License-Identifier: Apache-2.0
#include "store/sealed_value.hpp"

#include <zstd.h>

#include <span>

#include <doctest/doctest.h>

#include "base/byte_stream.hpp"

using namespace quern;
using namespace quern::store;

namespace {

base::SigningKeys keys_of(const std::string& text) {
  auto keys = base::SigningKeys::parse(text, "keys");
  REQUIRE(keys);
  return *keys;
}

const base::SigningKeys kFirst = *base::SigningKeys::parse(std::string(64, '1'), "k");
const base::SigningKeys kSecond = *base::SigningKeys::parse(std::string(64, '2'), "k");

base::Digest key_of(std::uint8_t byte) {
  base::Digest key;
  key.bytes.fill(byte);
  return key;
}

std::string sealed(std::string_view value, const base::SigningKeys* keys = &kFirst) {
  return seal_value(keys, Kind::compile_answer, key_of(1), value);
}

/// The value, or the name of the refusal in brackets.
std::string opened(std::string_view stored, const base::SigningKeys* keys = &kFirst,
                   const base::Digest& key = key_of(1), std::uint64_t max_bytes = kMaxValueBytes) {
  const auto result = open_value(keys, Kind::compile_answer, key, stored, max_bytes);
  if (const auto* value = std::get_if<std::string>(&result)) return *value;
  return "[" + std::string(name(std::get<Refusal>(result))) + "]";
}

/// A value built by hand according to the table in sealed_value.hpp, sealed with the first key.
std::string by_hand(std::uint64_t value_bytes, std::string_view payload, std::uint8_t coding) {
  base::ByteWriter sizes;
  std::string stored = "quernval";
  stored += std::string("\1\0\0\0\1\0\0\0", 8) + std::string(32, '\1');
  stored += sizes.number(value_bytes).number(std::uint64_t{payload.size()}).take();
  stored += static_cast<char>(coding);
  const base::Digest digest = base::sha256(std::as_bytes(std::span(payload)));
  stored.append(reinterpret_cast<const char*>(digest.bytes.data()), 32);
  stored += kFirst.seal("quern shared store", stored).bytes();
  return stored.append(payload);
}

std::string zstd_of(const std::string& value) {
  std::string packed(ZSTD_compressBound(value.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), value.data(), value.size(), 19));
  return packed;
}

}  // namespace

TEST_CASE("a value is read as it was written, small or large, plain or compressed") {
  const std::string large(100'000, 'x');
  for (const std::string& value : {std::string(), std::string("a\0b", 3), large})
    CHECK(opened(sealed(value)) == value);
  CHECK(sealed(large).size() < 1000);
  CHECK(sealed("abc") == by_hand(3, "abc", 0));
}

TEST_CASE("a value under another key or of another kind is refused") {
  const std::string stored = sealed("value");
  CHECK(opened(stored, &kFirst, key_of(2)) == "[other-key]");
  const auto other_kind = open_value(&kFirst, static_cast<Kind>(2), key_of(1), stored);
  CHECK(std::get<Refusal>(other_kind) == Refusal::other_key);
  // Changing the key in the head invalidates the seal.
  std::string moved = stored;
  for (std::size_t i = 16; i < 48; ++i) moved[i] = '\2';
  CHECK(opened(moved, &kFirst, key_of(2)) == "[wrong-seal]");
}

TEST_CASE("every changed bit and every truncation is refused") {
  const std::string stored = sealed("a value of some length");
  for (std::size_t i = 0; i < stored.size(); ++i) {
    std::string changed = stored;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    CHECK(opened(changed).front() == '[');
    CHECK(opened(stored.substr(0, i)).front() == '[');
  }
  CHECK(opened(stored + "x") == "[damaged]");
}

TEST_CASE("keys rotate: what the old key sealed is read while it is listed, and refused after") {
  const base::SigningKeys both = keys_of(std::string(64, '2') + "\n" + std::string(64, '1'));
  CHECK(opened(sealed("old"), &both) == "old");
  CHECK(opened(sealed("new", &both), &kSecond) == "new");
  CHECK(opened(sealed("old"), &kSecond) == "[unknown-key]");
}

TEST_CASE("with keys, a value without a seal is refused") {
  CHECK(opened(sealed("value", nullptr)) == "[unsealed]");
  CHECK(opened(sealed("value", nullptr), nullptr) == "value");
}

TEST_CASE("without keys the digest is still checked") {
  std::string stored = sealed("value", nullptr);
  stored.back() = static_cast<char>(stored.back() ^ 1);
  CHECK(opened(stored, nullptr) == "[damaged]");
}

TEST_CASE("another format is refused as such") {
  std::string stored = sealed("value");
  stored[8] = '\2';
  CHECK(opened(stored) == "[format]");
}

TEST_CASE("a value that decompresses to more than is allowed, or than it says, is refused") {
  const std::string value(1'000'000, 'a');
  const std::string packed = zstd_of(value);
  REQUIRE(packed.size() < 1000);
  CHECK(opened(by_hand(1'000'000, packed, 1)) == value);
  CHECK(opened(by_hand(1'000'000, packed, 1), &kFirst, key_of(1), 999'999) == "[too-large]");
  CHECK(opened(by_hand(999'999, packed, 1)) == "[damaged]");
  CHECK(opened(by_hand(1'000'001, packed, 1)) == "[damaged]");
  CHECK(opened(by_hand(~std::uint64_t{0}, packed, 1)) == "[too-large]");
  CHECK(opened(by_hand(4, "abc", 0)) == "[damaged]");
  CHECK(opened(by_hand(3, "abc", 2)) == "[damaged]");
  CHECK(opened(by_hand(3, "abc", 1)) == "[damaged]");
}
