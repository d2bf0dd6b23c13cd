// SPDX-License-Identifier: Apache-2.0
#include "quern/disk_cache.hpp"

#include "cache/listing.hpp"
#include "compile/key.hpp"
#include "compile/shared_compiler.hpp"
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
  abi::KernelSource source = session::value_or_throw(session::read_kernel_file(file));
  abi::Target target;
  target.compute = options.compute_capability;
  const abi::Language language = source.language;
  abi::KernelRequest request = session::make_request(std::move(source), options.load, target, nullptr);
  if (language == abi::Language::cuda && options.kernel.find_first_of("<:") != std::string::npos)
    request.name_expressions.push_back(options.kernel);
  request.entry = options.kernel;
  request.signature = options.signature;
  compile::RequestKey key = session::value_or_throw(compile::shared_compiler()->key_of(request));
  return {std::move(key.unsure), std::move(key.key), session::public_components(key.components)};
}

}  // namespace quern
