// SPDX-License-Identifier: Apache-2.0
#include "cache/bundle_format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <tuple>

#include "base/byte_stream.hpp"

namespace quern::cache {
namespace {

using base::ByteReader;
using base::ByteWriter;

// The line ends and the byte 0x1a show what a transfer as text does to a file.
constexpr std::string_view kMagic{"quernB\n\x1a", 8};
constexpr std::uint16_t kVersion = 1;
constexpr std::string_view kPurpose = "quern bundle";
constexpr std::size_t kHashAt = kBundleHeaderBytes - 32;
constexpr std::size_t kDigestBytes = 32;

Diagnostic refusal(std::string why) {
  Diagnostic diagnostic;
  diagnostic.code = "bundle";
  diagnostic.message = std::move(why);
  return diagnostic;
}

base::Digest digest_of(std::string_view bytes) { return base::sha256(std::as_bytes(std::span(bytes))); }

std::string_view view(const base::Digest& digest) {
  return {reinterpret_cast<const char*>(digest.bytes.data()), digest.bytes.size()};
}

base::Digest digest_at(std::string_view bytes, std::size_t at) {
  base::Digest digest;
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), kDigestBytes, digest.bytes.begin());
  return digest;
}

/// The header without its hash, and the rows: what the hash covers.
base::Digest index_hash(std::string_view head, std::size_t row_bytes) {
  std::string covered(head.substr(0, kHashAt));
  return digest_of(covered.append(head.substr(kBundleHeaderBytes, row_bytes)));
}

auto order_of(const BundleRow& row) { return std::tie(row.kind, row.key); }

void write(std::string& to, const BundleRow& row) {
  ByteWriter numbers;
  numbers.number(row.kind).number(std::uint8_t{0}).number(std::uint16_t{0}).number(row.kind_version);
  to.append(numbers.take()).append(view(row.key));
  to.append(ByteWriter().number(row.offset).number(row.components_bytes).number(row.content_bytes).take());
  to.append(view(row.body_hash));
}

/// Takes kBundleRowBytes bytes.
BundleRow read_row(std::string_view bytes, bool& is_good) {
  BundleRow row;
  ByteReader first(bytes);
  row.kind = first.number<std::uint8_t>();
  const bool has_zeros = first.number<std::uint8_t>() == 0 && first.number<std::uint16_t>() == 0;
  row.kind_version = first.number<std::uint32_t>();
  row.key = digest_at(bytes, 8);
  ByteReader second(bytes.substr(8 + kDigestBytes));
  row.offset = second.number<std::uint64_t>();
  row.components_bytes = second.number<std::uint64_t>();
  row.content_bytes = second.number<std::uint64_t>();
  row.body_hash = digest_at(bytes, kBundleRowBytes - kDigestBytes);
  is_good = has_zeros && row.components_bytes <= kMostEntryBytes && row.content_bytes <= kMostEntryBytes;
  return row;
}

std::string header_of(std::uint64_t row_count, std::uint64_t body_bytes) {
  std::string header(kMagic);
  return header.append(ByteWriter()
                           .number(kVersion)
                           .number(std::uint16_t{0})
                           .number(static_cast<std::uint32_t>(kBundleRowBytes))
                           .number(row_count)
                           .number(body_bytes)
                           .take());
}

struct Header {
  std::uint64_t row_count = 0;
  std::uint64_t body_bytes = 0;
};

Expected<Header> read_header(std::string_view bytes) {
  if (bytes.size() < kBundleHeaderBytes || !bytes.starts_with(kMagic))
    return refusal("it does not begin as a bundle does");
  ByteReader from(bytes.substr(kMagic.size()));
  const auto version = from.number<std::uint16_t>();
  if (version != kVersion)
    return refusal(
        fmt::format("it has version {} of the format, and this quern reads {}", version, kVersion));
  const auto zero = from.number<std::uint16_t>();
  const auto row_bytes = from.number<std::uint32_t>();
  const Header header{from.number<std::uint64_t>(), from.number<std::uint64_t>()};
  if (zero != 0 || row_bytes != kBundleRowBytes || header.row_count > kMostBundleRows)
    return refusal("its header is damaged");
  return header;
}

Expected<bool> check_seal(std::string_view head, const base::SigningKeys* keys) {
  const std::string_view bytes = head.substr(head.size() - base::Seal::kBytes);
  const bool is_sealed = bytes.find_first_not_of('\0') != std::string_view::npos;
  if (keys == nullptr) return is_sealed;
  if (!is_sealed) return refusal("it is not signed");
  const std::string_view sealed = head.substr(0, head.size() - base::Seal::kBytes);
  switch (keys->check(base::Seal::from_bytes(bytes), kPurpose, sealed)) {
    case base::SealCheck::good:
      return true;
    case base::SealCheck::unknown_key:
      return refusal("it is signed with a key that is not in the key file");
    case base::SealCheck::wrong:
      break;
  }
  return refusal("its signature is wrong: it was changed after it was signed");
}

}  // namespace

