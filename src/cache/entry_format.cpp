// SPDX-License-Identifier: Apache-2.0
#include "cache/entry_format.hpp"

#include <fmt/format.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace quern::cache {
namespace {

// The line ends and the byte 0x1a show what a transfer as text does to a file.
constexpr std::string_view kMagic{"quern\r\n\x1a", 8};
constexpr std::uint16_t kContainerVersion = 1;

// Offsets in the header.
constexpr std::size_t kVersionAt = 8;
constexpr std::size_t kKindAt = 10;
constexpr std::size_t kKindVersionAt = 12;
constexpr std::size_t kKeyAt = 16;
constexpr std::size_t kComponentsBytesAt = 48;
constexpr std::size_t kContentBytesAt = 56;
constexpr std::size_t kBodyHashAt = 64;
constexpr std::size_t kZeroAt = 80;
constexpr std::size_t kHeaderHashAt = 88;
static_assert(kHeaderHashAt + 8 == kEntryHeaderBytes);

template <class T>
void store(std::string& bytes, std::size_t at, T value) {
  for (std::size_t i = 0; i < sizeof value; ++i) bytes[at + i] = static_cast<char>((value >> (8 * i)) & 0xff);
}

template <class T>
T load(std::string_view bytes, std::size_t at) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i)
    value = static_cast<T>(
        value | static_cast<T>(static_cast<T>(static_cast<unsigned char>(bytes[at + i])) << (8 * i)));
  return value;
}

using BodyHash = std::array<char, 16>;

BodyHash body_hash(std::string_view components, std::string_view content) {
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  XXH3_128bits_update(&state, components.data(), components.size());
  XXH3_128bits_update(&state, content.data(), content.size());
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state));
  BodyHash hash;
  std::memcpy(hash.data(), canonical.digest, hash.size());
  return hash;
}

std::uint64_t header_hash(std::string_view header) { return XXH3_64bits(header.data(), kHeaderHashAt); }

Diagnostic damaged(std::string why) {
  Diagnostic diagnostic;
  diagnostic.code = "cache-damaged";
  diagnostic.message = std::move(why);
  return diagnostic;
}

}  // namespace

std::string_view to_string(EntryKind kind) noexcept {
  switch (kind) {
#define QUERN_ENTRY_KIND(name, version) \
  case EntryKind::name:                 \
    return #name;
#include "cache/entry_kinds.def"
  }
  return "unknown";
}

std::uint32_t version_of(EntryKind kind) noexcept {
  switch (kind) {
#define QUERN_ENTRY_KIND(name, version) \
  case EntryKind::name:                 \
    return version;
#include "cache/entry_kinds.def"
  }
  return 0;
}

std::string entry_suffix(EntryKind kind) { return fmt::format(".{}-{}", to_string(kind), version_of(kind)); }

std::string entry_header(EntryKind kind, const base::Digest& key, std::string_view components,
                         std::string_view content) {
  std::string header(kEntryHeaderBytes, '\0');
  kMagic.copy(header.data(), kMagic.size());
  store(header, kVersionAt, kContainerVersion);
  header[kKindAt] = static_cast<char>(kind);
  store(header, kKindVersionAt, version_of(kind));
  std::memcpy(header.data() + kKeyAt, key.bytes.data(), key.bytes.size());
  store(header, kComponentsBytesAt, std::uint64_t{components.size()});
  store(header, kContentBytesAt, std::uint64_t{content.size()});
  const BodyHash hash = body_hash(components, content);
  std::copy(hash.begin(), hash.end(), header.begin() + kBodyHashAt);
  store(header, kHeaderHashAt, header_hash(header));
  return header;
}

Expected<EntryHeader> read_entry_header(std::string_view bytes) {
  if (bytes.size() < kEntryHeaderBytes)
    return damaged(fmt::format("it has {} bytes, less than a header", bytes.size()));
  if (!bytes.starts_with(kMagic)) return damaged("it does not begin as an entry does");
  if (load<std::uint64_t>(bytes, kHeaderHashAt) != header_hash(bytes))
    return damaged("its header does not match its checksum");
  if (const auto version = load<std::uint16_t>(bytes, kVersionAt); version != kContainerVersion)
    return damaged(fmt::format("it has version {} of the format, not {}", version, kContainerVersion));
  const auto* const kind = std::find_if(std::begin(kEntryKinds), std::end(kEntryKinds), [&](EntryKind each) {
    return static_cast<std::uint8_t>(each) == load<std::uint8_t>(bytes, kKindAt);
  });
  if (kind == std::end(kEntryKinds)) return damaged("its kind is not known");
  if (load<std::uint32_t>(bytes, kKindVersionAt) != version_of(*kind))
    return damaged("its kind has another version");
  if (bytes[kKindAt + 1] != 0 || load<std::uint64_t>(bytes, kZeroAt) != 0)
    return damaged("its reserved bytes are not zero");
  EntryHeader header;
  header.kind = *kind;
  std::memcpy(header.key.bytes.data(), bytes.data() + kKeyAt, header.key.bytes.size());
  header.components_bytes = load<std::uint64_t>(bytes, kComponentsBytesAt);
  header.content_bytes = load<std::uint64_t>(bytes, kContentBytesAt);
  if (header.components_bytes > kMostEntryBytes || header.content_bytes > kMostEntryBytes)
    return damaged("it says that it is larger than entries are");
  return header;
}

Expected<EntryParts> read_entry(std::string_view bytes) {
  const Expected<EntryHeader> header = read_entry_header(bytes);
  if (!header) return header.errors();
  const std::string_view body = bytes.substr(kEntryHeaderBytes);
  if (body.size() != header->components_bytes + header->content_bytes)
    return damaged(fmt::format("it has {} bytes after its header, not {}", body.size(),
                               header->components_bytes + header->content_bytes));
  EntryParts parts{header->kind, header->key, body.substr(0, header->components_bytes),
                   body.substr(header->components_bytes)};
  const BodyHash hash = body_hash(parts.components, parts.content);
  if (std::string_view(hash.data(), hash.size()) != bytes.substr(kBodyHashAt, hash.size()))
    return damaged("its content does not match its checksum");
  return parts;
}

}  // namespace quern::cache
