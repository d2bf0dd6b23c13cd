// SPDX-License-Identifier: Apache-2.0
#include "quern/disk_cache.hpp"

#include <algorithm>

#include "cache/bundle.hpp"
#include "cache/counts.hpp"
#include "cache/listing.hpp"
#include "compile/key.hpp"
#include "compile/shared_compiler.hpp"
#include "quern/bundle.hpp"
#include "session/gate.hpp"
#include "session/state.hpp"

namespace quern {
namespace session {
namespace {

std::vector<CacheComponent> public_components(const compile::Components& components) {
  std::vector<CacheComponent> result;
  for (const auto& [name, value] : components) result.push_back({name, value});
  return result;
}

/// Nothing: the cache is off.
std::optional<cache::DiskStoreOptions> store_options() {
  Expected<cache::DiskStoreOptions> options = cache::store_options_of_environment();
  if (!options) return std::nullopt;
  return *std::move(options);
}

CacheEntry public_entry(const cache::ListedEntry& entry) {
  CacheEntry result{
      entry.key.hex(), std::string(to_string(entry.kind)), entry.size_bytes, entry.made_s, entry.used_s, {}};
  if (const auto components = compile::read_components(entry.components))
    result.components = public_components(*components);
  return result;
}

/// The request as stage_text() would compile it for its PTX.
abi::KernelRequest explained_request(const std::filesystem::path& file, const StageOptions& options) {
  abi::KernelSource source = value_or_throw(read_kernel_file(file));
  abi::Target target;
  target.compute = options.compute_capability;
  const abi::Language language = source.language;
  abi::KernelRequest request = make_request(std::move(source), options.load, target, nullptr);
  if (language == abi::Language::cuda && options.kernel.find_first_of("<:") != std::string::npos)
    request.name_expressions.push_back(options.kernel);
  request.entry = options.kernel;
  request.signature = options.signature;
  return request;
}

CacheExplanation public_explanation(compile::RequestKey key) {
  return {std::move(key.unsure), std::move(key.key), public_components(key.components)};
}

}  // namespace
}  // namespace session

DiskCacheInfo disk_cache_info() {
  DiskCacheInfo info;
  const Expected<cache::DiskStoreOptions> options = cache::store_options_of_environment();
  if (!options) {
    info.reason = options.errors().front().message;
    return info;
  }
  info.is_on = true;
  info.directory = options->directory;
  info.read_only = options->read_only;
  info.max_bytes = options->max_bytes;
  const Expected<std::vector<cache::ListedEntry>> entries = cache::list_entries(*options);
  if (!entries) {
    info.is_on = false;
    info.reason = entries.errors().front().message;
    return info;
  }
  for (const cache::ListedEntry& entry : *entries) info.size_bytes += entry.size_bytes;
  info.entry_count = entries->size();
  info.set_aside_count = cache::count_set_aside(*options);
  const cache::StoreCounts counts = cache::read_counts(*options);
  info.use = {counts.processes, counts.hits, counts.misses, counts.writes};
  return info;
}

std::vector<CacheEntry> disk_cache_entries() {
  std::vector<CacheEntry> result;
  if (const auto options = session::store_options())
    for (const cache::ListedEntry& entry : session::value_or_throw(cache::list_entries(*options)))
      result.push_back(session::public_entry(entry));
  return result;
}

DiskCacheVerification verify_disk_cache() {
  const auto options = session::store_options();
  if (!options) return {};
  cache::Verification result = session::value_or_throw(cache::verify_entries(*options));
  return {result.checked_count, std::move(result.damaged)};
}

std::size_t clear_disk_cache() {
  const auto options = session::store_options();
  return options ? session::value_or_throw(cache::clear_entries(*options)) : 0;
}

CacheExplanation explain_compile(const std::filesystem::path& file, const StageOptions& options) {
  const abi::KernelRequest request = session::explained_request(file, options);
  return session::public_explanation(session::value_or_throw(compile::shared_compiler()->key_of(request)));
}

std::vector<BundleExplanation> explain_bundles(const std::filesystem::path& file,
                                               const StageOptions& options) {
  std::vector<BundleExplanation> result;
  const cache::BundleSettings settings = cache::bundle_settings_of_environment();
  if (!settings.refusal.empty()) return result;
  for (const std::string& path : settings.paths) {
    cache::Bundle bundle(path, settings.keys);
    const abi::KernelRequest request = session::explained_request(file, options);
    Expected<compile::RequestKey> key = compile::shared_compiler()->key_in_bundle(request, bundle);
    if (!key && key.errors().front().code == "bundle") continue;
    BundleExplanation each{path, false, session::public_explanation(session::value_or_throw(std::move(key)))};
    const Expected<cache::OpenBundle> open = cache::open_bundle(path, settings.keys);
    each.is_held = open && std::ranges::any_of(open->index.rows, [&](const cache::BundleRow& row) {
                     return row.kind == static_cast<std::uint8_t>(cache::EntryKind::ptx_image) &&
                            row.key.hex() == each.explanation.key;
                   });
    result.push_back(std::move(each));
  }
  return result;
}

}  // namespace quern
