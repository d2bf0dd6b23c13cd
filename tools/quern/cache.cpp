// SPDX-License-Identifier: Apache-2.0
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <tuple>

#include "arrays/argument.hpp"
#include "command.hpp"
#include "commands.hpp"
#include "terminal/output.hpp"
#include "top_view.hpp"

namespace quern::cli {
namespace {

namespace fs = std::filesystem;
using Components = std::vector<CacheComponent>;

/// File names come from other users, so they are made printable.
std::string shown(std::string_view text) { return printable(text, std::string_view::npos); }

std::string size_text(std::uint64_t bytes) {
  if (bytes < 10'000) return fmt::format("{} B", bytes);
  if (bytes < 10'000'000) return fmt::format("{:.1f} KiB", static_cast<double>(bytes) / 1024);
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / 1048576);
}

std::string time_text(std::int64_t unix_s) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(static_cast<std::time_t>(unix_s)));
}

std::string value_of(const Components& components, const std::string& name) {
  const auto found = std::ranges::find(components, name, &CacheComponent::name);
  return found == components.end() ? "" : found->value;
}

/// The file of a compilation; kernel and block of machine code.
std::string title_of(const Components& components) {
  const std::string file = value_of(components, "file");
  const std::string block = value_of(components, "block");
  if (!file.empty()) return file;
  return value_of(components, "kernel") + (block.empty() ? "" : ", block " + block);
}

/// A part of the key that differs. Several parts with one name, such as included files, are combined.
struct Difference {
  std::string name;
  std::string first;
  std::string second;
};

std::map<std::string, std::string> by_name(const Components& components) {
  std::map<std::string, std::string> result;
  for (const CacheComponent& each : components) {
    const bool is_file = each.name == "included file";
    const std::size_t space = each.value.rfind(' ');
    const std::string name = is_file ? each.name + " " + each.value.substr(0, space) : each.name;
    result[name] = is_file ? each.value.substr(space + 1) : each.value;
  }
  return result;
}

std::vector<Difference> differences(const Components& first, const Components& second) {
  const std::map<std::string, std::string> one = by_name(first);
  const std::map<std::string, std::string> other = by_name(second);
  std::map<std::string, Difference> result;
  for (const auto& [name, value] : one) result[name] = {name, value, ""};
  for (const auto& [name, value] : other) {
    result[name].name = name;
    result[name].second = value;
  }
  // The digest of all includes differs if any of them does, so it gives no information.
  std::vector<Difference> list;
  for (auto& [name, each] : result)
    if (each.first != each.second) list.push_back(std::move(each));
  const bool has_file = std::ranges::any_of(
      list, [](const Difference& each) { return each.name.starts_with("included file"); });
  if (has_file) std::erase_if(list, [](const Difference& each) { return each.name == "includes"; });
  return list;
}

Json to_json(const std::vector<Difference>& list) {
  Json document = Json::array();
  for (const Difference& each : list)
    document.push_back({{"name", each.name}, {"first", each.first}, {"second", each.second}});
  return document;
}

void print(const std::vector<Difference>& list) {
  const auto value = [](const std::string& text) { return text.empty() ? "(none)" : shown(text); };
  for (const Difference& each : list)
    print_text(
        fmt::format("  {}\n    {}\n    {}\n", shown(each.name), value(each.first), value(each.second)));
}

Json to_json(const CacheEntry& entry) {
  Json components = Json::array();
  for (const CacheComponent& each : entry.components)
    components.push_back({{"name", each.name}, {"value", each.value}});
  return {{"key", entry.key},       {"kind", entry.kind},     {"size_bytes", entry.size_bytes},
          {"made_s", entry.made_s}, {"used_s", entry.used_s}, {"components", components}};
}

CacheExplanation explained(const CacheSettings& settings, const std::string& word) {
  const auto [file, kernel] = split_kernel(word);
  StageOptions options = settings.stage;
  options.kernel = kernel;
  options.load.constants = parse_constants(settings.launch);
  return explain_compile(file, options);
}

/// The object that `word` names: a kernel file, or an entry by the first digits of its key.
Components components_of(const CacheSettings& settings, const std::string& word,
                         const std::vector<CacheEntry>& entries) {
  const bool is_key = word.size() >= 4 && word.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (is_key && !fs::exists(word))
    for (const CacheEntry& entry : entries)
      if (entry.key.starts_with(word) && !entry.components.empty()) return entry.components;
  CacheExplanation explanation = explained(settings, word);
  if (!explanation.uncached_reason.empty())
    throw Error(ErrorCode::unsupported, fmt::format("cannot compare {}: it is compiled each time: {}", word,
                                                    explanation.uncached_reason));
  return explanation.components;
}

int why_two(const CacheSettings& settings) {
  const std::vector<CacheEntry> entries = disk_cache_entries();
  const std::vector<Difference> list = differences(components_of(settings, settings.words[0], entries),
                                                   components_of(settings, settings.words[1], entries));
  if (settings.json) {
    print_json({{"first", settings.words[0]}, {"second", settings.words[1]}, {"differences", to_json(list)}});
  } else if (list.empty()) {
    print_text("they are one request: there is no difference\n");
  } else {
    print_text(fmt::format("{} and {} differ in\n", settings.words[0], settings.words[1]));
    print(list);
  }
  return kDone;
}

