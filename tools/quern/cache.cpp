// SPDX-License-Identifier: Apache-2.0
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "argument.hpp"
#include "command.hpp"
#include "commands.hpp"
#include "output.hpp"

namespace quern::cli {
namespace {

namespace fs = std::filesystem;
using Components = std::vector<CacheComponent>;

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

/// A part of the key that differs; of several with one name, such as included files, all together.
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
  // The digest of all includes differs with each of them, and says less.
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
  const auto shown = [](const std::string& value) { return value.empty() ? std::string("(none)") : value; };
  for (const Difference& each : list)
    print_text(fmt::format("  {}\n    {}\n    {}\n", each.name, shown(each.first), shown(each.second)));
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

/// The entry of the same file whose key differs in the fewest parts; of several, the youngest.
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

int why_one(const CacheSettings& settings) {
  const std::string& file = settings.words[0];
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
    print_json({{"on", info.is_on},
                {"reason", info.reason},
                {"directory", info.directory},
                {"read_only", info.read_only},
                {"entry_count", info.entry_count},
                {"size_bytes", info.size_bytes},
                {"max_bytes", info.max_bytes},
                {"set_aside_count", info.set_aside_count},
                {"kinds", of_kinds}});
    return kDone;
  }
  if (!info.is_on) {
    print_text(info.reason + "\n");
    return kDone;
  }
  print_text(fmt::format("{}{}\n{} entries, {} of {}; {} damaged ones set aside\n", info.directory,
                         info.read_only ? " (read-only)" : "", info.entry_count, size_text(info.size_bytes),
                         size_text(info.max_bytes), info.set_aside_count));
  for (const auto& [kind, sums] : kinds)
    print_text(fmt::format("  {:<16} {:>8} {:>12}\n", kind, sums.first, size_text(sums.second)));
  return kDone;
}

int cache_list_command(const CacheSettings& settings) {
  std::vector<CacheEntry> entries = disk_cache_entries();
  std::ranges::sort(entries, std::greater(), &CacheEntry::used_s);
  if (settings.json) {
    Json document = Json::array();
    for (const CacheEntry& entry : entries) document.push_back(to_json(entry));
    print_json({{"entries", document}});
    return kDone;
  }
  for (const CacheEntry& entry : entries)
    print_text(fmt::format("{}  {:<15} {:>10}  {}  {} {}\n", entry.key.substr(0, 16), entry.kind,
                           size_text(entry.size_bytes), time_text(entry.used_s), title_of(entry.components),
                           value_of(entry.components, "options")));
  return kDone;
}

int cache_why_command(const CacheSettings& settings) {
  return settings.words.size() == 2 ? why_two(settings) : why_one(settings);
}

int cache_verify_command(const CacheSettings& settings) {
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

int cache_warm_command(const CacheSettings& settings) {
  if (const DiskCacheInfo info = disk_cache_info(); !info.is_on)
    throw Error(ErrorCode::unsupported, "cannot warm the compile cache: " + info.reason);
  std::vector<std::string> files;
  for (const fs::directory_entry& each : fs::recursive_directory_iterator(settings.words[0]))
    if (each.path().extension() == ".cu") files.push_back(each.path().string());
  std::ranges::sort(files);
  Json failed = Json::array();
  for (const std::string& file : files) {
    try {
      static_cast<void>(stage_text(file, Stage::ptx, settings.stage));
    } catch (const CompileError& error) {  // which is in the cache now, too
      failed.push_back(file);
      if (!settings.json) print_text(fmt::format("does not compile: {}\n", file));
    }
  }
  if (settings.json)
    print_json({{"file_count", files.size()}, {"failed", failed}});
  else
    print_text(fmt::format("{} files compiled, {} of them with errors\n", files.size(), failed.size()));
  return failed.empty() ? kDone : kFailed;
}

}  // namespace quern::cli