const BundleRow* BundleIndex::find(EntryKind kind, const base::Digest& key) const {
  const auto wanted = std::tuple(static_cast<std::uint8_t>(kind), key);
  const auto at = std::ranges::lower_bound(
      rows, wanted, {}, [](const BundleRow& row) { return std::tuple(row.kind, row.key); });
  if (at == rows.end() || std::tuple(at->kind, at->key) != wanted || at->kind_version != version_of(kind))
    return nullptr;
  return &*at;
}

Expected<std::string> write_bundle(std::vector<BundleEntry> entries, const base::SigningKeys* keys) {
  // By their contents too: of entries under one key the same one stays, whatever the order in which they were
  // made.
  std::ranges::sort(entries, {}, [](const BundleEntry& entry) {
    return std::tie(entry.kind, entry.key, entry.components, entry.content);
  });
  const auto repeated = std::ranges::unique(
      entries, {}, [](const BundleEntry& entry) { return std::tie(entry.kind, entry.key); });
  entries.erase(repeated.begin(), repeated.end());
  if (entries.size() > kMostBundleRows)
    return refusal(fmt::format("a bundle has at most {} entries", kMostBundleRows));
  std::string rows;
  std::string bodies;
  std::uint64_t offset = kBundleHeaderBytes + entries.size() * kBundleRowBytes + base::Seal::kBytes;
  for (const BundleEntry& entry : entries) {
    if (entry.components.size() > kMostEntryBytes || entry.content.size() > kMostEntryBytes)
      return refusal(fmt::format("the {} {} is too large", to_string(entry.kind), entry.key.hex()));
    const std::string body = entry.components + entry.content;
    write(rows, {static_cast<std::uint8_t>(entry.kind), version_of(entry.kind), entry.key, offset,
                 entry.components.size(), entry.content.size(), digest_of(body)});
    offset += body.size();
    bodies += body;
  }
  std::string head = header_of(entries.size(), bodies.size());
  head.append(kDigestBytes, '\0').append(rows);
  const base::Digest hash = index_hash(head, rows.size());
  head.replace(kHashAt, kDigestBytes, view(hash));
  head += keys != nullptr ? keys->seal(kPurpose, head).bytes() : std::string(base::Seal::kBytes, '\0');
  return head.append(bodies);
}

Expected<std::uint64_t> bundle_head_bytes(std::string_view header, std::uint64_t file_bytes) {
  const Expected<Header> read = read_header(header);
  if (!read) return read.errors();
  const std::uint64_t head_bytes =
      kBundleHeaderBytes + read->row_count * kBundleRowBytes + base::Seal::kBytes;
  if (file_bytes < head_bytes || file_bytes - head_bytes != read->body_bytes)
    return refusal(fmt::format("it has {} bytes, not those that its header says", file_bytes));
  return head_bytes;
}

Expected<BundleIndex> read_bundle_index(std::string_view head, const base::SigningKeys* keys) {
  const Expected<Header> header = read_header(head);
  if (!header) return header.errors();
  const std::size_t row_bytes = header->row_count * kBundleRowBytes;
  if (head.size() != kBundleHeaderBytes + row_bytes + base::Seal::kBytes)
    return refusal("its index is cut short");
  if (index_hash(head, row_bytes) != digest_at(head, kHashAt))
    return refusal("its index does not match its checksum");
  const Expected<bool> sealed = check_seal(head, keys);
  if (!sealed) return sealed.errors();
  BundleIndex index;
  index.is_signed = *sealed;
  index.rows.reserve(header->row_count);
  std::uint64_t offset = head.size();
  for (std::size_t i = 0; i < header->row_count; ++i) {
    bool is_good = false;
    const BundleRow row =
        read_row(head.substr(kBundleHeaderBytes + i * kBundleRowBytes, kBundleRowBytes), is_good);
    const bool is_sorted = index.rows.empty() || order_of(index.rows.back()) < order_of(row);
    if (!is_good || !is_sorted || row.offset != offset) return refusal("its index contradicts itself");
    offset += row.body_bytes();
    index.rows.push_back(row);
  }
  if (offset - head.size() != header->body_bytes) return refusal("its index contradicts itself");
  return index;
}

bool is_body_of(const BundleRow& row, std::string_view body) {
  return body.size() == row.body_bytes() && digest_of(body) == row.body_hash;
}

}  // namespace quern::cache
