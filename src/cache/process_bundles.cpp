// SPDX-License-Identifier: Apache-2.0
#include <sys/auxv.h>

#include <atomic>
#include <exception>
#include <string_view>

#include "base/env.hpp"
#include "base/log.hpp"
#include "cache/bundle.hpp"

namespace quern::cache {
namespace {

constexpr const char* kPaths = "QUERN_CACHE_BUNDLES";
constexpr const char* kKey = "QUERN_CACHE_BUNDLE_KEY";

std::vector<std::string> paths_of(std::string_view text) {
  std::vector<std::string> paths;
  while (!text.empty()) {
    const std::size_t end = text.find(':');
    const std::string_view path = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (path.starts_with('/'))
      paths.emplace_back(path);
    else if (!path.empty())
      base::warn_of_env(kPaths,
                        std::string(kPaths) +
                            " names a file without an absolute path, which is ignored: " + std::string(path));
  }
  return paths;
}

/// Never destroyed: threads may look for code until the process ends.
struct ProcessBundles {
  std::vector<std::unique_ptr<Bundle>> owners;
  std::vector<Bundle*> bundles;
};

std::unique_ptr<ProcessBundles> make_process_bundles() {
  auto made = std::make_unique<ProcessBundles>();
  BundleSettings settings = bundle_settings_of_environment();
  if (!settings.refusal.empty()) {
    base::warn_of_env(kKey, "no bundle is used: " + settings.refusal);
    return made;
  }
  for (std::string& path : settings.paths) {
    made->owners.push_back(std::make_unique<Bundle>(std::move(path), settings.keys));
    made->bundles.push_back(made->owners.back().get());
  }
  return made;
}

}  // namespace

BundleSettings bundle_settings_of_environment() {
  BundleSettings settings;
  const std::optional<std::string> paths = base::env(kPaths);
  // A program with more rights than its caller must not read what its caller's environment names.
  if (!paths || ::getauxval(AT_SECURE) != 0) return settings;
  settings.paths = paths_of(*paths);
  const std::optional<std::string> key = base::env(kKey);
  if (!key) return settings;
  Expected<base::SigningKeys> keys = base::SigningKeys::read(*key);
  if (keys)
    settings.keys = std::make_shared<const base::SigningKeys>(*std::move(keys));
  else
    settings.refusal = to_string(keys.errors());
  return settings;
}

std::span<Bundle* const> process_bundles() noexcept {
  // Not a static object with a guard: a child that is forked while another thread makes it would wait
  // forever.
  static std::atomic<ProcessBundles*> made{nullptr};
  if (const ProcessBundles* all = made.load()) return all->bundles;
  try {
    std::unique_ptr<ProcessBundles> fresh = make_process_bundles();
    ProcessBundles* expected = nullptr;
    if (made.compare_exchange_strong(expected, fresh.get())) return fresh.release()->bundles;
    return expected->bundles;
  } catch (const std::exception&) {  // no memory
    return {};
  }
}

bool takes_any_bundle_toolkit() {
  constexpr std::string_view kWords[] = {"same", "any"};
  return base::env_word("QUERN_CACHE_BUNDLE_TOOLKIT", kWords, &base::warn_of_env) == 1;
}

std::optional<std::string> find_in_bundles(EntryKind kind, const base::Digest& key) noexcept {
  for (Bundle* const bundle : process_bundles())
    if (std::optional<std::string> content = bundle->get(kind, key)) return content;
  return std::nullopt;
}

}  // namespace quern::cache
