// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace quern::base {

/// A 256-bit SHA-256 digest: the key of a cached result. 32 bytes, value type.
struct Digest {
  std::array<std::uint8_t, 32> bytes{};
  std::string hex() const;
  friend bool operator==(const Digest&, const Digest&) = default;
  friend auto operator<=>(const Digest&, const Digest&) = default;
};

/// Collects fields and digests them (OpenSSL's SHA-256). Every field is length-prefixed, so that ("ab","c")
/// and
/// ("a","bc") differ. Thread-compatible.
class DigestBuilder {
 public:
  DigestBuilder();
  DigestBuilder(const DigestBuilder&) = delete;
  DigestBuilder& operator=(const DigestBuilder&) = delete;

  DigestBuilder& add(std::string_view field);
  DigestBuilder& add(std::uint64_t field);
  Digest finish();

 private:
  void raw(const void* data, std::size_t size);
  alignas(std::uint64_t) std::array<std::byte, 112> state_;  ///< an SHA256_CTX
};

/// SHA-256 of the bytes (no length prefix): the same as `sha256sum` prints.
Digest sha256(std::span<const std::byte> bytes);

}  // namespace quern::base

template <>
struct std::hash<quern::base::Digest> {
  std::size_t operator()(const quern::base::Digest& digest) const noexcept {
    std::size_t value = 0;
    for (std::size_t i = 0; i < sizeof value; ++i) value = (value << 8) | digest.bytes[i];
    return value;
  }
};
