// SPDX-License-Identifier: Apache-2.0
#include "quern/bundle.hpp"

#include <algorithm>

#include "cache/bundle.hpp"
#include "compile/key.hpp"
#include "session/gate.hpp"

namespace quern {
namespace session {
namespace {

cache::BundleKeys keys_of(const std::filesystem::path& file) {
  if (file.empty()) return nullptr;
  return std::make_shared<const base::SigningKeys>(value_or_throw(base::SigningKeys::read(file.string())));
}

cache::OpenBundle open(const std::filesystem::path& file, const std::filesystem::path& key_file) {
  return value_or_throw(cache::open_bundle(file.string(), keys_of(key_file)));
}

BundleInfo info_of(const cache::OpenBundle& bundle) {
  return {bundle.index.is_signed, bundle.index.rows.size(), static_cast<std::uint64_t>(bundle.info.st_size)};
}

std::string kind_of(const cache::BundleRow& row) {
  const auto* const known = std::ranges::find_if(
      cache::kEntryKinds, [&](cache::EntryKind kind) { return static_cast<std::uint8_t>(kind) == row.kind; });
  return known == std::end(cache::kEntryKinds) ? "unknown" : std::string(to_string(*known));
}

CacheEntry public_entry(const cache::OpenBundle& bundle, const cache::BundleRow& row) {
  CacheEntry entry{row.key.hex(), kind_of(row), row.body_bytes(), 0, 0, {}};
  const std::optional<std::string> body = bundle.body(row);
  if (!body) return entry;
  const auto components = compile::read_components(body->substr(0, row.components_bytes));
  if (!components) return entry;
  for (const auto& [name, value] : *components) entry.components.push_back({name, value});
  return entry;
}

}  // namespace
}  // namespace session

BundleInfo bundle_info(const std::filesystem::path& file, const std::filesystem::path& key_file) {
  return session::info_of(session::open(file, key_file));
}

std::vector<CacheEntry> bundle_entries(const std::filesystem::path& file,
                                       const std::filesystem::path& key_file) {
  const cache::OpenBundle bundle = session::open(file, key_file);
  std::vector<CacheEntry> entries;
  for (const cache::BundleRow& row : bundle.index.rows) entries.push_back(session::public_entry(bundle, row));
  return entries;
}

BundleVerification verify_bundle(const std::filesystem::path& file, const std::filesystem::path& key_file) {
  const cache::OpenBundle bundle = session::open(file, key_file);
  BundleVerification result;
  for (const cache::BundleRow& row : bundle.index.rows) {
    ++result.checked_count;
    if (!bundle.body(row)) result.damaged.push_back(session::kind_of(row) + " " + row.key.hex());
  }
  return result;
}

std::vector<NamedBundle> named_bundles() {
  const cache::BundleSettings settings = cache::bundle_settings_of_environment();
  std::vector<NamedBundle> result;
  for (const std::string& path : settings.paths) {
    NamedBundle named{path, settings.refusal, {}};
    if (named.refusal.empty()) {
      const Expected<cache::OpenBundle> bundle = cache::open_bundle(path, settings.keys);
      if (bundle)
        named.info = session::info_of(*bundle);
      else
        named.refusal = bundle.errors().front().message;
    }
    result.push_back(std::move(named));
  }
  return result;
}

}  // namespace quern
