// SPDX-License-Identifier: Apache-2.0
// A value as it lies in a shared store, where others may write. Numbers are little-endian:
//
//   offset  bytes
//        0      8  "quernval"
//        8      4  format, 1
//       12      4  kind
//       16     32  key
//       48      8  size of the value
//       56      8  size of the payload
//       64      1  coding of the payload: 0 plain, 1 zstd
//       65     32  SHA-256 of the payload
//       97     40  Seal (base/signing_keys.hpp) of bytes 0 to 96; zeros: not sealed
//      137         payload, to the end
//
// The seal covers kind and key: a value that is copied to another key is recognised. It is checked before
// anything is decompressed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/digest.hpp"
#include "base/signing_keys.hpp"

namespace quern::store {

/// The meaning of a value's bytes. A kind whose bytes change gets another number.
enum class Kind : std::uint32_t { compile_answer = 1 };

inline constexpr std::uint64_t kMaxValueBytes = std::uint64_t{64} << 20;
inline constexpr std::size_t kHeadBytes = 137;

/// Why a value is not used.
enum class Refusal : std::uint8_t {
  damaged,      ///< truncated, or its digest is another
  format,       ///< of another version of this format
  other_key,    ///< stored for another key or kind
  unsealed,     ///< keys are in use, and it has no seal
  unknown_key,  ///< sealed with a key that is not among these
  wrong_seal,   ///< sealed with one of the keys, but not like this
  too_large,
};
inline constexpr std::size_t kRefusalCount = 7;
std::string_view name(Refusal refusal) noexcept;

/// Without `keys` (null) there is no seal.
std::string seal_value(const base::SigningKeys* keys, Kind kind, const base::Digest& key,
                       std::string_view value);

/// The value, of at most `max_bytes`. Without `keys` (null) all writers of the store are trusted, and only
/// the digest is checked.
std::variant<std::string, Refusal> open_value(const base::SigningKeys* keys, Kind kind,
                                              const base::Digest& key, std::string_view stored,
                                              std::uint64_t max_bytes = kMaxValueBytes);

}  // namespace quern::store
