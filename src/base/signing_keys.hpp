// SPDX-License-Identifier: Apache-2.0
// Keyed hashes (HMAC-SHA-256, RFC 2104) of what quern stores where others may write: shared stores, bundles.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.hpp"
#include "quern/expected.hpp"

namespace quern::base {

/// HMAC-SHA-256 of the bytes.
Digest hmac_sha256(std::string_view key, std::string_view bytes);

/// A keyed hash and the key that it was made with.
struct Seal {
  static constexpr std::size_t kBytes = 40;
  std::array<std::uint8_t, 8> key_id{};  ///< the first bytes of a hash of the key
  Digest code;

  /// `key_id` and `code`, 40 bytes.
  std::string bytes() const;
  /// Takes exactly 40 bytes.
  static Seal from_bytes(std::string_view bytes) noexcept;
};

enum class SealCheck : std::uint8_t {
  good,
  unknown_key,  ///< made with a key that is not among these
  wrong,        ///< made with a key that is among these, of something else
};

/// Secret keys from a file: one a line, 64 to 256 hexadecimal digits; empty lines and lines that begin with
/// `#` are skipped. The first key seals; each is accepted. To change a key, put the new one second on
/// every machine, then first on every machine, then remove the old one. Immutable.
class SigningKeys {
 public:
  /// Refuses (code "key-file") a file without a key or with a line that is not a key, a file that users other
  /// than its owner and group can read, and one that others than its owner can write.
  static Expected<SigningKeys> read(const std::string& path);
  static Expected<SigningKeys> parse(std::string_view text, const std::string& path);

  /// `purpose` keeps seals of one use from being taken for those of another.
  Seal seal(std::string_view purpose, std::string_view bytes) const;
  SealCheck check(const Seal& seal, std::string_view purpose, std::string_view bytes) const;

 private:
  struct Key {
    std::array<std::uint8_t, 8> id{};
    std::string secret;
  };
  std::vector<Key> keys_;
};

}  // namespace quern::base
