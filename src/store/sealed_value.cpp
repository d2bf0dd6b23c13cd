// SPDX-License-Identifier: Apache-2.0
#include "store/sealed_value.hpp"

#include <zstd.h>

#include <algorithm>
#include <span>

#include "base/byte_stream.hpp"

namespace quern::store {
namespace {

constexpr std::string_view kMagic = "quernval";
constexpr std::string_view kPurpose = "quern shared store";
constexpr std::uint32_t kFormat = 1;
constexpr std::size_t kSealedBytes = kHeadBytes - base::Seal::kBytes;
constexpr std::size_t kDigestBytes = 32;
constexpr std::size_t kLeastCompressed = 512;
constexpr int kLevel = 1;  // PTX shrinks to a seventh, at hundreds of MB/s

enum class Coding : std::uint8_t { plain, zstd };

struct Head {
  std::uint32_t format = 0, kind = 0;
  std::string_view key;
  std::uint64_t value_bytes = 0, payload_bytes = 0;
  std::uint8_t coding = 0;
  std::string_view digest, seal;
};

std::string_view text_of(const base::Digest& digest) {
  return {reinterpret_cast<const char*>(digest.bytes.data()), digest.bytes.size()};
}

std::string compressed(std::string_view value) {
  std::string packed(ZSTD_compressBound(value.size()), '\0');
  const std::size_t size = ZSTD_compress(packed.data(), packed.size(), value.data(), value.size(), kLevel);
  if (ZSTD_isError(size) != 0) return {};
  packed.resize(size);
  return packed;
}

/// Takes at least kHeadBytes.
Head read_head(std::string_view stored) {
  Head head;
  base::ByteReader first(stored.substr(kMagic.size(), 8));
  head.format = first.number<std::uint32_t>();
  head.kind = first.number<std::uint32_t>();
  head.key = stored.substr(16, kDigestBytes);
  base::ByteReader second(stored.substr(48, 17));
  head.value_bytes = second.number<std::uint64_t>();
  head.payload_bytes = second.number<std::uint64_t>();
  head.coding = second.number<std::uint8_t>();
  head.digest = stored.substr(65, kDigestBytes);
  head.seal = stored.substr(kSealedBytes, base::Seal::kBytes);
  return head;
}

std::variant<std::string, Refusal> unpack(const Head& head, std::string_view payload) {
  if (head.coding == static_cast<std::uint8_t>(Coding::plain)) {
    if (head.value_bytes != payload.size()) return Refusal::damaged;
    return std::string(payload);
  }
  if (head.coding != static_cast<std::uint8_t>(Coding::zstd)) return Refusal::damaged;
  if (ZSTD_getFrameContentSize(payload.data(), payload.size()) != head.value_bytes) return Refusal::damaged;
  std::string value(head.value_bytes, '\0');
  const std::size_t size = ZSTD_decompress(value.data(), value.size(), payload.data(), payload.size());
  if (ZSTD_isError(size) != 0 || size != head.value_bytes) return Refusal::damaged;
  value.resize(size);
  return value;
}

}  // namespace

std::string_view name(Refusal refusal) noexcept {
  constexpr std::string_view kNames[kRefusalCount] = {"damaged",     "format",     "other-key", "unsealed",
                                                      "unknown-key", "wrong-seal", "too-large"};
  return kNames[static_cast<std::size_t>(refusal)];
}

std::string seal_value(const base::SigningKeys* keys, Kind kind, const base::Digest& key,
                       std::string_view value) {
  const std::string packed = value.size() < kLeastCompressed ? std::string() : compressed(value);
  const bool is_packed = !packed.empty() && packed.size() < value.size();
  const std::string_view payload = is_packed ? std::string_view(packed) : value;
  std::string stored(kMagic);
  base::ByteWriter first, second;
  stored += first.number(kFormat).number(static_cast<std::uint32_t>(kind)).take();
  stored += text_of(key);
  second.number(std::uint64_t{value.size()}).number(std::uint64_t{payload.size()});
  stored += second.number(static_cast<std::uint8_t>(is_packed ? Coding::zstd : Coding::plain)).take();
  stored += text_of(base::sha256(std::as_bytes(std::span(payload))));
  stored += keys != nullptr ? keys->seal(kPurpose, stored).bytes() : std::string(base::Seal::kBytes, '\0');
  return stored.append(payload);
}

std::variant<std::string, Refusal> open_value(const base::SigningKeys* keys, Kind kind,
                                              const base::Digest& key, std::string_view stored,
                                              std::uint64_t max_bytes) {
  if (stored.size() < kHeadBytes || !stored.starts_with(kMagic)) return Refusal::damaged;
  const Head head = read_head(stored);
  if (head.format != kFormat) return Refusal::format;
  if (head.kind != static_cast<std::uint32_t>(kind) || head.key != text_of(key)) return Refusal::other_key;
  if (keys != nullptr) {
    if (head.seal == std::string(base::Seal::kBytes, '\0')) return Refusal::unsealed;
    switch (keys->check(base::Seal::from_bytes(head.seal), kPurpose, stored.substr(0, kSealedBytes))) {
      case base::SealCheck::good:
        break;
      case base::SealCheck::unknown_key:
        return Refusal::unknown_key;
      case base::SealCheck::wrong:
        return Refusal::wrong_seal;
    }
  }
  const std::string_view payload = stored.substr(kHeadBytes);
  if (head.payload_bytes != payload.size()) return Refusal::damaged;
  if (head.value_bytes > max_bytes) return Refusal::too_large;
  if (text_of(base::sha256(std::as_bytes(std::span(payload)))) != head.digest) return Refusal::damaged;
  return unpack(head, payload);
}

}  // namespace quern::store
