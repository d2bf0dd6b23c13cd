// SPDX-License-Identifier: Apache-2.0
// quern cache warm: compiles a folder's kernels in advance, for the cache or for a bundle.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "arrays/argument.hpp"
#include "command.hpp"
#include "commands.hpp"
#include "terminal/output.hpp"

namespace quern::cli {
namespace {

namespace fs = std::filesystem;

BundleSignature parse_signature(const std::string& word) {
  const std::size_t equals = word.find('=');
  if (equals == 0 || equals == std::string::npos)
    throw Error(
        ErrorCode::usage,
        fmt::format("cannot read --sig {}\nhint: write KERNEL=TYPES: \"saxpy=float32, float32[::1]\"", word));
  return {word.substr(0, equals), word.substr(equals + 1)};
}

BundleOptions options_of(const CacheSettings& settings) {
  BundleOptions options;
  options.targets = settings.targets;
  for (const std::string& text : settings.blocks) {
    const auto block = parse_dimensions(text, "--block");
    options.blocks.emplace_back(block[0], block[1], block[2]);
  }
  for (const std::string& word : settings.signatures) options.signatures.push_back(parse_signature(word));
  options.load = settings.stage.load;
  options.key_file = settings.key;
  options.thread_count = settings.jobs;
  return options;
}

/// NVRTC completes names with the working directory, which machine code of a GPU keeps: the folder at the top
/// is the same everywhere.
BundleReport make_from_root(const CacheSettings& settings, BundleOptions options) {
  const fs::path folder = fs::absolute(settings.words[0]);
  const fs::path output = fs::absolute(settings.output);
  if (!options.key_file.empty()) options.key_file = fs::absolute(options.key_file);
  for (std::string& directory : options.load.include_dirs) directory = fs::absolute(directory).string();
  fs::current_path("/");
  return make_bundle(folder, output, options);
}

Json to_json(const std::vector<BundleProblem>& problems) {
  Json list = Json::array();
  for (const BundleProblem& each : problems)
    list.push_back({{"file", each.file}, {"kernel", each.kernel}, {"reason", each.reason}});
  return list;
}

void print(const char* title, const std::vector<BundleProblem>& problems) {
  for (const BundleProblem& each : problems) {
    const std::string name = each.kernel.empty() ? each.file : each.file + "::" + each.kernel;
    print_text(fmt::format("{} {}: {}\n", title, name, each.reason));
    for (const Diagnostic& message : each.messages)
      if (message.severity == Severity::error) print_text(to_string(Diagnostics{message}));
  }
}

}  // namespace

int cache_warm_command(const CacheSettings& settings) {
  const BundleOptions options = options_of(settings);
  const bool is_bundle = !settings.output.empty();
  if (!is_bundle && !settings.blocks.empty())
    throw Error(ErrorCode::usage, "--block is for bundles\nhint: name one with -o");
  if (const DiskCacheInfo info = disk_cache_info(); !is_bundle && !info.is_on)
    throw Error(ErrorCode::unsupported, "cannot warm the compile cache: " + info.reason);
  const BundleReport report =
      is_bundle ? make_from_root(settings, options) : warm_disk_cache(settings.words[0], options);
  if (settings.json) {
    Json document = {{"file_count", report.file_count},
                     {"compiled_count", report.compiled_count},
                     {"failed", to_json(report.failed)},
                     {"skipped", to_json(report.skipped)}};
    if (is_bundle)
      document.update({{"output", settings.output},
                       {"entry_count", report.entry_count},
                       {"size_bytes", report.size_bytes}});
    print_json(document);
  } else {
    print("failed", report.failed);
    print("skipped", report.skipped);
    print_text(fmt::format("{} files: {} modules compiled, {} failed, {} skipped\n", report.file_count,
                           report.compiled_count, report.failed.size(), report.skipped.size()));
    if (is_bundle)
      print_text(fmt::format("{}: {} entries, {} bytes{}\n", settings.output, report.entry_count,
                             report.size_bytes, settings.key.empty() ? "" : ", signed"));
  }
  return report.failed.empty() ? kDone : kFailed;
}

}  // namespace quern::cli