/// The entry of the same file whose key differs in the fewest parts; if there are several, the youngest.
const CacheEntry* nearest(const std::vector<CacheEntry>& entries, const Components& components) {
  const CacheEntry* best = nullptr;
  std::size_t best_count = 0;
  for (const CacheEntry& entry : entries) {
    if (entry.components.empty() || value_of(entry.components, "file") != value_of(components, "file"))
      continue;
    const std::size_t count = differences(entry.components, components).size();
    if (best != nullptr && (count > best_count || (count == best_count && entry.made_s <= best->made_s)))
      continue;
    best = &entry;
    best_count = count;
  }
  return best;
}

bool is_of_file(const Components& components, const std::string& file) {
  const std::string name = value_of(components, "file");
  return name == file || file.ends_with("/" + name);
}

/// For each bundle: it contains the file, or how its entry of that file differs.
Json why_in_bundles(const CacheSettings& settings, const std::string& file) {
  const auto [path, kernel] = split_kernel(file);
  StageOptions options = settings.stage;
  options.kernel = kernel;
  options.load.constants = parse_constants(settings.launch);
  Json document = Json::array();
  for (const BundleExplanation& each : explain_bundles(path, options)) {
    std::vector<Difference> list;
    std::optional<std::size_t> least;
    if (!each.is_held && each.explanation.uncached_reason.empty())
      for (const CacheEntry& entry : bundle_entries(each.bundle, settings.key)) {
        if (entry.kind != "ptx_image" || !is_of_file(entry.components, path)) continue;
        std::vector<Difference> its = differences(entry.components, each.explanation.components);
        std::erase_if(its, [](const Difference& difference) { return difference.name == "file"; });
        if (least && its.size() >= *least) continue;
        least = its.size();
        list = std::move(its);
      }
    document.push_back({{"bundle", each.bundle},
                        {"kept", each.is_held},
                        {"uncached_reason", each.explanation.uncached_reason},
                        {"differences", to_json(list)}});
    if (settings.json) continue;
    print_text(
        fmt::format("{} is {}in the bundle {}{}\n", file, each.is_held ? "" : "not ", each.bundle,
                    each.is_held || list.empty() ? "" : "; its entry of that file differs in (entry, now)"));
    print(list);
  }
  return document;
}

int why_one(const CacheSettings& settings) {
  const std::string& file = settings.words[0];
  const Json bundles = why_in_bundles(settings, file);
  const CacheExplanation now = explained(settings, file);
  const std::vector<CacheEntry> entries = disk_cache_entries();
  const auto own = std::ranges::find_if(
      entries, [&](const CacheEntry& entry) { return entry.key == now.key && !entry.components.empty(); });
  const bool is_kept = now.uncached_reason.empty() && own != entries.end();
  const CacheEntry* const near =
      is_kept || !now.uncached_reason.empty() ? nullptr : nearest(entries, now.components);
  const std::vector<Difference> list =
      near != nullptr ? differences(near->components, now.components) : std::vector<Difference>();
  if (settings.json) {
    print_json({{"file", file},
                {"kept", is_kept},
                {"uncached_reason", now.uncached_reason},
                {"key", now.key},
                {"bundles", bundles},
                {"nearest", near != nullptr ? near->key : ""},
                {"differences", to_json(list)}});
  } else if (!now.uncached_reason.empty()) {
    print_text(fmt::format("{} is compiled each time: {}\n", file, now.uncached_reason));
  } else if (is_kept) {
    print_text(fmt::format("{} is in the cache: {} {}, {}, made {}\n", file, own->kind,
                           own->key.substr(0, 16), size_text(own->size_bytes), time_text(own->made_s)));
  } else if (near == nullptr) {
    print_text(fmt::format("{} is not in the cache, and no entry is of this file\n", file));
  } else {
    print_text(fmt::format("{} is not in the cache; entry {} differs in (entry, now)\n", file,
                           near->key.substr(0, 16)));
    print(list);
  }
  return kDone;
}

}  // namespace

namespace {

Json bundles_json() {
  Json list = Json::array();
  for (const NamedBundle& bundle : named_bundles())
    list.push_back({{"file", bundle.file},
                    {"refusal", bundle.refusal},
                    {"signed", bundle.info.is_signed},
                    {"entry_count", bundle.info.entry_count},
                    {"size_bytes", bundle.info.size_bytes}});
  return list;
}

void print_bundles() {
  for (const NamedBundle& bundle : named_bundles())
    print_text(bundle.refusal.empty()
                   ? fmt::format("bundle {}: {} entries, {}{}\n", bundle.file, bundle.info.entry_count,
                                 size_text(bundle.info.size_bytes), bundle.info.is_signed ? ", signed" : "")
                   : fmt::format("bundle {}: not used: {}\n", bundle.file, bundle.refusal));
}

}  // namespace

