// SPDX-License-Identifier: Apache-2.0
// Bundles: heads from anywhere, and sound bundles with bytes changed. The first byte chooses.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "cache/bundle_format.hpp"

using namespace quern;
using namespace quern::cache;

namespace {

const base::SigningKeys& keys() {
  static const base::SigningKeys all = *base::SigningKeys::parse(std::string(64, 'a'), "keys");
  return all;
}

/// A row that is accepted lies in the file.
void read_whole(std::string_view bytes, const base::SigningKeys* with) {
  const Expected<std::uint64_t> head_bytes = bundle_head_bytes(bytes, bytes.size());
  if (!head_bytes) return;
  const Expected<BundleIndex> index = read_bundle_index(bytes.substr(0, *head_bytes), with);
  if (!index) return;
  if (with != nullptr) std::abort();  // nobody finds a seal by trying
  for (const BundleRow& row : index->rows) {
    if (row.offset > bytes.size() || row.body_bytes() > bytes.size() - row.offset) std::abort();
    (void)is_body_of(row, bytes.substr(row.offset, row.body_bytes()));
  }
}

/// The input as two entries of a bundle, with one byte changed: no other bytes are taken for them.
void read_changed(std::string_view bytes) {
  if (bytes.size() < 4) return;
  const std::size_t at = static_cast<unsigned char>(bytes[0]) * 256U + static_cast<unsigned char>(bytes[1]);
  const char change = bytes[2] != 0 ? bytes[2] : '\1';
  const std::string content(bytes.substr(3));
  std::vector<BundleEntry> entries{{EntryKind::ptx_image, {}, content.substr(0, content.size() / 3), content},
                                   {EntryKind::machine_code, {}, "", content + "."}};
  std::string bundle = *write_bundle(entries, &keys());
  char& changed = bundle[at % bundle.size()];
  changed = static_cast<char>(changed ^ change);
  const Expected<std::uint64_t> head_bytes = bundle_head_bytes(bundle, bundle.size());
  if (!head_bytes) return;
  const Expected<BundleIndex> index =
      read_bundle_index(std::string_view(bundle).substr(0, *head_bytes), &keys());
  if (!index) return;
  for (const BundleEntry& entry : entries) {
    const BundleRow* const row = index->find(entry.kind, entry.key);
    if (row == nullptr) std::abort();  // the index is under the seal
    const std::string_view body = std::string_view(bundle).substr(row->offset, row->body_bytes());
    if (is_body_of(*row, body) && body != entry.components + entry.content) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] % 3 == 0) read_whole(bytes, nullptr);
  if (data[0] % 3 == 1) read_whole(bytes, &keys());
  if (data[0] % 3 == 2) read_changed(bytes);
  return 0;
}
