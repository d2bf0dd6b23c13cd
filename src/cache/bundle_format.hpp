// SPDX-License-Identifier: Apache-2.0
// A bundle as bytes: entries of the disk tier in one file that is made once and only read.
// docs/cache-format.md has the offsets.
//
//   bundle := header row* seal body*
//   header := magic version zero row_bytes row_count body_bytes index_hash
//   row    := kind zero kind_version key offset components_bytes content_bytes body_hash
//   seal   := key_id code
//   body   := components content
//
// Rows are sorted by kind and key. The index hash covers header and rows, the seal both and the hash, and
// each row holds the hash of its entry's body: with a checked seal, one entry can be checked without the
// others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.hpp"
#include "base/signing_keys.hpp"
#include "cache/entry_format.hpp"
#include "quern/expected.hpp"

namespace quern::cache {

inline constexpr std::size_t kBundleHeaderBytes = 64;
inline constexpr std::size_t kBundleRowBytes = 96;
/// Larger bundles are neither written nor read.
inline constexpr std::uint64_t kMostBundleRows = 1'000'000;

/// An entry to be written.
struct BundleEntry {
  EntryKind kind = EntryKind::ptx_image;
  base::Digest key;
  std::string components;
  std::string content;
};

/// An entry of the index.
struct BundleRow {
  std::uint8_t kind = 0;  ///< may be one that this quern does not know
  std::uint32_t kind_version = 0;
  base::Digest key;
  std::uint64_t offset = 0;  ///< of the body, from the beginning of the file
  std::uint64_t components_bytes = 0;
  std::uint64_t content_bytes = 0;
  base::Digest body_hash;

  std::uint64_t body_bytes() const noexcept { return components_bytes + content_bytes; }
};

struct BundleIndex {
  std::vector<BundleRow> rows;  ///< sorted by kind and key
  bool is_signed = false;       ///< by a key that the reader has, if it has keys

  /// The row of an entry of this quern's version; null if there is none.
  const BundleRow* find(EntryKind kind, const base::Digest& key) const;
};

/// The file. Equal entries in any order give equal bytes; of entries with one kind and key the first counts.
/// Without `keys` (null) the bundle is not signed. Errors (code "bundle"): too many entries, or too large
/// ones.
Expected<std::string> write_bundle(std::vector<BundleEntry> entries, const base::SigningKeys* keys);

/// The bytes of header, rows and seal together. Takes the first kBundleHeaderBytes bytes of a file. Errors
/// (code "bundle"): it is no bundle, of another version, or cannot have `file_bytes`.
Expected<std::uint64_t> bundle_head_bytes(std::string_view header, std::uint64_t file_bytes);

/// Takes the bytes of header, rows and seal, as bundle_head_bytes() counts them. `keys`: only a bundle that
/// one of them sealed is accepted; null if seals are not checked. Errors (code "bundle"): damage, and seals.
Expected<BundleIndex> read_bundle_index(std::string_view head, const base::SigningKeys* keys);

/// True if the bytes are the body of the row's entry.
bool is_body_of(const BundleRow& row, std::string_view body);

}  // namespace quern::cache