int cache_stats_command(const CacheSettings& settings) {
  const DiskCacheInfo info = disk_cache_info();
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> kinds;
  if (info.is_on)
    for (const CacheEntry& entry : disk_cache_entries()) {
      ++kinds[entry.kind].first;
      kinds[entry.kind].second += entry.size_bytes;
    }
  if (settings.json) {
    Json of_kinds = Json::array();
    for (const auto& [kind, sums] : kinds)
      of_kinds.push_back({{"kind", kind}, {"entry_count", sums.first}, {"size_bytes", sums.second}});
    print_json({{"bundles", bundles_json()},
                {"on", info.is_on},
                {"reason", info.reason},
                {"directory", info.directory},
                {"read_only", info.read_only},
                {"entry_count", info.entry_count},
                {"size_bytes", info.size_bytes},
                {"max_bytes", info.max_bytes},
                {"set_aside_count", info.set_aside_count},
                {"process_count", info.use.process_count},
                {"hits", info.use.hits},
                {"misses", info.use.misses},
                {"writes", info.use.writes},
                {"kinds", of_kinds}});
    return kDone;
  }
  print_bundles();
  if (!info.is_on) {
    print_text(info.reason + "\n");
    return kDone;
  }
  print_text(fmt::format("{}{}\n{} entries, {} of {}; {} damaged ones set aside\n", info.directory,
                         info.read_only ? " (read-only)" : "", info.entry_count, size_text(info.size_bytes),
                         size_text(info.max_bytes), info.set_aside_count));
  const std::uint64_t needed = info.use.hits + info.use.writes;
  if (needed != 0)
    print_text(fmt::format("{} processes needed {} entries and found {} of them ({:.0f}%)\n",
                           info.use.process_count, needed, info.use.hits,
                           100.0 * static_cast<double>(info.use.hits) / static_cast<double>(needed)));
  for (const auto& [kind, sums] : kinds)
    print_text(fmt::format("  {:<16} {:>8} {:>12}\n", kind, sums.first, size_text(sums.second)));
  return kDone;
}

int cache_list_command(const CacheSettings& settings) {
  std::vector<CacheEntry> entries =
      settings.bundle.empty() ? disk_cache_entries() : bundle_entries(settings.bundle, settings.key);
  std::ranges::sort(entries, std::greater(),
                    [](const CacheEntry& entry) { return std::tie(entry.used_s, entry.key, entry.kind); });
  if (settings.json) {
    Json document = Json::array();
    for (const CacheEntry& entry : entries) document.push_back(to_json(entry));
    print_json({{"entries", document}});
    return kDone;
  }
  for (const CacheEntry& entry : entries)
    print_text(fmt::format("{}  {:<15} {:>10}  {}{} {}\n", entry.key.substr(0, 16), entry.kind,
                           size_text(entry.size_bytes),
                           settings.bundle.empty() ? time_text(entry.used_s) + "  " : "",
                           shown(title_of(entry.components)), shown(value_of(entry.components, "options"))));
  return kDone;
}

int cache_why_command(const CacheSettings& settings) {
  return settings.words.size() == 2 ? why_two(settings) : why_one(settings);
}

int verify_bundle_command(const CacheSettings& settings) {
  const BundleInfo info = bundle_info(settings.bundle, settings.key);
  const BundleVerification result = verify_bundle(settings.bundle, settings.key);
  if (settings.json) {
    print_json({{"bundle", settings.bundle},
                {"signed", info.is_signed},
                {"signature_checked", !settings.key.empty()},
                {"checked_count", result.checked_count},
                {"damaged", result.damaged}});
  } else {
    for (const std::string& name : result.damaged) print_text(fmt::format("damaged: {}\n", name));
    print_text(fmt::format("{}, {} entries read, {} damaged\n",
                           !info.is_signed        ? "not signed"
                           : settings.key.empty() ? "signed, not checked without --key"
                                                  : "signature good",
                           result.checked_count, result.damaged.size()));
  }
  return result.damaged.empty() ? kDone : kFailed;
}

int cache_verify_command(const CacheSettings& settings) {
  if (!settings.bundle.empty()) return verify_bundle_command(settings);
  const DiskCacheVerification result = verify_disk_cache();
  if (settings.json) {
    print_json({{"checked_count", result.checked_count}, {"damaged", result.damaged}});
  } else {
    for (const std::string& name : result.damaged) print_text(fmt::format("damaged, set aside: {}\n", name));
    print_text(fmt::format("{} entries read, {} damaged\n", result.checked_count, result.damaged.size()));
  }
  return result.damaged.empty() ? kDone : kFailed;
}

int cache_clear_command(const CacheSettings& settings) {
  const std::size_t count = clear_disk_cache();
  if (settings.json)
    print_json({{"removed_count", count}});
  else
    print_text(fmt::format("{} entries removed\n", count));
  return kDone;
}

}  // namespace quern::cli
