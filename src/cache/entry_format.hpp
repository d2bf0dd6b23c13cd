// SPDX-License-Identifier: Apache-2.0
// An entry of the disk tier as bytes; docs/cache-format.md has the offsets.
//
//   entry  := header components content
//   header := magic version kind kind_version key components_size content_size body_hash header_hash
//
// `components` says what the key was made of, for `quern cache why`; it may be empty. The hashes find damage;
// they are no protection against a writer who means harm, against whom the folder's permissions protect.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/digest.hpp"
#include "quern/expected.hpp"

namespace quern::cache {

/// The content of an entry; a row of entry_kinds.def.
enum class EntryKind : std::uint8_t {
#define QUERN_ENTRY_KIND(name, version) name,
#include "cache/entry_kinds.def"
};

/// "ptx_image".
std::string_view to_string(EntryKind kind) noexcept;
/// The version of the content's format.
std::uint32_t version_of(EntryKind kind) noexcept;
inline constexpr EntryKind kEntryKinds[] = {
#define QUERN_ENTRY_KIND(name, version) EntryKind::name,
#include "cache/entry_kinds.def"
};

/// Larger entries are neither written nor read.
inline constexpr std::uint64_t kMostEntryBytes = std::uint64_t{1} << 30;
inline constexpr std::size_t kEntryHeaderBytes = 96;

/// The parts of a checked entry; views of the bytes that were read.
struct EntryParts {
  EntryKind kind = EntryKind::ptx_image;
  base::Digest key;
  std::string_view components;
  std::string_view content;
};

/// The header's part of an entry: how long the rest has to be.
struct EntryHeader {
  EntryKind kind = EntryKind::ptx_image;
  base::Digest key;
  std::uint64_t components_bytes = 0;
  std::uint64_t content_bytes = 0;
};

/// The bytes that stand before components and content in the file.
std::string entry_header(EntryKind kind, const base::Digest& key, std::string_view components,
                         std::string_view content);

/// Takes arbitrary bytes. The diagnostic (code "cache-damaged") says what is wrong.
Expected<EntryHeader> read_entry_header(std::string_view bytes);
/// The whole entry, checked: lengths and hashes.
Expected<EntryParts> read_entry(std::string_view bytes);

/// The part of an entry's file name behind the key: ".ptx_image-1".
std::string entry_suffix(EntryKind kind);

}  // namespace quern::cache
